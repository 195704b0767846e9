"""The native side of the digital robot; there is no twin."""

from __future__ import annotations

import os
from types import ModuleType

from jointwise.backend import VARIABLE, native
from jointwise.errors import ModelError


def kernel() -> ModuleType:
    """Return `jointwise._native`, or say that the digital robot needs it."""
    module = native()
    if module is None:
        raise ModelError(f"the digital robot needs the native kernel. {_remedy()}")
    return module


def _remedy() -> str:
    if os.environ.get(VARIABLE) == "0":
        return f"It is switched off: unset {VARIABLE}."
    return "Reinstall jointwise with a C compiler."
