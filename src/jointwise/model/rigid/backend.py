"""The rigid-body kernels in use: native, or their NumPy twin."""

from __future__ import annotations

from types import ModuleType

from jointwise.backend import NativeKernelWarning, native
from jointwise.model.rigid import twin

__all__ = ["NativeKernelWarning", "is_native", "kernels"]


def kernels() -> ModuleType:
    """Return `jointwise._native`, or the twin, which has the same functions."""
    return native() or twin


def is_native() -> bool:
    """Tell whether the native kernels are in use."""
    return native() is not None
