"""Declarations other than the user's that could explain the samples, each with the cause it stands for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from jointwise.description.robot import Link, Payload, Robot
from jointwise.result.plausibility.declaration import (
    FREE_CENTER,
    Coupling,
    Declaration,
    coupled_pairs,
    swapped,
    with_item,
)
from jointwise.result.plausibility.samples import Samples
from jointwise.spatial import Array

Cause = Literal[
    "output sign",
    "position sign",
    "output order",
    "position order",
    "joint sign",
    "joint order",
    "zero offset",
    "mounting",
    "robot",
    "payload",
    "payload centre",
    "gain",
    "time shift",
    "coupling",
    "spring",
    "log coordinates",
]

ZERO_OFFSETS = (90.0, -90.0, 180.0, 45.0, -45.0, 20.0, -20.0)
"""Zero offsets of a joint that are tried, degrees; the best one is refined."""
GAIN_FACTORS = (0.1, 0.5, 0.7, 1.4, 2.0, 10.0)
"""Factors between true and declared gain that are tried; the best one is refined."""
TILTS = (10.0, 25.0, 45.0)
"""Tilts of the base that are tried in four directions, degrees; the best one is refined."""
RATIOS = (-1.0, -0.4, -0.15, 0.15, 0.4, 1.0)
"""Ratios of an undeclared coupling that are tried; the best one is refined."""
PAYLOADS = (0.3, 1.0, 3.0, 10.0)
"""Sizes of an undeclared payload that are tried, kg: standard deviations of its prior."""
MASSES = (0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Masses of an undeclared payload that are tried where gains are estimated, kg: these follow the assumed mass."""
MASS_PARTS = (0.25, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0)
"""Parts of the declared mass of a payload that are tried, with its declared centre; the best one is refined."""
LATEST, EARLIEST = 0.025, -0.08
"""Shifts (s) that are tried: later than the first, earlier than the second. Smaller ones are left to the common lag
that calibration chooses. A simple model of friction imitates an output that is early by up to 40 ms, never a late one.
"""


@dataclass(frozen=True, eq=False)
class Alternative:
    """Another declaration that may fit the logs better than that of the user.

    Attributes:
        cause: What the user may have declared wrongly.
        declaration: The declaration in its place.
        joints: Joints concerned, 0-based; empty for all.
        value: Its number: degrees, factor, seconds, kilograms or ratio; NaN where the cause has none.
        name: Name of the robot or of the mounting; "" for other causes.
    """

    cause: Cause
    declaration: Declaration
    joints: tuple[int, ...] = ()
    value: float = math.nan
    name: str = ""


def output_alternatives(declaration: Declaration, samples: Samples) -> Iterator[Alternative]:
    """Yield declarations that change the outputs only: signs, order, gains, time shifts."""
    moving = [int(j) for j in np.flatnonzero(samples.moving)]
    groups: list[tuple[int, ...]] = [(), *((j,) for j in moving)]
    yield from (replace(with_gain(declaration, joints, -1.0), cause="output sign") for joints in groups)
    if declaration.gains_known and declaration.described():
        yield from (with_gain(declaration, joints, value) for value in GAIN_FACTORS for joints in groups)
    for i, j in combinations(moving, 2):
        order = swapped(declaration.channel, i, j)
        yield Alternative("output order", replace(declaration, channel=order), (i, j))
    yield from _time_shifts(declaration, samples, groups)


def _time_shifts(
    declaration: Declaration, samples: Samples, groups: Iterable[tuple[int, ...]]
) -> Iterator[Alternative]:
    """Yield outputs of groups of joints that are late or early."""
    shifts = [k for k, lag in enumerate(samples.lags) if lag >= LATEST - 1e-9 or lag <= EARLIEST + 1e-9]
    yield from (_with_lag(declaration, joints, k, float(samples.lags[k])) for k in shifts for joints in groups)


def _with_lag(declaration: Declaration, joints: tuple[int, ...], k: int, seconds: float) -> Alternative:
    """Return the alternative in which the outputs of some joints (all if empty) are taken at lag k."""
    lags = tuple(k if not joints or j in joints else lag for j, lag in enumerate(declaration.lag))
    return Alternative("time shift", replace(declaration, lag=lags), joints, seconds)


