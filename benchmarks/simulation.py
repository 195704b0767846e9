"""How fast the digital robot is: against Pinocchio and MuJoCo on the rigid arm, and against real time with everything.

    python benchmarks/simulation.py [--quick] [--json FILE]

UR5e, 1 kHz control, one thread, contestants interleaved in one run. Rigid: 10 s of RK4 at 1 ms - Pinocchio's `aba` in a
Python loop at its best (rows cut beforehand), MuJoCo's RK4 in one call (`nstep`) and in a loop that sets a torque every
millisecond, as ours does. Full: elastic joints, friction, motors, heat and a controller in the loop. Batch: many full
robots on all cores.
"""

from __future__ import annotations

from timing import Spread, Task, cpu_name, ratios, take_turns, use_one_thread

use_one_thread()

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
from dataclasses import asdict  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
import pinocchio as pin  # noqa: E402

from jointwise.control.controller import AffineControl  # noqa: E402
from jointwise.description import Robot, load_robot  # noqa: E402
from jointwise.model import rigid  # noqa: E402
from jointwise.simulation.robot import (  # noqa: E402
    PHENOMENA,
    batch,
    digital_robot,
    integrate,
)
from jointwise.spatial import Array  # noqa: E402

RATE = 1000.0
HOME = np.array([0.0, -1.2, 1.0, -1.0, -1.5, 0.3])
TARGETS = {"pinocchio": 20.0, "real time": 100.0}
GAINS = np.array([[4000.0, 4000.0, 3000.0, 300.0, 300.0, 200.0], [150.0, 150.0, 100.0, 12.0, 10.0, 6.0]])


def swing(seconds: float) -> tuple[Array, Array, Array]:
    """Return q, q̇, q̈ (periods, joints) of a motion of all joints."""
    t = np.arange(round(seconds * RATE))[:, None] / RATE
    A, w = np.array([0.5, 0.4, 0.6, 0.7, 0.5, 0.8]), 2.0 * np.pi * np.array([0.3, 0.25, 0.35, 0.4, 0.5, 0.6])
    return HOME + A * (1.0 - np.cos(w * t)), A * w * np.sin(w * t), A * w**2 * np.cos(w * t)


def torques(robot: Robot, rotors: Array, seconds: float) -> Array:
    return rigid.inverse_dynamics(robot, *swing(seconds), rotor_inertias=rotors)


# -- the contestants ---------------------------------------------------------------------------------------------


def pinocchio_task(robot: Robot, rotors: Array, torque: Array) -> Task:
    """Return RK4 with `aba` in Python, positions kept."""
    model, parent = pin.Model(), 0
    for joint, link in zip(robot.joints, robot.links, strict=True):
        placement = pin.SE3(joint.rotation.copy(), joint.translation.copy())
        parent = model.addJoint(parent, pin.JointModelRZ(), placement, joint.name)
        body = pin.Inertia(link.mass, link.center_of_mass.copy(), link.inertia_at_center.copy())
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    model.armature = rotors
    data, rows, path, aba, h = model.createData(), list(torque.copy()), np.empty_like(torque), pin.aba, 1.0 / RATE

    def run() -> None:
        q, v = HOME.copy(), np.zeros(robot.dof)
        for k, u in enumerate(rows):
            path[k] = q
            k1 = aba(model, data, q, v, u).copy()
            v2 = v + h / 2 * k1
            k2 = aba(model, data, q + h / 2 * v, v2, u).copy()
            v3 = v + h / 2 * k2
            k3 = aba(model, data, q + h / 2 * v2, v3, u).copy()
            v4 = v + h * k3
            k4 = aba(model, data, q + h * v3, v4, u)
            q = q + h / 6 * (v + 2 * v2 + 2 * v3 + v4)
            v = v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return run


def numbers(values: Array) -> str:
    return " ".join(repr(float(value)) for value in values)


def mujoco_model(robot: Robot, rotors: Array) -> Any:
    text = ""
    for joint, link, rotor in reversed(list(zip(robot.joints, robot.links, rotors, strict=True))):
        six = link.inertia_at_center[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        axes = numbers(joint.rotation[:, :2].T.ravel())
        text = (
            f'<body pos="{numbers(joint.translation)}" xyaxes="{axes}">'
            f'<joint axis="0 0 1" armature="{float(rotor)!r}"/>'
            f'<inertial mass="{link.mass!r}" pos="{numbers(link.center_of_mass)}" fullinertia="{numbers(six)}"/>'
            f"{text}</body>"
        )
    option = f'<option timestep="{1.0 / RATE}" integrator="RK4"><flag constraint="disable"/></option>'
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/>{option}<worldbody>{text}</worldbody></mujoco>'
    )


