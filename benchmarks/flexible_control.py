"""Control of elastic joints on the simulated UR5e, the cost of the rotors' spin, and hand guiding.

    python benchmarks/flexible_control.py [--only paths coupling guiding] [--seeds 4]

- `paths`: tool-path error (rms, mm) of rigid feed-forward (computed torque without springs), elastic feed-forward and
  feedback linearisation, with the stiffness known, 20 % too high and 20 % too low in the controller; on an ideal plant
  (links, springs, rotors) and on the whole digital robot with friction, kinematic error, lost motion and lag; with a
  tool of 3 kg and without one. Medians over random motions (`--seeds`, from 1 on; poles and the rule for stiff joints
  were chosen on motion 0).
- `coupling`: torque that controllers neglect which omit the rotors' spin (the complete model of the digital robot
  against Spong's): its share of the torque, rms, and that of its Coriolis part, for every robot of the catalogue.
- `guiding`: push (Nm) that moves each joint under gravity compensation alone and under hand guiding, and the drift of
  the released arm.
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise.control import (  # noqa: E402
    bandwidth_gains,
    computed_torque,
    feedback_linearisation,
    flexible_feedforward,
    hand_guiding,
)
from jointwise.control.links import deformations  # noqa: E402
from jointwise.description import list_robots  # noqa: E402
from jointwise.experiment.closed_loop import drives_of, run_loop  # noqa: E402
from jointwise.experiment.controllers import slip_friction_of  # noqa: E402
from jointwise.model.rigid import forward_kinematics, inverse_dynamics, jacobian  # noqa: E402
from jointwise.simulation.robot import DigitalRobot, digital_robot  # noqa: E402
from jointwise.simulation.robot.run import spin_coupling  # noqa: E402
from jointwise.spatial import Array  # noqa: E402

RATE = 1000.0
HOME = np.array([0.3, -1.2, 1.3, -0.8, 1.1, 0.4])
IDEAL = ("friction", "damping", "kinematic_error", "lost_motion", "current_lag", "current_limit", "thermal")
DURATION = 2.0
TOOL = jw.Payload(3.0, (0.12, 0.0, 0.08), np.diag([0.02, 0.02, 0.02]))
"""A tool beside the axis of the last joint, whose link alone is too light to be linearised with its spring."""
WARM = 35.0


@dataclass(frozen=True)
class Swing:
    """Joints that swing as sin⁶ about a pose and start at rest; of motion 0 or of a random one."""

    pose: Array
    size: Array
    rates: Array

    @classmethod
    def of(cls, seed: int) -> Swing:
        """Return a motion."""
        if seed == 0:
            return cls(HOME, np.array([0.5, 0.3, 0.4, 0.3, 0.3, 0.4]), np.array([0.5, 0.5, 0.5, 1.0, 1.0, 1.0]))
        rng = np.random.default_rng(seed)
        pose = HOME + rng.uniform(-0.6, 0.6, 6)
        size = rng.choice((-1.0, 1.0), 6) * rng.uniform(0.2, 0.6, 6)
        return cls(pose, size, np.array([0.5, 0.5, 0.5, 1.0, 1.0, 1.0]) * rng.uniform(0.7, 1.3, 6))

    def __call__(self, t: Array, order: int) -> Array:
        """Return dᵏq/dtᵏ."""
        w, t = 2.0 * np.pi * self.rates, np.asarray(t)[:, None]
        rows = [self.size * c * k**order * w**order * np.cos(k * w * t + 0.5 * np.pi * order) for c, k in SERIES]
        result: Array = np.sum(rows, axis=0) + (self.pose if order == 0 else 0.0)
        return result


SERIES = ((0.625, 0.0), (-0.9375, 1.0), (0.375, 2.0), (-0.0625, 3.0))
"""sin⁶(w t / 2) as a cosine series: value and five derivatives are zero at the start."""


# -- tool paths ----------------------------------------------------------------------------------------------------


def tool_error(digital: DigitalRobot, motion: Swing, controller: Any) -> tuple[float, float]:
    """Return rms and largest error of the tool's position, mm; infinite where the loop is unstable."""
    start = digital.rest(motion(np.zeros(1), 0)[0], WARM)
    try:
        run = run_loop(digital, start, controller, check=False)
    except jw.JointwiseError:
        return np.inf, np.inf
    frames = [forward_kinematics(digital.robot, q).position[:, -1] for q in (run.q, motion(run.t, 0))]
    distance = 1e3 * np.linalg.norm(frames[0] - frames[1], axis=1)
    return float(np.sqrt(np.square(distance).mean())), float(distance.max())


