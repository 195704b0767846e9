"""A UR5 with strain-wave gears traces an ellipse under seven controllers: python examples/ur5_harmonic_drives.py.

The gears are those of the project report of Calzoni, Merlo Pich, Paradiso and Ricciardi: HFUS-20 in the first three
joints, HFUS-14 in the wrist, piecewise linear stiffness with three segments, viscous and direction-dependent dry
friction, no damping in the gear. Starting from the stretched home posture, the tool traces an ellipse at z = 0.65 m,
one turn in 2 s. The report states a tracking error of a few millimetres for its decentralised LQR with feed-forward;
this script compares such a controller with others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import jointwise
from jointwise import control
from jointwise.design import Succession, ellipse_trajectory
from jointwise.experiment import drives_of, run_loop
from jointwise.model.rigid import forward_kinematics, mass_matrix
from jointwise.simulation.robot import (
    Backlash,
    DigitalRobot,
    Friction,
    JointPlant,
    MotorPlant,
    Run,
    Segments,
    Slip,
    digital_robot,
    saturation,
)

RATE = 1000.0
RATIO = 100.0
FIRST_TURN = 3.0
"""Duration (s) of the first turn. It starts at rest and reaches full speed within 2 s, after half a turn."""
MOTOR_FRICTION = (0.008, 0.007, 6.4e-4)
"""Dry friction forwards and backwards (Nm) and viscous friction (Nm s/rad), motor side."""
FLEXSPLINE_FRICTION = 0.4
"""Dry friction of the flexspline (Nm), joint side."""
HFUS_20 = Segments(16e3, 25e3, 29e3, T1=7.0, T2=25.0)
HFUS_14 = Segments(4.7e3, 6.1e3, 7.1e3, T1=2.0, T2=6.9)
"""Torsional stiffness from the catalogue, in the order of a stiffening gear."""
WAVE_GENERATORS = (0.404e-4, 0.404e-4, 0.404e-4, 0.091e-4, 0.091e-4, 0.091e-4)
"""Inertias of the wave generators (kg m²), motor side."""

REPORTED_INERTIAS = (3.66, 4.07, 2.48, 0.12, 0.02, 5.66e-4)
"""Effective inertias (kg m²) stated in the report."""
REPORTED_SLOPES = (
    (1.0, 0.5, 0.75, 1.0, 2.0, 1.5),
    (0.2, 1.0, 1.0, 0.5, 0.4, 0.75),
    (1.5, 0.2, 0.4, 0.1, 1.0, 0.5),
    (0.5, 1.5, 2.0, 1.75, 0.75, 1.0),
    (2.0, 0.4, 1.75, 0.75, 0.2, 0.2),
    (0.75, 0.75, 0.2, 2.0, 1.75, 0.4),
    (0.4, 2.0, 0.5, 0.2, 0.5, 1.75),
    (1.75, 1.75, 1.5, 1.5, 1.5, 2.0),
)
"""Simultaneous accelerations of all joints (rad/s²) from which the report computed them."""


def drive(inertia: float, stiffness: Segments, effort: float) -> JointPlant:
    """Return a joint with its gear and wave generator, reflected to the joint side. `effort` limits the torque (Nm)."""
    forwards, backwards = (RATIO * dry + FLEXSPLINE_FRICTION for dry in MOTOR_FRICTION[:2])
    friction = Friction(
        coulomb=0.5 * (forwards + backwards),
        asymmetry=(forwards - backwards) / (forwards + backwards),
        viscous=RATIO**2 * MOTOR_FRICTION[2],
        slip=Slip((1.0,), (1.0,)),
    )
    abrupt = Backlash((1e-5,))  # dry friction reverses within 10 µrad: sgn ω, but continuous
    motor = MotorPlant(gain=10.0, limit=effort / 10.0)
    return JointPlant(RATIO**2 * inertia, RATIO, stiffness, friction=friction, backlash=abrupt, motor=motor)


def make_arm() -> DigitalRobot:
    """Return the UR5 with its six strain-wave gears."""
    robot = jointwise.load_robot("ur5")
    gears = (HFUS_20,) * 3 + (HFUS_14,) * 3
    rows = zip(WAVE_GENERATORS, gears, robot.joints, strict=True)
    return digital_robot(robot, joints=[drive(J, gear, joint.limits.effort or 150.0) for J, gear, joint in rows])


def make_motion(arm: DigitalRobot, duration: float = 14.0) -> Succession:
    """Return the motion from home to the ellipse and along it, `duration` s in total."""
    motion = ellipse_trajectory(arm.robot, duration, home=np.zeros(6))
    assert isinstance(motion, Succession)
    return motion


def make_controllers(arm: DigitalRobot, motion: Succession) -> dict[str, control.AffineController]:
    """Return the controllers to compare, all with default gains.

    All use exact parameters of links and rotors. The feed-forward of the report includes viscous but no dry friction.
    """
    robot, known, reference = arm.robot, drives_of(arm), control.as_reference(motion, RATE)
    reported = [replace(d, forward=0.0, backward=0.0) for d in known]
    friction = control.friction_torques(known, reference.qd)
    return {
        "PID": control.pid(robot, reference, RATE, drives=known),
        "PD with gravity": control.pd_gravity(robot, reference, RATE, drives=known),
        "computed torque": control.computed_torque(robot, reference, RATE, drives=known),
        "computed torque, friction": control.computed_torque(robot, reference, RATE, drives=known, friction=friction),
        "LQR": control.lqr(robot, reference, RATE, drives=reported),
        "LQR, dry friction": control.lqr(robot, reference, RATE, drives=known),
        "elastic feed-forward": control.flexible_feedforward(robot, reference, RATE, drives=known),
    }


@dataclass(frozen=True)
class Trial:
    """A run, the reference positions `q` (samples, joints; rad) and the position error of the tool (samples,; m)."""

    run: Run
    q: np.ndarray
    distance: np.ndarray
    start: float

    @property
    def steady(self) -> np.ndarray:
        """Position error of the tool after the first turn (m)."""
        return self.distance[self.run.t >= self.start + FIRST_TURN]


def try_controller(arm: DigitalRobot, motion: Succession, controller: control.AffineController) -> Trial:
    """Run a controller from home and compare the tool position with the reference at every sample."""
    reference = control.as_reference(motion, RATE).q
    run = run_loop(arm, arm.rest(reference[0]), controller)
    tool, path = (forward_kinematics(arm.robot, q).tool[1] for q in (run.q, reference))
    return Trial(run, reference, np.linalg.norm(tool - path, axis=1), float(motion.starts[1]))


def inertia_rows(arm: DigitalRobot, motion: Succession) -> dict[str, np.ndarray]:
    """Return effective inertias (joints,) in kg m²: those of the report, its experiment on the model, and M_ii.

    The report accelerated all joints simultaneously and divided torque by acceleration, joint by joint. This is
    ``(M s)_i / s_i``, which contains the coupling with the other joints, and not M_ii.
    """
    home = mass_matrix(arm.robot, np.zeros((1, 6)))[0]
    slopes = np.array(REPORTED_SLOPES)
    times = motion.starts[1] + np.arange(0.0, motion.duration - motion.starts[1], 0.01)
    return {
        "the report": np.array(REPORTED_INERTIAS),
        "its experiment, at home": np.abs(slopes @ home / slopes).mean(axis=0),
        "M_ii at home": np.diag(home),
        "M_ii on the ellipse": control.effective_inertias(arm.robot, motion.position(times)),
    }


def main() -> None:
    """Print the tables."""
    arm = make_arm()
    motion = make_motion(arm)
    print("effective inertias, kg m²")
    for name, row in inertia_rows(arm, motion).items():
        print(f"  {name:26}" + "".join(f"{value:10.3g}" for value in row))
    worn = arm.aged(friction=0.3, stiffness=-0.1)
    print("\ntool position error after the first turn, mm; the worn arm has 30 % more friction and 10 % softer gears")
    print(f"  {'':26}{'max':>10}{'rms':>10}{'max, worn':>12}   torque demand")
    for name, controller in make_controllers(arm, motion).items():
        trial, worn_trial = (try_controller(plant, motion, controller) for plant in (arm, worn))
        largest, rms = trial.steady.max(), float(np.sqrt(np.mean(trial.steady**2)))
        worst = worn_trial.steady.max()
        print(f"  {name:26}{1e3 * largest:10.3f}{1e3 * rms:10.3f}{1e3 * worst:12.3f}   {saturation(trial.run)}")


if __name__ == "__main__":
    main()
