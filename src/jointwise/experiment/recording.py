"""What an experiment leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.data.log import Log
from jointwise.data.write import check_suffix, write_log
from jointwise.errors import OutputError
from jointwise.model.rigid import gravity_torque
from jointwise.simulation.recording import truth_file
from jointwise.simulation.references import Body, Experiment
from jointwise.simulation.references.clearance import passed
from jointwise.simulation.references.limits import unit_of
from jointwise.simulation.robot import DigitalRobot, Run

ROWS = 65536
"""Samples that are looked at at a time."""
LOOKED_AT = 50.0
"""Rate (Hz) at which links are looked at for their distance."""
NO_LOAD = 1e-6
"""Load (Nm) below which there is none."""
ENDS = 50
"""The warming is counted from the first to the last of so many parts of a log."""


@dataclass(frozen=True)
class Recording:
    """A log, the truth behind it and how it came about.

    `truth` is the document that `write` puts beside the log; `run` holds the true signals at the control rate, every
    n-th period if so asked, None if none were kept.
    """

    log: Log
    truth: dict[str, Any]
    run: Run | None
    experiment: Experiment
    digital: DigitalRobot

    def write(self, path: str | Path, truth: str | Path | None = None) -> None:
        """Write the log as CSV or Parquet, by the ending of its name, and the truth as JSON where a path is given.

        Both files appear, or none.
        """
        check_suffix(path)
        if truth is None:
            write_log(self.log, path)
        elif Path(truth).resolve() == Path(path).resolve():
            raise OutputError(f"{path}: the log and its truth must be different files.")
        else:
            with truth_file(self.truth, truth):
                write_log(self.log, path)

    def summary(self) -> dict[str, Any]:
        """Return what came out as plain data, SI units (for a joint that slides N and m in place of Nm and rad).

        `locked` tells torque (Nm), deformation (rad) and current (A), the largest each, of a joint locked at its
        output. `gravity_load` (Nm) is the most by which gravity loads the joint under test; `held_temperatures` (°C)
        the range outside which friction stays as at its edge, where a joint was outside. `lowest` is the least height
        (m) of the arm above the mounting plane, None where nothing rises or falls; `nearest` the least `distance` (m)
        of two links and which they are, None where none can meet. Of every joint: the `unit` of its position, the error
        of tracking q - q_des (rms and largest, rad), the largest current (A), the largest current asked for as a part
        of the motor's limit (`demand`) and the part of the samples in which it is beyond (`saturated`), and the warming
        (K) from the first to the last 2 % of the samples.
        """
        robot, plan, few = self.digital.robot, self.experiment, max(1, self.log.samples // ENDS)
        body = Body(robot, plan.tool)
        warmth = self.log.channel("temperature")
        warming = warmth[-few:].mean(axis=0) - warmth[:few].mean(axis=0)
        units = [unit_of(robot, joint) for joint in range(robot.dof)]
        names = [joint.name for joint in robot.joints]
        rows = zip(names, units, *self._tracking(), *self._saturation(), warming.tolist(), strict=True)
        keys = ("joint", "unit", "tracking_rms", "tracking_max", "current", "demand", "saturated", "warming")
        return {
            "robot": robot.title or robot.name,
            "experiment": plan.name,
            "note": plan.note,
            "joint": None if plan.joint is None else plan.joint + 1,
            **{key: self.truth[key] for key in ("gravity", "duration", "rate")},
            "lowest": self._lowest(body),
            "nearest": self._nearest(body),
            "gravity_load": self._gravity_load(),
            "locked": self._locked(),
            "held_temperatures": self._held_temperatures(),
            "samples": self.log.samples,
            "joints": [dict(zip(keys, row, strict=True)) for row in rows],
        }

    def _gravity_load(self) -> float | None:
        """Return the largest torque (Nm) by which gravity loads the joint under test, payload and all."""
        joint, own = self.experiment.joint, self.digital
        if joint is None:
            return None
        chunks = (chunk.log.channel("q_des") for chunk in self.log.chunks(ROWS))
        torques = (gravity_torque(own.robot, q, gravity=own.gravity, payload=own.payload) for q in chunks)
        largest = max(float(np.abs(torque[:, joint]).max()) for torque in torques)
        return largest if largest > NO_LOAD else 0.0

    def _held_temperatures(self) -> tuple[float, float] | None:
        """Return the range (°C) that friction by temperature knows, if a joint was outside it."""
        lowest, highest = np.full((2, self.log.joints), [[np.inf], [-np.inf]])
        for chunk in self.log.chunks(ROWS):
            seen = chunk.log.channel("temperature")
            lowest, highest = np.minimum(lowest, seen.min(axis=0)), np.maximum(highest, seen.max(axis=0))
        laws = [joint.friction.warmth for joint in self.digital.joints]
        outside = [
            law
            for law, low, high in zip(laws, lowest, highest, strict=True)
            if (law.linear or law.cold) and not law.coldest <= low <= high <= law.hottest
        ]
        return (outside[0].coldest, outside[0].hottest) if outside else None

    def _lowest(self, body: Body) -> float | None:
        lowest = min(float(body.heights(chunk.log.channel("q_des")).min()) for chunk in self.log.chunks(ROWS))
        return lowest if np.isfinite(lowest) else None

    def _nearest(self, body: Body) -> dict[str, Any] | None:
        """Return the least distance (m) of two links, looked at `LOOKED_AT` times a second, and which they are."""
        step = max(1, int(self.truth["rate"] / LOOKED_AT))
        chunks = (passed(chunk.log.channel("q_des")[::step]) for chunk in self.log.chunks(ROWS))
        found = [own for own in map(body.nearest, chunks) if own is not None]
        own = min(found, key=lambda own: own.distance, default=None)
        return None if own is None else {"distance": own.distance, "between": list(own.parts)}

    def _locked(self) -> dict[str, float] | None:
        log, joint = self.log, self.experiment.joint
        if self.experiment.torque is None or joint is None:
            return None
        deformation = log.channel("theta") - log.channel("q")
        signals = {"torque": log.channel("torque"), "deformation": deformation, "current": log.channel("current")}
        return {name: float(np.abs(values[:, joint]).max()) for name, values in signals.items()}

    def _tracking(self) -> list[list[float]]:
        """Return rms and largest error of tracking (rad) and the largest current (A), (joints,) each, in one pass."""
        squares, worst, current = np.zeros((3, self.log.joints))
        for chunk in self.log.chunks(ROWS):
            error = np.abs(chunk.log.channel("q") - chunk.log.channel("q_des"))
            squares += np.square(error).sum(axis=0)
            worst = np.maximum(worst, error.max(axis=0))
            current = np.maximum(current, np.abs(chunk.log.channel("current")).max(axis=0))
        return [own.tolist() for own in (np.sqrt(squares / self.log.samples), worst, current)]

    def _saturation(self) -> list[list[float]]:
        """Return the largest current asked for over its limit and the part of the samples beyond, (joints,) each."""
        limits = np.array([joint.motor.limit for joint in self.digital.joints])
        demand, beyond = np.zeros((2, self.log.joints))
        for chunk in self.log.chunks(ROWS):
            asked = np.abs(chunk.log.channel("current_des")) / limits
            demand = np.maximum(demand, asked.max(axis=0))
            beyond += (asked > 1.0).sum(axis=0)
        return [demand.tolist(), (beyond / self.log.samples).tolist()]
