"""Joint files: whole, they come back as they were; with any damage they are refused in one line that names the file."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointwise
from cli_runs import PLAIN, bench, refused, run
from jointwise.calibrate import Options
from jointwise.cli.options import known_joints
from jointwise.errors import JointwiseError, ModelError
from jointwise.joint import Alternative, Curve, JointModel, Part, Surface, load_joints, save_joints
from jointwise.joint.friction.law import VelocityLaw, settings_of
from jointwise.joint.hysteresis.laws import FrictionLaw, law_settings
from jointwise.joint.laws import _TRIED
from jointwise.joint.part import value_of
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.report.joint import joint_sections

ROBOT = jointwise.robot("planar2")
VALUES: dict[str, dict[str, float]] = {
    "stiffness": {"a_1": 15000.0},
    "friction": {"F_C": 3.0, "F_S-F_C": 1.0, "V_S": 0.05, "F_V1": 2.0},
    "load": {"F_l": 1e-3},
    "temperature": {"F_T2": -0.1, "F_T3": 100.0},
    "transmission": {"offset": 0.0},
    "hysteresis": {"F_C": 3.0},
    "motor": {"gain": 10.0},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "stiffness": {"kind": "polynomial", "coefficients": [15000.0, 5e7]},
    "friction": {"law": settings_of(VelocityLaw(3.0, 4.0, 0.05, viscous=2.0, fastest=3.0)), "temperature": 25.0},
    "load": {"law": {"kind": "square", "factor": 1e-3, "largest": 60.0}},
    "temperature": {
        "law": {
            "kind": "three-parameter",
            "numbers": [-0.1, 100.0],
            "reference": 25.0,
            "coldest": 20.0,
            "hottest": 40.0,
            "fastest": 2.0,
        }
    },
    "transmission": {
        "kinematic_error": {"mean": 0.0, "orders": [1, 2], "amplitudes": [4e-4, 1e-4], "phases": [1.0, 2.0]},
        "lost_motion": {"values": [1e-4, 2e-4, 1e-4]},
        "reach": 0.03,
    },
    "hysteresis": {
        "law": law_settings(
            FrictionLaw("nlr", np.array([1e-4, 1e-3]), np.array([1.0, 2.0]), 0.5, 0.1, backlash=np.array([1e-3, 2e-3]))
        )
    },
    "motor": {"method": "links", "gear_ratio": 100.0},
}
RANGES = {"stiffness": {"phi": (-0.006, 0.006)}}


def part(name: str) -> Part:
    """Return a small part of a phenomenon with something of everything."""
    curve = Curve("A", "x", "y", (1.0, 2.0), (3.0, 4.0), (1.0, 2.0, 3.0), (1.0, 2.0, 3.0), residual=(0.1, 0.2))
    surface = Surface("B", "x", "y", "z", (1.0, 2.0), (1.0, 2.0, 3.0), ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0)))
    return Part(
        phenomenon=name,
        model="any",
        values=tuple(value_of(own, "-", value, 0.1 * abs(value)) for own, value in VALUES[name].items()),
        fitted=99.0,
        held_out=98.0,
        settings=SETTINGS[name],
        ranges=RANGES.get(name, {"speed": (0.0, 1.0)}),
        alternatives=(Alternative("other", 50.0), Alternative("any", 99.0, 98.0, "taken")),
        curves=(curve,),
        surfaces=(surface,),
        notes=("a note",),
        logs=("log.csv",),
    )


def whole() -> JointModel:
    return JointModel(ROBOT.name, 0, {name: part(name) for name in PHENOMENA})


def document() -> dict[str, Any]:
    model = whole().to_dict()
    stored = {"format": "jointwise joints", "schema": 1, "joints": [model]}
    return json.loads(json.dumps(stored))  # type: ignore[no-any-return]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every leaf and of every subtree."""
    if path:
        yield path
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield from places(value[key], (*path, key))


