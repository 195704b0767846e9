"""The controller of the virtual UR: outputs of the digital robot while it executes a program."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import read_limited
from jointwise.call_settings import ServerSettings
from jointwise.data import Log, read_log
from jointwise.description.files import as_robot
from jointwise.description.robot import Robot
from jointwise.design import make_experiment
from jointwise.design.experiments import Experiment
from jointwise.design.sampled import experiment_from_log, sampled_motion
from jointwise.design.trajectory import Trajectory
from jointwise.errors import DataError, ModelError
from jointwise.experiment import PlantOptions, simulate
from jointwise.rtde.server import TICK_RATE, Faults, Server
from jointwise.virtual_ur.script import AXES, PERIOD, run_script

UPTIME = 100.0
"""Stamp (s) of the controller's clock at the first tick."""
REST = 1.0
"""Standstill (s) before and after the motion that is repeated while no program runs."""
STILL = 1e-9
"""Largest step of a command (rad per tick) at rest: rounding errors only."""
EXCITATION = 20.0
"""Duration (s) of the motion without a program."""
LARGEST_SCRIPT = 10_000_000
"""Largest size of a program in bytes."""
_RUNNING, _JOINT_RUNNING, _NORMAL, _PLAYING, _STOPPED = 7, 253, 1, 2, 1
"""Values of robot_mode, joint_mode, safety_mode and runtime_state (playing, stopped)."""
_CHANNELS = {
    "actual_q": "q",
    "actual_qd": "qd",
    "actual_current": "current",
    "joint_temperatures": "temperature",
    "target_q": "q_des",
    "target_qd": "qd_des",
    "target_qdd": "qdd_des",
    "target_current": "current_des",
    "target_moment": "torque_des",
}
"""Output field -> channel of the simulated log."""


@dataclass
class VirtualUr:
    """Outputs of a controller over its ticks: at rest, the program once a client receives data, at rest again.

    Attributes:
        robot: The robot.
        log: The simulated program at 500 Hz, with a standstill of `rest` ticks before and after the motion.
        rest: Ticks of standstill at either end of the log.
        payload: Mass (kg) and centre (m) of the payload.
        wait: Ticks between the first client and the start of the program.
        first: Tick at which the first client starts to receive data; None before.

    """

    robot: Robot
    log: Log
    rest: int
    payload: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    wait: int = round(TICK_RATE)
    first: int | None = None

    def started(self, tick: int) -> None:
        """Note the tick at which the first client starts to receive data."""
        if self.first is None:
            self.first = tick

    def row(self, tick: int) -> int:
        """Return the sample of the log that is sent at a tick; standstills are repeated."""
        last = self.log.samples
        since = -1 if self.first is None else tick - self.first - self.wait
        if since < 0:
            return tick % self.rest
        return since if since < last else last - self.rest + (since - last) % self.rest

    def playing(self, tick: int) -> bool:
        """Return whether the program runs at a tick."""
        return self.first is not None and 0 <= tick - self.first - self.wait < self.log.samples

    def finished(self, tick: int) -> bool:
        """Return whether the program is over at a tick."""
        return self.first is not None and tick - self.first - self.wait >= self.log.samples

    def values(self, tick: int) -> Mapping[str, Sequence[float]]:
        """Return the output fields at a tick; see `rtde.server.FieldSource`."""
        row = self.row(tick)
        values: dict[str, Sequence[float]] = {
            field: self.log.channel(channel)[row].tolist() for field, channel in _CHANNELS.items()
        }
        gravity = self.log.origin.gravity or (0.0, 0.0, 0.0)
        return values | {
            "timestamp": [UPTIME + tick / TICK_RATE],
            "robot_mode": [_RUNNING],
            "joint_mode": [_JOINT_RUNNING] * AXES,
            "safety_mode": [_NORMAL],
            "safety_status": [_NORMAL],
            "runtime_state": [_PLAYING if self.playing(tick) else _STOPPED],
            "speed_scaling": [1.0],
            "target_speed_fraction": [1.0],
            "payload": self.payload[:1],
            "payload_cog": self.payload[1:],
            "gravity": gravity,
        }


