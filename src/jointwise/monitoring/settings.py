"""The numbers of a monitor for a calibrated model: priors from the model, spread and limits from its residuals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jointwise import spatial
from jointwise.data.statistics import MOVING_SPEED
from jointwise.model.terms import Offset
from jointwise.monitoring.core import CoreMonitor, WatchedJoint
from jointwise.result.spread import JointSpread, ResidualSpread, Tail
from jointwise.runtime import RobotModel
from jointwise.runtime.motion import steady_torques
from jointwise.spatial import Array, Mask

PAYLOAD_SHARE = 0.4
"""Standard deviation of the mass of an unknown payload, relative to the mass at the end of the stretched arm whose
weight is the largest gravity torque of the arm itself; 5 kg for an arm that carries 12."""
CENTER = 0.1
"""Standard deviation (m) of the distance of its centre from the tool: grippers and workpieces."""
VISCOUS_SHARE = 0.5
"""Standard deviation of a change of the viscous coefficient: cold and warm joints differ by about that."""
REST_SHARE = 0.03
"""Least spread at rest, relative to the torque that static friction holds: it slips a little without a cause."""
FAST = 1.0
"""Speed (rad/s) at which viscous friction is evaluated."""
POSES = 200
"""Random poses for the largest gravity torque."""
ASSUMED = JointSpread((1.2, 0.4, 0.1, 0.6, 0.6), (0.6, 0.3, 0.05, 0.8, 0.3), 0.5, 0.3)
"""Spread of a model without stored residuals, in units of its residual standard deviation; inertia and shock as they
are. It is wider than that of any model that we have measured."""
ASSUMED_TAIL = Tail(3.5, 0.7)


def core_monitor(
    model: RobotModel,
    rate: float,
    spread: ResidualSpread,
    *,
    limits: tuple[float, float, float],
    measured: Mask | None = None,
    derived: bool = False,
) -> CoreMonitor:
    """Return the numbers of a monitor.

    Args:
        model: The model with the payload that the robot is said to carry.
        rate: Rate of the uniform clock, Hz.
        spread: Spread of the residuals.
        limits: Ratios to the spread of the fast and the slow residual, and size of a sudden change, above which there
            is a contact; 0 if changes are not used.
        measured: Which joints have a measured output, (joints,); None for all that the model predicts.
        derived: Whether speeds are differences of positions.

    """
    held, viscous = _friction(model)
    used = np.ones(model.dof, dtype=bool) if measured is None else np.asarray(measured, dtype=bool)
    used = used & ~np.isin(np.arange(model.dof), model.calibration.ignored)
    robot = model.calibration.model.robot
    moved = spatial.move_inertial_matrix(robot.tool_rotation, robot.tool_translation)
    mass = PAYLOAD_SHARE * _carried_mass(model)
    joints = tuple(
        WatchedJoint(
            _with_least_rest(spread.joints[j], held[j]),
            held[j],
            viscous[j],
            float(model.gains[j]),
            bool(used[j]),
            *_change(spread, j),
        )
        for j in range(model.dof)
    )
    lag = max(model.calibration.filters.lag, 0.0)
    bodies = np.ascontiguousarray(moved[:, [9, 6, 7, 8]].T)
    return CoreMonitor(joints, bodies, mass, CENTER * mass, *limits, lag, derived, 1.0 / rate)


def _change(spread: ResidualSpread, joint: int) -> tuple[tuple[float, float], float, float]:
    """Return the predictor of a joint, the deviation of its error (Nm) and its largest speed (rad/s)."""
    change = spread.change
    if change is None:
        return (0.0, 0.0), 1.0, 0.0
    return change.predictors[joint], change.deviations[joint], change.fastest[joint]


def _with_least_rest(spread: JointSpread, held: float) -> JointSpread:
    """Return a spread that is at rest at least a share of the torque that static friction holds (Nm)."""
    fast, slow = max(spread.rest_fast, REST_SHARE * held), max(spread.rest_slow, REST_SHARE * held)
    return replace(spread, rest_fast=fast, rest_slow=slow)


def known_spread(model: RobotModel, has_speed: bool = True) -> ResidualSpread:
    """Return the spread of the residuals of a model for streams with or without measured speeds.

    It is an assumed one where the model file has none.
    """
    stored = model.calibration.spread
    if stored is not None:
        return stored if has_speed or stored.without_speed is None else stored.without_speed
    joints = tuple(_scaled(float(sigma)) for sigma in model.calibration.for_use("feed-forward").estimate.sigma)
    return ResidualSpread(joints, ASSUMED_TAIL, ASSUMED_TAIL, 0.0, "assumed")


def _scaled(sigma: float) -> JointSpread:
    """Return the assumed spread for a residual standard deviation (Nm)."""
    sigma = max(sigma, 1e-9)

    def factors(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(value if k in (2, 4) else sigma * value for k, value in enumerate(values))

    return JointSpread(
        factors(ASSUMED.fast), factors(ASSUMED.slow), sigma * ASSUMED.rest_fast, sigma * ASSUMED.rest_slow
    )


def _friction(model: RobotModel) -> tuple[list[float], list[float]]:
    """Return standard deviations of the torque held at rest (Nm) and of the viscous coefficient (Nm s/rad)."""
    planned = model.calibration.for_use("feed-forward")

    def steady(speed: float) -> Array:
        still = np.zeros((1, model.dof))
        torque: Array = steady_torques(planned.model, still + speed, planned.estimate.values, still, without=(Offset,))[
            0
        ]
        return torque

    slow, fast = np.abs(steady(MOVING_SPEED)), np.abs(steady(FAST))
    held = np.maximum(slow / np.sqrt(3.0), planned.estimate.sigma)
    viscous = VISCOUS_SHARE * np.maximum(fast - slow, 0.1 * slow) / (FAST - MOVING_SPEED)
    return held.tolist(), np.maximum(viscous, 1e-9).tolist()


def _carried_mass(model: RobotModel) -> float:
    """Return the mass (kg) at the end of the stretched arm whose weight is the largest gravity torque of the arm."""
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (POSES, model.dof))
    revolute = model.calibration.model.robot.revolute
    q[:, ~revolute] *= 0.1
    gravity, size = model.gravity(q)[:, revolute], float(np.linalg.norm(model.gravity_vector))
    reach = float(np.linalg.norm(model.forward_kinematics(q).tool[1], axis=1).max())
    largest = float(np.abs(gravity).max(initial=0.0))
    return largest / (size * reach) if largest > 1e-3 and size * reach > 0.0 else 1.0
