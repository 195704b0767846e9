"""What was run, in words and as marks in a plot: the truth of a recording for its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jointwise.data.log import Log
from jointwise.report.markup import Html, facts
from jointwise.report.numbers import number

Truth = Mapping[str, Any]
MARK = "#5d6b7e"


def overview(truth: Truth, log: Log) -> Html:
    """Return a table of all that was asked for."""
    payload = truth["payload"]
    x, y, z = (number(value) for value in truth["gravity"])
    pairs: list[tuple[object, object]] = [
        ("Experiment", f"{truth['experiment']['name']}: {truth['experiment']['note']}"),
        ("Joint under test", truth["experiment"]["joint"] or "all"),
        ("Duration", f"{number(truth['duration'], 6)} s, {log.samples} samples at {number(truth['rate'])} Hz"),
        ("Clock", _clock(truth["sensors"])),
        ("Controller", _controller(truth["controller"])),
        ("Model of the rotors", truth["model"]),
        ("Gravity in the base", f"{x} {y} {z} m/s²"),
        ("Payload", "none" if payload is None else f"{number(payload['mass'])} kg"),
        ("On the way", "; ".join(_happenings(truth["events"])) or "nothing"),
        ("Temperature at the start", _warmth(truth["temperature"])),
        ("Age", _changes(truth["age"]) or "new"),
        ("Switched off", ", ".join(truth["without"]) or "nothing"),
    ]
    return facts(pairs)


def marks(truth: Truth) -> dict[str, Any]:
    """Return what a layout over time needs to show when a payload changed and something pushed; {} if nothing did."""
    payloads, pushes = truth["events"]["payloads"], truth["events"]["pushes"]
    lines = [_mark(own["time"], own["time"]) for own in payloads]
    areas = [_mark(own["start"], own["start"] + own["length"]) for own in pushes]
    words = [_word(own["time"], _mass(own["payload"])) for own in payloads]
    words += [_word(own["start"], "push") for own in pushes]
    return {"shapes": lines + areas, "annotations": words} if words else {}


def _warmth(temperature: float | list[float] | None) -> str:
    """Return a temperature, or one a joint."""
    if temperature is None:
        return "ambient"
    each = temperature if isinstance(temperature, list) else [temperature]
    return f"{', '.join(number(own) for own in each)} °C"


def _clock(sensors: Truth) -> str:
    """Return what spoils the clock."""
    jitter, dropped, repeated = (sensors[name] for name in ("jitter", "dropped", "repeated"))
    parts = (
        (jitter, f"jitter of {number(1e3 * jitter)} ms"),
        (dropped, f"{number(100.0 * dropped)} % of the samples lost"),
        (repeated, f"{number(100.0 * repeated)} % of the rows twice"),
    )
    return ", ".join(words for value, words in parts if value) or "even"


def _controller(own: Truth) -> str:
    bandwidth = "" if own["bandwidth"] is None else f", bandwidth {number(own['bandwidth'])} Hz"
    reads = ", reads its encoders" if own.get("feedback") == "sensors" else ""
    return f"{own['name']} at {number(own['rate'])} Hz{bandwidth}{reads}"


def _happenings(events: Truth) -> list[str]:
    """Return what happened on the way, one text each."""
    told = [f"{_mass(own['payload'])} from {number(own['time'], 6)} s on" for own in events["payloads"]]
    for push in events["pushes"]:
        force, moment = (float(np.linalg.norm(push[name])) for name in ("force", "moment"))
        size = f"{number(force)} N" + (f" and {number(moment)} Nm" if moment else "")
        told.append(f"push of {size} at {number(push['start'], 6)} s for {number(push['length'])} s")
    return [*told, *([f"wear: {_changes(events['wear'])} at the end"] if events["wear"] else [])]


def _mass(payload: Truth | None) -> str:
    return "no payload" if payload is None else f"{number(payload['mass'])} kg"


def _changes(changes: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100.0 * own:+.3g} %" for name, own in changes.items())


def _mark(first: float, last: float) -> dict[str, Any]:
    """Return a line, or an area, over the whole height of a plot."""
    line = {"color": MARK, "width": 1, "dash": "dot"}
    ends = {"x0": first, "x1": last, "y0": 0.0, "y1": 1.0, "xref": "x", "yref": "paper"}
    area = {"type": "rect", "fillcolor": MARK, "opacity": 0.15, "layer": "below"}
    return {**ends, "line": line, **({"type": "line"} if first == last else area)}


def _word(time: float, text: str) -> dict[str, Any]:
    place = {"x": time, "y": 1.0, "xref": "x", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return {**place, "text": text, "showarrow": False, "font": {"size": 11, "color": MARK}}
