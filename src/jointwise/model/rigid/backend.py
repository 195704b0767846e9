"""The rigid-body kernels in use: native, or their NumPy numpy_kernels."""

from __future__ import annotations

from types import ModuleType

from jointwise.backend import NativeKernelWarning, native
from jointwise.model.rigid import numpy_kernels

__all__ = ["NativeKernelWarning", "is_native", "kernels"]


def kernels() -> ModuleType:
    """Return `jointwise._native`, or the NumPy kernels, which have the same functions."""
    return native() or numpy_kernels


def is_native() -> bool:
    """Return whether the native kernels are in use."""
    return native() is not None
