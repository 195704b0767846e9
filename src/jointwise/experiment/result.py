"""The result of a simulated experiment: its log, the truth behind it and a summary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import output_set
from jointwise.data.log import Log
from jointwise.data.write import check_suffix, write_log
from jointwise.design import Body, Experiment
from jointwise.design.clearance import visited_postures
from jointwise.design.limits import unit_of
from jointwise.errors import OutputError
from jointwise.experiment.summary_text import simulation_text
from jointwise.model.rigid import gravity_torque
from jointwise.simulation.recording import save_truth
from jointwise.simulation.robot import DigitalRobot, Run
from jointwise.spatial import Array

CHUNK_SAMPLES = 65536
"""Samples of a log in memory at a time."""
DISTANCE_RATE = 50.0
"""Rate (Hz) at which the distance of the links is computed: at 3 rad/s a link turns 0.06 rad in between."""
NO_LOAD = 1e-6
"""Load (Nm) below which a joint counts as unloaded: above rounding errors."""
END_PARTS = 50
"""The warming is the difference of the means of the first and the last 1/50 of a log."""


@dataclass(frozen=True)
class SimulationResult:
    """The log of a simulated experiment and the truth behind it.

    Attributes:
        log: What the sensors recorded.
        truth: The document that `write` saves beside the log.
        run: True signals at the control rate, thinned if requested; None if none were kept.
        experiment: The experiment that was simulated.
        digital: The digital robot that performed it, as it was at the start.
    """

    log: Log
    truth: dict[str, Any]
    run: Run | None
    experiment: Experiment
    digital: DigitalRobot

    def __repr__(self) -> str:
        """Return robot, experiment and log in one line."""
        return f"SimulationResult({self.digital.robot.name!r}, {self.experiment.name!r}, {self.log!r})"

    @checked
    def write(self, path: str | Path, truth: str | Path | None = None) -> None:
        """Write the log as CSV or Parquet, by its suffix, and the truth as JSON if a path is given; both or neither."""
        check_suffix(path)
        if truth is not None and Path(truth).resolve() == Path(path).resolve():
            raise OutputError(f"{path}: the log and its truth must be different files.")
        with output_set():
            if truth is not None:
                save_truth(self.truth, truth)
            write_log(self.log, path)

    def summary(self) -> str:
        """Return the main figures as text, as `jointwise simulate` prints them."""
        return simulation_text(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the main figures as plain data, in SI units (for a prismatic joint N and m in place of Nm and rad).

        - `lowest`: least height (m) of the arm above the mounting plane, None if no part can rise or fall
        - `nearest`: least `distance` (m) of two links and which they are, None if no links can touch
        - `gravity_load`: largest gravity torque (Nm) on the joint under test
        - `locked`: largest torque (Nm), deformation (rad) and current (A) of a joint with a locked output
        - `held_temperatures`: temperature range (°C) of the friction law, if a joint left it; outside, friction is
          that of the nearer limit
        - `joints`: for each joint the `unit` of its position, the tracking error q - q_des (rms and largest), the
          largest measured current (A), the largest commanded current over the motor's limit (`demand`), the share of
          samples above the limit (`saturated`), and the warming (K) between the first and the last 2 % of the samples
        """
        robot, experiment = self.digital.robot, self.experiment
        body = Body(robot, experiment.tool)
        return {
            "robot": robot.title or robot.name,
            "experiment": experiment.name,
            "note": experiment.note,
            "joint": None if experiment.joint is None else experiment.joint + 1,
            **{key: self.truth[key] for key in ("gravity", "duration", "rate")},
            "lowest": self._lowest(body),
            "nearest": self._nearest(body),
            "gravity_load": self._gravity_load(),
            "locked": self._locked(),
            "held_temperatures": self._held_temperatures(),
            "samples": self.log.samples,
            "joints": self._joints(),
        }

    def _joints(self) -> list[dict[str, Any]]:
        """Return the row of each joint in the summary."""
        robot = self.digital.robot
        units = [unit_of(robot, joint) for joint in range(robot.dof)]
        names = [joint.name for joint in robot.joints]
        keys = ("joint", "unit", "tracking_rms", "tracking_max", "current", "demand", "saturated", "warming")
        rows = zip(names, units, *self._tracking(), *self._saturation(), self._warming(), strict=True)
        return [dict(zip(keys, row, strict=True)) for row in rows]

    def _warming(self) -> list[float]:
        temperature = self.log.channel("temperature")
        part = max(1, self.log.samples // END_PARTS)
        warming: list[float] = (temperature[-part:].mean(axis=0) - temperature[:part].mean(axis=0)).tolist()
        return warming

    def _channels(self, *names: str) -> Iterator[tuple[Array, ...]]:
        """Yield channels (samples, joints) of the log, chunk by chunk."""
        for chunk in self.log.chunks(CHUNK_SAMPLES):
            yield tuple(chunk.channel(name) for name in names)

    def _gravity_load(self) -> float | None:
        """Return the largest gravity torque (Nm) on the joint under test, with the payload."""
        joint, digital = self.experiment.joint, self.digital
        if joint is None:
            return None
        largest = 0.0
        for (q,) in self._channels("q_des"):
            torque = gravity_torque(digital.robot, q, gravity=digital.gravity, payload=digital.payload)
            largest = max(largest, float(np.abs(torque[:, joint]).max()))
        return largest if largest > NO_LOAD else 0.0

    def _held_temperatures(self) -> tuple[float, float] | None:
        """Return the temperature range (°C) of the friction law of the first joint that left it."""
        lowest, highest = np.full((2, self.log.joints), [[np.inf], [-np.inf]])
        for (seen,) in self._channels("temperature"):
            lowest, highest = np.minimum(lowest, seen.min(axis=0)), np.maximum(highest, seen.max(axis=0))
        for joint, low, high in zip(self.digital.joints, lowest, highest, strict=True):
            law = joint.friction.thermal
            if (law.linear or law.cold) and not law.coldest <= low <= high <= law.hottest:
                return law.coldest, law.hottest
        return None

    def _lowest(self, body: Body) -> float | None:
        lowest = min(float(body.heights(q).min()) for (q,) in self._channels("q_des"))
        return lowest if np.isfinite(lowest) else None

    def _nearest(self, body: Body) -> dict[str, Any] | None:
        """Return the least distance (m) of two links, computed `DISTANCE_RATE` times a second, and which they are."""
        step = max(1, int(self.truth["rate"] / DISTANCE_RATE))
        candidates = [body.nearest(visited_postures(q[::step])) for (q,) in self._channels("q_des")]
        found = [nearest for nearest in candidates if nearest is not None]
        nearest = min(found, key=lambda nearest: nearest.distance, default=None)
        return None if nearest is None else {"distance": nearest.distance, "between": list(nearest.parts)}

    def _locked(self) -> dict[str, float] | None:
        log, joint = self.log, self.experiment.joint
        if self.experiment.torque is None or joint is None:
            return None
        deformation = log.channel("theta") - log.channel("q")
        signals = {"torque": log.channel("torque"), "deformation": deformation, "current": log.channel("current")}
        return {name: float(np.abs(values[:, joint]).max()) for name, values in signals.items()}

    def _tracking(self) -> list[list[float]]:
        """Return rms and largest tracking error (rad) and the largest current (A), (joints,) each, in one pass."""
        squares, worst, largest = np.zeros((3, self.log.joints))
        for q, q_des, current in self._channels("q", "q_des", "current"):
            error = np.abs(q - q_des)
            squares += np.square(error).sum(axis=0)
            worst = np.maximum(worst, error.max(axis=0))
            largest = np.maximum(largest, np.abs(current).max(axis=0))
        return [values.tolist() for values in (np.sqrt(squares / self.log.samples), worst, largest)]

    def _saturation(self) -> list[list[float]]:
        """Return the largest commanded current over its limit and the share of samples above it, (joints,) each."""
        limits = np.array([joint.motor.limit for joint in self.digital.joints])
        demand, above = np.zeros((2, self.log.joints))
        for (commanded,) in self._channels("current_des"):
            relative = np.abs(commanded) / limits
            demand = np.maximum(demand, relative.max(axis=0))
            above += (relative > 1.0).sum(axis=0)
        return [demand.tolist(), (above / self.log.samples).tolist()]
