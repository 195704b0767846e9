"""A UR5 with harmonic drives draws an ellipse: run `python docs/examples/ur5_harmonic_drives.py`.

The drives are those of the project report of Calzoni, Merlo Pich, Paradiso and Ricciardi: HFUS-20 in the first three
joints, HFUS-14 in the wrist, stiffness in three segments, viscous and direction-dependent dry friction, no damping in
the gear. The tool draws an ellipse at z = 0.65 m, one turn in 2 s, from the stretched-out home posture. The report's
decentralised LQR with feed-forward leaves a few millimetres; here the same kind of controller is compared with others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import jointwise
from jointwise import control
from jointwise.model.rigid import forward_kinematics, mass_matrix
from jointwise.simulation.references import Succession, ellipse_trajectory
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
    drives_of,
    run_loop,
    saturation,
)

RATE = 1000.0
RATIO = 100.0
FIRST_TURN = 3.0
"""Time (s) of the first turn, which begins at rest: 2 s to come up to speed, in which half a turn is made."""
MOTOR_FRICTION = (0.008, 0.007, 6.4e-4)
"""Forwards, backwards (Nm) and viscous (Nm s/rad), on the motor side."""
FLEXSPLINE_FRICTION = 0.4
"""Nm, after the gear."""
HFUS_20 = Segments(16e3, 25e3, 29e3, T1=7.0, T2=25.0)
HFUS_14 = Segments(4.7e3, 6.1e3, 7.1e3, T1=2.0, T2=6.9)
"""Stiffness: the catalogue's values, put in the order of a gear that stiffens."""
WAVE_GENERATORS = (0.404e-4, 0.404e-4, 0.404e-4, 0.091e-4, 0.091e-4, 0.091e-4)
"""Motor-side inertias, kg m²."""

REPORTED_INERTIAS = (3.66, 4.07, 2.48, 0.12, 0.02, 5.66e-4)
"""What the report measured as effective inertias, kg m²."""
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
"""The accelerations (rad/s²) of all joints at once with which it measured them."""


def drive(inertia: float, stiffness: Segments, effort: float) -> JointPlant:
    """Return a harmonic drive with its wave generator; all numbers move to the joint side. `effort` in Nm."""
    forwards, backwards = (RATIO * dry + FLEXSPLINE_FRICTION for dry in MOTOR_FRICTION[:2])
    friction = Friction(
        coulomb=0.5 * (forwards + backwards),
        asymmetry=(forwards - backwards) / (forwards + backwards),
        viscous=RATIO**2 * MOTOR_FRICTION[2],
        slip=Slip((1.0,), (1.0,)),
    )
    at_once = Backlash((1e-5,))  # dry friction turns round within 10 µrad: sgn ω, but continuous
    motor = MotorPlant(gain=10.0, limit=effort / 10.0)
    return JointPlant(RATIO**2 * inertia, RATIO, stiffness, friction=friction, backlash=at_once, motor=motor)


def make_arm() -> DigitalRobot:
    """Return the UR5 with its six harmonic drives."""
    robot = jointwise.robot("ur5")
    gears = (HFUS_20,) * 3 + (HFUS_14,) * 3
    rows = zip(WAVE_GENERATORS, gears, robot.joints, strict=True)
    return digital_robot(robot, joints=[drive(J, gear, joint.limits.effort or 150.0) for J, gear, joint in rows])


def make_motion(arm: DigitalRobot, duration: float = 14.0) -> Succession:
    """Return the way from home to the ellipse and the turns on it, `duration` s in all."""
    motion = ellipse_trajectory(arm.robot, duration, home=np.zeros(6))
    assert isinstance(motion, Succession)
    return motion


def make_controllers(arm: DigitalRobot, motion: Succession) -> dict[str, control.AffineController]:
    """Return the controllers to compare, all with their usual gains.

    Each knows the links and the rotors exactly. The report's feed-forward knows viscous friction but no dry friction.
    """
    robot, known, wanted = arm.robot, drives_of(arm), control.as_reference(motion, RATE)
    reported = [replace(d, forward=0.0, backward=0.0) for d in known]
    friction = control.friction_torques(known, wanted.qd)
    return {
        "PID": control.pid(robot, wanted, RATE, drives=known),
        "PD with gravity": control.pd_gravity(robot, wanted, RATE, drives=known),
        "computed torque": control.computed_torque(robot, wanted, RATE, drives=known),
        "computed torque, friction": control.computed_torque(robot, wanted, RATE, drives=known, friction=friction),
        "LQR": control.lqr(robot, wanted, RATE, drives=reported),
        "LQR, dry friction": control.lqr(robot, wanted, RATE, drives=known),
        "elastic feed-forward": control.flexible_feedforward(robot, wanted, RATE, drives=known),
    }


@dataclass(frozen=True)
class Trial:
    """A run, its wanted positions `q` (samples, joints), and the distance (samples,) of the tool from its path, m."""

    run: Run
    q: np.ndarray
    distance: np.ndarray
    start: float

    @property
    def steady(self) -> np.ndarray:
        """Distance after the first turn, m."""
        return self.distance[self.run.t >= self.start + FIRST_TURN]


def try_controller(arm: DigitalRobot, motion: Succession, controller: control.AffineController) -> Trial:
    """Run a controller from home and measure where the tool was against where it should have been, at every sample."""
    wanted = control.as_reference(motion, RATE).q
    run = run_loop(arm, arm.rest(wanted[0]), controller)
    tool, path = (forward_kinematics(arm.robot, q).tool[1] for q in (run.q, wanted))
    return Trial(run, wanted, np.linalg.norm(tool - path, axis=1), float(motion.starts[1]))


def inertia_rows(arm: DigitalRobot, motion: Succession) -> dict[str, np.ndarray]:
    """Return effective inertias (joints,), kg m²: the report's, how they came about, and M_ii.

    The report accelerated all joints at once and divided torque by acceleration, joint by joint: that is
    ``(M s)_i / s_i``, in which the other joints have their part, and not M_ii.
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
    print("\ndistance of the tool from its path after the first turn, mm; and the same for an arm with")
    print("30 % more friction and 10 % softer gears than the controller believes")
    print(f"  {'':26}{'max':>10}{'rms':>10}{'max, worn':>12}   torque asked for")
    for name, controller in make_controllers(arm, motion).items():
        trial, other = (try_controller(own, motion, controller) for own in (arm, worn))
        most, rms, worst = trial.steady.max(), float(np.sqrt(np.mean(trial.steady**2))), other.steady.max()
        print(f"  {name:26}{1e3 * most:10.3f}{1e3 * rms:10.3f}{1e3 * worst:12.3f}   {saturation(trial.run)}")


if __name__ == "__main__":
    main()
