"""Parameters: values, intervals, and what the data can tell at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from jointwise.model.terms import Hysteresis, Term
from jointwise.report.evidence import Evidence
from jointwise.report.friction import term_slices
from jointwise.report.markup import Html, badge, details, element, join, paragraph, table, tabs
from jointwise.report.numbers import NOTHING, joint_title, number, written_unit
from jointwise.result.calibration import Calibration

ID, TITLE = "parameters", "Parameters"

STATUS = {
    "determined": ("determined", "good"),
    "weak": ("weak", "fair"),
    "at bound": ("at bound", "plain"),
    "given": ("given", "plain"),
    "undetermined": ("undetermined", "poor"),
}
KINDS = {
    "offset": "constant torque",
    "coulomb": "dry friction",
    "rated": "dry friction with memory and rate",
    "viscous": "friction that grows with speed",
    "stribeck": "extra friction of slow motion",
    "power_flow": "gear friction by direction of power",
    "speed_ripple": "drive's answer to speed ripple",
}
IDENTIFIABILITY = {"alone": ("●", "alone"), "combination": ("◐", "in combination"), "none": ("–", "no effect")}


def body(evidence: Evidence) -> Html:
    """Return the counts, a table of the bodies and one a joint, and the standard parameters."""
    calibration = evidence.calibration
    panels = [("Bodies", _table(calibration, "Base parameters of the bodies", range(calibration.model.base.count)))]
    for j, own in enumerate(calibration.model.joint_slices):
        title = joint_title(evidence.robot, j)
        if own.stop > own.start:
            panels.append((title, _table(calibration, f"{title}: its own torques", range(own.start, own.stop))))
    return join([_counts(calibration), tabs("Parameters of", panels), _standard(evidence)])


def _counts(calibration: Calibration) -> Html:
    split, status = calibration.model.base.count, calibration.estimate.status
    return join(
        [
            _badges("Bodies", status[:split]),
            _badges("Joints", status[split:]),
            paragraph(
                "Determined: zero lies outside the 95 % interval. Weak: inside it. At bound: physics forbids negative "
                "values and the data ask for no more than zero; hysteresis is offered more slip elements than it "
                "needs, so many end there and nothing is missing. Undetermined: the data leave it open, so it has no "
                "number here. Intervals come from leaving out stretches of time in turn, so that coloured residuals "
                "do not make them too narrow.",
                class_="hint",
            ),
        ]
    )


def _badges(whose: str, status: Sequence[str]) -> Html:
    count = Counter(status)
    badges = (
        element("span", badge(f"{count[key]} {key}", tone), " ") for key, (_, tone) in STATUS.items() if count[key]
    )
    return element("p", element("strong", f"{whose}, {len(status)}: "), *badges) if status else Html("")


def _table(calibration: Calibration, caption: str, which: range) -> Html:
    meanings = [
        *_formulas(calibration),
        *(own for terms in calibration.model.terms for own in _meanings(terms)),
    ]
    head = ("Name", "Value", "Unit", "95 % interval", "Rel. sd %", "Status", "Correlates with", "Meaning")
    return table(caption, head, [_row(calibration, k, meanings[k]) for k in which], words=(0, 2, 5, 6, 7))


def _row(calibration: Calibration, k: int, meaning: str) -> Sequence[object]:
    estimate, info = calibration.estimate, calibration.model.parameters[k]
    word, tone = STATUS[estimate.status[k]]
    name = element("span", info.name, title=meaning)
    unit = written_unit(info.unit)
    last = (badge(word, tone), _partner(calibration, k), element("span", meaning, class_="formula", title=meaning))
    if estimate.status[k] == "undetermined":
        return (name, NOTHING, unit, NOTHING, NOTHING, *last)
    if estimate.status[k] == "at bound":
        return (name, "0", unit, NOTHING, NOTHING, *last)
    low, high = calibration.interval(k)
    return (
        name,
        number(float(estimate.values[k])),
        unit,
        f"{number(low)} … {number(high)}",
        _relative(float(estimate.relative[k])),
        *last,
    )


def _relative(value: float) -> str:
    """Return a relative deviation in %; beyond 1000 the digits say nothing."""
    return number(value, 3) if value <= 1000.0 else "> 1000"


def _formulas(calibration: Calibration) -> Iterator[str]:
    """Yield every base parameter in terms of the standard ones."""
    for name, formula in zip(calibration.model.base.names, calibration.model.base.formulas, strict=True):
        combination = formula.removeprefix(f"{name} = ")
        yield "known by itself" if combination == name else combination


def _partner(calibration: Calibration, k: int) -> str:
    partner, correlation = calibration.estimate.worst_partner(k)
    return NOTHING if partner == k else f"{calibration.model.parameters[partner].name} ({correlation:+.2f})"


def _meanings(terms: Sequence[Term]) -> Iterator[str]:
    """Yield what every parameter of a joint stands for."""
    for term, own in term_slices(terms):
        for k in range(own.stop - own.start):
            yield _slip(term, k) if isinstance(term, Hysteresis) else KINDS.get(term.kind, term.kind)


def _slip(term: Hysteresis, k: int) -> str:
    """Return what a parameter of hysteresis stands for."""
    if k >= len(term.limits):
        return f"dry friction that grows with load ({term.load}), on {term.driver}"
    return f"slip element on {term.driver}, slips after {1e3 * term.limits[k]:.2g} mrad"


def _standard(evidence: Evidence) -> Html:
    """Return which standard parameters of the links can be known from torques at all."""
    base = evidence.calibration.model.base
    stems = list(dict.fromkeys(name.rstrip("0123456789") for name in base.standard_names))
    rows = [
        (joint_title(evidence.robot, j), *(_mark(base.classification.get(f"{stem}{j + 1}")) for stem in stems))
        for j in range(evidence.robot.dof)
    ]
    count = Counter(base.classification.values())
    summary = (
        f"Of {len(base.standard_names)} standard parameters {count['alone']} can be known alone, "
        f"{count['combination']} only in combination, {count['none']} have no effect on the torques."
    )
    legend = paragraph(
        "● alone   ◐ in combination   – no effect. This follows from the geometry and the mounting, whatever the data.",
        class_="small",
    )
    grid = table("Standard parameters of every link", ("Link of", *stems), rows, words=range(len(stems) + 1))
    return join(
        [
            element("h3", "What torques can tell of the links"),
            paragraph(summary),
            details("Show them all", grid, legend),
        ]
    )


def _mark(kind: str | None) -> Html:
    if kind is None:
        return element("span", "")
    sign, word = IDENTIFIABILITY[kind]
    return element("span", sign, title=word, role="img", aria_label=word, class_=f"known-{kind}")
