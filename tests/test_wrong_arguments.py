"""Wrong arguments of public calls end in one line: what was wrong, what is expected, what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import jointwise as jw
from jointwise.arguments import checked
from jointwise.errors import DataError, JointwiseError, ModelError
from runtime_models import fitted

Call = Callable[[], object]
MODULES = ("control", "design", "energy", "export", "joint", "monitoring", "virtual_ur")
ROBOT = jw.load_robot("planar2")
LOG = jw.Log(t=np.arange(300) / 100.0, q=np.zeros((300, 2)), current=np.ones((300, 2)))
MOTION = jw.design.bspline_trajectory(ROBOT, 5.0)
WRONG = {
    "object": object(),
    "path": "nonsense.xyz",
    "number": 3.5,
    "dictionary": {"a": 1},
    "none": None,
    "strings": ["x"],
}
LEGAL = {("energy.is_power_file", "path"), ("control.bandwidth_gains", "number"), ("control.chain_gains", "number")}
"""Calls with a value of `WRONG` that is right."""


def public_functions() -> dict[str, FunctionType]:
    owners: list[tuple[str, Any]] = [("", jw), *((f"{name}.", getattr(jw, name)) for name in MODULES)]
    found = {f"{prefix}{name}": getattr(owner, name) for prefix, owner in owners for name in owner.__all__}
    return {name: function for name, function in found.items() if inspect.isfunction(function)}


FUNCTIONS = public_functions()


def required(function: FunctionType) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [item.name for item in parameters if item.default is item.empty and item.kind is not item.VAR_KEYWORD]


def test_all_public_functions_are_covered() -> None:
    assert len(FUNCTIONS) > 100 and {"calibrate", "joint.identify", "monitoring.monitor_log"} <= set(FUNCTIONS)


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if required(function)])
def test_wrong_types_end_in_one_line(name: str, kind: str) -> None:
    if (name, kind) in LEGAL:
        pytest.skip("a right call")
    with pytest.raises(JointwiseError) as problem:
        result = FUNCTIONS[name](**dict.fromkeys(required(FUNCTIONS[name]), WRONG[kind]))
        list(result) if inspect.isgenerator(result) else None
    assert "\n" not in str(problem.value) and len(str(problem.value)) < 400


def drives(count: int = 2) -> list[jw.control.JointDrive]:
    return [jw.control.JointDrive(inertia=0.1)] * count


CASES: list[tuple[Call, str]] = [
    # a path or an array in place of an object
    (
        lambda: jw.calibrate("log.csv", ROBOT),
        "must be a Log or a list of Log. Got 'log.csv' .* jointwise.read_log",
    ),
    (lambda: jw.calibrate([LOG, "b.csv"], ROBOT), r"logs\[1\] must be a Log. Got 'b.csv'"),
    (lambda: jw.calibrate(LOG, 3), "robot must be a Robot, a string or a path. Got 3"),
    (lambda: jw.calibrate(ROBOT, LOG), "logs must be a Log or a list of Log. Got a Robot"),
    (lambda: jw.calibrate(LOG, ROBOT, options={"rate": 100.0}), "options must be Options. Got a dict"),
    (lambda: jw.calibrate(LOG, ROBOT, joint_values="fixed"), "joint_values must be start or known. Got 'fixed'"),
    (lambda: jw.validate("m.json", LOG), "a Calibration or a RobotModel. Got 'm.json' .* jointwise.load_model"),
    (lambda: jw.validate(fitted(), Path("log.csv")), "log must be a Log. Got 'log.csv' .* jointwise.read_log"),
    (lambda: jw.predict(fitted(), LOG.q), "log must be a Log. Got an array"),
    (lambda: jw.predict(fitted(), LOG, use="both"), "use must be sensor or feed-forward. Got 'both'"),
    (lambda: jw.compare([fitted(), fitted()], LOG), "models must be a dictionary of .* by name. Got a list"),
    (lambda: jw.compare({"a": "m.json"}, LOG), r"models\['a'\] must be a Calibration .*load_model\('m.json'\)"),
    (lambda: jw.RobotModel("m.json"), "calibration must be a Calibration. Got 'm.json'"),
    (lambda: jw.joint.joint_record(LOG, "ur5e", 0), "robot must be a Robot. Got 'ur5e' .* jointwise.load_robot"),
    (lambda: jw.monitoring.monitor_log(fitted(), LOG), "model must be a RobotModel. Got a Calibration"),
    (lambda: jw.Payload("2 kg"), "Payload: mass must be a number. Got '2 kg'"),
    (lambda: jw.Limits(lower="0"), "lower must be a number. Got '0'"),
    (lambda: fitted().conf_int("x"), "level must be a number. Got 'x'"),
    (lambda: jw.simulate("planar2", duration=True), "duration must be a number. Got True"),
    # empty
    (lambda: jw.compare({}, LOG), "models must have at least one model by name"),
    (lambda: jw.calibrate([], ROBOT), "logs must have at least one log"),
    (lambda: jw.joint.join_records([]), "at least one record"),
    (lambda: jw.design.succession([]), "at least one motion"),
    (lambda: jw.inspect(LOG.slice(0, 0)), "the log has no samples"),
    # shapes, NaN and ranges
    (lambda: jw.validate(fitted(), LOG, prediction=np.zeros(3)), r"prediction must have shape \(300, 2\)"),
    (lambda: jw.joint.joint_record(LOG, ROBOT, 0, mounting=np.zeros((2, 3))), "gravity must be three finite numbers"),
    (lambda: jw.joint.joint_record(LOG, ROBOT, 2), r"joint must be 0 to 1 \(0 is the first joint\). Got 2"),
    (lambda: jw.joint.joint_record(LOG, ROBOT, 0, cutoff=-1.0), "cutoff must be a positive number of Hz. Got -1.0"),
    (lambda: jw.design.bspline_trajectory(ROBOT, seed=-1), "seed must not be negative. Got -1"),
    (lambda: jw.design.reciprocation(ROBOT, float("nan")), "duration must be a positive number. Got nan"),
    (lambda: jw.design.constant_speed_runs(ROBOT, posture=[0.0]), r"posture must be 2 finite numbers. Got \[0.0\]"),
    (lambda: jw.design.hold([[0.0]], 1.0), r"position must have shape \(joints,\). Got \(1, 1\)"),
    (lambda: jw.design.check_limits(ROBOT, MOTION, rate=-5.0), "rate must be a positive number. Got -5.0"),
    (lambda: jw.design.derivative(MOTION, np.zeros((2, 2)), 1), r"t must have shape \(samples,\)"),
    (lambda: jw.control.default_gains([1.0], drives(), 1000.0), "inertias must have one entry for each of 2 drives"),
    (lambda: jw.control.friction_torques(drives(), [[1.0]]), r"speed must have shape \(samples, 2\). Got \(1, 1\)"),
    (lambda: jw.energy.inverse_park([1.0], [1.0, 2.0], [1.0], 2), "must have the same shape"),
]


@pytest.mark.parametrize(("call", "words"), CASES)
def test_the_line_says_what_is_expected_and_what_to_do(call: Call, words: str) -> None:
    with pytest.raises(JointwiseError, match=words) as problem:
        call()
    assert "\n" not in str(problem.value)


# -- what is accepted --


def test_lists_are_accepted_as_arrays() -> None:
    assert jw.design.hold([0, 1], 2.0).at(np.zeros(1)).q.tolist() == [[0.0, 1.0]]


def test_any_iterable_is_accepted_as_a_list() -> None:
    with pytest.raises(DataError, match="nothing moves"):
        jw.calibrate((log for log in [LOG]), ROBOT)


@pytest.mark.parametrize("robot", ["planar2", ROBOT])
def test_a_robot_may_be_named(robot: Any) -> None:
    assert jw.inspect(LOG, robot).rejected == jw.inspect(LOG, ROBOT).rejected


@pytest.mark.parametrize("number", [np.float64(0.3), np.float32(0.3)])
def test_numbers_of_numpy_are_numbers(number: Any) -> None:
    assert jw.holdout(LOG, number)[1].samples == 90


def test_a_hint_of_another_kind_accepts_everything() -> None:
    @checked
    def call(anything: Any, function: Callable[[int], int], table: Mapping[str, float]) -> str:
        return f"{anything}{function(1)}{len(table)}"

    assert call("a", lambda n: n, {"x": 1}) == "a11"
    with pytest.raises(ModelError, match="function must be a function. Got 3"):
        call("a", 3, {})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"table\['x'\] must be a number. Got 'one'"):
        call("a", abs, {"x": "one"})  # type: ignore[dict-item]


def test_a_list_for_a_tuple_becomes_one() -> None:
    assert jw.Structure("tanh", powers=[1.0, 2.0]) == jw.Structure("tanh", powers=(1.0, 2.0))  # type: ignore[arg-type]
    assert hash(jw.Structure("tanh", powers=np.array([1.0, 2.0]))) == hash(jw.Structure("tanh", powers=(1.0, 2.0)))  # type: ignore[arg-type]


def test_an_array_without_a_dimension_is_no_number() -> None:
    with pytest.raises(ModelError, match="fraction must be a number. Got an array instead"):
        jw.holdout(LOG, np.array(0.3))  # type: ignore[arg-type]
