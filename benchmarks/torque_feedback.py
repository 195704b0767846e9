"""Joint torque feedback on an arm whose friction has grown by 50 % and whose joints have lost 20 % of their stiffness.

    python benchmarks/torque_feedback.py [--seeds 3] [--duration 6]

All joints of a UR5e along random B-splines at 1 kHz; controllers read the encoders. They know the new arm: bodies,
rotors, springs and steady friction. Position error q - q_d (mrad) and torque error of the transmission τ_J - τ_J,d
(Nm), root mean squares over all joints, medians over seeds; also of the last third of the motion. The adaptive friction
feed-forward (E-GMS) starts from the friction of the new arm, with hysteresis and load. Torque feedback: observer alone
(K_T = 0), torque loop alone, both.
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise.control import adaptive, computed_torque, friction_torques, torque_feedback  # noqa: E402
from jointwise.control.links import Links, make_task  # noqa: E402
from jointwise.design import make_experiment  # noqa: E402
from jointwise.experiment.closed_loop import drives_of, run_loop  # noqa: E402
from jointwise.experiment.controllers import slip_friction_of  # noqa: E402
from jointwise.simulation.robot import DigitalRobot, Run, digital_robot  # noqa: E402
from jointwise.simulation.sensors import Encoders  # noqa: E402

RATE = 1000.0
ARM = jw.load_robot("ur5e")
NEW = digital_robot(ARM)
AGED = NEW.aged(friction=0.5, stiffness=-0.2)
DRIVES = drives_of(NEW)
ENCODERS = Encoders(
    np.full(ARM.dof, 2.0 * np.pi / 1_250_000),
    2.0 * np.pi / 65_536 / np.array([joint.gear_ratio for joint in NEW.joints]),
)


def feed_forward(motion: Any) -> Any:
    """Return computed torque with the friction of the new arm."""
    task = make_task(ARM, motion, RATE, DRIVES)
    return computed_torque(ARM, motion, RATE, drives=DRIVES, friction=friction_torques(DRIVES, task.ahead.qd))


def adaptive_friction(motion: Any) -> Any:
    """Return the adaptive feed-forward."""
    gains = np.array([joint.motor.gain for joint in NEW.joints])
    return adaptive(ARM, motion, RATE, friction=slip_friction_of(NEW), drives=DRIVES, motor_gains=gains)


CONTROLLERS: dict[str, tuple[DigitalRobot, Callable[[Any], Any]]] = {
    "new arm, feed-forward": (NEW, feed_forward),
    "new arm, torque feedback": (NEW, lambda motion: torque_feedback(ARM, motion, RATE, drives=DRIVES)),
    "aged, feed-forward": (AGED, feed_forward),
    "aged, adaptive feed-forward": (AGED, adaptive_friction),
    "aged, friction observer": (
        AGED,
        lambda motion: torque_feedback(ARM, motion, RATE, drives=DRIVES, torque_gain=0.0),
    ),
    "aged, torque loop": (
        AGED,
        lambda motion: torque_feedback(ARM, motion, RATE, drives=DRIVES, friction_bandwidth=None),
    ),
    "aged, torque feedback": (AGED, lambda motion: torque_feedback(ARM, motion, RATE, drives=DRIVES)),
}


def errors(run: Run, motion: Any, first: int = 0) -> tuple[float, float]:
    """Return the rms of position error (mrad) and torque error (Nm) from a sample on."""
    states = motion.at(run.t)
    load = Links.of(ARM).torque(states.q, states.qd, states.qdd)
    position, torque = (run.q - states.q)[first:], (run.load - load)[first:]
    return 1e3 * float(np.sqrt(np.mean(position**2))), float(np.sqrt(np.mean(torque**2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=6.0)
    args = parser.parse_args()
    motions = [make_experiment("bspline", ARM, args.duration, seed).motion for seed in range(1, args.seeds + 1)]
    late = round(2.0 * args.duration * RATE / 3.0)
    print(f"{'':<34}{'position mrad':>15}{'torque Nm':>12}{'last third: mrad':>20}{'Nm':>8}")
    for name, (digital, make) in CONTROLLERS.items():
        rows = []
        for motion in motions:
            start = digital.rest(motion.position(np.zeros(1))[0])
            run = run_loop(digital, start, make(motion), feedback=ENCODERS, check=False)
            rows.append((*errors(run, motion), *errors(run, motion, late)))
        a, b, c, d = np.median(rows, axis=0)
        print(f"{name:<34}{a:>15.3f}{b:>12.3f}{c:>20.3f}{d:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