def check_six_axes(robot: Robot) -> None:
    """Raise `ModelError` for a robot that no UR controller drives: its messages have six revolute joints."""
    if robot.dof != AXES or not robot.revolute.all():
        raise ModelError(f"a virtual UR must have six revolute joints. Robot '{robot.name}' has {robot.dof}.")


@checked
def make_virtual_ur(
    robot: Robot | str | Path = "ur5e",
    program: str | Path | Trajectory | None = None,
    *,
    plant: PlantOptions | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> VirtualUr:
    """Return a virtual UR that executes a program.

    Args:
        robot: A robot with six revolute joints, or its name.
        program: URScript (`.script`, `.txt`), a trajectory as a log (`.csv`, `.parquet`), a `Trajectory`, or None for
            an excitation of 20 s.
        plant: Payload, mounting and joint parameters of the simulated robot.
        seed: Seed of the sensor noise, and of the excitation.
        progress: Called with the completed share of the simulation, 0 to 1.

    Raises:
        ModelError: If the robot has other joints, or the program cannot be executed.

    """
    arm = as_robot(robot)
    check_six_axes(arm)
    experiment = _experiment(arm, program, seed)
    motion = experiment.motion if isinstance(experiment, Experiment) else experiment
    duration = motion.duration + 2.0 * REST
    result = simulate(
        arm, experiment, duration=duration, rate=TICK_RATE, seed=seed, plant=plant, keep=0, progress=progress
    )
    carried = None if plant is None else plant.payload
    payload = (0.0,) * 4 if carried is None else (carried.mass, *map(float, carried.center_of_mass))
    return VirtualUr(arm, result.log, _rest_ticks(result.log), payload)


def _rest_ticks(log: Log) -> int:
    """Return how many ticks the arm is commanded to stand still at both ends of a log, at least one."""
    moving = np.flatnonzero(np.abs(np.diff(log.channel("q_des"), axis=0)).max(axis=1) > STILL)
    if not len(moving):
        return log.samples
    return max(1, min(int(moving[0]), log.samples - int(moving[-1]) - 2))


def _experiment(robot: Robot, program: str | Path | Trajectory | None, seed: int) -> Experiment | Trajectory:
    """Return what to simulate for a program."""
    if program is None:
        return make_experiment("excitation", robot, EXCITATION, seed)
    if isinstance(program, Trajectory):
        return program
    path = Path(program)
    if path.suffix.lower() in (".csv", ".parquet"):
        return experiment_from_log(robot, read_log(path, joints=robot.dof, needed=()))
    try:
        text = read_limited(path, LARGEST_SCRIPT, "a program").decode("utf-8")
    except DataError as problem:
        raise DataError(f"{path}: {problem}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not a text file. A program is URScript, a trajectory is .csv or .parquet.") from None
    q = run_script(text, str(path))
    t = np.arange(len(q)) * PERIOD
    return sampled_motion(robot, t, q)


@checked
def serve(
    virtual: VirtualUr,
    *,
    port: int = ServerSettings.port,
    faults: Faults | None = None,
    once: bool = ServerSettings.once,
    stop: threading.Event | None = None,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve a virtual UR to RTDE clients on the loopback interface until `stop` is set or Ctrl-C.

    Args:
        virtual: The virtual UR.
        port: TCP port; 0 for a free one.
        faults: Faults of the controller.
        once: End when the program is over and no client receives data any more.
        stop: Ends the server when set.
        ready: Called with the port when clients can connect.

    """
    event = stop or threading.Event()
    server = Server(virtual, port, faults)
    if ready is not None:
        ready(server.port)
    server.run(lambda: event.is_set() or (once and virtual.finished(server.tick) and not server.receiving))
