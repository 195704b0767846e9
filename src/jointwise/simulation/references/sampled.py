"""A motion given by samples: a planned trajectory from a file, or a log to be run again."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from jointwise.description.robot import Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.simulation.references.bspline import DEGREE, SplineMotion

REST = 0.02
"""Largest mean speed (rad/s, m/s) over the first and the last samples of a motion that begins and ends at rest."""
FEWEST = 2 * DEGREE
"""Fewest samples of a motion."""


def sampled_motion(robot: Robot, t: ArrayLike, q: ArrayLike) -> SplineMotion:
    """Return the quintic spline through positions q (samples, joints), rad, at times t (samples,), s.

    Times ascend; the motion begins at rest at t[0], which becomes 0, and ends at rest.
    """
    from scipy.interpolate import make_interp_spline

    times, positions = np.asarray(t, dtype=float), np.asarray(q, dtype=float)
    if times.ndim != 1 or positions.shape != (len(times), robot.dof) or len(times) < FEWEST:
        raise ShapeError(
            f"a motion must be {FEWEST} or more samples of {robot.dof} joints. "
            f"Got t {times.shape}, q {positions.shape} instead."
        )
    if not (np.isfinite(times).all() and np.isfinite(positions).all() and (np.diff(times) > 0.0).all()):
        raise ModelError("a motion must have finite positions at times that ascend.")
    _refuse_moving_ends(times, positions)
    still = [(1, np.zeros(robot.dof)), (2, np.zeros(robot.dof))]
    center = positions[0]
    spline = make_interp_spline(times - times[0], positions - center, k=DEGREE, bc_type=(still, still))
    return SplineMotion(float(times[-1] - times[0]), spline.t, center, spline.c)


def _refuse_moving_ends(t: np.ndarray, q: np.ndarray) -> None:
    """Refuse a motion that is under way where it begins or ends."""
    for where, part in (("begin", slice(0, 3)), ("end", slice(-3, None))):
        speed = np.abs(np.ptp(q[part], axis=0)) / np.ptp(t[part])
        if speed.max() > REST:
            joint = int(speed.argmax())
            raise ModelError(
                f"a motion must {where} at rest. Joint {joint + 1} moves at {speed[joint]:.3g} rad/s there: cut the "
                "file where the arm stands still."
            )