def mujoco_tasks(robot: Robot, rotors: Array, torque: Array) -> dict[str, Task]:
    model = mujoco_model(robot, rotors)
    data = mujoco.MjData(model)
    rows, path = list(torque.copy()), np.empty_like(torque)

    def all_at_once() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos = HOME
        mujoco.mj_step(model, data, nstep=len(rows))

    def torque_by_torque() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos = HOME
        for k, u in enumerate(rows):
            path[k] = data.qpos
            data.qfrc_applied[:] = u
            mujoco.mj_step(model, data)

    return {"mujoco nstep": all_at_once, "mujoco loop": torque_by_torque}


def jointwise_tasks(robot: Robot, rotors: Array, torque: Array, seconds: float) -> dict[str, Task]:
    full = digital_robot(robot)
    bare = full.without(*PHENOMENA)
    q, qd, _ = swing(seconds)
    control = AffineControl(theta=q, speed=qd, torque=torque, k_theta=GAINS[0], k_speed=GAINS[1])
    rest, start = full.rest(HOME), bare.rest(HOME)
    assert np.allclose([joint.inertia for joint in bare.joints], rotors)
    return {"rigid": lambda: integrate(bare, start, torque), "full": lambda: integrate(full, rest, control)}


def batch_speeds(robot: Robot, seconds: float, count: int, rounds: int) -> dict[str, list[float]]:
    """Return times (s) of `count` full robots on one core and on all, in turns."""
    task = jointwise_tasks(robot, robot.rotor_inertias, torques(robot, robot.rotor_inertias, seconds), seconds)["full"]
    task()  # the stable step is found once
    members = range(count)
    contest: dict[str, Task] = {
        "one core": lambda: batch(lambda _: task(), members, workers=1),
        "all cores": lambda: batch(lambda _: task(), members),
    }
    return take_turns(contest, rounds)


# -- the run -----------------------------------------------------------------------------------------------------


def print_ratio(name: str, spread: Spread, target: float | None) -> None:
    verdict = "" if target is None else f"  >= {target:g} {'met' if spread.median >= target else 'missed'}"
    print(f"{name:44} {spread.median:8.2f} ({spread.low:7.2f} .. {spread.high:7.2f}){verdict}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2 s and three rounds: a look, not a measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    options = parser.parse_args()
    seconds, rounds = (2.0, 3) if options.quick else (10.0, 9)
    robot = load_robot("ur5e")
    rotors = robot.rotor_inertias
    torque = torques(robot, rotors, seconds)
    contest: dict[str, Task] = {
        "pinocchio": pinocchio_task(robot, rotors, torque),
        **mujoco_tasks(robot, rotors, torque),
        **jointwise_tasks(robot, rotors, torque, seconds),
    }
    print(f"{cpu_name()}, pinocchio {pin.__version__}, mujoco {mujoco.__version__}, {seconds:g} s at {RATE:g} Hz\n")
    times = take_turns(contest, rounds)
    for name, values in times.items():
        print(f"{name:16} {1e3 * Spread.of(values).median:9.2f} ms")
    print()
    figures = {f"rigid against {peer}": ratios(times[peer], times["rigid"]) for peer in list(contest)[:3]}
    figures["rigid against real time"] = Spread.of([seconds / t for t in times["rigid"]])
    figures["full with controller against real time"] = Spread.of([seconds / t for t in times["full"]])
    targets = {"rigid against pinocchio": TARGETS["pinocchio"]}
    targets["full with controller against real time"] = TARGETS["real time"]
    for name, spread in figures.items():
        print_ratio(name, spread, targets.get(name))
    count = 4 * (os.cpu_count() or 1)
    times |= batch_speeds(robot, seconds, count, 3)
    many = {
        "batch of full robots against real time": Spread.of([count * seconds / t for t in times["all cores"]]),
        f"batch on {os.cpu_count()} cores against one": ratios(times["one core"], times["all cores"]),
    }
    for name, spread in many.items():
        print_ratio(name, spread, None)
    if options.json:
        report = {
            "seconds": times,
            "ratios": {name: asdict(spread) for name, spread in (figures | many).items()},
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
