"""Chooses between the native kernels and their NumPy twins, once."""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from types import ModuleType

VARIABLE = "JOINTWISE_NATIVE"


class NativeKernelWarning(UserWarning):
    """The native kernel is not built: NumPy gives the same results, slower; the digital robot does not run."""


@cache
def native() -> ModuleType | None:
    """Return `jointwise._native`, or None if it is switched off (``JOINTWISE_NATIVE=0``) or not built."""
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        return import_module("jointwise._native")
    except ImportError:
        warnings.warn(
            "the native kernel is not built: NumPy is used, which is slower, and the simulated robot (simulate, demo) "
            f"does not run. Reinstall jointwise with a C compiler, or set {VARIABLE}=0 to hide this line.",
            NativeKernelWarning,
            stacklevel=2,
        )
        return None
