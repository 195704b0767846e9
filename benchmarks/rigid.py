"""How fast the rigid-body kernels are: against Pinocchio in a Python loop, and as samples and joints grow.

    python benchmarks/rigid.py [--quick] [--json FILE] [--plot FILE.png]

One thread, outputs preallocated, contestants interleaved in one run, Pinocchio's model and data built once. The targets
are judged on the loop a user writes, ``out[k] = pin.rnea(model, data, q[k], qd[k], qdd[k])`` ("plain"). Beside it stand
the ratios against loops that give Pinocchio more than that: states and results cut into rows before the clock starts
("sliced"), and results dropped as well ("drop").
"""

from __future__ import annotations

from timing import Spread, Task, cpu_name, fastest, ratios, take_turns, use_one_thread

use_one_thread()

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from dataclasses import asdict, dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pinocchio as pin  # noqa: E402

from jointwise.backend import VARIABLE, native  # noqa: E402
from jointwise.description import Joint, Link, Robot, load_robot  # noqa: E402
from jointwise.model import rigid  # noqa: E402
from jointwise.spatial import Array, rotation_rpy  # noqa: E402

ROBOTS = ("ur5e", "panda")
TARGETS = {"regressor": 20.0, "inverse dynamics": 40.0, "forward dynamics": 20.0}
TWIN_TARGET = 1.4
TASKS = (*TARGETS, "mass matrix")
SAMPLE_COUNTS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
JOINT_COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16)


@dataclass(frozen=True)
class States:
    """Random states of a robot and the torques that go with them, (samples, joints) each."""

    q: Array
    qd: Array
    qdd: Array
    torque: Array


@dataclass(frozen=True)
class Row:
    """One line of the table: cost per sample in µs, how many times faster than the peer's loop, the aim."""

    robot: str
    task: str
    engine: str
    microseconds: Spread
    plain: Spread
    sliced: Spread
    drop: Spread
    target: float | None

    @property
    def verdict(self) -> str:
        """Return whether the ratio against the plain loop reaches the target."""
        if self.target is None:
            return "-"
        return "met" if self.plain.median >= self.target else "missed"


# -- the contestants ---------------------------------------------------------------------------------------------


def random_states(robot: Robot, samples: int) -> States:
    q, qd, qdd = np.random.default_rng(0).uniform(-3.0, 3.0, (3, samples, robot.dof))
    return States(q, qd, qdd, rigid.inverse_dynamics(robot, q, qd, qdd))


def jointwise_tasks(robot: Robot, s: States) -> dict[str, Task]:
    """Return our kernels with outputs preallocated; the mass matrix has no `out` and pays for fresh memory."""
    Y = rigid.compute_regressor(robot, s.q, s.qd, s.qdd)
    torque, acceleration = np.empty_like(s.q), np.empty_like(s.q)
    return {
        "regressor": lambda: rigid.compute_regressor(robot, s.q, s.qd, s.qdd, out=Y),
        "inverse dynamics": lambda: rigid.inverse_dynamics(robot, s.q, s.qd, s.qdd, out=torque),
        "forward dynamics": lambda: rigid.forward_dynamics(robot, s.q, s.qd, s.torque, out=acceleration),
        "mass matrix": lambda: rigid.mass_matrix(robot, s.q),
    }


@contextmanager
def numpy_twin() -> Iterator[None]:
    """Use the NumPy twin instead of the native kernel."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "0"
    native.cache_clear()
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before
        native.cache_clear()


def with_twin(task: Task) -> Task:
    def run() -> None:
        with numpy_twin():
            task()

    return run


def pinocchio_model(robot: Robot) -> Any:
    model, parent = pin.Model(), 0
    for joint, link in zip(robot.joints, robot.links, strict=True):
        kind = pin.JointModelRZ() if joint.kind == "revolute" else pin.JointModelPZ()
        placement = pin.SE3(joint.rotation.copy(), joint.translation.copy())
        parent = model.addJoint(parent, kind, placement, joint.name)
        body = pin.Inertia(link.mass, link.center_of_mass.copy(), link.inertia_at_center.copy())
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    return model


def plain_peer_tasks(robot: Robot, s: States) -> dict[str, Task]:
    """Return Pinocchio's algorithms in the Python loops a user writes."""
    model = pinocchio_model(robot)
    data = model.createData()
    n, samples = robot.dof, len(s.q)
    q, qd = s.q, s.qd

    def loop(function: Callable[..., Any], last: Array, *shape: int) -> Task:
        out = np.zeros((samples, *shape))

        def run() -> None:
            for k in range(samples):
                out[k] = function(model, data, q[k], qd[k], last[k])

        return run

    def mass_matrices() -> None:
        for k in range(samples):
            matrices[k] = pin.crba(model, data, q[k])

    matrices = np.zeros((samples, n, n))
    return {
        "regressor": loop(pin.computeJointTorqueRegressor, s.qdd, n, 10 * n),
        "inverse dynamics": loop(pin.rnea, s.qdd, n),
        "forward dynamics": loop(pin.aba, s.torque, n),
        "mass matrix": mass_matrices,
    }


