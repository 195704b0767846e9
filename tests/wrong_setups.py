"""Set-ups of a calibration, right and wrong ones: a log, what is declared about it, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.signal import butter, lfilter

from jointwise import Log, Payload, Robot, list_robots, load_robot
from jointwise.description import gravity_vector
from jointwise.spatial import Array


@dataclass(frozen=True, eq=False)
class Setup:
    """Training logs and a declaration; `wrong` names the cause that is wrong, empty for a right set-up.

    `causes` are the checks that name the cause; `unseen` is a right log that was not used for training.
    """

    name: str
    logs: tuple[Log, ...]
    robot: Robot
    unseen: Log
    mounting: Any = "table"
    payload: Payload | None = None
    wrong: str = ""
    causes: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        """The channel that is modelled."""
        return "torque" if self.logs[0].torque is not None else "current"

    def altered(self, wrong: str, causes: Sequence[str], **changes: Any) -> Setup:
        """Return a wrong variant."""
        return replace(self, name=f"{self.name}, {wrong}", wrong=wrong, causes=tuple(causes), **changes)

    def with_logs(self, wrong: str, causes: Sequence[str], change: Callable[[Log], Log]) -> Setup:
        """Return a wrong variant with changed training logs."""
        return self.altered(wrong, causes, logs=tuple(change(log) for log in self.logs))


def scaled(log: Log, channels: Sequence[str], joints: Sequence[int], factor: float) -> Log:
    """Return the log with channels of some joints times a factor."""
    return _changed(log, channels, lambda values: _times(values, joints, factor))


def swapped(log: Log, channels: Sequence[str], i: int, j: int) -> Log:
    """Return the log with channels of two joints exchanged."""
    order = list(range(log.joints))
    order[i], order[j] = j, i
    return _changed(log, channels, lambda values: values[:, order])


def shifted(log: Log, channel: str, joint: int, value: float) -> Log:
    """Return the log with a constant added to a channel of one joint."""
    return _changed(log, (channel,), lambda values: values + value * np.eye(log.joints)[joint])


def delayed(log: Log, channel: str, joints: Sequence[int], seconds: float) -> Log:
    """Return the log with a channel of some joints later."""

    def late(values: Array) -> Array:
        for j in joints:
            values[:, j] = np.interp(log.t - seconds, log.t, values[:, j])
        return values

    return _changed(log, (channel,), late)


def smoothed(log: Log, channel: str, joints: Sequence[int], cutoff: float) -> Log:
    """Return the log with a channel of some joints through a causal first-order low-pass (Hz)."""
    weights = butter(1, cutoff * 2.0 * float(np.median(np.diff(log.t))))

    def smooth(values: Array) -> Array:
        values[:, list(joints)] = lfilter(*weights, values[:, list(joints)], axis=0)
        return values

    return _changed(log, (channel,), smooth)


def clipped(log: Log, channel: str, joint: int, part: float) -> Log:
    """Return the log with a channel of one joint cut off at a part of its largest magnitude."""

    def cut(values: Array) -> Array:
        limit = part * float(np.abs(values[:, joint]).max())
        values[:, joint] = values[:, joint].clip(-limit, limit)
        return values

    return _changed(log, (channel,), cut)


def dropped(log: Log, channel: str, share: float, seed: int) -> Log:
    """Return the log with zeros at a share of the samples of a channel."""
    lost = np.random.default_rng(seed).random(log.samples) < share
    return _changed(log, (channel,), lambda values: np.where(lost[:, None], 0.0, values))


def beginning(log: Log, seconds: float) -> Log:
    """Return the first seconds of the motion."""
    moving = np.flatnonzero(np.abs(np.diff(log.q, axis=0)).max(axis=1) > 1e-4)
    start = int(moving[0]) if len(moving) else 0
    return log.slice(start, int(np.searchsorted(log.t, log.t[start] + seconds)))


def _changed(log: Log, channels: Sequence[str], change: Callable[[Array], Array]) -> Log:
    present = [name for name in channels if getattr(log, name) is not None]
    changes: dict[str, Any] = {name: change(np.array(getattr(log, name))) for name in present}
    return replace(log, **changes)


def _times(values: Array, joints: Sequence[int], factor: float) -> Array:
    values[:, list(joints)] *= factor
    return values


POSITIONS = ("q", "qd", "theta", "q_des", "qd_des", "qdd_des")
OUTPUTS = ("current", "torque", "current_des", "torque_des")
GAIN = ("gain", "robot", "bodies", "payload")


@dataclass(frozen=True)
class WrongSetups:
    """Makes wrong variants of a right set-up, with joints and sizes drawn from a seed."""

    right: Setup
    seed: int = 0
    rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Start the random numbers."""
        object.__setattr__(self, "rng", np.random.default_rng(self.seed))

    @property
    def joints(self) -> int:
        """Number of joints."""
        return self.right.robot.dof

    def all(self) -> Iterator[Setup]:
        """Yield one or two wrong set-ups of every kind."""
        yield from self.signs_and_orders()
        yield from self.zeros_and_mounting()
        yield from self.robots()
        yield from self.channels()
        yield from self.short()

    def signs_and_orders(self) -> Iterator[Setup]:
        """Yield wrong signs and exchanged joints."""
        right, out = self.right, self.right.output
        every, sign, order = range(self.joints), ("output sign", "position sign"), ("output order", "position order")
        for j in self._draw(2):
            flip = partial(scaled, channels=(out,), joints=(j,), factor=-1.0)
            yield right.with_logs(f"sign of output {j + 1}", sign, flip)
        yield right.with_logs("all signs", sign, lambda log: scaled(log, (out,), every, -1.0))
        (j,) = self._draw(1, first=1)
        yield right.with_logs(f"sign of position {j + 1}", sign, lambda log: scaled(log, POSITIONS, (j,), -1.0))
        a, b = self._draw(2)
        yield right.with_logs(f"outputs {a + 1} and {b + 1}", order, lambda log: swapped(log, (out,), a, b))
        c, d = self._draw(2)
        yield right.with_logs(f"positions {c + 1} and {d + 1}", order, lambda log: swapped(log, POSITIONS, c, d))

    def zeros_and_mounting(self) -> Iterator[Setup]:
        """Yield wrong zeros and mountings."""
        right = self.right
        for j, degrees in zip(
            self._draw(2, first=1), (float(self.rng.choice([90.0, -90.0, 180.0])), 25.0), strict=True
        ):
            shift = partial(shifted, channel="q", joint=j, value=math.radians(degrees))
            yield right.with_logs(f"zero of joint {j + 1} {degrees:g} degrees", ("zero offset",), shift)
        true = gravity_vector(right.mounting)
        turn = math.radians(float(self.rng.uniform(8.0, 25.0)))
        tilted = math.cos(turn) * true + 9.81 * math.sin(turn) * np.roll(true / 9.81, int(self.rng.integers(1, 3)))
        tilted *= 9.81 / np.linalg.norm(tilted)
        others = {"upside down": -true, "on its side": np.roll(true, 1), f"{math.degrees(turn):.0f} degrees": tilted}
        for name, gravity in others.items():
            yield right.altered(f"mounting {name}", ("mounting",), mounting=tuple(float(g) for g in gravity))

    def robots(self) -> Iterator[Setup]:
        """Yield other robots of the catalogue."""
        right = self.right
        others = [robot for name in list_robots() if (robot := load_robot(name)).dof == self.joints]
        others = [robot for robot in others if robot.name not in (right.robot.name, "puma560")]
        for robot in others[:3]:
            yield right.altered(f"robot {robot.name}", ("robot", "bodies"), robot=robot)

    def channels(self) -> Iterator[Setup]:
        """Yield channels that are scaled, shifted, late, smoothed or interrupted."""
        right, out = self.right, self.right.output
        every = range(self.joints)
        spread = np.asarray(getattr(right.logs[0], out)).std(axis=0)
        a, b = self._draw(2, first=1)
        yield right.with_logs(f"output {a + 1} times 1.5", GAIN, lambda log: scaled(log, (out,), (a,), 1.5))
        yield right.with_logs(f"output {b + 1} times 0.5", GAIN, lambda log: scaled(log, (out,), (b,), 0.5))
        (c,) = self._draw(1)
        size = float(0.7 * spread[c])
        yield right.with_logs(f"output {c + 1} offset {size:.2g}", ("offset",), lambda log: shifted(log, out, c, size))
        (d,) = self._draw(1)
        time = ("time shift", "low-pass")
        yield right.with_logs(f"output {d + 1} through 2 Hz", time, lambda log: smoothed(log, out, (d,), 2.0))
        yield right.with_logs("all outputs 20 ms late", time, lambda log: delayed(log, out, every, 0.02))
        yield right.with_logs("all outputs 100 ms late", time, lambda log: delayed(log, out, every, 0.1))
        yield right.with_logs(f"output {d + 1} 100 ms late", time, lambda log: delayed(log, out, (d,), 0.1))
        yield right.with_logs("5 % zeros", ("dropped samples",), lambda log: dropped(log, out, 0.05, self.seed))

    def short(self) -> Iterator[Setup]:
        """Yield logs that are too short."""
        for seconds in (1.0, 3.0):
            cut = tuple(beginning(log, seconds) for log in self.right.logs[:1])
            yield self.right.altered(f"{seconds:g} s only", ("excitation",), logs=cut)

    def _draw(self, count: int, first: int = 0) -> list[int]:
        """Return different joints, from `first` on."""
        return [int(j) for j in first + self.rng.permutation(self.joints - first)[:count]]


