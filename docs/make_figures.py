"""Draw the figures of README and documentation: `python docs/make_figures.py` (requires the extra `plot`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import jointwise
from jointwise.calibration import calibrate
from jointwise.joint import HysteresisOptions, JointModel, identify, joint_record
from jointwise.joint.gear import transmission_of

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import ur5_harmonic_drives as ur5

FIGURES = Path(__file__).parent / "figures"
MEASURED, PREDICTED, RESIDUAL = "#9aa5b1", "#d1495b", "#30638e"


def prediction_figure(path: Path) -> None:
    """Draw measured and predicted current of a simulated UR5e on held-out data."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    robot = jointwise.load_robot("ur5e")
    training = jointwise.simulate(robot, "excitation", duration=40.0, seed=1, keep=0).log
    test = jointwise.simulate(robot, "bspline", duration=20.0, seed=2, keep=0).log
    model = calibrate(training, robot)
    predicted = model.predict(test)
    assert test.current is not None
    figure, axes = plt.subplots(3, 1, figsize=(9, 5.4), sharex=True, constrained_layout=True)
    for axis, joint in zip(axes, (1, 2, 4), strict=True):
        measured = test.current[:, joint]
        axis.plot(test.t, measured, color=MEASURED, linewidth=2.2, label="measured")
        axis.plot(test.t, predicted[:, joint], color=PREDICTED, linewidth=1.0, label="predicted")
        axis.plot(test.t, measured - predicted[:, joint], color=RESIDUAL, linewidth=0.7, label="residual")
        r2 = 1 - np.mean((measured - predicted[:, joint]) ** 2) / np.var(measured)
        axis.set_ylabel(f"joint {joint + 1} [A]")
        axis.set_title(f"R² = {r2:.4f}", loc="right", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(loc="upper left", ncols=3, frameon=False, fontsize=9)
    axes[-1].set_xlabel("time [s]")
    figure.savefig(path, dpi=130)


EXPERIMENTS = {
    "transmission": ("reciprocate", None),
    "stiffness": ("locked", None),
    "friction": ("constant-speed", 120.0),
    "load": ("load", 120.0),
    "temperature": ("warm-up", None),
    "hysteresis": ("reciprocate", None),
}
"""Phenomenon -> experiment that identifies it and its duration (s)."""


def joint_figure(path: Path) -> None:
    """Draw six phenomena of a simulated joint, each identified from its own experiment."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    robot, joint = jointwise.load_robot("ur5e"), 1
    model, records = JointModel(robot.name, joint), {}
    for name, (experiment, duration) in EXPERIMENTS.items():
        if (experiment, duration) not in records:
            made = jointwise.simulate(robot, experiment, joint=joint, duration=duration, seed=1, keep=0)
            records[experiment, duration] = joint_record(made.log, robot, joint, mounting=made.truth["gravity"])
        settings = HysteresisOptions("nlr") if name == "hysteresis" else HysteresisOptions()
        model = model.with_part(identify(name, records[experiment, duration], robot, model, settings))
    figure, axes = plt.subplots(2, 3, figsize=(12, 6.6), constrained_layout=True)
    for axis, name in zip(axes.flat, ("stiffness", "friction", "load", "temperature", "hysteresis"), strict=False):
        _draw_curve(axis, model.parts[name].curves[0], name)
    motor = robot.joints[joint].motor
    assert motor is not None
    assert motor.gear_ratio is not None
    _draw_maps(axes[1, 2], model, motor.gear_ratio)
    figure.savefig(path, dpi=130)


def _draw_curve(axis: Any, curve: Any, name: str) -> None:
    """Draw measured points or loops, the model and its confidence band."""
    if curve.x:
        style = {"linewidth": 0.6} if curve.kind == "line" else {"linestyle": "", "marker": ".", "markersize": 4}
        axis.plot(curve.x, curve.y, color=MEASURED, **style)
    if curve.low:
        axis.fill_between(curve.line_x, curve.low, curve.high, color=PREDICTED, alpha=0.2, linewidth=0)
    axis.plot(curve.line_x, curve.line_y, color=PREDICTED, linewidth=1.2)
    axis.set(xlabel=curve.x_label, ylabel=curve.y_label)
    axis.locator_params(axis="x", nbins=5)
    axis.set_title(name, loc="left", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
    if name == "hysteresis":
        axis.set_xlim(-0.05, 2.0)  # all elements slip beyond this travel


def _draw_maps(axis: Any, model: JointModel, ratio: float) -> None:
    """Draw kinematic error and backlash over a turn; the error within a turn of the motor as a band and enlarged."""
    maps = transmission_of(model.parts["transmission"])
    theta = np.linspace(0.0, 2.0 * np.pi, 1000)
    turns = theta[:, None] + np.linspace(-np.pi, np.pi, 60, endpoint=False) / ratio
    errors = 1e6 * maps.error(turns.ravel()).reshape(turns.shape)
    axis.fill_between(theta, errors.min(axis=1), errors.max(axis=1), color=PREDICTED, alpha=0.2, linewidth=0)
    axis.plot(theta, errors.mean(axis=1), color=PREDICTED, linewidth=1.2, label="kinematic error")
    axis.set_ylim(top=1200.0)  # space for the inset
    near = axis.inset_axes((0.3, 0.71, 0.4, 0.23))
    near.plot(
        turn := np.linspace(0.0, 4.0 * np.pi / ratio, 400), 1e6 * maps.error(turn), color=PREDICTED, linewidth=1.0
    )
    near.set_title("two turns of the motor", fontsize=8)
    near.tick_params(labelsize=7)
    axis.plot(theta, 1e6 * maps.backlash(theta), color=RESIDUAL, linewidth=1.2, label="backlash")
    axis.set(xlabel="position [rad]", ylabel="error, backlash [µrad]")
    axis.set_title("transmission", loc="left", fontsize=10)
    axis.legend(frameon=False, fontsize=9, loc="lower left")
    axis.spines[["top", "right"]].set_visible(False)


SHOWN = {"PD with gravity": "#9aa5b1", "LQR": "#d1495b", "elastic feed-forward": "#30638e"}
JOINTS = ("#1b4965", "#3d82ab", "#8fbcd4", "#7f4f24", "#c97b3c", "#e6b98a")
MAGNIFIED = 20.0


def control_figure(path: Path) -> None:
    """Draw path, position error, joint errors and torques of a UR5 with strain-wave gears under three controllers."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    arm = ur5.make_arm()
    motion = ur5.make_motion(arm)
    controllers = ur5.make_controllers(arm, motion)
    trials = {name: ur5.try_controller(arm, motion, controllers[name]) for name in SHOWN}
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), constrained_layout=True)
    _draw_paths(axes[0, 0], arm, trials)
    _draw_distances(axes[0, 1], trials)
    _draw_joints(axes[1, 0], trials["LQR"], 1e3 * (trials["LQR"].run.q - trials["LQR"].q), "error of the links [mrad]")
    _draw_joints(axes[1, 1], trials["LQR"], trials["LQR"].run.command, "motor torque [Nm]")
    axes[1, 0].set_title("LQR: errors in two turns", loc="left", fontsize=10)
    axes[1, 1].set_title("LQR: torques in two turns", loc="left", fontsize=10)
    figure.legend(
        *axes[1, 1].get_legend_handles_labels(), ncols=6, frameon=False, fontsize=9, loc="outside lower center"
    )
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def _draw_paths(axis: Any, arm: Any, trials: dict[str, Any]) -> None:
    """Draw the ellipse from above with magnified deviations."""
    first = next(iter(trials.values()))
    rows = (first.run.t >= first.start + ur5.FIRST_TURN) & (first.run.t < first.start + ur5.FIRST_TURN + 2.0)
    reference = ur5.forward_kinematics(arm.robot, first.q[rows]).tool[1]
    axis.plot(*reference[:, :2].T, color="black", linewidth=4.0, alpha=0.15, label="reference")
    for name, trial in trials.items():
        tool = ur5.forward_kinematics(arm.robot, trial.run.q[rows]).tool[1]
        shown = reference + MAGNIFIED * (tool - reference)
        axis.plot(*shown[:, :2].T, color=SHOWN[name], linewidth=1.3, label=name)
    axis.set_aspect("equal", adjustable="datalim")
    axis.set(xlabel="x [m]", ylabel="y [m]")
    axis.set_title(f"one turn from above, deviations times {MAGNIFIED:.0f}", loc="left", fontsize=10)
    axis.legend(frameon=False, fontsize=9, loc="upper right", handlelength=1.0)