def sliced_peer_tasks(robot: Robot, s: States, keep: bool) -> dict[str, Task]:
    """Return Pinocchio's algorithms in Python loops over rows cut beforehand."""
    model = pinocchio_model(robot)
    data = model.createData()
    n, samples = robot.dof, len(s.q)
    q, qd, qdd, torque = (list(values.copy()) for values in (s.q, s.qd, s.qdd, s.torque))

    def loop(function: Callable[..., Any], last: list[Array], *shape: int) -> Task:
        """Spell the arguments out and write with `...`: star arguments and `[:]` cost the peer a fifth of `rnea`."""
        rows = list(np.zeros((samples, *shape))) if keep else []

        def drop_results() -> None:
            for x, y, z in zip(q, qd, last, strict=True):
                function(model, data, x, y, z)

        def keep_results() -> None:
            for row, x, y, z in zip(rows, q, qd, last, strict=True):
                row[...] = function(model, data, x, y, z)

        return keep_results if keep else drop_results

    def mass_matrices() -> None:
        for row, x in zip(matrices, q, strict=True):
            row[...] = pin.crba(model, data, x)

    def dropped_mass_matrices() -> None:
        for x in q:
            pin.crba(model, data, x)

    matrices = list(np.zeros((samples, n, n))) if keep else []
    return {
        "regressor": loop(pin.computeJointTorqueRegressor, qdd, n, 10 * n),
        "inverse dynamics": loop(pin.rnea, qdd, n),
        "forward dynamics": loop(pin.aba, torque, n),
        "mass matrix": mass_matrices if keep else dropped_mass_matrices,
    }


# -- against the peer --------------------------------------------------------------------------------------------


def compare(name: str, samples: int, rounds: int) -> list[Row]:
    robot = load_robot(name)
    states = random_states(robot, samples)
    actual, plain = jointwise_tasks(robot, states), plain_peer_tasks(robot, states)
    sliced, drop = sliced_peer_tasks(robot, states, True), sliced_peer_tasks(robot, states, False)
    rows = []
    for task in actual:
        contest = {"plain": plain[task], "native": actual[task], "sliced": sliced[task], "drop": drop[task]}
        contest["twin"] = with_twin(actual[task])
        if not rigid.is_native():
            del contest["native"]
        times = take_turns(contest, rounds)
        targets = {"native": TARGETS.get(task), "twin": TWIN_TARGET if task in TARGETS else None}
        for engine in ("plain", "native", "twin"):
            if engine in times:
                cost = Spread.of([1e6 * t / samples for t in times[engine]])
                faster = {peer: ratios(times[peer], times[engine]) for peer in ("plain", "sliced", "drop")}
                label = "pinocchio" if engine == "plain" else engine
                rows.append(Row(name, task, label, cost, **faster, target=targets.get(engine)))
                print_row(rows[-1])
    return rows


def print_row(row: Row) -> None:
    target = "" if row.target is None else f">= {row.target:g}"
    print(
        f"{row.robot:6} {row.task:17} {row.engine:10} {row.microseconds.median:8.3f}   "
        f"{row.plain.median:6.2f} ({row.plain.low:5.2f} .. {row.plain.high:5.2f})   {row.sliced.median:6.2f}   "
        f"{row.drop.median:6.2f}   "
        f"{target:7} {row.verdict if target else ''}",
        flush=True,
    )


# -- as samples and joints grow ----------------------------------------------------------------------------------


def random_chain(joints: int) -> Robot:
    """Return a chain of mostly revolute joints, every fourth prismatic, in general position."""
    rng = np.random.default_rng(joints)
    kinds = ["prismatic" if j % 4 == 3 else "revolute" for j in range(joints)]
    return Robot(
        f"chain{joints}",
        tuple(
            Joint(f"j{j}", "revolute" if kind == "revolute" else "prismatic", rotation_rpy(*angles), translation)
            for j, (kind, angles, translation) in enumerate(
                zip(kinds, rng.uniform(-3.0, 3.0, (joints, 3)), rng.uniform(-0.4, 0.4, (joints, 3)), strict=True)
            )
        ),
        tuple(Link.from_center(f"l{j}", 2.0, [0.05, -0.02, 0.1], np.diag([0.02, 0.03, 0.025])) for j in range(joints)),
    )


