"""All that some logs tell of a joint: each phenomenon from the log that suits it, in an order in which each helps."""

from __future__ import annotations

from functools import cache

import pytest

import jointwise
from jointwise.errors import EstimationError
from jointwise.joint import (
    PHENOMENA,
    Alternative,
    JointModel,
    JointRecord,
    Part,
    identification,
    identify,
    identify_all,
    joint_record,
)
from jointwise.joint.suited import by_suitability

LENGTHS = {"locked": None, "constant-speed": 30.0, "load": 20.0, "reciprocate": 20.0, "warm-up": 80.0}


@cache
def record(experiment: str) -> JointRecord:
    """Return the record of an experiment; its only log has the name of it."""
    done = jointwise.simulate("ur5e", experiment, joint=1, duration=LENGTHS[experiment], rate=100.0, seed=1, keep=0)
    arm = jointwise.robot("ur5e")
    found = joint_record(done.log, arm, 1, mounting=tuple(done.digital.gravity))
    return JointRecord(**{**vars(found), "logs": (experiment,)})


def everything() -> dict[str, list[JointRecord]]:
    return {name: [record(experiment) for experiment in LENGTHS] for name in PHENOMENA}


class Asked:
    """Methods that answer at once, tell what they were asked with, and refuse some logs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuses: tuple[tuple[str, str], ...] = ()) -> None:
        self.calls: list[tuple[str, str, tuple[str, ...]]] = []
        for name in PHENOMENA:
            monkeypatch.setitem(identification._METHODS, name, self._method(name, refuses))
        monkeypatch.setattr(identification, "refuse_unfit_gravity", lambda record: None)

    def _method(self, name: str, refuses: tuple[tuple[str, str], ...]):
        def method(record: JointRecord, robot: object, parts: dict[str, Part], settings: object) -> Part:
            self.calls.append((name, record.logs[0], tuple(parts)))
            if (name, record.logs[0]) in refuses or (name, "all") in refuses:
                raise EstimationError(f"{record.logs[0]}: no {name}")
            return Part(name, "any", (), 100.0, logs=record.logs)

        return method


@pytest.mark.parametrize("name", PHENOMENA)
def test_the_log_of_its_own_experiment_suits_a_phenomenon_best(name: str) -> None:
    for logs in (list(LENGTHS), list(reversed(LENGTHS))):
        best = by_suitability(name, [record(experiment) for experiment in logs])[0]
        assert best.logs == (PHENOMENA[name].experiment,)


def test_the_log_that_suits_best_is_asked_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    answers = identify_all(everything(), jointwise.robot("ur5e"), JointModel("ur5e", 1))
    assert answers.found == tuple(PHENOMENA)
    assert {name: part.logs for name, part in answers.model.parts.items()} == {
        name: (own.experiment,) for name, own in PHENOMENA.items()
    }
    assert {(name, log) for name, log, _ in asked.calls} == {(own.name, own.experiment) for own in PHENOMENA.values()}


def test_what_the_best_log_cannot_tell_is_asked_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    Asked(monkeypatch, refuses=(("load", "load"), ("temperature", "all")))
    answers = identify_all(everything(), jointwise.robot("ur5e"), JointModel("ur5e", 1))
    assert answers.model.parts["load"].logs != ("load",)
    assert list(answers.refused) == ["temperature"]
    assert answers.refused["temperature"][0] == "warm-up: no temperature"
    assert len(answers.refused["temperature"]) == len(LENGTHS)


def test_stiffness_and_transmission_are_each_told_with_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    identify_all(everything(), jointwise.robot("ur5e"), JointModel("ur5e", 1))
    last = {name: known for name, _, known in asked.calls}
    assert "stiffness" in last["transmission"]
    assert "transmission" in last["stiffness"]
    assert [name for name, _, _ in asked.calls].count("stiffness") == 2


def test_a_transmission_that_is_refused_costs_no_second_spring(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, refuses=(("transmission", "all"),))
    identify_all(everything(), jointwise.robot("ur5e"), JointModel("ur5e", 1))
    assert [name for name, _, _ in asked.calls].count("stiffness") == 1


def test_each_phenomenon_builds_on_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    identify_all(everything(), jointwise.robot("ur5e"), JointModel("ur5e", 1))
    names = list(PHENOMENA)
    for name, _, known in asked.calls:
        assert set(names[: names.index(name)]) <= set(known)


@pytest.mark.parametrize(
    ("fitted", "rival", "told"),
    [
        (91.0, 32.8, "'square' does better on the data held out (32.8 against 30.1 %)"),
        (91.0, 30.12, None),
        (90.0, 32.8, None),
    ],
)
def test_a_model_that_does_better_on_data_held_out_is_not_passed_over_in_silence(
    fitted: float, rival: float, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless every datum was held out in turn: then the choice was made on the figures that are shown."""
    tried = (Alternative("absolute", 90.0, 30.1), Alternative("square", 92.0, rival))
    part = Part("load", "absolute", (), fitted, 30.1, alternatives=tried)
    monkeypatch.setitem(identification._METHODS, "load", lambda *_: part)
    monkeypatch.setattr(identification, "refuse_unfit_gravity", lambda record: None)
    found = identify("load", record("load"), jointwise.robot("ur5e"))
    assert found.tried_on == ("all data" if fitted == 90.0 else "training part")
    notes = [note for note in found.notes if "held out" in note]
    assert len(notes) == (told is not None)
    assert told is None or notes[0].startswith(told)
