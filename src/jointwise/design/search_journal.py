"""Finished steps of a search in a file, so that an interrupted search can be resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from jointwise.document import Kind, load_document, write_document
from jointwise.errors import ModelError


@dataclass(frozen=True)
class Step:
    """A finished step of a search: the value of its result, and its variables."""

    value: float
    variables: list[float]


@dataclass
class Journal:
    """The finished steps of a search; `key` identifies its settings."""

    key: str
    steps: list[Step] = field(default_factory=list)


class Resumable:
    """Runs the steps of a search in order; those that a state file has are not run again.

    `finished` is the number of steps so far, run or read.
    """

    def __init__(self, kind: Kind, key: str, state: Path | None) -> None:
        """Read the state file, if there is one.

        Args:
            kind: Kind of the state file.
            key: Text that differs for searches with different results.
            state: The file; None to store nothing.

        Raises:
            ModelError: The file belongs to a search with other settings.

        """
        self._kind, self._state = kind, state
        self._journal = Journal(key) if state is None or not state.exists() else load_document(state, kind, Journal)
        if self._journal.key != key:
            raise ModelError(
                f"{state}: the interrupted search has other settings. Repeat its options, or choose another directory."
            )
        self.finished = 0

    def step(self, make: Callable[[], Step]) -> Step:
        """Return the next step: from the file, or made and stored."""
        self.finished += 1
        if self.finished <= len(self._journal.steps):
            return self._journal.steps[self.finished - 1]
        result = make()
        self._journal.steps.append(result)
        if self._state is not None:
            write_document(self._kind.stamped(asdict(self._journal)), self._state)
        return result
