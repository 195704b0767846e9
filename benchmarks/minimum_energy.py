"""Minimum-energy motions of random tasks of a UR5e and a UR10e, verified by the digital robot.

The optimiser uses a model that is calibrated on a simulated log, with motor data for the losses; the energies are those
of the digital robot, which has elastic gears, hysteresis, warming and another friction law.

Run from the root of the repository: ``python benchmarks/minimum_energy.py [TASKS PER ROBOT]``.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import jointwise as jw
from jointwise.design import Body, Clearance
from jointwise.design.piecewise import clear_points
from jointwise.design.trajectory import Trajectory
from jointwise.energy.motion_space import StraightPath
from jointwise.runtime import RobotModel
from jointwise.simulation.robot import digital_robot
from jointwise.spatial import Array
from path_dynamic_programme import as_motion, path_optimum

PAYLOADS = {"ur5e": 5.0, "ur10e": 12.5}
"""Largest payload, kg."""
FACTORS = (1.5, 3.0)
"""Durations of the tasks over the least possible ones: drawn between these."""
SETTLE = 0.2
"""Time (s) after a motion that still counts, for the digital robot to arrive."""


@dataclass(frozen=True)
class Set:
    """A robot with its calibrated model and its power model."""

    robot: jw.Robot
    model: RobotModel
    power: jw.energy.PowerModel


@dataclass(frozen=True)
class Task:
    """A random task: start and goal (2, joints), payload, and its duration over the least possible one."""

    points: Array
    payload: jw.Payload
    factor: float


def prepared(name: str) -> Set:
    """Return a robot with a model calibrated on 60 s of excitation, and the power model of its motor data."""
    robot = jw.load_robot(name)
    model = RobotModel(jw.calibrate(jw.simulate(name, "excitation", duration=60.0, seed=3, keep=0).log, robot))
    digital = digital_robot(robot)
    supply, gains = digital.supply, tuple(model.gains.tolist())
    power = jw.energy.PowerModel(
        name, supply.standing, 1.0, gains, tuple(joint.motor.resistance for joint in digital.joints),
        tuple(supply.no_load_current * gain for gain in gains), supply.conversion,
    )  # fmt: skip
    return Set(robot, model, power)


def tasks(made: Set, count: int) -> list[Task]:
    """Return random tasks whose points the arm can hold."""
    found: list[Task] = []
    seed = 0
    while len(found) < count:
        rng = np.random.default_rng([11, seed])
        points = clear_points(made.robot, Clearance(Body(made.robot), 0.06), seed=seed, count=2, reach=2.0)
        payload = jw.Payload(rng.uniform(0.0, PAYLOADS[made.robot.name]), (0.0, 0.0, 0.05), np.zeros((3, 3)))
        seed += 1
        held = made.model.with_payload(payload.mass, payload.center_of_mass).gravity(points)
        effort = np.array([joint.limits.effort for joint in made.robot.joints])
        if (np.abs(held) < 0.8 * effort).all():
            found.append(Task(points, payload, rng.uniform(*FACTORS)))
    return found


def digital_energy(made: Set, motion: Trajectory, payload: jw.Payload) -> float:
    """Return the energy (J) of a motion on the digital robot, without the standing power."""
    lead = 0.5
    result = jw.simulate(
        made.robot, motion, plant=jw.PlantOptions(payload=payload), duration=motion.duration + lead + SETTLE + 0.3
    )
    run = result.run
    assert run is not None
    lead = result.truth["lead"]
    rows = (run.t >= lead) & (run.t <= lead + motion.duration + SETTLE)
    power = run.bus_power()[rows] - result.digital.supply.standing
    return float(np.trapezoid(power, run.t[rows]))


@dataclass(frozen=True)
class Row:
    """Figures of a task: energies (J) and shares; `timed` and `free` are savings on the digital robot."""

    duration: float
    payload: float
    start: float
    timed: float
    free: float
    timed_model: float
    free_model: float
    above_dp: float
    above_dp_digital: float
    limits: float
    clear: bool
    seconds: float
    status: str
    chosen: float


def solve(made: Set, task: Task) -> Row:
    """Return the figures of one task."""
    path = StraightPath(task.points[0], task.points[1] - task.points[0])
    least = jw.energy.optimize_motion(
        made.model, made.power, task.points, longest=100.0, path="fixed", payload=task.payload
    )
    duration = task.factor * least.least_duration
    clock = [time.process_time()]
    timed = jw.energy.optimize_motion(
        made.model, made.power, task.points, duration=duration, path="fixed", payload=task.payload
    )
    clock.append(time.process_time())
    free = jw.energy.optimize_motion(made.model, made.power, task.points, duration=duration, payload=task.payload)
    clock.append(time.process_time())
    chosen = jw.energy.optimize_motion(made.model, made.power, task.points, longest=duration, payload=task.payload)
    clock.append(time.process_time())
    optimum = path_optimum(timed.model, path, duration, timed.limits)
    standing = made.power.standing * duration
    energies = [
        digital_energy(made, motion, task.payload)
        for motion in (
            timed.original.trajectory,
            timed.optimized.trajectory,
            free.optimized.trajectory,
            as_motion(path, optimum.speeds, duration),
        )
    ]
    return Row(
        duration=duration,
        payload=task.payload.mass,
        start=energies[0],
        timed=1.0 - energies[1] / energies[0],
        free=1.0 - energies[2] / energies[0],
        timed_model=float(timed.motion_saving or 0.0),
        free_model=float(free.motion_saving or 0.0),
        above_dp=(timed.optimized.energy - standing) / (optimum.energy - standing) - 1.0,
        above_dp_digital=energies[1] / energies[3] - 1.0,
        limits=max(use.share for each in (timed, free, chosen) for use in each.optimized.uses),
        clear=all(each.optimized.clear for each in (timed, free, chosen)),
        seconds=max(b - a for a, b in pairwise(clock)),
        status=chosen.duration_status,
        chosen=chosen.optimized.duration,
    )


def main() -> None:
    """Print the figures of all tasks and their summary."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    rows: list[Row] = []
    print(
        f"{'task':<10}{'T, s':>7}{'kg':>6}{'start, J':>10}{'timed, %':>10}{'free, %':>9}{'(model)':>14}"
        f"{'over DP, %':>12}{'digital':>9}{'limit':>7}{'s':>6}   duration with standing power"
    )
    for name in PAYLOADS:
        made = prepared(name)
        for k, task in enumerate(tasks(made, count)):
            row = solve(made, task)
            rows.append(row)
            model = f"{100 * row.timed_model:.1f}, {100 * row.free_model:.1f}"
            print(
                f"{name} {k:<4}{row.duration:>7.2f}{row.payload:>6.1f}{row.start:>10.1f}"
                f"{100 * row.timed:>10.2f}{100 * row.free:>9.2f}{model:>14}{100 * row.above_dp:>+12.2f}"
                f"{100 * row.above_dp_digital:>+9.2f}{row.limits:>7.3f}{row.seconds:>6.1f}"
                f"   {row.status} ({row.chosen:.2f} s)",
                flush=True,
            )
    summary(rows)


def summary(rows: list[Row]) -> None:
    """Print medians and extremes."""
    columns = {name: np.array([getattr(row, name) for row in rows]) for name in vars(rows[0]) if name != "status"}
    print(f"\n{len(rows)} tasks; savings of the motion's energy on the digital robot, same end points and time")
    print(f"same path: median {100 * np.median(columns['timed']):.1f} %, least {100 * columns['timed'].min():.1f} %")
    print(f"free path: median {100 * np.median(columns['free']):.1f} %, least {100 * columns['free'].min():.1f} %")
    print(f"same path above the dynamic programme: at most {100 * columns['above_dp'].max():+.2f} %")
    print(f"the same on the digital robot: at most {100 * columns['above_dp_digital'].max():+.2f} %")
    print(f"use of the limits at 5 kHz: at most {columns['limits'].max():.4f}; all clear: {columns['clear'].all()}")
    print(f"longest search (CPU): {columns['seconds'].max():.1f} s")
    kinds = [row.status for row in rows]
    print("durations: " + ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))))


if __name__ == "__main__":
    main()