def _draw_distances(axis: Any, trials: dict[str, Any]) -> None:
    """Draw the position error of the tool over time."""
    for name, trial in trials.items():
        axis.semilogy(trial.run.t, 1e3 * trial.distance, color=SHOWN[name], linewidth=1.1, label=name)
    begin = trial.start + ur5.FIRST_TURN
    axis.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    axis.axvspan(begin, trial.run.t[-1], color="black", alpha=0.05, linewidth=0)
    axis.text(0.99 * trial.run.t[-1], 1.08, "1 mm", fontsize=8, ha="right")
    axis.text(begin + 0.1, 12.0, "after the first turn", fontsize=8)
    axis.set(xlabel="time [s]", ylabel="tool position error [mm]", ylim=(1e-4, 20.0), xlim=(0.0, trial.run.t[-1]))
    axis.set_title("from home to the ellipse, then turns of 2 s", loc="left", fontsize=10)


def _draw_joints(axis: Any, trial: Any, values: Any, label: str) -> None:
    """Draw one line per joint over two turns."""
    begin = trial.start + ur5.FIRST_TURN
    rows = (trial.run.t >= begin) & (trial.run.t < begin + 4.0)
    for j, column in enumerate(values[rows].T):
        axis.plot(trial.run.t[rows], column, color=JOINTS[j], linewidth=1.1, label=f"joint {j + 1}")
    axis.set(xlabel="time [s]", ylabel=label, xlim=(begin, begin + 4.0))


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    prediction_figure(FIGURES / "prediction.png")
    control_figure(FIGURES / "ur5-control.png")
    joint_figure(FIGURES / "joint.png")
