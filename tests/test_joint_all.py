"""All phenomena of a joint from a set of logs: each from the most suitable log, in an order in which results help."""

from __future__ import annotations

from functools import cache

import pytest

import jointwise
from jointwise.errors import EstimationError
from jointwise.joint import (
    PHENOMENA,
    JointModel,
    JointRecord,
    Part,
    TriedModel,
    identification,
    identify_all,
    joint_record,
)
from jointwise.joint.identification import by_suitability
from jointwise.joint.part import identified_part

LENGTHS = {"locked": None, "constant-speed": 30.0, "load": 20.0, "reciprocate": 20.0, "warm-up": 80.0}


@cache
def record(experiment: str) -> JointRecord:
    """Return the record of an experiment; its only log has the name of it."""
    done = jointwise.simulate("ur5e", experiment, joint=1, duration=LENGTHS[experiment], rate=100.0, seed=1, keep=0)
    arm = jointwise.load_robot("ur5e")
    found = joint_record(done.log, arm, 1, mounting=tuple(done.digital.gravity))
    return JointRecord(**{**vars(found), "logs": (experiment,)})


def everything() -> dict[str, list[JointRecord]]:
    return {name: [record(experiment) for experiment in LENGTHS] for name in PHENOMENA}


class Requests:
    """Methods that return at once, record their arguments, and reject some logs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuses: tuple[tuple[str, str], ...] = ()) -> None:
        self.calls: list[tuple[str, str, tuple[str, ...]]] = []
        self.refuses = refuses
        monkeypatch.setattr(identification, "identify", self._identify)

    def _identify(self, name: str, record: JointRecord, robot: object, known: JointModel, options: object) -> Part:
        self.calls.append((name, record.logs[0], tuple(known.parts)))
        if (name, record.logs[0]) in self.refuses or (name, "all") in self.refuses:
            raise EstimationError(f"{record.logs[0]}: no {name}")
        return Part(name, "any", (), 100.0, logs=record.logs)


@pytest.mark.parametrize("name", PHENOMENA)
def test_the_log_of_its_own_experiment_suits_a_phenomenon_best(name: str) -> None:
    for logs in (list(LENGTHS), list(reversed(LENGTHS))):
        best = by_suitability(name, [record(experiment) for experiment in logs])[0]
        assert best.logs == (PHENOMENA[name].experiment,)


def test_only_the_most_suitable_log_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = Requests(monkeypatch)
    answers = identify_all(everything(), jointwise.load_robot("ur5e"), JointModel("ur5e", 1))
    assert answers.found == tuple(PHENOMENA)
    assert {name: part.logs for name, part in answers.model.parts.items()} == {
        name: (phenomenon.experiment,) for name, phenomenon in PHENOMENA.items()
    }
    assert {(name, log) for name, log, _ in requested.calls} == {
        (phenomenon.name, phenomenon.experiment) for phenomenon in PHENOMENA.values()
    }


def test_other_logs_are_tried_where_the_most_suitable_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    Requests(monkeypatch, refuses=(("load", "load"), ("temperature", "all")))
    answers = identify_all(everything(), jointwise.load_robot("ur5e"), JointModel("ur5e", 1))
    assert answers.model.parts["load"].logs != ("load",)
    assert list(answers.refused) == ["temperature"]
    assert answers.refused["temperature"][0] == "warm-up: no temperature"
    assert len(answers.refused["temperature"]) == len(LENGTHS)


def test_stiffness_and_transmission_are_each_identified_with_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = Requests(monkeypatch)
    identify_all(everything(), jointwise.load_robot("ur5e"), JointModel("ur5e", 1))
    last = {name: known for name, _, known in requested.calls}
    assert "stiffness" in last["transmission"]
    assert "transmission" in last["stiffness"]
    assert [name for name, _, _ in requested.calls].count("stiffness") == 2


def test_a_transmission_that_is_refused_costs_no_second_spring(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = Requests(monkeypatch, refuses=(("transmission", "all"),))
    identify_all(everything(), jointwise.load_robot("ur5e"), JointModel("ur5e", 1))
    assert [name for name, _, _ in requested.calls].count("stiffness") == 1


def test_each_phenomenon_builds_on_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = Requests(monkeypatch)
    identify_all(everything(), jointwise.load_robot("ur5e"), JointModel("ur5e", 1))
    names = list(PHENOMENA)
    for name, _, known in requested.calls:
        assert set(names[: names.index(name)]) <= set(known)


@pytest.mark.parametrize(
    ("fitted", "rival", "reported"),
    [
        (91.0, 32.8, "'square' fits the held-out data better (32.8 against 30.1 %)"),
        (91.0, 30.12, None),
        (90.0, 32.8, None),
    ],
)
def test_a_model_that_does_better_on_data_held_out_is_not_passed_over_in_silence(
    fitted: float, rival: float, reported: str | None
) -> None:
    """Unless every datum was held out in turn: then the choice was made on the figures that are shown."""
    tried = (TriedModel("absolute", 90.0, 30.1), TriedModel("square", 92.0, rival))
    entries = {"model": "absolute", "values": (), "fitted": fitted, "held_out": 30.1, "alternatives": tried}
    found = identified_part(record("load"), "load", settings={}, ranges={}, **entries)
    assert found.tried_on == ("all data" if fitted == 90.0 else "training part")
    notes = [note for note in found.notes if "held-out" in note]
    assert len(notes) == (reported is not None)
    assert reported is None or notes[0].startswith(reported)