def paths(seeds: int) -> None:
    tool, bare = (digital_robot(jw.load_robot("ur5e"), payload=payload) for payload in (TOOL, None))
    plants = {"ideal, tool": tool.without(*IDEAL), "whole, tool": tool, "whole, no tool": bare}
    motions = [Swing.of(seed) for seed in range(1, seeds + 1)]
    print(f"tool-path error in mm, medians of {seeds} motions: rms (largest)")
    print(f"  {'plant':14} {'stiffness':14} {'rigid':>16} {'elastic':>16} {'linearisation':>16}")
    for name, digital in plants.items():
        for title, change in (("known", 0.0), ("20 % too high", -1.0 / 6.0), ("20 % too low", 0.25)):
            plant = digital.aged(stiffness=change)
            errors = [[tool_error(plant, m, controller) for controller in controllers(digital, m)] for m in motions]
            rows = np.median(errors, axis=0)
            print(f"  {name:14} {title:14}" + "".join(f"{rms:9.3f} ({most:5.2f})" for rms, most in rows), flush=True)


def controllers(known: DigitalRobot, motion: Swing) -> list[Any]:
    """Return the three controllers of a robot, with the same friction feed-forward."""
    drives = drives_of(known)
    rigid = tuple(replace(drive, spring=None, damping=0.0) for drive in drives)
    t = np.arange(int(DURATION * RATE)) / RATE + 0.5 / RATE
    q, qd, qdd = (motion(t, order) for order in range(3))
    load, friction = inverse_dynamics(known.robot, q, qd, qdd, payload=known.payload), slip_friction_of(known)
    H, _ = friction.hysteresis(friction.init(q[0]), q + deformations(drives, load))
    feed = friction.torque(H, qd, load, WARM).friction
    common: dict[str, Any] = {"duration": DURATION, "friction": feed, "payload": known.payload}
    gains = bandwidth_gains(BANDWIDTH)
    return [
        computed_torque(known.robot, motion, RATE, drives=rigid, gains=gains, **common),
        flexible_feedforward(known.robot, motion, RATE, drives=drives, gains=gains, **common),
        feedback_linearisation(known.robot, motion, RATE, drives=drives, **common),
    ]


BANDWIDTH = 4.0
"""Hz of the motor-side feedback of both feed-forward controllers."""


# -- coupling of rotors and links ----------------------------------------------------------------------------------


def coupling() -> None:
    """Print what the rotors' spin adds to the torque, rms over a fast motion within the limits of every robot."""
    print("\nshare of the torque that the coupling of rotor spin and links adds, %")
    print(f"  {'':20}{'arm':>9}{'Coriolis':>9}{'worst joint':>12}{'Coriolis':>9}")
    worst = np.zeros(4)
    for name in list_robots():
        robot = jw.load_robot(name)
        try:
            digital = digital_robot(robot, model="complete")
        except jw.JointwiseError as problem:
            print(f"  {name:20} {problem}")
            continue
        shares = coupling_shares(digital)
        worst = np.maximum(worst, shares)
        print(f"  {name:20}{shares[0]:9.3f}{shares[1]:9.4f}{shares[2]:12.3f}{shares[3]:9.4f}")
    print(f"  {'largest':20}{worst[0]:9.3f}{worst[1]:9.4f}{worst[2]:12.3f}{worst[3]:9.4f}")