def changed(path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> dict[str, Any]:
    own = document()
    at: Any = own
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return own


def put(value: Any) -> Callable[[Any, Any], None]:
    return lambda at, key: at.__setitem__(key, value)


DAMAGES = {
    "null": put(None),
    "text": put("x"),
    "list": put([]),
    "nested list": put([[1.0]]),
    "table": put({}),
    "flag": put(True),
    "negative": put(-1.0),
    "zero": put(0),
    "huge": put(1e300),
    "large": put(1e25),
    "very large whole number": put(10**400),
    "deleted": lambda at, key: at.__delitem__(key),
}


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    save_joints([whole()], tmp_path / "j.json")
    (model,) = load_joints(tmp_path / "j.json")
    assert model == whole()
    assert set(_TRIED) == set(PHENOMENA)


@pytest.mark.filterwarnings("error")
def test_no_damage_gives_a_traceback(tmp_path: Path) -> None:
    """A sample of every place of a file and every damage: read, put into options of a calibration, drawn."""
    path, rng, outcomes = tmp_path / "j.json", random.Random(0), {"refused": 0, "taken": 0}
    cases = [(place, name) for place in places(document()) for name in DAMAGES]
    for place, name in rng.sample(cases, 300):
        path.write_text(json.dumps(changed(place, DAMAGES[name])), encoding="utf-8")
        try:
            models = known_joints([str(path)], ROBOT)
            Options(gains=[1.0, 1.0]).with_joints(models, ROBOT, rotor=False, known=True)
            joint_sections(models)
            outcomes["taken"] += 1
        except JointwiseError as problem:
            outcomes["refused"] += 1
            assert str(path) in str(problem) or str(problem).startswith("--joint"), (place, name, problem)
            assert "\n" not in str(problem)
    assert outcomes["refused"] > 3 * outcomes["taken"] > 0


FRICTION = ("joints", 0, "parts", "friction")
NAMED = {
    "joints is a number": (("joints",), put(5), "joints must be a list. Got 5 instead."),
    "joints is null": (("joints",), put(None), "joints must be a list"),
    "no joints": (("joints",), DAMAGES["deleted"], "damaged joint file: KeyError 'joints'"),
    "joint is text": (("joints", 0, "joint"), put("1"), "joint must be a whole number from 1 to"),
    "joint is a part of one": (("joints", 0, "joint"), put(1.5), "joint must be a whole number"),
    "joint is 0": (("joints", 0, "joint"), put(0), "joint must be a whole number"),
    "parts is a list": (("joints", 0, "parts"), put([]), "parts must be a table of names"),
    "unknown part": (("joints", 0, "parts", "magic"), put({}), "a part: 'phenomenon' is missing"),
    "settings are empty": ((*FRICTION, "settings"), put({}), "friction"),
    "settings are null": ((*FRICTION, "settings"), put(None), "friction: settings must be a table of names"),
    "deviation is text": ((*FRICTION, "values", 0, "deviation"), put("0.1"), "friction: deviation of F_C must be"),
    "deviation is negative": ((*FRICTION, "values", 0, "deviation"), put(-1), "deviation of F_C must be at least 0"),
    "value is a flag": ((*FRICTION, "values", 0, "value"), put(True), "friction: F_C must be a finite number"),
    "interval is turned": ((*FRICTION, "values", 0, "low"), put(1e9), "interval of F_C must be from low to high"),
    "curve has text": ((*FRICTION, "curves", 0, "y", 1), put("4"), "friction: y of 'A' must be a finite number"),
    "curve is short": ((*FRICTION, "curves", 0, "y"), put([1.0]), "y of 'A' must have as many points as x"),
    "surface is short": ((*FRICTION, "surfaces", 0, "z", 1), put([1.0]), "z of 'B' must be 2 numbers. Got 1"),
    "law has text": ((*FRICTION, "settings", "law", "viscous"), put("2"), "friction: the law cannot be built"),
    "law is not finite": ((*FRICTION, "settings", "law", "stribeck_speed"), put(0), "friction: the law does not give"),
    "settings are deep": ((*FRICTION, "settings", "more"), put([[[[[[[[[[1]]]]]]]]]]), "levels deep"),
    "covariance is short": (
        (*FRICTION, "settings", "covariance"),
        put({"names": ["F_C"], "values": []}),
        "covariance must be 1 rows",
    ),
    "covariance is a number": ((*FRICTION, "settings", "covariance"), put(1.0), "friction: the law cannot be built"),
    "hysteresis falls with the load": (
        ("joints", 0, "parts", "hysteresis", "settings", "law", "growth"),
        put(-1e-3),
        "growth with the load must be",
    ),
    "power of the load": (
        ("joints", 0, "parts", "hysteresis", "settings", "law", "power"),
        put(3.0),
        "with the power 1 or 2",
    ),
    "gain is negative": (("joints", 0, "parts", "motor", "values", 0, "value"), put(-1), "motor: gain must be > 0"),
}


@pytest.mark.parametrize("kind", NAMED)
def test_a_refusal_names_what_is_wrong(kind: str, tmp_path: Path) -> None:
    place, change, words = NAMED[kind]
    (tmp_path / "j.json").write_text(json.dumps(changed(place, change)), encoding="utf-8")
    with pytest.raises(ModelError) as problem:
        load_joints(tmp_path / "j.json")
    assert str(problem.value).startswith(f"{tmp_path / 'j.json'}: ")
    assert words in str(problem.value)


def test_a_part_under_another_name_is_refused(tmp_path: Path) -> None:
    own = document()
    parts = own["joints"][0]["parts"]
    parts["load"] = copy.deepcopy(parts["friction"])
    (tmp_path / "j.json").write_text(json.dumps(own), encoding="utf-8")
    with pytest.raises(ModelError, match="the phenomenon under 'load' must be 'load'. Got 'friction' instead"):
        load_joints(tmp_path / "j.json")


def test_a_joint_is_in_a_file_once(tmp_path: Path) -> None:
    save_joints([whole(), whole()], tmp_path / "j.json")
    with pytest.raises(ModelError, match="joint 1 must be there once"):
        load_joints(tmp_path / "j.json")


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (("joints",), put(5)),
        ((*FRICTION, "settings"), put({})),
        ((*FRICTION, "values", 0, "deviation"), put("x")),
        (("joints", 0, "parts", "hysteresis", "settings", "law", "limits"), put([1e-3, 1e-4])),
        (("joints", 0, "parts", "temperature", "values"), put([])),
    ],
)
def test_a_calibration_refuses_a_damaged_joint_file(
    place: tuple[Any, ...], change: Callable[[Any, Any], None], tmp_path: Path
) -> None:
    path = tmp_path / "j.json"
    path.write_text(json.dumps(changed(place, change)), encoding="utf-8")
    words = ("--robot", "planar2", *PLAIN, "--joint", path, "--output", tmp_path / "m.json")
    assert str(path) in refused("calibrate", bench().training, *words)
    assert not (tmp_path / "m.json").exists()


def test_a_calibration_takes_the_whole_file(tmp_path: Path) -> None:
    model = whole()
    kept = {name: own for name, own in model.parts.items() if name != "temperature"}
    save_joints([JointModel(model.robot, 0, kept)], tmp_path / "j.json")
    words = ("--robot", "planar2", *PLAIN, "--gains", 1, 1, "--joint", tmp_path / "j.json", "--quiet")
    result = run("calibrate", bench().training, *words, "--output", tmp_path / "m.json")
    assert result.code == 0, result.err
