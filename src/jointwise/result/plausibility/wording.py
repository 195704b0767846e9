"""The wording of set-up checks: the set-up in one word, what the data cannot decide, and why it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jointwise.finding import Finding, Severity, with_severity, worst
from jointwise.formatting import listed

Setup = Literal["ok", "suspect", "contradicted"]
"""ok: nothing explains the data better; suspect: something else probably does; contradicted: it certainly does."""
SETUP: dict[Severity, Setup] = {"ok": "ok", "info": "ok", "warning": "suspect", "error": "contradicted"}

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


def setup_of(findings: Iterable[Finding]) -> Setup:
    """Return the set-up in one word: that of the most severe finding."""
    return SETUP[worst(findings)]


def setup_entry(finding: Finding) -> dict[str, Any]:
    """Return a finding for JSON, with the names of earlier versions: check, status and suggestion."""
    return {**finding.to_dict(check="subject", suggestion="advice"), "status": SETUP[finding.severity]}


@dataclass(frozen=True)
class SetupEntry:
    """A finding in a file, as `setup_entry` writes it; earlier versions wrote the first four entries only."""

    check: str
    status: Setup
    evidence: str
    suggestion: str = ""
    code: str = ""
    severity: Severity = "ok"
    subject: str = ""
    advice: str = ""
    joint: int | None = None
    channel: str | None = None
    span: tuple[float, float] | None = None

    @property
    def finding(self) -> Finding:
        """The finding itself."""
        severity = next(each for each, word in SETUP.items() if word == self.status)
        code = self.code or ("undecided" if self.evidence.startswith(UNDECIDED.partition("{}")[0]) else "")
        joint = None if self.joint is None else self.joint - 1
        return Finding(severity, self.check, self.evidence, self.suggestion, code, joint, self.channel, self.span)


def undecided_text(findings: Iterable[Finding]) -> str:
    """Return in one sentence which other declarations fit as well as the declared one; empty if there are none.

    It names what changes the meaning of a model, and directions, zeros and gains by joint; delays and springs that
    merely do no harm are left to the list of checks.
    """
    before, after = UNDECIDED.split("{}")
    others = {
        each.subject: each.evidence.removeprefix(before).removesuffix(after)
        for each in findings
        if each.code == "undecided"
    }
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


def refusal(findings: Sequence[Finding]) -> str:
    """Return in one line what contradicts, what would fit, and how to declare it."""
    first, *more = with_severity(findings, "error")
    others = f" (also contradicted: {', '.join(each.subject for each in more)})" if more else ""
    what = REFUSALS.get(first.subject, f"the data contradict the declared {first.subject}")
    return f"{what}: {first.sentence}{others}"
