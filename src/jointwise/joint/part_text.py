"""An identified phenomenon as text and as a data frame: parameters, confidence intervals, candidate models, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.formatting import table
from jointwise.lazy import import_pandas

if TYPE_CHECKING:
    from pandas import DataFrame

    from jointwise.joint.part import Part
    from jointwise.joint.record import JointRecord


def part_text(part: Part) -> str:
    """Return the tables and notes of a part."""
    lines = [
        f"{part.phenomenon}: {part.model}",
        f"{fit_text(part.fitted, part.held_out)}, from {', '.join(part.logs) or 'memory'}",
    ]
    rows = [(v.name, *(_short(x, v.digits) for x in (v.value, v.low, v.high)), v.unit) for v in part.values]
    if rows:
        lines.append(table(("parameter", "value", "95 % from", "to", "unit"), rows))
    tried = [
        (item.model, round(item.fitted, 1), None if item.held_out is None else round(item.held_out, 1), item.note)
        for item in part.alternatives
    ]
    if len(tried) > 1:
        lines.append(table(("model", f"fit % {part.tried_on}", "fit % held out", ""), tried))
    return "\n".join([*lines, *(f"  {note}" for note in part.notes)])


def _short(value: float, digits: int) -> str:
    return f"{float(f'{value:.{digits}g}'):.9g}"


def fit_text(fitted: float, held_out: float | None) -> str:
    """Return the fit (`nrmse_percent`) on all data and on held-out data as a text for people."""
    held = "" if held_out is None else f", {held_out:z.1f} % on held-out data"
    return f"fit {fitted:z.1f} % on all data{held} (100 is perfect)"


def part_frame(part: Part) -> DataFrame:
    """Return the parameters of a part as a pandas data frame; see `Part.to_dataframe`."""
    pd = import_pandas()
    rows = [(v.unit, v.value, v.deviation, v.low, v.high) for v in part.values]
    index = pd.Index([v.name for v in part.values], name="parameter")
    return pd.DataFrame(rows, index=index, columns=["unit", "value", "std_error", "low", "high"])


def common_notes(part: Part, record: JointRecord) -> list[str]:
    """Return the notes that apply to every phenomenon: a better alternative, the drive gain, and missing masses."""
    return [note for note in (_alternative_note(part), _gain_note(part, record), _mass_note(part, record)) if note]


def _alternative_note(part: Part) -> str:
    """Return a note if another model fits the held-out data better; they are not used for selection."""
    figures = {tried.model: round(tried.held_out, 1) for tried in part.alternatives if tried.held_out is not None}
    if part.held_out is None or part.tried_on == "all data" or not figures:
        return ""
    best, chosen = max(figures, key=lambda model: figures[model]), round(part.held_out, 1)
    if figures[best] <= chosen:
        return ""
    return (
        f"'{best}' fits the held-out data better ({figures[best]} against {chosen} %); the model was selected by "
        "cross-validation within the training data."
    )


def _gain_note(part: Part, record: JointRecord) -> str:
    """Return a note on the drive gain behind every torque: confidence intervals do not include its error."""
    if not record.has_current or record.unit != "Nm" or part.phenomenon in ("motor", "transmission"):
        return ""
    return (
        f"torques are currents times the drive gain of {record.gain:.5g} Nm/A; an error of the gain scales all of them"
    )


def _mass_note(part: Part, record: JointRecord) -> str:
    """Return a note where gravity and inertia of the links were not removed."""
    if not record.without_masses or part.phenomenon == "transmission":
        return ""
    return (
        "gravity and inertia of the links were not removed, as the description has no masses: they are part of the "
        f"{part.phenomenon}. Describe the masses, or give a calibrated model (--model)"
    )