FACTORS = (1.2, 2.0)
"""Range of the factors of gains and lengths that are drawn; half of them are inverted."""


@dataclass(frozen=True)
class RandomSetups:
    """Draws wrong variants of right set-ups from a seed: one error each, every fourth with a second one.

    Unlike `WrongSetups`, joints, sizes and directions are continuous or free, so no list of the program contains them.
    """

    seed: int = 0
    rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Start the random numbers."""
        object.__setattr__(self, "rng", np.random.default_rng(self.seed))

    def draw(self, right: Setup, count: int) -> Iterator[Setup]:
        """Yield wrong variants; kinds repeat only after all of them were drawn."""
        kinds = [
            self.output_sign, self.position_sign, self.both_signs, self.output_order, self.position_order,
            self.both_orders, self.small_zero, self.large_zero, self.tilt, self.mounting, self.robot, self.payload,
            self.gain, self.all_gains, self.late_output, self.late_outputs, self.late_position, self.low_pass,
            self.length, self.output_offset, self.clipped, self.exchanged_gains, self.speed, self.degrees,
            self.repeated, self.short,
        ]  # fmt: skip
        order = [k for _ in range(-(-count // len(kinds))) for k in self.rng.permutation(len(kinds))][:count]
        for number, k in enumerate(order):
            made = kinds[k](right)
            if number % 4 == 3:
                second = kinds[(k + 1 + int(self.rng.integers(len(kinds) - 1))) % len(kinds)](made)
                made = replace(second, causes=(*made.causes, *second.causes), wrong=f"{made.wrong}; {second.wrong}")
            yield made

    def output_sign(self, right: Setup) -> Setup:
        """Return the sign of one output changed."""
        (j,) = self._joints(right, 1)
        causes = ("output sign", "position sign")
        return right.with_logs(f"sign of output {j + 1}", causes, lambda log: scaled(log, (right.output,), (j,), -1.0))

    def position_sign(self, right: Setup) -> Setup:
        """Return the sign of one position changed."""
        (j,) = self._joints(right, 1)
        causes = ("position sign", "output sign", "zero offset")
        return right.with_logs(f"sign of position {j + 1}", causes, lambda log: scaled(log, POSITIONS, (j,), -1.0))

    def both_signs(self, right: Setup) -> Setup:
        """Return position and output of one joint with the opposite sign."""
        (j,) = self._joints(right, 1)
        causes = ("joint sign", "position sign", "output sign")
        channels = (*POSITIONS, *OUTPUTS)
        return right.with_logs(f"both signs of joint {j + 1}", causes, lambda log: scaled(log, channels, (j,), -1.0))

    def output_order(self, right: Setup) -> Setup:
        """Return two outputs exchanged."""
        a, b = self._joints(right, 2)
        causes = ("output order", "position order")
        name = f"outputs {a + 1} and {b + 1} exchanged"
        return right.with_logs(name, causes, lambda log: swapped(log, (right.output,), a, b))

    def position_order(self, right: Setup) -> Setup:
        """Return two positions exchanged."""
        a, b = self._joints(right, 2)
        causes = ("output order", "position order")
        name = f"positions {a + 1} and {b + 1} exchanged"
        return right.with_logs(name, causes, lambda log: swapped(log, POSITIONS, a, b))

    def both_orders(self, right: Setup) -> Setup:
        """Return all columns of two joints exchanged."""
        a, b = self._joints(right, 2)
        causes = ("joint order", "output order", "position order")
        name = f"all columns of joints {a + 1} and {b + 1} exchanged"
        return right.with_logs(name, causes, lambda log: swapped(log, (*POSITIONS, *OUTPUTS), a, b))

    def small_zero(self, right: Setup) -> Setup:
        """Return a zero that is 10 to 30 degrees off."""
        return self._zero(right, float(self.rng.uniform(10.0, 30.0)))

    def large_zero(self, right: Setup) -> Setup:
        """Return a zero that is 30 to 180 degrees off."""
        return self._zero(right, float(self.rng.uniform(30.0, 180.0)))

    def _zero(self, right: Setup, degrees: float) -> Setup:
        (j,) = self._joints(right, 1, first=1)
        degrees *= float(self.rng.choice([-1.0, 1.0]))
        name = f"zero of joint {j + 1} {degrees:.0f} degrees"
        shift = partial(shifted, channel="q", joint=j, value=math.radians(degrees))
        return right.with_logs(name, ("zero offset", "position sign"), shift)

    def tilt(self, right: Setup) -> Setup:
        """Return a base that is tilted by 5 to 30 degrees in any direction."""
        degrees = float(self.rng.uniform(5.0, 30.0))
        true = gravity_vector(right.mounting)
        side = np.cross(true, self.rng.normal(size=3))
        side *= np.linalg.norm(true) / np.linalg.norm(side)
        gravity = math.cos(math.radians(degrees)) * true + math.sin(math.radians(degrees)) * side
        name = f"mounting tilted by {degrees:.0f} degrees"
        return right.altered(name, ("mounting",), mounting=tuple(float(g) for g in gravity))

    def mounting(self, right: Setup) -> Setup:
        """Return a base with any other orientation."""
        true = gravity_vector(right.mounting)
        while (gravity := self.rng.normal(size=3)) @ true > 0.8 * np.linalg.norm(gravity) * np.linalg.norm(true):
            pass
        gravity *= 9.81 / np.linalg.norm(gravity)
        name = f"gravity {gravity.round(1).tolist()}"
        return right.altered(name, ("mounting",), mounting=tuple(float(g) for g in gravity))

    def robot(self, right: Setup) -> Setup:
        """Return another robot of the catalogue."""
        others = [robot for name in list_robots() if (robot := load_robot(name)).dof == right.robot.dof]
        others = [robot for robot in others if robot.name != right.robot.name]
        robot = others[int(self.rng.integers(len(others)))]
        return right.altered(f"robot {robot.name}", ("robot", "bodies", "gain", "payload"), robot=robot)

    def payload(self, right: Setup) -> Setup:
        """Return a payload of 0.5 to 5 kg that is declared though absent, or of a wrong mass and centre."""
        carried = 0.0 if right.payload is None else right.payload.mass
        mass = carried + float(self.rng.uniform(0.5, 5.0))
        center = tuple(float(x) for x in self.rng.uniform(-0.1, 0.15, 3))
        name = f"payload of {mass:.1f} kg instead of {carried:.1f} kg"
        return right.altered(name, ("payload", "bodies"), payload=Payload(mass, center))

    def gain(self, right: Setup) -> Setup:
        """Return one output with a wrong gain."""
        (j,) = self._joints(right, 1)
        factor = self._factor()
        name = f"output {j + 1} times {factor:.2f}"
        return right.with_logs(name, GAIN, lambda log: scaled(log, (right.output,), (j,), factor))

    def all_gains(self, right: Setup) -> Setup:
        """Return all outputs with the same wrong gain; one of them where gains are not declared, but estimated."""
        if right.output == "current" and any(joint.motor.joint_gain is None for joint in right.robot.joints):
            return self.gain(right)
        factor = self._factor()
        every = range(right.robot.dof)
        name = f"all outputs times {factor:.2f}"
        return right.with_logs(name, GAIN, lambda log: scaled(log, (right.output,), every, factor))

    def late_output(self, right: Setup) -> Setup:
        """Return one output 20 to 100 ms late."""
        (j,) = self._joints(right, 1)
        late = float(self.rng.uniform(0.02, 0.1))
        name = f"output {j + 1} {1e3 * late:.0f} ms late"
        return right.with_logs(name, ("time shift",), lambda log: delayed(log, right.output, (j,), late))

    def late_outputs(self, right: Setup) -> Setup:
        """Return all outputs 20 to 100 ms late."""
        late, every = float(self.rng.uniform(0.02, 0.1)), range(right.robot.dof)
        name = f"all outputs {1e3 * late:.0f} ms late"
        return right.with_logs(name, ("time shift",), lambda log: delayed(log, right.output, every, late))

    def late_position(self, right: Setup) -> Setup:
        """Return position and speed of one joint 20 to 100 ms late."""
        (j,) = self._joints(right, 1)
        late = float(self.rng.uniform(0.02, 0.1))

        def change(log: Log) -> Log:
            return delayed(delayed(log, "q", (j,), late), "qd", (j,), late)

        return right.with_logs(f"position {j + 1} {1e3 * late:.0f} ms late", ("time shift",), change)

    def low_pass(self, right: Setup) -> Setup:
        """Return one output through a low-pass of 1 to 3 Hz."""
        (j,) = self._joints(right, 1)
        cutoff = float(self.rng.uniform(1.0, 3.0))
        name = f"output {j + 1} through {cutoff:.1f} Hz"
        return right.with_logs(
            name, ("low-pass", "time shift", "gain"), lambda log: smoothed(log, right.output, (j,), cutoff)
        )

    def length(self, right: Setup) -> Setup:
        """Return a robot one of whose lengths is wrong."""
        sizes = np.linalg.norm(right.robot.translations[1:], axis=1)
        k = 1 + int(self.rng.choice(np.flatnonzero(sizes > 0.2)))
        factor = self._factor()
        joints = list(right.robot.joints)
        joints[k] = replace(joints[k], translation=factor * joints[k].translation)
        robot = replace(right.robot, name=f"{right.robot.name}-altered", joints=tuple(joints))
        return right.altered(f"length of link {k} times {factor:.2f}", ("robot", "bodies", "zero offset"), robot=robot)

    def output_offset(self, right: Setup) -> Setup:
        """Return one output with a constant added, 0.3 to 1 times its standard deviation."""
        (j,) = self._joints(right, 1)
        size = float(self.rng.uniform(0.3, 1.0) * np.asarray(getattr(right.logs[0], right.output))[:, j].std())
        name = f"output {j + 1} offset {size:.2g}"
        return right.with_logs(name, ("offset",), lambda log: shifted(log, right.output, j, size))

    def clipped(self, right: Setup) -> Setup:
        """Return one output that ends at 40 to 80 % of its largest value."""
        (j,) = self._joints(right, 1)
        part = float(self.rng.uniform(0.4, 0.8))
        name = f"output {j + 1} clipped at {100.0 * part:.0f} %"
        causes = ("saturation", "gain", "offset")
        return right.with_logs(name, causes, lambda log: clipped(log, right.output, j, part))

    def exchanged_gains(self, right: Setup) -> Setup:
        """Return two outputs, one times a factor and the other divided by it."""
        a, b = self._joints(right, 2)
        factor = self._factor()

        def change(log: Log) -> Log:
            return scaled(scaled(log, (right.output,), (a,), factor), (right.output,), (b,), 1.0 / factor)

        return right.with_logs(f"outputs {a + 1} and {b + 1} times and over {factor:.2f}", GAIN, change)

    def speed(self, right: Setup) -> Setup:
        """Return the speed of one joint times a factor."""
        (j,) = self._joints(right, 1)
        factor = self._factor()
        name = f"speed {j + 1} times {factor:.2f}"
        return right.with_logs(name, ("speed", "time shift"), lambda log: scaled(log, ("qd",), (j,), factor))

    def degrees(self, right: Setup) -> Setup:
        """Return position and speed of one joint in degrees."""
        (j,) = self._joints(right, 1)
        factor = math.degrees(1.0)
        name = f"degrees of joint {j + 1}"
        return right.with_logs(name, ("position",), lambda log: scaled(log, POSITIONS, (j,), factor))

    def repeated(self, right: Setup) -> Setup:
        """Return the log together with a copy of itself."""
        return right.altered("the log twice", ("logs",), logs=(*right.logs, *right.logs))

    def short(self, right: Setup) -> Setup:
        """Return the first 1 to 5 seconds of the motion."""
        seconds = float(self.rng.uniform(1.0, 5.0))
        logs = tuple(beginning(log, seconds) for log in right.logs[:1])
        return right.altered(f"{seconds:.1f} s only", ("excitation",), logs=logs)

    def _factor(self) -> float:
        factor = float(self.rng.uniform(*FACTORS))
        return factor if self.rng.random() < 0.5 else 1.0 / factor

    def _joints(self, right: Setup, count: int, first: int = 0) -> list[int]:
        """Return different joints from `first` on, those that move before the others."""
        joints = self.rng.permutation(np.arange(first, right.robot.dof))
        moves = np.asarray(right.logs[0].q).std(axis=0)[joints] > 0.05
        return [int(j) for j in (*joints[moves], *joints[~moves])][:count]