def motion_alternatives(declaration: Declaration, samples: Samples, catalog: Iterable[Robot]) -> Iterator[Alternative]:
    """Yield declarations that change positions, gravity, bodies or the robot."""
    if declaration.robot.transmission is not None:
        yield Alternative("log coordinates", replace(declaration, other_coordinates=True))
        return  # the columns of friction are those of the declared motors
    yield from _position_signs(declaration, samples)
    first = int(_turns_about_gravity(declaration))
    yield from (with_offset(declaration, j, degrees) for j in range(first, samples.joints) for degrees in ZERO_OFFSETS)
    yield from _position_orders(declaration, samples)
    yield from _mountings(declaration)
    yield from _payloads(declaration)
    for robot in catalog:
        yield from _robots(declaration, robot)


PARALLEL = 1e-3
"""Sine of the angle between gravity and an axis below which they are parallel."""


def _turns_about_gravity(declaration: Declaration) -> bool:
    """Return whether the first joint turns the arm about the direction of gravity: then its zero changes no torque."""
    gravity, axis = declaration.gravity, declaration.robot.joints[0].rotation[:, 2]
    size = float(np.linalg.norm(gravity))
    return float(np.linalg.norm(np.cross(gravity, axis))) <= PARALLEL * size


def _payloads(declaration: Declaration) -> Iterator[Alternative]:
    """Yield an unknown payload of several sizes, beside a declared one and instead of it; its mass and its centre."""
    if not declaration.described():
        return
    for mass in PAYLOADS:
        yield Alternative("payload", replace(declaration, payload_mass=mass), (), mass)
    if (payload := declaration.payload) is None:
        yield from (with_mass(declaration, mass) for mass in MASSES if not declaration.gains_known)
        return
    for mass in (0.0, *PAYLOADS):
        yield Alternative("payload", replace(declaration, payload=None, payload_mass=mass), (), mass)
    if declaration.center_deviation < FREE_CENTER:  # else estimated gains follow a mass instead of the centre
        yield from (with_mass(declaration, part * payload.mass) for part in MASS_PARTS)
        yield Alternative("payload centre", replace(declaration, center_deviation=FREE_CENTER))


def with_mass(declaration: Declaration, mass: float) -> Alternative:
    """Return the alternative in which the declared payload has another mass (kg), or there is one near the flange."""
    if declaration.payload is not None:
        loaded = replace(declaration, payload=replace(declaration.payload, mass=mass))
    else:
        loaded = replace(declaration, payload=Payload(mass), center_deviation=FREE_CENTER)
    return Alternative("payload", loaded, (), mass)


def with_center(declaration: Declaration, center: Array) -> Alternative:
    """Return the alternative in which the declared payload has another centre (3,) m in the tool frame."""
    payload = declaration.payload
    moved = None if payload is None else replace(payload, center_of_mass=center)
    return Alternative("payload centre", replace(declaration, payload=moved))


def _position_signs(declaration: Declaration, samples: Samples) -> Iterator[Alternative]:
    """Yield opposite signs of single positions, with and without those of their outputs, and of all positions."""
    n = declaration.robot.dof
    for j in range(n):
        turned = replace(declaration, sign=with_item(declaration.sign, j, -1.0))
        yield Alternative("position sign", turned, (j,))
        if samples.moving[j]:
            yield replace(with_gain(turned, (j,), -1.0), cause="joint sign")
    yield Alternative("position sign", replace(declaration, sign=(-1.0,) * n))


def _position_orders(declaration: Declaration, samples: Samples) -> Iterator[Alternative]:
    """Yield exchanged positions of two joints, with and without their outputs."""
    for i, j in combinations(range(declaration.robot.dof), 2):
        moved = replace(declaration, order=swapped(declaration.order, i, j))
        yield Alternative("position order", moved, (i, j))
        if samples.moving[i] and samples.moving[j]:
            both = replace(moved, channel=swapped(declaration.channel, i, j))
            yield Alternative("joint order", both, (i, j))


def coupling_alternatives(declaration: Declaration, samples: Samples) -> Iterator[Alternative]:
    """Yield declarations in which one more motor turns with a second joint."""
    if declaration.robot.transmission is not None:
        return
    known = {coupling[:2] for coupling in declaration.couplings}
    for pair in coupled_pairs(np.flatnonzero(samples.moving).tolist(), declaration.robot.dof):
        if pair not in known:
            yield from (with_couplings(declaration, (*declaration.couplings, (*pair, ratio))) for ratio in RATIOS)


def with_couplings(declaration: Declaration, couplings: tuple[Coupling, ...]) -> Alternative:
    """Return the alternative with some couplings; joints and value are those of the last one."""
    motor, joint, ratio = couplings[-1]
    return Alternative("coupling", replace(declaration, couplings=couplings), (motor, joint), ratio)


