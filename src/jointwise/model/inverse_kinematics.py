"""Inverse kinematics: damped least squares within the joint limits, batched over poses.

One iteration adds ``Δq = J⁺ e + (1 - J⁺ J)(q_ref - q)`` with ``J⁺ = V diag(σ / (σ² + λ)) Uᵀ``. The damping
``λ = |e|² / 2`` (Sugihara, IEEE Trans. Robotics 27(5), 2011) keeps steps short at a distance and at singularities and
vanishes at the solution, so that the last iterations converge quadratically. The second part acts only where there are
more joints than equations and selects, of all solutions, the one closest to a reference posture: it depends on the pose
alone, so that closed paths of the tool are closed paths of the joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointwise.description.robot import Robot
from jointwise.errors import JointwiseError, ShapeError
from jointwise.model.rigid import forward_kinematics, jacobian
from jointwise.spatial import Array, is_rotation

ITERATIONS = 200
"""Maximum number of iterations of one search."""
LONGEST_STEP = 0.5
"""Longest Δq of one iteration, rad."""
SMALLEST_DAMPING = 1e-12
"""λ at the solution: singular directions (σ < 1e-6) do not amplify rounding errors."""
GOAL = 1e-13
"""Errors (m, rad) at which a search stops: rounding."""
STUCK = 1e-12
"""Length of Δq (rad, m) below which a search has converged, solved or not."""
PATIENCE = 20
"""Iterations in which a search that has not converged must reduce its error by a tenth."""
ANCHORS = 100
"""Points of a path that are solved one after the other; those between them are solved at once."""


class ReachError(JointwiseError):
    """A pose is out of reach, or neighbours on a path lie on different branches; names the point and the distance."""


@dataclass(frozen=True)
class Poses:
    """Target poses of the tool in the base.

    Attributes:
        position: Positions, (samples, 3), m.
        rotation: Rotations, (samples, 3, 3); None for any.
    """

    position: Array
    rotation: Array | None

    def __len__(self) -> int:
        """Return the number of poses."""
        return len(self.position)

    @property
    def equations(self) -> int:
        """Equations per pose: 6, or 3 without rotation."""
        return 3 if self.rotation is None else 6

    def take(self, index: NDArray[np.intp]) -> Poses:
        """Return some of the poses."""
        return Poses(self.position[index], None if self.rotation is None else self.rotation[index])


def position_limits(robot: Robot) -> tuple[Array, Array]:
    """Return the least and largest positions (joints,), rad or m; infinite where the description has none."""
    rows = [(joint.limits.lower, joint.limits.upper) for joint in robot.joints]
    lower = np.array([-np.inf if low is None else low for low, _ in rows])
    return lower, np.array([np.inf if high is None else high for _, high in rows])


def inverse_kinematics(
    robot: Robot,
    position: ArrayLike,
    rotation: ArrayLike | None = None,
    start: ArrayLike | None = None,
    *,
    tolerance: float = 1e-9,
    tries: int = 32,
    seed: int = 0,
) -> Array:
    """Return the positions within the limits at which the tool has a pose, (joints,).

    Args:
        robot: The robot.
        position: Position of the tool in the base, (3,), m.
        rotation: Rotation of the tool in the base, (3, 3); None if it may point anywhere.
        start: Posture at which the search begins, (joints,); None for the one nearest to zero. The solution nearest to
            it is returned.
        tolerance: Largest error, m and rad.
        tries: Random postures from which the search is repeated if the first one fails.
        seed: Seed of these postures.

    Raises:
        ReachError: No solution was found; states the smallest distance.
    """
    poses = checked_poses(np.asarray(position, dtype=float)[None], rotation)
    begin = checked_start(robot, start)
    q = _unwound(robot, _solve(robot, poses, begin[None], begin), begin)
    miss = _misses(robot, poses, q)
    if miss[0].max() > tolerance:
        begins = _random_postures(robot, tries, seed)
        found = _solve(robot, poses.take(np.zeros(tries, dtype=np.intp)), begins, begin)
        q = np.concatenate([q, _unwound(robot, found, begin)])
        miss = _misses(robot, poses.take(np.zeros(len(q), dtype=np.intp)), q)
    _refuse_unreached(poses, miss[[miss.max(axis=1).argmin()]], tolerance)
    reached = q[miss.max(axis=1) <= tolerance]
    best: Array = reached[np.linalg.norm(reached - begin, axis=1).argmin()]
    return best


def all_solutions(
    robot: Robot,
    position: ArrayLike,
    rotation: ArrayLike,
    start: ArrayLike | None = None,
    *,
    tolerance: float = 1e-9,
    tries: int = 128,
    seed: int = 0,
) -> Array:
    """Return the different solutions (solutions, joints) found from `tries` random postures, nearest to `start` first.

    Of solutions that differ by whole turns, the one within the limits and closest to `start` (or zero) is kept. A
    redundant arm has infinitely many solutions; those returned are locally the closest ones to `start`. May be empty.
    """
    poses = checked_poses(np.asarray(position, dtype=float)[None], rotation).take(np.zeros(tries, dtype=np.intp))
    begin = checked_start(robot, start)
    q = _unwound(robot, _solve(robot, poses, _random_postures(robot, tries, seed), begin), begin)
    q = q[_misses(robot, poses, q).max(axis=1) <= tolerance]
    distinct: list[Array] = []
    for candidate in q[np.argsort(np.linalg.norm(q - begin, axis=1), kind="stable")]:
        if all(np.abs(candidate - other).max() > 1e-4 for other in distinct):
            distinct.append(candidate)
    return np.array(distinct).reshape(-1, robot.dof)


def follow_path(
    robot: Robot,
    positions: ArrayLike,
    rotations: ArrayLike | None = None,
    start: ArrayLike | None = None,
    *,
    tolerance: float = 1e-9,
    largest_step: float = 0.25,
) -> Array:
    """Return q (samples, joints) along a path of tool poses on the one branch of solutions that `start` leads to.

    `positions` (samples, 3), m; `rotations` (samples, 3, 3), or (3, 3) for a fixed tool, or None for any. Every 1 % of
    the path is solved after its neighbour, the rest at once from between them. Raises `ReachError` with the first point
    that is missed by more than `tolerance` (m, rad) or lies more than `largest_step` (rad, m) from the one before.
    """
    poses = checked_poses(positions, rotations)
    begin = checked_start(robot, start)
    first = inverse_kinematics(robot, poses.position[0], _one_rotation(poses), begin, tolerance=tolerance)
    anchors = np.unique(np.linspace(0, len(poses) - 1, min(ANCHORS + 1, len(poses))).astype(np.intp))
    solved = _march(robot, poses.take(anchors), first, begin, tolerance)
    known = np.arange(anchors[len(solved) - 1] + 1)
    between = [np.interp(known, anchors[: len(solved)], column) for column in solved.T]
    q = _solve(robot, poses.take(known), np.stack(between, axis=1), begin)
    _refuse_unreached(poses, _misses(robot, poses.take(known), q), tolerance)
    _refuse_jumps(robot, q, largest_step)
    return q


def checked_poses(positions: ArrayLike, rotations: ArrayLike | None) -> Poses:
    """Return poses of matching finite arrays; one rotation (3, 3) serves all positions."""
    position = np.asarray(positions, dtype=float)
    if position.ndim != 2 or position.shape[1] != 3 or not len(position) or not np.isfinite(position).all():
        raise ShapeError(f"positions must be finite, of shape (samples, 3). Got {position.shape} instead.")
    if rotations is None:
        return Poses(position, None)
    matrices = np.asarray(rotations, dtype=float)
    if matrices.shape not in ((3, 3), (len(position), 3, 3)) or not np.isfinite(matrices).all():
        raise ShapeError(f"rotations must be finite, of shape (3, 3) or ({len(position)}, 3, 3). Got {matrices.shape}.")
    if not all(is_rotation(matrix) for matrix in matrices.reshape(-1, 3, 3)):
        raise ShapeError("rotations must be orthonormal with determinant +1.")
    return Poses(position, np.broadcast_to(matrices, (len(position), 3, 3)))


def checked_start(robot: Robot, start: ArrayLike | None) -> Array:
    """Return the posture (joints,) from which to search, moved into the limits; zero if None."""
    begin = np.zeros(robot.dof) if start is None else np.asarray(start, dtype=float)
    if begin.shape != (robot.dof,) or not np.isfinite(begin).all():
        raise ShapeError(f"start must be finite, of shape ({robot.dof},). Got {begin.shape} instead.")
    lower, upper = position_limits(robot)
    inside: Array = np.clip(begin, lower, upper)
    return inside


def pose_errors(robot: Robot, poses: Poses, q: Array) -> Array:
    """Return the errors from the tool to target poses, in the axes of the base, (samples, 3 or 6).

    They are position errors (m) and, where rotations are required, rotation vectors (rad).
    """
    rotation, position = forward_kinematics(robot, q).tool
    away: Array = poses.position - position
    if poses.rotation is None:
        return away
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_matrix(poses.rotation @ rotation.transpose(0, 2, 1)).as_rotvec()
    errors: Array = np.concatenate([away, turn], axis=1)
    return errors


def _solve(robot: Robot, poses: Poses, begins: Array, reference: Array) -> Array:
    """Return the postures (samples, joints) at which the searches from `begins` end: solved, stuck or out of time."""
    lower, upper = position_limits(robot)
    q: Array = np.clip(begins, lower, upper)
    busy, before = np.arange(len(q)), np.full(len(q), np.inf)
    for k in range(ITERATIONS):
        error = pose_errors(robot, poses.take(busy), q[busy])
        step, null = _step(robot, poses.equations, q[busy], error, reference)
        length = np.linalg.norm(step, axis=1)
        solved = np.maximum(np.abs(error).max(axis=1), np.abs(null).max(axis=1)) <= GOAL
        short = np.minimum(1.0, LONGEST_STEP / np.maximum(length, LONGEST_STEP))[:, None]
        q[busy] = np.clip(q[busy] + short * step, lower, upper)
        over = solved | (length < STUCK)
        if k % PATIENCE == PATIENCE - 1:
            distance = np.linalg.norm(error, axis=1)
            over |= (distance > 0.9 * before[busy]) & (distance > 1e-6)
            before[busy] = distance
        busy = busy[~over]
        if not busy.size:
            break
    return q


def _step(robot: Robot, equations: int, q: Array, error: Array, reference: Array) -> tuple[Array, Array]:
    """Return Δq (samples, joints) that pushes against no joint limit, and the part of it within the null space."""
    lower, upper = position_limits(robot)
    J = jacobian(robot, q)[:, :equations]
    pull = reference - q if robot.dof > equations else np.zeros_like(q)
    step, null = _damped(J, error, pull)
    blocked = ((q <= lower) & (step < 0.0)) | ((q >= upper) & (step > 0.0))
    if blocked.any():
        step, null = _damped(np.where(blocked[:, None], 0.0, J), error, np.where(blocked, 0.0, pull))
    return step, null


def _damped(J: Array, error: Array, pull: Array) -> tuple[Array, Array]:
    """Return J⁺ e + (1 - J⁺ J) pull and its second part, (samples, joints)."""
    U, sigma, Vt = np.linalg.svd(J, full_matrices=False)
    damping = SMALLEST_DAMPING + 0.5 * np.sum(error**2, axis=1, keepdims=True)
    gains = sigma / (sigma**2 + damping) * np.einsum("ski,sk->si", U, error)
    held = np.where(sigma > 1e-6, np.einsum("sij,sj->si", Vt, pull), 0.0)
    null = pull - np.einsum("sij,si->sj", Vt, held)
    return np.einsum("sij,si->sj", Vt, gains) + null, null


def _march(robot: Robot, poses: Poses, first: Array, reference: Array, tolerance: float) -> Array:
    """Return postures (samples, joints), each searched from the one before, up to the first pose that is missed."""
    rows = [first]
    for k in range(1, len(poses)):
        pose = poses.take(np.array([k]))
        rows.append(_solve(robot, pose, rows[-1][None], reference)[0])
        if _misses(robot, pose, rows[-1][None]).max() > tolerance:
            break
    return np.array(rows)


def _one_rotation(poses: Poses) -> Array | None:
    return None if poses.rotation is None else poses.rotation[0]


def _random_postures(robot: Robot, count: int, seed: int) -> Array:
    """Return postures (count, joints) within the limits, and within a turn (0.5 m) of zero where there are none."""
    lower, upper = position_limits(robot)
    wide = np.where(robot.revolute, np.pi, 0.5)
    draw = np.random.default_rng(seed).uniform
    return draw(np.clip(-wide, lower, upper), np.clip(wide, lower, upper), (count, robot.dof))


def _unwound(robot: Robot, q: Array, reference: Array) -> Array:
    """Return the same postures with every revolute joint within half a turn of the reference, if limits allow."""
    lower, upper = position_limits(robot)
    turned = q + 2.0 * np.pi * np.round((reference - q) / (2.0 * np.pi))
    return np.where(robot.revolute & (turned >= lower) & (turned <= upper), turned, q)


def _misses(robot: Robot, poses: Poses, q: Array) -> Array:
    """Return the distance (m) and the angle (rad) between tool and pose, (samples, 2)."""
    parts = pose_errors(robot, poses, q).reshape(len(q), -1, 3)
    distances: Array = np.linalg.norm(parts, axis=2)
    return distances if parts.shape[1] == 2 else np.pad(distances, ((0, 0), (0, 1)))


def _refuse_unreached(poses: Poses, misses: Array, tolerance: float) -> None:
    """Raise with the first pose that is missed by more than the tolerance."""
    missed = np.flatnonzero(misses.max(axis=1) > tolerance)
    if missed.size:
        k = int(missed[0])
        distance, angle = misses[k]
        which = "the point" if len(poses) == 1 else f"point {k + 1} of {len(poses)}"
        raise ReachError(
            f"{which} at {_shown(poses.position[k])} m cannot be reached within the joint limits: the tool stays "
            f"{distance:.3g} m and {angle:.3g} rad away."
        )


def _refuse_jumps(robot: Robot, q: Array, largest: float) -> None:
    """Raise with the first two neighbours that lie on different branches."""
    steps = np.abs(np.diff(q, axis=0))
    jumps = np.flatnonzero((steps > largest).any(axis=1))
    if jumps.size:
        k = int(jumps[0])
        joint = int(steps[k].argmax())
        raise ReachError(
            f"the path jumps between points {k + 1} and {k + 2} of {len(q)}: joint {joint + 1} "
            f"'{robot.joints[joint].name}' by {steps[k, joint]:.3g}. Sample it finer, or keep away from singularities."
        )


def _shown(point: Sequence[float] | Array) -> str:
    return "(" + ", ".join(f"{float(value):.4g}" for value in point) + ")"
