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
import jointwise as jw
from cli_runs import PLAIN, bench, refused, run
from jointwise.document import plain_json
from jointwise.errors import JointwiseError, ModelError
from jointwise.joint import Curve, JointModel, Part, Surface, TriedModel, load_joints, save_joints
from jointwise.joint.laws import FrictionLaw, VelocityLaw
from jointwise.joint.model import _LAWS
from jointwise.joint.part import value_of
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.options import Options, read_joints
from jointwise.report.joint import joint_sections

ROBOT = jointwise.load_robot("planar2")
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
    "friction": {"law": plain_json(VelocityLaw(3.0, 4.0, 0.05, viscous=2.0, fastest=3.0)), "temperature": 25.0},
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
        "law": plain_json(
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
        values=tuple(value_of(key, "-", value, 0.1 * abs(value)) for key, value in VALUES[name].items()),
        fitted=99.0,
        held_out=98.0,
        settings=SETTINGS[name],
        ranges=RANGES.get(name, {"speed": (0.0, 1.0)}),
        alternatives=(TriedModel("other", 50.0), TriedModel("any", 99.0, 98.0, "taken")),
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
    changed = document()
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return changed


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
    assert set(_LAWS) == set(PHENOMENA)


@pytest.mark.filterwarnings("error")
def test_no_damage_gives_a_traceback(tmp_path: Path) -> None:
    """A sample of every place of a file and every damage: read, put into options of a calibration, drawn."""
    path, rng, outcomes = tmp_path / "j.json", random.Random(0), {"refused": 0, "taken": 0}
    cases = [(place, name) for place in places(document()) for name in DAMAGES]
    for place, name in rng.sample(cases, 300):
        path.write_text(json.dumps(changed(place, DAMAGES[name])), encoding="utf-8")
        try:
            models = read_joints([str(path)], ROBOT)
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
    "joints is null": (("joints",), put(None), "joints must be a list. Got None instead."),
    "no joints": (("joints",), DAMAGES["deleted"], "'joints' is missing."),
    "joint is text": (("joints", 0, "joint"), put("1"), "joints[0].joint must be an integer. Got '1' instead."),
    "joint is a part of one": (
        ("joints", 0, "joint"),
        put(1.5),
        "joints[0].joint must be an integer. Got 1.5 instead.",
    ),
    "joint is 0": (("joints", 0, "joint"), put(0), "joints[0].joint must be an integer >= 1. Got 0 instead."),
    "parts is a list": (("joints", 0, "parts"), put([]), "joints[0].parts must be an object. Got [] instead."),
    "unknown part": (("joints", 0, "parts", "magic"), put({}), "joints[0].parts has no 'magic'. Known: stiffness, "),
    "settings are empty": ((*FRICTION, "settings"), put({}), "friction"),
    "settings are null": ((*FRICTION, "settings"), put(None), "joints[0].parts.friction.settings must be an object"),
    "deviation is text": (
        (*FRICTION, "values", 0, "deviation"),
        put("0.1"),
        "parts.friction.values[0].deviation must be a number",
    ),
    "deviation is negative": ((*FRICTION, "values", 0, "deviation"), put(-1), "deviation of F_C must be at least 0"),
    "value is a flag": (
        (*FRICTION, "values", 0, "value"),
        put(True),
        "parts.friction.values[0].value must be a number",
    ),
    "interval is turned": ((*FRICTION, "values", 0, "low"), put(1e9), "interval of F_C must be from low to high"),
    "curve has text": ((*FRICTION, "curves", 0, "y", 1), put("4"), "parts.friction.curves[0].y[1] must be a number"),
    "curve is short": ((*FRICTION, "curves", 0, "y"), put([1.0]), "y of 'A' must have as many points as x"),
    "surface is short": ((*FRICTION, "surfaces", 0, "z", 1), put([1.0]), "z of 'B' must be 3 rows of 2 numbers"),
    "law has text": (
        (*FRICTION, "settings", "law", "viscous"),
        put("2"),
        "friction: settings: law.viscous must be a number",
    ),
    "law is not finite": ((*FRICTION, "settings", "law", "stribeck_speed"), put(0), "friction: the law does not give"),
    "settings are deep": ((*FRICTION, "settings", "more"), put([[[[[[[[[[1]]]]]]]]]]), "levels deep"),
    "covariance is short": (
        (*FRICTION, "settings", "covariance"),
        put({"names": ["F_C"], "values": []}),
        "covariance must be 1 rows of 1 numbers",
    ),
    "covariance is a number": ((*FRICTION, "settings", "covariance"), put(1.0), "must be an object. Got 1.0 instead."),
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
    stored = document()
    parts = stored["joints"][0]["parts"]
    parts["load"] = copy.deepcopy(parts["friction"])
    (tmp_path / "j.json").write_text(json.dumps(stored), encoding="utf-8")
    with pytest.raises(ModelError, match="the phenomenon of part 'load' must be 'load'. Got 'friction' instead"):
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
    kept = {name: part for name, part in model.parts.items() if name != "temperature"}
    save_joints([JointModel(model.robot, 0, kept)], tmp_path / "j.json")
    words = (
        "--robot",
        "planar2",
        *PLAIN,
        "--gains",
        1,
        1,
        "--joint",
        tmp_path / "j.json",
        "--quiet",
        "--accept-implausible",
    )
    result = run("calibrate", bench().training, *words, "--output", tmp_path / "m.json")
    assert result.code == 0, result.err


def test_a_joint_is_loaded_with_the_robot_or_its_name(tmp_path: Path) -> None:
    robot = jw.load_robot("ur5e")
    jw.joint.save_joints([jw.joint.JointModel("ur5e", 1)], tmp_path / "joints.json")
    assert jw.joint.load_joint(tmp_path / "joints.json", robot, 1).robot == "ur5e"
    assert jw.joint.load_joint(tmp_path / "joints.json", "ur5e", 1).joint == 1


def test_a_part_is_text_and_a_data_frame() -> None:
    pytest.importorskip("pandas")
    friction = part("friction")
    frame = friction.to_dataframe()
    assert list(frame.index) == list(VALUES["friction"])
    assert frame.loc["F_C", ["unit", "value", "std_error"]].tolist() == ["-", 3.0, pytest.approx(0.3)]
    np.testing.assert_array_equal(friction.conf_int(), frame[["low", "high"]])
    np.testing.assert_allclose(friction.conf_int()[0], [3.0 - 1.96 * 0.3, 3.0 + 1.96 * 0.3], rtol=1e-4)
    text = friction.summary()
    assert text.startswith("friction: any\nfit 99.0 % on all data, 98.0 % on held-out data")
    assert all(name in text for name in (*VALUES["friction"], "other", "a note", "log.csv"))
    load = part("load")
    model = JointModel("planar2", 1).with_part(friction).with_part(load)
    assert model.summary() == f"planar2, joint 2, {text}\n\nplanar2, joint 2, {load.summary()}"