def spring_alternatives(declaration: Declaration, samples: Samples) -> Iterator[Alternative]:
    """Yield declarations with a spring at one more joint, which the user did not declare."""
    if declaration.robot.transmission is not None or "spring" in samples.terms:
        return
    for j in np.flatnonzero(samples.moving).tolist():
        if j not in declaration.springs:
            springs = tuple(sorted((*declaration.springs, j)))
            yield Alternative("spring", replace(declaration, springs=springs), springs)


def with_gain(declaration: Declaration, joints: tuple[int, ...], value: float) -> Alternative:
    """Return the alternative in which the outputs of some joints (all if empty) are `value` times the declared ones."""
    chosen = joints or tuple(range(declaration.robot.dof))
    factor = tuple(value * f if j in chosen else f for j, f in enumerate(declaration.factor))
    return Alternative("gain", replace(declaration, factor=factor), joints, value)


def with_offset(declaration: Declaration, joint: int, degrees: float) -> Alternative:
    """Return the alternative in which the zero of a joint is shifted."""
    offset = with_item(declaration.offset, joint, declaration.offset[joint] + math.radians(degrees))
    return Alternative("zero offset", replace(declaration, offset=offset), (joint,), degrees)


def with_gravity(declaration: Declaration, gravity: Array, name: str = "") -> Alternative:
    """Return the alternative with another gravity; the value is the angle to the declared one, degrees."""
    old = declaration.gravity
    cosine = float(gravity @ old / (np.linalg.norm(gravity) * np.linalg.norm(old)))
    angle = math.degrees(math.acos(max(-1.0, min(1.0, cosine))))
    return Alternative("mounting", replace(declaration, gravity=gravity), (), angle, name)


NAMED_DIRECTIONS = {
    "table": (0.0, 0.0, -1.0),
    "ceiling": (0.0, 0.0, 1.0),
    "wall, gravity along +x": (1.0, 0.0, 0.0),
    "wall, gravity along -x": (-1.0, 0.0, 0.0),
    "wall, gravity along +y": (0.0, 1.0, 0.0),
    "wall, gravity along -y": (0.0, -1.0, 0.0),
}


def _mountings(declaration: Declaration) -> Iterator[Alternative]:
    size = float(np.linalg.norm(declaration.gravity))
    if size == 0.0:
        return
    down = declaration.gravity / size
    for name, direction in NAMED_DIRECTIONS.items():
        if np.linalg.norm(np.array(direction) - down) > 0.1:
            yield with_gravity(declaration, size * np.array(direction), name)
    side, other = tangents(down)
    for degrees in TILTS:
        angle = math.radians(degrees)
        for axis in (side, -side, other, -other):
            yield with_gravity(declaration, size * (math.cos(angle) * down + math.sin(angle) * axis))


def tangents(direction: Array) -> tuple[Array, Array]:
    """Return two unit vectors perpendicular to a unit vector and to each other."""
    start = np.eye(3)[int(np.argmin(np.abs(direction)))]
    side = np.cross(direction, start)
    side /= np.linalg.norm(side)
    return side, np.cross(direction, side)


def _same_kinematics(first: Robot, second: Robot) -> bool:
    """Return whether all joints of two robots are at the same places, to 1 mm and 1 mrad."""
    return all(
        np.allclose(a.rotation, b.rotation, atol=1e-3) and np.allclose(a.translation, b.translation, atol=1e-3)
        for a, b in zip(first.joints, second.joints, strict=True)
    )


def _robots(declaration: Declaration, robot: Robot) -> Iterator[Alternative]:
    """Yield another robot of the same number of joints, with the declared gains and with its own."""
    if robot.dof != declaration.robot.dof or robot.name == declaration.robot.name:
        return
    if not declaration.described():
        if _same_kinematics(robot, declaration.robot):
            return
        bare = tuple(Link(link.name, np.zeros(10)) for link in robot.links)
        yield Alternative("robot", replace(declaration, robot=replace(robot, links=bare)), (), math.nan, robot.name)
        return
    yield Alternative("robot", replace(declaration, robot=robot), (), math.nan, robot.name)
    gains = [joint.motor.joint_gain for joint in robot.joints]
    known = [gain for gain in gains if gain is not None]
    if len(known) == robot.dof and not np.allclose(declaration.gains, 1.0):
        described = replace(declaration, robot=robot, gains=np.array(known), gains_known=True)
        yield Alternative("robot", described, (), math.nan, robot.name)
