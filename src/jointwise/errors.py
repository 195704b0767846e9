"""Errors that a user can act on: what was wrong, what was allowed, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class JointwiseError(Exception):
    """Base of every error that Jointwise raises on purpose; its text is one line for the user."""


class DescriptionError(JointwiseError):
    """A robot description cannot be read or contradicts itself; names the file and the place."""


class DataError(JointwiseError):
    """A log cannot be read or cannot be trusted; names the file, the row and the column."""


class ShapeError(JointwiseError, ValueError):
    """An array has the wrong shape, type or non-finite values."""


class MissingExtraError(JointwiseError, ImportError):
    """An optional library is not installed; names the extra that brings it."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        """State what is missing and the one command that installs it."""
        super().__init__(f"{purpose} needs {library}. Install it with: pip install 'jointwise[{extra}]'")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `known` as a hint for a misspelt `name`: the closest names, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(names)}."


class ModelError(JointwiseError):
    """A model document or a choice of terms makes no sense."""


class EstimationError(JointwiseError):
    """The data cannot determine what was asked."""


class OutputError(JointwiseError):
    """A result cannot be written; nothing is left half-written."""
