"""Chooses between the native kernels and their NumPy twin, once."""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from types import ModuleType

VARIABLE = "JOINTWISE_NATIVE"


class NativeKernelWarning(UserWarning):
    """The native kernel is not built; results are the same, slower."""


@cache
def kernels() -> ModuleType:
    """Return `jointwise._native`, or the twin if it is switched off (``JOINTWISE_NATIVE=0``) or not built."""
    if os.environ.get(VARIABLE) != "0":
        try:
            return import_module("jointwise._native")
        except ImportError:
            warnings.warn(
                "the native kernel is not built: using NumPy, which is slower. With a C compiler, reinstall jointwise; "
                f"to use NumPy silently set {VARIABLE}=0.",
                NativeKernelWarning,
                stacklevel=2,
            )
    from jointwise.model.rigid import twin

    return twin


def is_native() -> bool:
    """Tell whether the native kernels are in use."""
    return kernels().__name__.endswith("_native")
