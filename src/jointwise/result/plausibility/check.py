"""What a check of a set-up found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal["ok", "suspect", "contradicted"]
"""ok: nothing explains the data better; suspect: something else probably does; contradicted: it certainly does."""

UNDECIDED = "the data cannot decide: {} would fit as well"
"""Evidence where another declaration fits as well as the declared one."""


@dataclass(frozen=True)
class Check:
    """One part of a set-up: what was checked, the status, the evidence in words, and what to do."""

    check: str
    status: Status
    evidence: str
    suggestion: str = ""

    @property
    def undecided(self) -> bool:
        """Whether another declaration fits as well as the declared one."""
        before, after = UNDECIDED.split("{}")
        return self.evidence.startswith(before) and self.evidence.endswith(after)

    def line(self) -> str:
        """Return evidence and suggestion as one line."""
        return f"{self.evidence}. {self.suggestion}".strip()


def worst_status(checks: Iterable[Check]) -> Status:
    """Return the gravest status of some checks."""
    return max((check.status for check in checks), key=get_args(Status).index, default="ok")


def with_status(checks: Sequence[Check], status: Status) -> list[Check]:
    """Return the checks with a status."""
    return [check for check in checks if check.status == status]


def undecided_text(checks: Iterable[Check]) -> str:
    """Return in one sentence which other declarations fit as well as the declared one; empty if there are none."""
    before, after = UNDECIDED.split("{}")
    others = [c.evidence.removeprefix(before).removesuffix(after) for c in checks if c.undecided]
    return UNDECIDED.format(", or ".join(others)) if others else ""


REFUSALS = {"logs": "the logs contradict each other", "dropped samples": "samples of the output are missing"}
"""How a refusal begins if its cause is no declaration."""


def refusal(checks: Sequence[Check]) -> str:
    """Return in one line what contradicts, what would fit, and how to declare it."""
    first, *more = with_status(checks, "contradicted")
    others = f" (also contradicted: {', '.join(check.check for check in more)})" if more else ""
    what = REFUSALS.get(first.check, f"the data contradict the declared {first.check}")
    return f"{what}: {first.line()}{others}"
