"""What each kind of stored file says: numbers that must not change while later versions read it."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import jointwise as jw
from jointwise.cli.aurt import load_aurt_model, load_bodies
from jointwise.joint import JointModel, friction_map, load_joints
from jointwise.joint.laws import JointMotion, friction_law
from jointwise.model.rigid import inverse_dynamics
from jointwise.monitoring import History
from jointwise.result import load_calibration
from jointwise.result.excitation import compare_with_prediction
from jointwise.simulation.recording import digital_robot_from_truth, load_truth
from jointwise.simulation.robot import integrate
from jointwise.spatial import Array

FILES = Path(__file__).parent / "files"
PREDICTIONS = FILES / "predictions.npz"
RATE = 200.0
GRAVITY = (0.0, 0.0, -9.81)


def numbers(path: Path) -> dict[str, Array]:
    """Return the numbers that a stored file says or predicts, by a name."""
    kind = path.stem.partition("_")[0]
    return KINDS[kind](path)


def flat(content: Any) -> list[float]:
    """Return all numbers of nested data in their order."""
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list | tuple | np.ndarray):
        return [number for item in content for number in flat(item)]
    return [float(content)] if isinstance(content, int | float) else []


@lru_cache
def motion(joints: int, samples: int = 200) -> jw.Log:
    """Return a motion with all channels, with rests and reversals; a closed form, so that it never changes."""
    t = np.arange(samples) / RATE
    w, size = np.linspace(2.0, 9.0, joints), np.linspace(0.7, 0.3, joints)
    phase = np.maximum(t - 0.1, 0.0)[:, None] * w
    q, qd = size * (1.0 - np.cos(phase)) - 0.4, size * w * np.sin(phase)
    torsion = 1e-4 * np.sin(3.0 * phase)
    current = 2.0 * np.sin(phase) + 0.5 * np.tanh(20.0 * qd)
    warm = np.broadcast_to(25.0 + 5.0 * t[:, None] + np.arange(joints), q.shape)
    bus = {"actual_robot_voltage": np.full(samples, 48.0), "actual_robot_current": 1.0 + np.abs(current).sum(axis=1)}
    return jw.Log(
        t, q, qd + 1e-3 * np.sin(50.0 * t)[:, None], theta=q + torsion, current=current, temperature=warm, extra=bus
    )


def model(path: Path) -> dict[str, Array]:
    """Return parameters, intervals and predictions of a model."""
    calibration = load_calibration(path)
    robot, log = jw.RobotModel(calibration), motion(calibration.model.robot.dof)
    w = np.linspace(1.0, 3.0, robot.dof)
    q = np.sin(log.t[:, None] * w)
    found = {
        "values": calibration.estimate.values,
        "intervals": calibration.conf_int(),
        "gains": calibration.gains,
        "sensor": calibration.predict(log, use="sensor"),
        "feed-forward": calibration.predict(log, use="feed-forward"),
        "torque": robot.torque(q, w * np.cos(log.t[:, None] * w), -(w**2) * q, rate=RATE),
    }
    if calibration.physical is not None:
        bodies = calibration.robot_identified()
        found["bodies"] = np.append(bodies.inertials.ravel(), bodies.rotor_inertias)
        found["mass matrix"] = robot.mass_matrix(q[:20])
    if calibration.spread is not None:
        found["spread"] = np.array(flat(asdict(calibration.spread)))
    return found


def joint(path: Path) -> dict[str, Array]:
    """Return the values of every phenomenon of every joint, and the friction that they predict."""
    found: dict[str, Array] = {}
    for model in load_joints(path):
        for name, part in model.parts.items():
            rows = [(value.value, value.deviation, value.low, value.high) for value in part.values]
            found[f"{model.joint + 1} {name}"] = np.array(rows)
            found[f"{model.joint + 1} {name} fit"] = np.array([part.fitted, part.held_out or 0.0])
        found |= {f"{model.joint + 1} {name}": torque for name, torque in friction(model).items()}
    return found


def friction(model: JointModel) -> dict[str, Array]:
    """Return the friction of a joint over speed, load and temperature, and with memory along a path."""
    path, speed = (
        0.05 * np.sin(np.linspace(0.0, 20.0, 800)),
        np.gradient(0.05 * np.sin(np.linspace(0.0, 20.0, 800)), 5e-3),
    )
    load = 20.0 * np.cos(np.linspace(0.0, 7.0, 800))
    found = {}
    if "friction" in model.parts:
        steady = friction_map(
            [part for name, part in model.parts.items() if name in ("friction", "load", "temperature")]
        )
        found["friction map"] = steady.torque(2.0 * speed, load, 25.0 + np.linspace(0.0, 10.0, 800))
    if "hysteresis" in model.parts:
        law = friction_law(model.parts["hysteresis"])
        found["hysteresis torque"] = law.torque(JointMotion(path, speed, load, 5e-3))
    return found


def truth(path: Path) -> dict[str, Array]:
    """Return the parameters of a simulated robot, and where it falls to in 50 ms."""
    document = load_truth(path)
    digital = digital_robot_from_truth(document)
    start = digital.rest(np.full(digital.robot.dof, 0.3))
    run = integrate(digital, start, np.zeros((50, digital.robot.dof)))
    base = np.array(list(document["base"].values()))
    return {"base": base, "gains": digital.gains, "q": run.q, "friction": run.friction, "current": run.current}


def power(path: Path) -> dict[str, Array]:
    """Return a power model and the power that it predicts."""
    found = jw.energy.load_power_model(path)
    balance = jw.energy.energy_balance(found, motion(found.dof))
    return {"values": np.array([value.value for value in found.values]), "power": balance.power}


def excitation(path: Path) -> dict[str, Array]:
    """Return the motion of an excitation and its prediction, compared with a calibration of the same robot."""
    rows = np.genfromtxt(path / "trajectory.csv", delimiter=",", skip_header=1)[::50]
    compared = compare_with_prediction(load_calibration(FILES / "model_spring.json"), path)
    return {"trajectory": rows, "ratios": np.array([compared.median])}


def plan(path: Path) -> dict[str, Array]:
    """Return the durations of a plan."""
    document = json.loads(path.read_text())
    return {"durations": np.array([step["duration_s"] for step in document["experiments"]])}


def history(path: Path) -> dict[str, Array]:
    """Return the runs of a history and the trends of its joints."""
    stored = History(path)
    (robot,) = stored.robots()
    runs = [[run["duration"], run["contacts"], run["payload"]] for run in stored.runs(robot)]
    series = [stored.series(robot, joint) for joint in (1, 2, 3)]
    return {"runs": np.array(runs, dtype=float), "series": np.array(series)}


def aurt(path: Path) -> dict[str, Array]:
    """Return torques of a robot of the AURT workflow."""
    if path.stem == "aurt_bodies":
        robot = load_bodies(path)
        q = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 20, robot.dof))
        return {"torque": inverse_dynamics(robot, *q, gravity=GRAVITY)}
    stored = load_aurt_model(path)
    return {"powers": np.array(stored.powers)}


KINDS = {
    "model": model, "joint": joint, "truth": truth, "power": power, "excitation": excitation, "plan": plan,
    "history": history, "aurt": aurt,
}  # fmt: skip
