"""A published electro-mechanical identification of a UR5e, repeated on the digital robot, where the truth is known.

Two motions of six random points with trapezoidal speed (3 rad/s, 6 rad/s²): inertia of motor and reducer, torque
constant and friction by the direction of power flow are identified on motion A and predict the currents of motion B.
Motion C is another unseen one. The digital robot has the published friction, with hysteresis, and rigid gears as the
published model.

Run from the root of the repository: ``python benchmarks/electro_mechanical.py [FIGURE.png]``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np

import jointwise as jw
from jointwise.design import Body, Clearance
from jointwise.design.piecewise import clear_points, waypoint_trajectory
from jointwise.experiment.result import SimulationResult
from jointwise.joint.drives import DriveIdentification, identify_drives
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import power_flow_columns, viscous_torque
from jointwise.simulation.robot import Friction, JointPlant, default_joints
from jointwise.spatial import Array

RATIO = 100.0
VISCOUS = np.array([0.475, 1.073, 0.382, 0.295, 0.114, 0.188]) * 1e-3
DIRECT = np.array([0.0938, 0.0973, 0.0750, 0.0206, 0.0201, 0.0276])
REVERSE = np.array([0.071, 0.113, 0.083, 0.008, 0.001, 0.005])
"""Published friction at the motor: k_v (Nm s/rad), T_dir and T_rev (Nm)."""
MOTOR_CONSTANT = np.array([0.27426] * 3 + [0.06632] * 3)
"""Published k_m, Nm/√W."""
BACK_EMF = 1.0 / 0.89
"""Published k_b over k_t."""
SPEED, ACCELERATION = 3.0, 6.0
DURATION = 40.0
"""Duration (s) of the rounds through the six points."""
WITHOUT = ("stiffness",)
"""Phenomena of the digital robot that are switched off: the published model has rigid gears."""
PAYLOAD = jw.Payload(1.0, (0.1, 0.0, 0.05), np.zeros((3, 3)))
"""A tool beside the axis of the last joint, which without it bears no load: its two frictions would be one."""
SEEDS = {"A": 1, "B": 2, "C": 3}
LIMITS = {"torque R²": 0.997, "current R²": 0.985, "current RMS, base": 0.19, "current RMS, wrist": 0.07}


@dataclass(frozen=True)
class Errors:
    """Errors of a signal (samples, joints), and the share of its variance that is explained (joints,)."""

    error: Array
    r2: Array

    @classmethod
    def of(cls, measured: Array, predicted: Array) -> Errors:
        """Return the errors of a prediction."""
        error = predicted - measured
        return cls(error, 1.0 - error.var(axis=0) / measured.var(axis=0))

    @property
    def rms(self) -> Array:
        """Root mean square (joints,)."""
        result: Array = np.sqrt(np.mean(self.error**2, axis=0))
        return result


def published_joints(robot: jw.Robot) -> tuple[JointPlant, ...]:
    """Return the joints of the digital robot with the published friction."""

    def friction(plant: JointPlant, k: int) -> Friction:
        middle, half = 0.5 * (DIRECT + REVERSE)[k], 0.5 * (DIRECT - REVERSE)[k]
        return Friction(
            coulomb=RATIO * middle, flow=RATIO * half, viscous=RATIO**2 * VISCOUS[k], slip=plant.friction.slip
        )

    return tuple(replace(plant, friction=friction(plant, k)) for k, plant in enumerate(default_joints(robot)))


def simulated(robot: jw.Robot, seed: int) -> SimulationResult:
    """Return a motion through six random points on the digital robot, recorded at 500 Hz with targets."""
    points = clear_points(robot, Clearance(Body(robot), 0.05), seed=seed, count=6)
    motion = waypoint_trajectory(robot, points, DURATION, speed=SPEED, acceleration=ACCELERATION)
    return jw.simulate(
        robot,
        motion,
        seed=seed,
        plant=jw.PlantOptions(joints=published_joints(robot), payload=PAYLOAD, without=WITHOUT),
    )


def predicted_torque(robot: jw.Robot, log: jw.Log, drives: DriveIdentification) -> tuple[Array, Array]:
    """Return the torque of the links alone, and with the identified rotors, (samples, joints), Nm."""
    q, qd, qdd = (log.channel(name) for name in ("q_des", "qd_des", "qdd_des"))
    links = inverse_dynamics(robot, q, qd, qdd, payload=PAYLOAD)
    return links, links + np.array([each.alone.value for each in drives.inertias]) * qdd


def predicted_current(robot: jw.Robot, log: jw.Log, drives: DriveIdentification) -> Array:
    """Return the currents (samples, joints), A, of the target motion with the identified drives."""
    links, torque = predicted_torque(robot, log, drives)
    speed, result = log.channel("qd_des"), np.empty_like(links)
    for j, part in enumerate(drives.parts):
        if part is None:
            raise jw.errors.EstimationError(f"joint {j + 1}: {drives.reasons[j]}")
        dry = power_flow_columns(speed[:, j], links[:, j]) @ np.array([part["direct"], part["reverse"]])
        friction = dry + viscous_torque(speed[:, j], [part["viscous"], part["square"]])
        result[:, j] = (torque[:, j] + friction) / part["gain"] + part["offset"]
    return result


def parameter_rows(robot: jw.Robot, drives: DriveIdentification) -> list[tuple[str, float, float, float, float]]:
    """Return name, truth, estimate and 95 % interval of all parameters, at the joint."""
    rows = []
    for j, (joint, part) in enumerate(zip(robot.joints, drives.parts, strict=True)):
        assert part is not None
        truth = {
            "inertia": joint.motor.reflected_inertia or 0.0,
            "gain": joint.motor.joint_gain or 0.0,
            "viscous": RATIO**2 * VISCOUS[j],
            "direct": RATIO * DIRECT[j],
            "reverse": RATIO * REVERSE[j],
        }
        values = {value.name: value for value in part.values}
        rows += [(f"joint {j + 1} {name}", x, values[name].value, values[name].low, values[name].high)
                 for name, x in truth.items()]  # fmt: skip
    return rows


def main() -> None:
    """Print parameters, errors and efficiencies; draw the box plots where a file is named."""
    robot = jw.load_robot("ur5e")
    results = {name: simulated(robot, seed) for name, seed in SEEDS.items()}
    drives = identify_drives(results["A"].log, robot, payload=PAYLOAD)
    print(f"{'parameter':<20}{'truth':>10}{'estimate':>11}   95 % interval")
    rows = parameter_rows(robot, drives)
    for name, truth, value, low, high in rows:
        inside = "" if low <= truth <= high else "   OUTSIDE"
        print(f"{name:<20}{truth:>10.4g}{value:>11.4g}   [{low:.4g}, {high:.4g}]{inside}")
    print(f"{sum(low <= truth <= high for _, truth, _, low, high in rows)} of {len(rows)} inside\n")
    currents = {}
    for name, result in results.items():
        log = result.log
        torque = Errors.of(log.channel("torque_des"), predicted_torque(robot, log, drives)[1])
        currents[name] = Errors.of(log.channel("current"), predicted_current(robot, log, drives))
        for what, errors in (("torque, Nm", torque), ("current, A", currents[name])):
            _print_errors(f"{name} {what}", errors)
    _print_efficiencies(results)
    if len(sys.argv) > 1:
        draw(currents, sys.argv[1])


def _print_errors(title: str, errors: Errors) -> None:
    print(f"{title:<14}{'mean':>10}{'max':>10}{'RMS':>10}{'R²':>10}")
    for j in range(errors.error.shape[1]):
        error = errors.error[:, j]
        figures = f"{error.mean():>+10.4f}{np.abs(error).max():>10.3f}{errors.rms[j]:>10.4f}{errors.r2[j]:>10.5f}"
        print(f"joint {j + 1:<8}{figures}")


def _print_efficiencies(results: dict[str, SimulationResult]) -> None:
    """Print energies and efficiencies: published formula, corrected formula, windings of the digital robot."""
    print(f"\n{'':<10}{'E_mech, J':>11}{'E_elec, J':>11}{'efficiency':>12}{'corrected':>11}{'windings':>10}")
    for name, result in results.items():
        run = result.run
        assert run is not None
        torque = run.current * result.digital.gains
        mechanical, copper = torque * run.speed, (torque / RATIO / MOTOR_CONSTANT) ** 2
        energies = [
            float(np.trapezoid(power.sum(axis=1), run.t))
            for power in (
                mechanical,
                copper + BACK_EMF * mechanical,
                copper + mechanical + (BACK_EMF - 1.0) * np.abs(mechanical),
            )
        ]
        windings = run.energy.supplied[-1] / run.energy.electrical[-1]
        print(
            f"{name:<10}{energies[0]:>11.1f}{energies[1]:>11.1f}{100 * energies[0] / energies[1]:>10.1f} %"
            f"{100 * energies[0] / energies[2]:>9.1f} %{100 * windings:>8.1f} %"
        )


def draw(currents: dict[str, Errors], path: str) -> None:
    """Draw box plots of the errors of the currents relative to the range of each joint."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(currents), figsize=(10.0, 3.4), sharey=True)
    for axis, (name, errors) in zip(axes, currents.items(), strict=True):
        axis.boxplot(list(errors.error.T), showfliers=False, whis=(2.5, 97.5))
        axis.set_title(f"motion {name} ({'fitted' if name == 'A' else 'unseen'})")
        axis.set_xlabel("joint")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("error of the current [A]")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