Growth = dict[str, dict[int, float]]
"""Microseconds per sample of every task at every size."""


def growth(robots: dict[int, tuple[Robot, int]], rounds: int) -> Growth:
    """Return the cost of every task for each size: (robot, samples). Sizes take turns, the fastest round counts."""
    tasks = {size: jointwise_tasks(robot, random_states(robot, samples)) for size, (robot, samples) in robots.items()}
    cost: Growth = {task: {size: float("inf") for size in robots} for task in TASKS}
    for _ in range(rounds):
        for size, (_, samples) in robots.items():
            for task, run in tasks[size].items():
                cost[task][size] = min(cost[task][size], 1e6 * fastest(run, 0.02) / samples)
    return cost


def exponent(cost: dict[int, float], smallest: int) -> float:
    """Return b of the fit cost = a size^b on logarithmic axes, over sizes of at least `smallest`."""
    sizes = [size for size in cost if size >= smallest]
    return float(np.polyfit(np.log(sizes), np.log([cost[size] for size in sizes]), 1)[0])


def print_growth(by_samples: Growth, by_joints: Growth) -> None:
    print("\nexponents of the cost of a call   in samples (from 10,000; linear is 1)   in joints (from 4; at most 2)")
    for task, costs in by_samples.items():
        print(f"{task:33} {1.0 + exponent(costs, 10_000):10.2f} {exponent(by_joints[task], 4):38.2f}")


def plot(path: Path, by_samples: Growth, by_joints: Growth, head: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for axes, table, start, size, shift in (
        (left, by_samples, 10_000, "samples", 1.0),
        (right, by_joints, 4, "joints", 0.0),
    ):
        for task, cost in table.items():
            label = f"{task}: call ~ {size}^{shift + exponent(cost, start):.2f}"
            axes.loglog(list(cost), list(cost.values()), "o-", markersize=4, label=label)
        axes.grid(visible=True, which="both", alpha=0.3)
        axes.set_ylabel("cost per sample in µs")
        axes.legend(fontsize=8)
    left.set(xlabel="samples in a call", title="ur5e: a flat line is linear growth", yscale="linear")
    left.set_ylim(bottom=0.0)
    joints = np.array([4.0, 16.0])
    guide = by_joints["inverse dynamics"][4]
    right.loglog(joints, guide * joints / 4.0, "k--", lw=1)
    right.loglog(joints, guide * (joints / 4.0) ** 2, "k:", lw=1)
    right.annotate("linear", (joints[1], guide * 4.0), fontsize=8)
    right.annotate("quadratic", (joints[1], guide * 16.0), fontsize=8)
    right.set(xlabel="joints of a random chain", title="cost against joints")
    right.set_xticks(JOINT_COUNTS, [str(count) for count in JOINT_COUNTS])
    right.minorticks_off()
    figure.suptitle(head, fontsize=9)
    figure.savefig(path, dpi=120)


# -- the run -----------------------------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """Return what the figures depend on: processor, instruction set, versions."""
    kernel = native()
    sets = kernel.instruction_sets() if kernel else ["none (NumPy twin)"]
    return {
        "cpu": cpu_name(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pinocchio": pin.__version__,
        "instruction set": str(sets[-1]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer samples, fewer rounds: a look, not a measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw cost against samples and joints")
    options = parser.parse_args()
    samples, rounds = (10_000, 3) if options.quick else (100_000, 7)

    facts = machine()
    print("\n".join(f"{name:16} {value}" for name, value in facts.items()))
    print(f"{'samples':16} {samples:,}, {rounds} rounds, one thread\n")
    print("robot  task              engine     µs/sample   faster than pinocchio (range)   sliced     drop   target")
    rows = [row for name in ROBOTS for row in compare(name, samples, rounds)]

    arm = load_robot(ROBOTS[0])
    by_samples = growth({size: (arm, size) for size in SAMPLE_COUNTS if size <= 10 * samples}, rounds)
    by_joints = growth({joints: (random_chain(joints), 5_000) for joints in JOINT_COUNTS}, rounds)
    print_growth(by_samples, by_joints)
    if options.json:
        report = {"machine": facts, "samples": samples, "rounds": rounds, "table": [asdict(row) for row in rows]}
        report |= {"by_samples": by_samples, "by_joints": by_joints}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.plot:
        plot(options.plot, by_samples, by_joints, f"{facts['cpu']}, {facts['instruction set']}, one thread")


if __name__ == "__main__":
    main()
