"""The native side of the digital robot; there is no twin."""

from __future__ import annotations

from types import ModuleType

from jointwise.backend import native
from jointwise.errors import ModelError


def kernel() -> ModuleType:
    """Return `jointwise._native`, or say that the digital robot needs it."""
    module = native()
    if module is None:
        raise ModelError("the digital robot needs the native kernel. Reinstall jointwise with a C compiler.")
    return module
