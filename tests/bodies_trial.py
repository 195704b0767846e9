"""Random problems of the physically consistent bodies, and their solutions: for the comparison of machines.

    python tests/bodies_trial.py FIRST LAST SOLUTIONS.npz

Each problem is solved twice, the second time with every input changed in its last bit. The problems have weights of the
prior from 1e-9 to 1, columns whose scales differ by up to 1e12, noise from 1e-3 to 30 Nm, logs shorter than the number
of parameters, joints at rest, columns that are multiples of others, described bodies wrong by a factor of up to 3,
rotors with and without description, and regions of the centres of mass.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np

import jointwise as jw
from jointwise.estimation.body_prior import BodyPrior
from jointwise.estimation.factors import JointFactors
from jointwise.estimation.least_squares import Layout, Problem, weighted_least_squares
from jointwise.estimation.physical import Programme
from jointwise.model.base import BaseParameters, base_parameters
from jointwise.model.rigid import compute_regressor
from jointwise.spatial import Array

PROBLEMS = 300
ROBOTS = ("planar2", "ur5e", "puma560", "panda")
BLOCKS, ROTOR = 3, 0.5


@cache
def base_of(name: str) -> tuple[jw.Robot, BaseParameters]:
    robot = jw.load_robot(name)
    return robot, base_parameters(robot, rotors=True)


def last_bit(values: Array, seed: int) -> Array:
    """Return values changed by one unit in the last place, up or down at random."""
    up = np.random.default_rng(seed).random(values.shape) < 0.5
    return np.nextafter(values, np.where(up, np.inf, -np.inf))


def solution(seed: int, changed: bool) -> tuple[Array, Array]:
    """Return predictions relative to the largest torque of their joint, and masses relative to the prior."""
    rng = np.random.default_rng(seed)
    robot, base = base_of(ROBOTS[seed % len(ROBOTS)])
    n, links = robot.dof, len(robot.links)
    count = base.count
    rows = int(rng.choice([8, 20, 100]))
    noise, weight = 10.0 ** rng.uniform(-3.0, 1.5), 10.0 ** rng.uniform(-9.0, 0.0)
    scale = 10.0 ** rng.uniform(-6.0, 6.0, count + 3 * n)
    at_rest = rng.random(n) < 0.15
    twice = rng.random(n) < 0.3  # the third term is a multiple of the second
    standard = np.append(robot.inertials.ravel(), np.full(n, ROTOR))
    factors, stacks = [JointFactors() for _ in range(n)], []
    for block in range(BLOCKS):
        q, qd, qdd = rng.uniform(-np.pi, np.pi, (3, rows, n))
        q[:, at_rest], qd[:, at_rest], qdd[:, at_rest] = 1.0, 0.0, 0.0
        Y = compute_regressor(robot, q, qd, qdd, rotors=True).matrices()
        torque = Y @ standard + 5.0 * qd + 2.0 * np.sign(qd) + noise * rng.normal(size=qd.shape)
        for j in range(n):
            third = 3.0 * np.sign(qd[:, j]) if twice[j] else np.ones(rows)
            terms = np.column_stack([qd[:, j], np.sign(qd[:, j]), third])
            W = np.column_stack([Y[:, j][:, base.kept], terms]) * np.append(scale[:count], scale[count + 3 * j :][:3])
            data = np.column_stack([W, torque[:, j]])
            if changed:
                data = last_bit(data, 1000 * block + j)
            factors[j].add(data, np.ones(rows))
            stacks.append((j, data))
    index = [np.concatenate([np.arange(count), count + 3 * j + np.arange(3)]) for j in range(n)]
    bound = np.concatenate([np.zeros(count, bool), np.tile([True, True, False], n)])
    problem = Problem(factors, Layout(index, bound))
    projection = base.projection / scale[:count, None]
    if changed:
        projection = last_bit(projection, 7)
    size = rng.uniform(0.3, 3.0, links)
    inertials = size[:, None] * robot.inertials
    regions = tuple(
        inertial[6:9] / inertial[9] + np.array([[-0.02], [0.03]]) if rng.random() < 0.2 else None
        for inertial in inertials
    )
    rotors = np.where(rng.random(n) < 0.3, np.nan, ROTOR * rng.uniform(0.5, 2.0, n))
    names = tuple(link.name for link in robot.links)
    prior = BodyPrior(names, inertials, rotors, regions, "trial", np.where(rng.random(links) < 0.5, 0.2, 1.0))
    kind = "entropic" if rng.random() < 0.5 else "euclidean"
    programme = Programme(problem, weighted_least_squares(problem), projection, prior, kind, weight)
    found = programme.solve(programme.factor())
    predictions = [data[:, :-1] @ found.values[index[j]] / np.abs(data[:, -1]).max() for j, data in stacks]
    masses = found.standard[: 10 * links].reshape(links, 10)[:, 9] / prior.inertials[:, 9]
    return np.concatenate(predictions), masses


def main() -> None:
    first, last, target = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    kept: dict[str, Array] = {}
    for seed in range(first, last):
        for changed in (False, True):
            try:
                kept[f"predictions {seed} {changed}"], kept[f"masses {seed} {changed}"] = solution(seed, changed)
            except jw.JointwiseError as failure:
                print(f"problem {seed} {changed}: {failure}", flush=True)
    np.savez(target, **kept)


if __name__ == "__main__":
    main()
