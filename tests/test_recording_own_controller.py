"""A controller of one's own in a recording: whole logs, truth and pages, whoever controls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointwise
from jointwise import control
from jointwise.description import Payload
from jointwise.errors import JointwiseError, ModelError
from jointwise.experiment import Events, Push, run, simulate
from jointwise.experiment.closed_loop import drives_of
from jointwise.report.recording import write_recording_page
from jointwise.simulation.robot import digital_robot
from kernels import needs_native
from simulation_options import grouped

pytestmark = needs_native

ARM = jointwise.load_robot("planar2")
OPTIONS: dict[str, Any] = {"duration": 1.0, "rate": 250.0, "seed": 3}
DRIVES = drives_of(digital_robot(ARM))


class Following:
    """PD at the rotors along a motion; its memory counts the periods."""

    def __init__(self, motion: Any, rate: float) -> None:
        self.motion = motion

    def init(self, sample: control.ControlSample) -> int:
        return 0

    def step(self, memory: int, sample: control.ControlSample) -> tuple[Any, int]:
        assert sample.time == pytest.approx(memory / 1000.0)
        q, qd = (self.motion(np.array([sample.time]), order)[0] for order in (0, 1))
        return 600.0 * (q - sample.theta) + 30.0 * (qd - sample.speed), memory + 1


def pd(motion: Any, rate: float) -> control.AffineController:
    return control.pd_gravity(ARM, motion, rate, drives=DRIVES, gravity=[0.0, 0.0, -9.81])


class Hidden:
    """A controller whose law nobody sees."""

    def __init__(self, motion: Any, rate: float) -> None:
        self._controller = pd(motion, rate)
        self.init, self.step = self._controller.init, self._controller.step


def test_a_controller_of_ones_own_leaves_a_whole_recording(tmp_path: Path) -> None:
    made = simulate(ARM, controller=Following, **OPTIONS)
    assert made.truth["controller"]["name"] == "Following" and made.truth["controller"]["bandwidth"] is None
    assert made.log.samples == 250 and made.run is not None
    assert np.abs(made.log.q - made.log.channel("q_des")).max() < 0.2
    made.write(tmp_path / "log.csv", tmp_path / "truth.json")
    pytest.importorskip("jinja2")
    page = write_recording_page(ARM, made.log, made.truth, vars(made.run), tmp_path)
    assert "Following at 1000 Hz" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("feedback", ["states", "sensors"])
def test_stepping_a_controller_and_running_its_law_leave_the_same_log(
    monkeypatch: pytest.MonkeyPatch, feedback: Any
) -> None:
    """Blocks, stages and pushes too: the memory goes on."""
    monkeypatch.setattr(run, "CHUNK", 300)
    happens = Events({0.4: Payload(0.3)}, [Push(0.6, 0.1, (3.0, 0.0, 0.0))], {"friction": 0.2})
    named, lawful, stepped = (
        simulate(ARM, events=happens, **grouped(controller=item, gravity="table", feedback=feedback, **OPTIONS))
        for item in ("pd", pd, Hidden)
    )
    assert (lawful.truth["controller"]["name"], stepped.truth["controller"]["name"]) == ("AffineController", "Hidden")
    assert lawful.truth["controller"].get("kp") == named.truth["controller"].get("kp")
    for actual in (lawful, stepped):
        assert actual.run is not None and named.run is not None
        np.testing.assert_allclose(actual.run.q, named.run.q, atol=1e-9)
        assert actual.run.energy.residual[-1] == pytest.approx(named.run.energy.residual[-1], abs=1e-9)


def test_a_controller_is_begun_once() -> None:
    class Held:
        begun = 0

        def init(self, sample: control.ControlSample) -> Any:
            self.begun += 1
            return sample.theta

        def step(self, memory: Any, sample: control.ControlSample) -> tuple[Any, Any]:
            return 200.0 * (memory - sample.theta) - 20.0 * sample.speed, memory

    actual = Held()
    made = simulate(ARM, controller=actual, events=Events({0.01: None, 0.02: None}), duration=0.05)
    assert actual.begun == 1 and made.truth["controller"]["name"] == "Held"


class Bare(Following):
    """Forgets its memory."""

    def step(self, memory: int, sample: control.ControlSample) -> Any:
        return np.zeros(2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"controller": 3.0}, "controller must be a name, have init.* Got float"),
        ({"controller": lambda: None}, "controller must be a name, have init.* Got function"),
        ({"controller": lambda motion, rate: None}, "controller must be a name, have init.* Got NoneType"),
        ({"controller": Following, "bandwidth": 5.0}, "bandwidth must be None for a controller object"),
        ({"controller": Following, "experiment": "locked"}, "prescribes the torques"),
        ({"controller": Bare}, "step must return a torque and a memory. Got ndarray"),
        ({"controller": lambda motion, rate: pd(motion, 500.0)}, "made for 500 Hz. Got a control_rate of 1000"),
    ],
)
def test_what_is_no_controller_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        simulate(ARM, **grouped(**({"duration": 0.5} | options)))


def test_a_reference_that_is_too_short_is_refused() -> None:
    short = control.pd_gravity(
        ARM, control.as_reference(lambda t, k: np.zeros((len(t), 2)), 1000.0, 0.2), drives=DRIVES
    )
    with pytest.raises(JointwiseError, match=r"reference must last as long as the recording.* Got 200 instead"):
        simulate(ARM, controller=short, duration=0.5)
