"""What a check of a set-up found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from jointwise.formatting import listed

Status = Literal["ok", "suspect", "contradicted"]
"""ok: nothing explains the data better; suspect: something else probably does; contradicted: it certainly does."""

UNDECIDED = "the data cannot decide: {} would fit as well"
"""Evidence where another declaration fits as well as the declared one."""
ANOTHER = "another {} of {}"
"""An alternative that fits with any value: direction, zero or gain of some joints."""
RELEVANT = ("robot", "mounting", "joint order", "output order", "position order", "payload")
"""Alternatives that change what a model means, in the order in which a summary names them."""


def joint_text(joints: Sequence[int]) -> str:
    """Return `joint 2`, `joints 2 and 3` (0-based indices), or `all joints` of none."""
    if not joints:
        return "all joints"
    return f"joint{'s' * (len(joints) > 1)} {listed(str(j + 1) for j in joints)}"


@dataclass(frozen=True)
class Check:
    """Result of checking one part of a set-up.

    Attributes:
        check: What was checked.
        status: "ok", "suspect" (something else probably explains the data better) or "contradicted" (it certainly
            does).
        evidence: Evidence in words.
        suggestion: What to do; "" where there is nothing to do.
    """

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
    """Return in one sentence which other declarations fit as well as the declared one; empty if there are none.

    It names what changes the meaning of a model, and directions, zeros and gains by joint; delays and springs that
    merely do no harm are left to the list of checks.
    """
    before, after = UNDECIDED.split("{}")
    others = {c.check: c.evidence.removeprefix(before).removesuffix(after) for c in checks if c.undecided}
    texts = [others[name] for name in RELEVANT if name in others]
    texts += _any_values(text for name, text in others.items() if name not in RELEVANT)
    return UNDECIDED.format(", or ".join(texts)) if texts else ""


def _any_values(texts: Iterable[str]) -> Iterator[str]:
    """Yield `another direction or zero of joint 6` from one text for each quantity; others are dropped."""
    found: dict[str, list[str]] = {}
    for text in texts:
        if match := re.fullmatch(ANOTHER.format(r"(\w+)", "(.*)"), text):
            found.setdefault(match[2], []).append(match[1])
    for joints, names in found.items():
        yield ANOTHER.format(listed(dict.fromkeys(names), "or"), joints)


REFUSALS = {
    "logs": "the logs contradict each other",
    "dropped samples": "samples of the output are missing",
    "resolution": "the output is too coarse",
}
"""How a refusal begins if its cause is no declaration."""


def refusal(checks: Sequence[Check]) -> str:
    """Return in one line what contradicts, what would fit, and how to declare it."""
    first, *more = with_status(checks, "contradicted")
    others = f" (also contradicted: {', '.join(check.check for check in more)})" if more else ""
    what = REFUSALS.get(first.check, f"the data contradict the declared {first.check}")
    return f"{what}: {first.line()}{others}"