def coupling_shares(digital: DigitalRobot, step: float = 1e-5) -> Array:
    """Return the rms of (S + Sᵀ) q̈ and of its Coriolis torque over that of the torque, %: all joints, the worst joint.

    With θ = q the spin adds ``q̇ᵀ S(q) q̇`` to the kinetic energy: the mass matrix grows by S + Sᵀ.
    """
    robot = digital.robot
    speeds = np.array([joint.limits.velocity or 2.0 for joint in robot.joints])
    t = np.linspace(0.0, 20.0, 2000)[:, None]
    w = np.linspace(1.5, 2.5, robot.dof)
    q, qd, qdd = (size * speeds for size in (np.sin(w * t) / w, np.cos(w * t), -w * np.sin(w * t)))
    rotors = np.array([joint.inertia for joint in digital.joints])
    torque = inverse_dynamics(robot, q, qd, qdd, gravity=digital.gravity, rotor_inertias=rotors)

    def added(position: Array) -> Array:
        S = spin_coupling(digital, position)
        result: Array = S + S.transpose(0, 2, 1)
        return result

    inertia = np.einsum("kij,kj->ki", added(q), qdd)
    rate = (added(q + step * qd) - added(q - step * qd)) / (2.0 * step)
    coriolis = np.einsum("kij,kj->ki", rate, qd)
    for j in range(robot.dof):
        nudge = step * np.eye(robot.dof)[j]
        slope = (added(q + nudge) - added(q - nudge)) / (2.0 * step)
        coriolis[:, j] -= 0.5 * np.einsum("ki,kij,kj->k", qd, slope, qd)
    rms = [np.sqrt(np.square(x).mean(axis=0)) for x in (inertia, coriolis, torque)]
    worst = [100.0 * (part / np.maximum(rms[2], 1e-9)).max() for part in rms[:2]]
    whole = [100.0 * np.linalg.norm(part) / np.linalg.norm(rms[2]) for part in rms[:2]]
    return np.array([*whole, *worst])


# -- hand guiding --------------------------------------------------------------------------------------------------

MOVED = 0.005
"""rad that count as moved: several times what gears and springs give way before a joint slides."""
RAMP = 4.0
"""s in which the push grows from nothing to `MOST` times the Coulomb friction."""
MOST = 2.0


def guiding() -> None:
    """Print the push that moves every joint, without and with friction compensation, and the drift when released."""
    digital = digital_robot(jw.load_robot("ur5e"))
    print("\npush that moves a joint by 5 mrad, Nm: gravity alone, hand guiding, reduced by %")
    for joint in range(6):
        pushes = [needed_push(digital, joint, share) for share in (0.0, 0.85)]
        print(f"  joint {joint + 1}{pushes[0]:9.3f}{pushes[1]:9.3f}{100.0 * (1.0 - pushes[1] / pushes[0]):9.1f}")
    run = run_loop(digital, digital.rest(HOME, WARM), _guided(digital, 0.85), rate=RATE, periods=3000)
    print(f"  drift of the released arm in 3 s: {1e6 * np.abs(run.q[-1] - HOME).max():.1f} µrad")
    print(f"  and after a push of 1 s, released, from 2 s to 4 s later: {1e6 * drift_after_push(digital):.1f} µrad")


def _guided(digital: DigitalRobot, share: float) -> Any:
    return hand_guiding(digital.robot, RATE, friction=slip_friction_of(digital), share=share, drives=drives_of(digital))


def _wrench(digital: DigitalRobot, joint: int) -> Array:
    """Return the wrench at the tool that loads one joint with 1 Nm."""
    return np.asarray(np.linalg.solve(jacobian(digital.robot, HOME[None])[0].T, np.eye(6)[joint]))


def needed_push(digital: DigitalRobot, joint: int, share: float) -> float:
    """Return the torque (Nm) of a slowly growing push at which a joint has moved by 5 mrad."""
    periods = int(RAMP * RATE)
    torque = MOST * digital.joints[joint].friction.coulomb * np.arange(periods) / periods
    wrench = torque[:, None] * _wrench(digital, joint)
    run = run_loop(
        digital, digital.rest(HOME, WARM), _guided(digital, share), rate=RATE, periods=periods, wrench=wrench
    )
    moved = np.abs(run.q[:, joint] - HOME[joint]) > MOVED
    if not moved.any():
        raise SystemExit(f"joint {joint + 1} did not move under {torque[-1]:.3g} Nm")
    return float(torque[np.argmax(moved)])


def drift_after_push(digital: DigitalRobot) -> float:
    """Return how far (rad) the arm moves from 2 s to 4 s after a push on two joints."""
    wrench = np.zeros((5_000, 6))
    wrench[:1000] = 8.0 * _wrench(digital, 0) + 8.0 * _wrench(digital, 1)
    run = run_loop(
        digital, digital.rest(HOME, WARM), _guided(digital, 0.85), rate=RATE, periods=len(wrench), wrench=wrench
    )
    return float(np.abs(run.q[-1] - run.q[3000]).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("paths", "coupling", "guiding")
    parser.add_argument("--only", nargs="*", choices=parts, help="parts to run")
    parser.add_argument("--seeds", type=int, default=4, help="motions of the paths")
    args = parser.parse_args()
    tasks = {"paths": lambda: paths(args.seeds), "coupling": coupling, "guiding": guiding}
    for name in args.only or parts:
        tasks[name]()


if __name__ == "__main__":
    main()
