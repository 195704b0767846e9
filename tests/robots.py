"""Random robots and states: physical bodies, any placement, any mixture of joints; seeded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from jointwise.description import Joint, Link, Payload, Robot
from jointwise.spatial import Array

LARGEST_SEED = 2**32 - 1


def law(examples: int) -> settings:
    """Return hypothesis settings that try the same `examples` robots in every run."""
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None)


@dataclass(frozen=True)
class Case:
    """A robot with everything that acts on it, and the states at which to ask."""

    robot: Robot
    gravity: Array
    payload: Payload
    rotors: Array
    wrench: Array
    q: Array
    qd: Array
    qdd: Array
    effort: Array


def random_rotation(rng: np.random.Generator) -> Array:
    return Rotation.from_quat(rng.normal(size=4)).as_matrix()


def random_body(rng: np.random.Generator) -> tuple[float, Array, Array]:
    """Return mass, centre and central inertia of a random cloud of six masses: physical by construction."""
    masses, points = rng.uniform(0.1, 1.0, 6), rng.uniform(-0.2, 0.2, (6, 3)) + rng.uniform(-0.2, 0.2, 3)
    center = masses @ points / masses.sum()
    arms = points - center
    inertia = sum(m * (a @ a * np.eye(3) - np.outer(a, a)) for m, a in zip(masses, arms, strict=True))
    return float(masses.sum()), center, inertia


def random_robot(rng: np.random.Generator, turns: Sequence[bool]) -> Robot:
    """Return a chain with a revolute joint for every True and a prismatic one for every False."""
    joints = [
        Joint(f"j{k}", "revolute" if turn else "prismatic", random_rotation(rng), rng.uniform(-0.4, 0.4, 3))
        for k, turn in enumerate(turns)
    ]
    links = [Link.from_center(f"l{k}", *random_body(rng)) for k in range(len(joints))]
    return Robot("random", tuple(joints), tuple(links), random_rotation(rng), rng.uniform(-0.3, 0.3, 3))


def random_states(rng: np.random.Generator, robot: Robot, samples: int) -> tuple[Array, Array, Array]:
    """Return q within ±π (±0.5 m), qd within ±3 and qdd within ±10."""
    q = rng.uniform(-1.0, 1.0, (samples, robot.dof)) * np.where(robot.revolute, np.pi, 0.5)
    return q, rng.uniform(-3.0, 3.0, q.shape), rng.uniform(-10.0, 10.0, q.shape)


def random_case(rng: np.random.Generator, robot: Robot, samples: int = 7) -> Case:
    q, qd, qdd = random_states(rng, robot, samples)
    return Case(
        robot=robot,
        gravity=rng.uniform(-10.0, 10.0, 3),
        payload=Payload(*random_body(rng)),
        rotors=rng.uniform(0.0, 1.0, robot.dof),
        wrench=rng.uniform(-30.0, 30.0, (samples, 6)),
        q=q,
        qd=qd,
        qdd=qdd,
        effort=rng.uniform(-30.0, 30.0, q.shape),
    )


def quarter_turned_robot(rng: np.random.Generator, turns: Sequence[bool]) -> Robot:
    """Return a random chain whose joints lie along an axis of the frame before, as in most arms.

    Any of the 24 quarter turns, then any angle about z or none; components of the translations are often zero.
    """
    joints = []
    for k, turn in enumerate(turns):
        quarter = np.round(Rotation.create_group("O")[int(rng.integers(24))].as_matrix())
        angle = Rotation.from_euler("z", rng.uniform(-np.pi, np.pi)).as_matrix() if rng.random() < 0.5 else np.eye(3)
        translation = rng.uniform(-0.4, 0.4, 3) * rng.integers(0, 2, 3)
        joints.append(Joint(f"j{k}", "revolute" if turn else "prismatic", quarter @ angle, translation))
    links = [Link.from_center(f"l{k}", *random_body(rng)) for k in range(len(joints))]
    return Robot("quarters", tuple(joints), tuple(links))


seeds = st.integers(0, LARGEST_SEED)
joint_kinds = st.lists(st.booleans(), min_size=1, max_size=10)
robots = st.builds(lambda seed, turns: random_robot(np.random.default_rng(seed), turns), seeds, joint_kinds)


@st.composite
def cases(draw: st.DrawFn, samples: int = 7) -> Case:
    """Draw a random robot with gravity, payload, rotors, wrench and states."""
    rng = np.random.default_rng(draw(seeds))
    return random_case(rng, random_robot(rng, draw(joint_kinds)), samples)


@st.composite
def quarter_turned_cases(draw: st.DrawFn, samples: int = 7) -> Case:
    """Draw a case of `quarter_turned_robot`."""
    rng = np.random.default_rng(draw(seeds))
    return random_case(rng, quarter_turned_robot(rng, draw(joint_kinds)), samples)
