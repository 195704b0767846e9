"""Parameters: values with 95 % confidence intervals, and which parameters are identifiable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from jointwise.estimation.physical import PhysicalParameters
from jointwise.formatting import MISSING, number, superscript_unit
from jointwise.model.terms import Hysteresis, Term
from jointwise.report.data import ReportData
from jointwise.report.page import Html, badge, details, element, join, joint_title, paragraph, table, tabs
from jointwise.result.calibration import Calibration
from jointwise.result.diagnostics import term_slices

STATUS = {
    "determined": ("significant", "good"),
    "weak": ("weak", "fair"),
    "at bound": ("at bound", "plain"),
    "given": ("fixed", "plain"),
    "dropped": ("dropped", "plain"),
    "undetermined": ("not identifiable", "poor"),
}
"""Status of an estimate: its name in the report, and its tone."""
KINDS = {
    "offset": "constant torque",
    "inertia": "reflected inertia of the rotor",
    "coulomb": "Coulomb friction",
    "rated": "friction with hysteresis and rate dependence",
    "viscous": "viscous friction",
    "stribeck": "Stribeck effect: additional friction at low speed",
    "power_flow": "gear friction by direction of power flow",
    "speed_ripple": "response of the drive to speed ripple",
}
"""Meaning of the parameters of a term."""
IDENTIFIABILITY = {
    "alone": ("●", "individually identifiable"),
    "combination": ("◐", "identifiable in linear combinations only"),
    "none": ("–", "no effect on the joint torques"),
}
LARGEST_RELATIVE_ERROR = 1000.0
"""Relative standard errors (%) above this are not shown in digits."""


def _causes(calibration: Calibration) -> Html:
    """Return what makes the confidence intervals of the links wide."""
    causes = [f"{cause} {100.0 * share:.0f} %" for cause, share in calibration.estimate.shares.items()]
    text = f"Variance of the base parameters by cause, mean over the parameters: {', '.join(causes)}."
    repeated = calibration.provenance.repetition_text()
    lines = [text] if causes else []
    lines += [f"{repeated[0].upper()}{repeated[1:]}."] if repeated else []
    return join([paragraph(line, class_="small") for line in lines])


def parameters_section(data: ReportData) -> Html:
    """Return the counts, a table for the links and one for each joint, and the standard parameters."""
    calibration = data.calibration
    split = calibration.model.base.count
    panels = [("Links", _table(calibration, "Base parameters of the links", range(split)))]
    for j, columns in enumerate(calibration.model.joint_slices):
        title = joint_title(data.robot, j)
        if columns.stop > columns.start:
            panels.append((title, _table(calibration, f"{title}: friction", range(columns.start, columns.stop))))
    note = paragraph(
        "Parameters at bound, and weak ones of the joints, are omitted in print.", class_="print-only small"
    )
    scale = paragraph(calibration.scale_text, class_="warning") if calibration.scale_text else Html("")
    head = [scale, _counts(calibration), _causes(calibration), note]
    return join([*head, tabs("Parameters of", panels), _bodies(data), _standard(data)])


def _counts(calibration: Calibration) -> Html:
    split, status = calibration.model.base.count, calibration.estimate.status
    explanation = (
        "Significant: the 95 % confidence interval does not contain zero. Weak: it does. At bound: the parameter "
        "cannot be negative and the best estimate is zero; this is normal for slip elements of hysteresis, of which "
        "the model offers more than necessary. Not identifiable: the data do not determine the parameter, so no value "
        "is shown. Dropped: set to zero because neither the data nor the prediction need it. The intervals come from a "
        "block jackknife, which accounts for correlated residuals."
    )
    return join(
        [_badges("Links", status[:split]), _badges("Joints", status[split:]), paragraph(explanation, class_="hint")]
    )


def _badges(group: str, status: Sequence[str]) -> Html:
    count = Counter(status)
    badges = (
        element("span", badge(f"{count[key]} {name}", tone), " ") for key, (name, tone) in STATUS.items() if count[key]
    )
    return element("p", element("strong", f"{group}, {len(status)} parameters: "), *badges) if status else Html("")


def _table(calibration: Calibration, caption: str, which: range) -> Html:
    meanings = [*_formulas(calibration), *(text for terms in calibration.model.terms for text in _meanings(terms))]
    head = (
        *("Name", "Value", "Unit", "95 % confidence interval", "Rel. std. error [%]"),
        *("Status", "Most correlated with", "Meaning"),
    )
    rows = [_row(calibration, k, meanings[k]) for k in which]
    return table(caption, head, rows, text_columns=(0, 2, 5, 6, 7))


def _row(calibration: Calibration, k: int, meaning: str) -> Sequence[object]:
    estimate, info = calibration.estimate, calibration.model.parameters[k]
    word, tone = STATUS[estimate.status[k]]
    weak = estimate.status[k] == "weak" and info.joint is not None
    bound = "at-bound" if weak or estimate.status[k] == "at bound" else None
    name, unit = element("span", info.name, title=meaning, class_=bound), superscript_unit(calibration.unit_of(k))
    last = (badge(word, tone), _partner(calibration, k), element("span", meaning, class_="formula", title=meaning))
    if estimate.status[k] in ("undetermined", "at bound", "dropped"):
        value = MISSING if estimate.status[k] == "undetermined" else "0"
        return (name, value, unit, MISSING, MISSING, *last)
    if not calibration.scale_known:
        return (name, number(float(estimate.values[k])), unit, MISSING, MISSING, *last)
    low, high = (number(bound) for bound in calibration.conf_int()[k].tolist())
    relative = _relative(float(estimate.relative[k]))
    return (name, number(float(estimate.values[k])), unit, f"[{low}, {high}]", relative, *last)


def _relative(value: float) -> str:
    return number(value, 3) if value <= LARGEST_RELATIVE_ERROR else f"> {LARGEST_RELATIVE_ERROR:.0f}"


def _formulas(calibration: Calibration) -> Iterator[str]:
    """Yield every base parameter as a linear combination of the standard parameters."""
    for name, formula in zip(calibration.model.base.names, calibration.model.base.formulas, strict=True):
        combination = formula.removeprefix(f"{name} = ")
        yield "individually identifiable" if combination == name else combination


def _partner(calibration: Calibration, k: int) -> str:
    partner, correlation = calibration.estimate.worst_partner(k)
    return MISSING if partner == k else f"{calibration.model.parameters[partner].name} ({correlation:+.2f})"


def _meanings(terms: Sequence[Term]) -> Iterator[str]:
    """Yield the meaning of every parameter of a joint."""
    for term, columns in term_slices(terms):
        for k in range(columns.stop - columns.start):
            yield _slip_element(term, k) if isinstance(term, Hysteresis) else KINDS.get(term.kind, term.kind)


def _slip_element(term: Hysteresis, k: int) -> str:
    """Return the meaning of a parameter of hysteresis."""
    if k >= len(term.limits):
        return f"load-dependent Coulomb friction ({term.load}), driven by {term.driver}"
    return f"slip element driven by {term.driver}, slips at {1e3 * term.limits[k]:.2g} mrad"


def _bodies(data: ReportData) -> Html:
    """Return the physically consistent bodies, and how far each number rests on the data."""
    physical = data.calibration.physical
    if physical is None:
        return Html("")
    rows = [_body_row(physical, j) for j in range(len(physical.names))]
    head = (
        *("Link", "Mass [kg]", "Centre of mass x, y, z [m]", "Principal inertias [kg m²]", "Rotor inertia [kg m²]"),
        *("Share of the data: mass", "centre", "inertia", "At the boundary"),
    )
    cost = (
        ""
        if physical.held_out is None
        else f" They change the held-out error by {100 * physical.held_out.cost:+.2g} %."
    )
    text = (
        f"Bodies that can exist (positive definite pseudo-inertias), closest to the data and then to the prior "
        f"({physical.prior_source}, weight {physical.prior_weight:.0e}). A share of 1 means that a number follows from "
        f"the data, 0 from the prior.{cost}"
    )
    if physical.suspect_masses:
        text += f" Check the description, payload and drive gains: {', '.join(physical.suspect_masses)}."
    grid = table("Physically consistent bodies", head, rows, text_columns=(0, 8))
    return join([element("h3", "Bodies"), paragraph(text), grid])


def _body_row(physical: PhysicalParameters, j: int) -> Sequence[object]:
    link, share = physical.links[j], physical.share[j]
    principal = np.linalg.eigvalsh(link.inertia_at_center)
    return (
        link.name,
        number(link.mass, 3),
        ", ".join(number(round(float(c), 6) + 0.0, 3) for c in link.center_of_mass),
        ", ".join(number(float(c), 3) for c in principal),
        number(float(physical.rotor_inertias[j]), 3),
        *(f"{value:.2f}" for value in (share[9], share[6:9].mean(), share[:6].mean())),
        "yes" if j in physical.boundary else "no",
    )


def _standard(data: ReportData) -> Html:
    """Return which standard parameters of the links are identifiable from joint torques in principle."""
    base = data.calibration.model.base
    stems = list(dict.fromkeys(name.rstrip("0123456789") for name in base.standard_names))
    rows = [
        (joint_title(data.robot, j), *(_mark(base.classification.get(f"{stem}{j + 1}")) for stem in stems))
        for j in range(data.robot.dof)
    ]
    count = Counter(base.classification.values())
    summary = (
        f"Of {len(base.standard_names)} standard parameters, {count['alone']} are individually identifiable, "
        f"{count['combination']} only in linear combinations, and {count['none']} have no effect on the joint torques. "
        "This follows from the kinematics and the mounting, whatever the data."
    )
    legend = paragraph("   ".join(f"{sign} {text}" for sign, text in IDENTIFIABILITY.values()), class_="small")
    head = ("Link of", *stems)
    grid = table("Standard parameters of every link", head, rows, text_columns=range(len(stems) + 1))
    heading = element("h3", "Identifiability of the standard parameters")
    return join([heading, paragraph(summary), details("Show all", grid, legend)])


def _mark(kind: str | None) -> Html:
    if kind is None:
        return element("span", "")
    sign, text = IDENTIFIABILITY[kind]
    return element("span", sign, title=text, role="img", aria_label=text, class_=f"known-{kind}")
