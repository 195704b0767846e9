"""The quality of a log: its clock, channels and motion in numbers, the problems found, and what to do about them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from jointwise.data import statistics
from jointwise.data.channels import CHANNELS, OUTPUTS
from jointwise.data.clock import Clock
from jointwise.data.log import Log
from jointwise.data.statistics import Flags
from jointwise.description.robot import Robot
from jointwise.finding import Finding, Severity, most_severe_first, worst
from jointwise.spatial import Array

JUMP_SPEED = 50.0
"""rad/s between neighbouring samples that no joint reaches."""

JUMP_SIZE = 0.3
"""rad below which a step is noise, not a jump."""

_CHUNK = 32768

COUPLING_RANGE = 0.1
"""Travel (rad) above which a joint shows whether a motor turns with it: gears deflect by some mrad."""


@dataclass(frozen=True)
class ChannelNumbers:
    """Numbers of a channel per joint, each (joints,), in the unit of the channel.

    Attributes:
        low: Least value.
        high: Greatest value.
        noise: Noise, rms.
        quantum: Quantisation step; 0 where none is seen.
        frozen: Longest run of samples that repeat a value while the joint moves.
        saturated: Share of samples that pile up at the extreme values.
    """

    low: Array
    high: Array
    noise: Array
    quantum: Array
    frozen: Array
    saturated: Array

    def to_dict(self) -> dict[str, list[float | None]]:
        """Return the numbers for JSON; null for a joint without values."""
        columns = {name: getattr(self, name).tolist() for name in self.__dataclass_fields__}
        return {name: [None if math.isnan(x) else x for x in column] for name, column in columns.items()}


@dataclass(frozen=True)
class Jump:
    """A step of a position that no joint makes.

    Attributes:
        sample: Sample after the step, 0-based.
        joint: Joint, 0-based.
        size: Size of the step, rad.
    """

    sample: int
    joint: int
    size: float


@dataclass(frozen=True)
class Measures:
    """What was measured on a log; arrays are (joints,), None where a channel is absent.

    Attributes:
        clock: How the stamps run.
        channels: Numbers of every channel.
        speed_95: 95 % quantile of the speed, rad/s.
        speed_max: Greatest speed, rad/s.
        acceleration_95: 95 % quantile of the acceleration, rad/s².
        acceleration_max: Greatest acceleration, rad/s².
        moving: Share of samples in which the joint moves.
        standstill: Share of samples in which no joint moves.
        stale: Share of samples that repeat the whole one before.
        jumps: Jumps of positions.
        speed_ratio: Slope of measured over differentiated speed.
        speed_match: Their correlation.
        theta_ratio: Slope of theta over q.
        theta_matrix: Slopes of theta over all q, (joints, joints).
        command_match: Correlation of q with q_des.
        command_offset: Their median distance, rad.
        limited: Share of samples in which a limit holds a current clearly below its target.
    """

    clock: Clock
    channels: Mapping[str, ChannelNumbers]
    speed_95: Array
    speed_max: Array
    acceleration_95: Array
    acceleration_max: Array
    moving: Array
    standstill: float
    stale: float
    jumps: tuple[Jump, ...]
    speed_ratio: Array | None
    speed_match: Array | None
    theta_ratio: Array | None
    theta_matrix: Array | None
    command_match: Array | None
    command_offset: Array | None
    limited: Array | None

    @property
    def travel(self) -> Array:
        """Range of each position, rad, (joints,)."""
        return self.channels["q"].high - self.channels["q"].low

    @property
    def moved(self) -> Flags:
        """True for joints that moved at all, (joints,)."""
        return self.travel > statistics.STILL_RANGE


def measure(log: Log) -> Measures:
    """Return the numbers of a log."""
    clock = log.clock
    parts = [statistics.motion(part, clock.period) for part in statistics.windows(log)]
    speed = np.abs(np.concatenate([part.speed for part in parts]))
    acceleration = np.abs(np.concatenate([part.acceleration for part in parts]))
    moving = speed > statistics.MOVING_SPEED
    speed_ratio, speed_match = _speeds(parts)
    command_match, command_offset = _commanded(parts)
    measures = Measures(
        clock=clock,
        channels={name: _channel(log, name, parts) for name in log.available[1:]},
        speed_95=np.quantile(speed, 0.95, axis=0),
        speed_max=speed.max(axis=0),
        acceleration_95=np.quantile(acceleration, 0.95, axis=0),
        acceleration_max=acceleration.max(axis=0),
        moving=moving.mean(axis=0),
        standstill=float((~moving.any(axis=1)).mean()),
        stale=_stale(parts),
        jumps=tuple(_jumps(log, clock.period)),
        speed_ratio=speed_ratio,
        speed_match=speed_match,
        theta_ratio=_theta(parts),
        theta_matrix=_theta_matrix(parts),
        command_match=command_match,
        command_offset=command_offset,
        limited=_limited(parts),
    )
    log.release()
    return measures


def _channel(log: Log, name: str, parts: list[statistics.Window]) -> ChannelNumbers:
    """Return the numbers of one channel."""
    low, high = statistics.ranges(log, name)
    values = [part.log.channel(name) for part in parts]
    moving = [np.abs(part.speed) > statistics.MOVING_SPEED for part in parts]
    return ChannelNumbers(
        low,
        high,
        noise=np.median([statistics.noise(part) for part in values], axis=0),
        quantum=statistics.quantum(np.concatenate([part[: 20000 // len(parts)] for part in values])),
        frozen=np.max([statistics.longest_frozen(v, m) for v, m in zip(values, moving, strict=True)], axis=0),
        saturated=np.mean([statistics.saturated(part, low, high) for part in values], axis=0),
    )


def _speeds(parts: list[statistics.Window]) -> tuple[Array | None, Array | None]:
    """Return slope and correlation of the measured over the differentiated speed."""
    measured = [part.log.qd for part in parts if part.log.qd is not None]
    if not measured:
        return None, None
    return statistics.relation(np.concatenate([part.speed for part in parts]), np.concatenate(measured))


def _theta(parts: list[statistics.Window]) -> Array | None:
    """Return the slope of theta over q about their means."""
    theta = [part.log.theta for part in parts if part.log.theta is not None]
    if not theta:
        return None
    return statistics.relation(_centred([part.log.q for part in parts]), _centred(theta))[0]


def _theta_matrix(parts: list[statistics.Window]) -> Array | None:
    """Return A of the least-squares fit ``theta = A q`` about their means, (joints, joints); 0 for joints near rest."""
    theta = [part.log.theta for part in parts if part.log.theta is not None]
    if not theta:
        return None
    q = _centred([part.log.q for part in parts])
    q = np.where(np.ptp(q, axis=0) > COUPLING_RANGE, q, 0.0)
    return np.asarray(np.linalg.lstsq(q, _centred(theta), rcond=None)[0].T, dtype=np.float64)


def _commanded(parts: list[statistics.Window]) -> tuple[Array | None, Array | None]:
    """Return the correlation of q with q_des and the median of their distance."""
    commanded = [part.log.q_des for part in parts if part.log.q_des is not None]
    if not commanded:
        return None, None
    q = [part.log.q for part in parts]
    offset: Array = np.median(np.abs(np.concatenate(q) - np.concatenate(commanded)), axis=0)
    return statistics.relation(_centred(q), _centred(commanded))[1], offset


def _limited(parts: list[statistics.Window]) -> Array | None:
    """Return the share of samples whose current a limit holds below its target."""
    currents = [part.log.current for part in parts if part.log.current is not None]
    targets = [part.log.current_des for part in parts if part.log.current_des is not None]
    if not currents or not targets:
        return None
    share: Array = statistics.limited(np.concatenate(currents), np.concatenate(targets)).mean(axis=0)
    return share


def _centred(parts: list[Array]) -> Array:
    """Return values (samples, joints) about their mean."""
    values = np.concatenate(parts)
    result: Array = values - values.mean(axis=0)
    return result


def _stale(parts: list[statistics.Window]) -> float:
    """Return the share of samples that repeat every value of the one before, while something moves."""
    repeats = samples = 0
    for part in parts:
        moving = (np.abs(part.speed[1:]) > statistics.MOVING_SPEED).any(axis=1)
        same = moving.copy()
        for name in part.log.available[1:]:
            same &= (np.nan_to_num(np.diff(getattr(part.log, name), axis=0)) == 0.0).all(axis=1)
        repeats, samples = repeats + int(same.sum()), samples + int(moving.sum())
    return repeats / samples if samples else 0.0


def _jumps(log: Log, period: float) -> list[Jump]:
    """Return the first jumps of the positions, over all samples."""
    found: list[Jump] = []
    for start in range(0, log.samples - 1, _CHUNK):
        part = log.slice(start, start + _CHUNK + 1)
        steps = np.diff(part.q, axis=0)
        fast = np.abs(steps) > JUMP_SPEED * np.maximum(np.diff(part.t), period)[:, None]
        for sample, joint in np.argwhere(fast & (np.abs(steps) > JUMP_SIZE)):
            found.append(Jump(start + int(sample) + 1, int(joint), float(steps[sample, joint])))
        log.release()
        if len(found) > 1000:
            break
    return found


DEGREE = math.pi / 180.0
MOST_ANGLE = 4.0 * math.pi
"""Joint position (rad) that few joints reach: two turns."""
MOST_TURNS = 20.0 * math.pi
"""Position (rad) that a wrist reaches which turns and turns, as a screwdriver: ten turns."""
USUAL_SPEED = math.pi
"""Speed (rad/s) of a joint without a described limit; positions in degrees change faster."""
MOST_CURRENT = 200.0
"""Motor current (A) that no robot arm reaches."""
MOST_TORQUE = 5000.0
"""Joint torque (Nm) that no robot arm reaches."""
MOST_TEMPERATURE = 200.0
"""Temperature (degC) that no joint survives; 20 degC in kelvin is above it."""
SLOWEST_STEP = 0.5
"""Time between samples (s) above which the stamps are probably in milliseconds."""
FASTEST_STEP = 2e-5
"""Time between samples (s) below which the stamps are probably not in seconds."""
MOST_LIMITED = 0.003
"""Share of samples at a current limit above which a warning is due."""


def suspicions(log: Log, numbers: Measures, robot: Robot | None) -> Iterator[Finding]:
    """Yield findings about units, signs and sides of the gear; a robot adds checks against its limits."""
    yield from _stamps(numbers)
    angles = list(_angles(log, numbers, robot))
    yield from angles
    if not angles:
        yield from _jump_findings(log, numbers)
        yield from _limits(log, numbers, robot)
    yield from _drives(log, numbers, robot)
    yield from _speed_findings(log, numbers, degrees=any(finding.code == "degrees" for finding in angles))
    yield from _rotor(log, numbers, robot)
    yield from _commanded_findings(log, numbers)
    yield from _limited_findings(log, numbers)


def _stamps(numbers: Measures) -> Iterator[Finding]:
    """Yield a finding about stamps that are not in seconds."""
    step = numbers.clock.median_step
    if step > SLOWEST_STEP:
        yield Finding(
            "error",
            "stamps",
            f"stamps are {step:.4g} s apart: milliseconds?",
            "If so, say t=@ms in columns.",
            code="time-unit",
            channel="t",
        )
    elif 0.0 < step < FASTEST_STEP:
        yield Finding(
            "error",
            "stamps",
            f"stamps are {step:.3g} s apart: another unit than s?",
            "State it.",
            code="time-unit",
            channel="t",
        )


def _angles(log: Log, numbers: Measures, robot: Robot | None) -> Iterator[Finding]:
    """Yield a finding about positions in degrees or on the motor's side of the gear."""
    largest = np.maximum(np.abs(numbers.channels["q"].low), np.abs(numbers.channels["q"].high))
    large = np.flatnonzero(largest > MOST_ANGLE)
    ratio = _speed_ratio(numbers)
    if ratio is not None and abs(ratio / DEGREE - 1.0) < 0.15:
        yield _degrees(f"qd is {ratio:.4f} times the speed of q: q is in degrees.")
    elif len(large) and _on_motor_side(largest, ratio, robot):
        yield Finding(
            "error",
            "q",
            f"positions reach {largest.max():.4g} rad, the robot's gear ratio times its range: q is the motor's angle.",
            "Divide q by the gear ratio.",
            code="motor-side",
            channel="q",
        )
    elif _turns(largest, numbers, robot):
        return
    elif len(large) >= max(1, log.joints / 3) or (len(large) and _beyond(largest, robot)):
        names = ", ".join(log.names["q"][j] for j in large)
        yield _degrees(f"{names} reach {largest.max():.4g} rad: degrees, or the motor's side of the gear?")


def _turns(largest: Array, numbers: Measures, robot: Robot | None) -> bool:
    """Return whether large positions are some turns of a single joint: no joint is faster than joints are in rad/s."""
    limits = [joint.limits.velocity or USUAL_SPEED for joint in robot.joints] if robot is not None else []
    fastest = np.array(limits) if len(limits) == len(largest) else np.full(len(largest), USUAL_SPEED)
    few = np.count_nonzero(largest > MOST_ANGLE) == 1 and largest.max() < MOST_TURNS
    return bool(few and (numbers.speed_95 < fastest).all())


def _degrees(message: str) -> Finding:
    """Return the finding of positions in degrees."""
    return Finding("error", "q", message, "If degrees, say q=@deg in columns.", code="degrees", channel="q")


def _speed_ratio(numbers: Measures) -> float | None:
    """Return the median slope of measured over differentiated speed of the joints where both agree in shape."""
    if numbers.speed_ratio is None or numbers.speed_match is None:
        return None
    sure = numbers.moved & (numbers.speed_match > 0.9)
    return float(np.median(numbers.speed_ratio[sure])) if sure.any() else None


def _on_motor_side(largest: Array, ratio: float | None, robot: Robot | None) -> bool:
    """Return whether gear ratios, where known, explain large positions."""
    if robot is None or robot.dof != len(largest):
        return False
    gears = np.array([abs(joint.motor.gear_ratio or 0.0) for joint in robot.joints])
    if not (gears > 1.0).all():
        return False
    if ratio is not None:
        return bool(abs(ratio * np.median(gears) - 1.0) < 0.15)
    return bool((largest / gears < math.pi).all() and (largest > 400.0).any())


def _beyond(largest: Array, robot: Robot | None) -> bool:
    """Return whether positions are far beyond the robot's limits."""
    if robot is None or robot.dof != len(largest):
        return False
    uppers = np.array([_reach(joint.limits.lower, joint.limits.upper) for joint in robot.joints])
    return bool((largest > 1.5 * uppers).any())


def _reach(lower: float | None, upper: float | None) -> float:
    """Return the largest magnitude within limits, inf where unknown."""
    return math.inf if lower is None or upper is None else max(abs(lower), abs(upper))


def _jump_findings(log: Log, numbers: Measures) -> Iterator[Finding]:
    """Yield positions that jump, or wrap at a full turn."""
    if not numbers.jumps:
        return
    first, count = numbers.jumps[0], len(numbers.jumps)
    where = f"{log.origin.where(first.sample)}, column '{log.names['q'][first.joint]}'"
    more = f" (and {count - 1} more)" if count > 1 else ""
    wraps = all(abs(abs(jump.size) - 2.0 * math.pi) < 0.2 for jump in numbers.jumps)
    if wraps:
        yield Finding(
            "error",
            log.names["q"][first.joint],
            f"{where}: position wraps by a full turn{more}.",
            "Unwrap it.",
            code="wrapped",
            joint=first.joint,
            channel="q",
        )
        return
    yield Finding(
        "error",
        log.names["q"][first.joint],
        f"{where}: position jumps by {first.size:.3g} rad in one sample{more}.",
        "Cut those rows out: the recording is damaged there.",
        code="jump",
        joint=first.joint,
        channel="q",
    )


def _limits(log: Log, numbers: Measures, robot: Robot | None) -> Iterator[Finding]:
    """Yield positions and speeds beyond the robot's limits."""
    if robot is None or robot.dof != log.joints:
        return
    for j, joint in enumerate(robot.joints):
        low, high = numbers.channels["q"].low[j], numbers.channels["q"].high[j]
        lower, upper, velocity = joint.limits.lower, joint.limits.upper, joint.limits.velocity
        name = log.names["q"][j]
        if (lower is not None and low < lower - 0.05) or (upper is not None and high > upper + 0.05):
            message = f"{name} goes from {low:.3g} to {high:.3g} rad, outside the robot's limits."
            yield Finding(
                "warning",
                name,
                message,
                "Is it the right robot, unit and zero?",
                code="outside-limits",
                joint=j,
                channel="q",
            )
        if velocity is not None and numbers.speed_95[j] > 1.5 * velocity:
            message = f"{name} moves at {numbers.speed_95[j]:.3g} rad/s, the robot at most {velocity:.3g}."
            yield Finding("error", name, message, "Check the units of q and t.", code="too-fast", joint=j, channel="q")


def _drives(log: Log, numbers: Measures, robot: Robot | None) -> Iterator[Finding]:
    """Yield currents, torques and temperatures too large for their units."""
    efforts = [joint.limits.effort for joint in robot.joints] if robot is not None else []
    strongest = 20.0 * max((effort for effort in efforts if effort is not None), default=MOST_TORQUE / 20.0)
    limits = {
        "current": (MOST_CURRENT, "A: mA?", "If so, say i=@mA in columns."),
        "torque": (strongest, "Nm: mNm?", "If so, say tau=@mNm in columns."),
        "temperature": (MOST_TEMPERATURE, "degC: kelvin?", "If so, say temp=@K in columns."),
    }
    for channel, (limit, question, advice) in limits.items():
        if channel in numbers.channels:
            reach = float(np.max(np.abs([numbers.channels[channel].low, numbers.channels[channel].high])))
            if reach > limit:
                severity: Severity = "warning" if channel == "temperature" else "error"
                message = f"{log.names[channel][0]}.. reach {reach:.4g} {question}"
                yield Finding(severity, channel, message, advice, code=f"{channel}-unit", channel=channel)


def _speed_findings(log: Log, numbers: Measures, degrees: bool) -> Iterator[Finding]:
    """Yield measured speeds that contradict the positions in sign, size or shape."""
    if numbers.speed_ratio is None or numbers.speed_match is None:
        return
    for j in np.flatnonzero(numbers.moved & (numbers.speed_95 > 0.05)):
        name, match, ratio = log.names["qd"][j], numbers.speed_match[j], numbers.speed_ratio[j]
        if match < -0.5:
            yield Finding(
                "error",
                name,
                f"{name} has the opposite sign of the motion of q.",
                "Turn it.",
                code="speed-sign",
                joint=int(j),
                channel="qd",
            )
        elif match < 0.5:
            yield Finding(
                "warning",
                name,
                f"{name} does not follow q.",
                "It is of no use here.",
                code="speed-shape",
                joint=int(j),
                channel="qd",
            )
        elif abs(ratio * DEGREE - 1.0) < 0.15:
            yield Finding(
                "error",
                name,
                f"{name} is in deg/s.",
                "Say qd=@deg/s in columns.",
                code="speed-unit",
                joint=int(j),
                channel="qd",
            )
        elif not degrees and match > 0.9 and abs(ratio - 1.0) > 0.15:
            message = f"{name} is {ratio:.3g} times the motion of q."
            yield Finding(
                "warning",
                name,
                message,
                "Check its unit and side of the gear.",
                code="speed-unit",
                joint=int(j),
                channel="qd",
            )


def _rotor(log: Log, numbers: Measures, robot: Robot | None) -> Iterator[Finding]:
    """Yield motor positions that are not at the joint side of the gear, or turn with other joints than declared."""
    if numbers.theta_ratio is None or numbers.theta_matrix is None:
        return
    transmission = None if robot is None else robot.transmission
    C = np.eye(log.joints) if transmission is None else transmission.matrix
    for j in np.flatnonzero(numbers.moved):
        ratio, name, row = float(numbers.theta_ratio[j]), log.names["theta"][j], numbers.theta_matrix[j]
        apart = float(np.abs(row - C[j]).max())
        if (abs(ratio - 1.0) if transmission is None else apart) < 0.1:
            continue
        if apart > 0.1 > abs(row[j] - 1.0):
            yield _coupling(name, int(j), row, robot)
        else:
            yield _gear_side(name, int(j), ratio, robot)


def _gear_side(name: str, j: int, ratio: float, robot: Robot | None) -> Finding:
    """Return the finding of a motor position that is `ratio` times that of the joint."""
    gear = robot.joints[j].motor.gear_ratio if robot is not None and j < robot.dof else None
    known = gear is not None and abs(abs(ratio) / abs(gear) - 1.0) < 0.1
    why = f"the gear ratio ({gear:g})" if known else "not 1"
    message = f"{name} moves {ratio:.4g} times q, {why}: theta must be the motor's angle after the gear."
    return Finding("error", name, message, f"Divide it by {ratio:.4g}.", code="theta-side", joint=j, channel="theta")


def _coupling(name: str, j: int, row: Array, robot: Robot | None) -> Finding:
    """Return the finding of a motor that turns with other joints: `row` (joints,) of ``theta = A q``."""
    others = [k for k in np.flatnonzero(np.abs(row) > 0.05) if k != j]
    turns = "".join(f" {row[k]:+.2g} q{k + 1}" for k in others)
    declared = ",".join(f"{j + 1}:{k + 1}:{row[k]:.2g}" for k in others) or "of this motor"
    advice = f"If the transmission is coupled, declare it: --coupling {declared}."
    if robot is not None and robot.transmission is not None:
        advice = "Check the coupling of the robot, and the coordinates of the log (--log-coordinates joint or motor)."
    return Finding(
        "error", name, f"{name} turns by q{j + 1}{turns}.", advice, code="theta-coupling", joint=j, channel="theta"
    )


def _commanded_findings(log: Log, numbers: Measures) -> Iterator[Finding]:
    """Yield desired positions that contradict the measured ones."""
    if numbers.command_match is None or numbers.command_offset is None:
        return
    for j in np.flatnonzero(numbers.moved):
        name = log.names["q_des"][j]
        if numbers.command_match[j] < -0.5:
            yield Finding(
                "warning",
                name,
                f"{name} has the opposite sign of q.",
                code="desired-sign",
                joint=int(j),
                channel="q_des",
            )
        elif numbers.command_offset[j] > 0.5:
            offset = f"{numbers.command_offset[j]:.3g} rad"
            yield Finding(
                "warning",
                name,
                f"{name} is {offset} away from q.",
                code="desired-offset",
                joint=int(j),
                channel="q_des",
            )


def _limited_findings(log: Log, numbers: Measures) -> Iterator[Finding]:
    """Yield currents that a limit holds below their targets."""
    if numbers.limited is None:
        return
    command = numbers.channels["current_des"]
    for j in np.flatnonzero(numbers.limited > MOST_LIMITED):
        most = max(abs(command.low[j]), abs(command.high[j]))
        share = f"{100.0 * numbers.limited[j]:.2g} % of the samples"
        name = log.names["current"][j]
        message = f"{name} is at its limit in {share}, with targets of up to {most:.3g} A."
        yield Finding(
            "warning", name, message, "Move less violently.", code="current-limit", joint=int(j), channel="current"
        )


VERDICTS: dict[Severity, str] = {"ok": "good", "info": "good", "warning": "usable", "error": "refused"}
"""Verdict on a log by its most severe finding."""

SHORTEST = 2.0
"""Duration (s) below which a log hardly excites anything."""
SLOWEST_RATE = 20.0
"""Sampling rate (Hz) below which accelerations cannot be estimated."""
MOST_SATURATED = 0.005
"""Share of samples at the extreme of an output above which it counts as saturated."""
MOST_STALE = 0.05
"""Share of repeated samples that is usual where two clocks meet."""
COARSEST = 2e-3
"""Quantisation step (rad) of positions above which speeds are noisy: about 12 bits per turn."""
FEWEST_LEVELS = 12
"""Steps over the range of an output below which its quantisation hides friction and dynamics."""
LONGEST_FROZEN = 0.5
"""Time (s) for which a channel of a moving joint may repeat one value."""


@dataclass(frozen=True)
class DataQuality:
    """The quality of one log.

    Attributes:
        log: The log.
        numbers: Its measures.
        findings: What was found, most severe first.
    """

    log: Log
    numbers: Measures
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """The verdict: "refused" if an error was found, "usable" with a warning, else "good"."""
        return VERDICTS[worst(self.findings)]

    @property
    def advice(self) -> str:
        """What to do: the advice of the most severe finding."""
        if self.verdict == "good":
            return "Ready to calibrate."
        return next((f.advice for f in self.findings if f.severity != "info" and f.advice), "See the findings.")

    def to_dict(self) -> dict[str, object]:
        """Return the result for JSON; units are in `units`, joints count from 1."""
        log, numbers = self.log, self.numbers
        return {
            "file": log.origin.path,
            "sha256": log.origin.sha256,
            "samples": log.samples,
            "joints": log.joints,
            "duration": log.duration,
            "notes": list(log.origin.notes),
            "units": {name: CHANNELS[name].unit for name in log.available},
            "names": {name: list(names) for name, names in log.names.items()},
            "clock": numbers.clock.to_dict(),
            "channels": {name: values.to_dict() for name, values in numbers.channels.items()},
            "motion": self._motion(),
            "findings": [finding.to_dict(message="evidence") for finding in self.findings],
            "verdict": self.verdict,
            "advice": self.advice,
        }

    def _motion(self) -> dict[str, object]:
        """Return the numbers of the motion for JSON."""
        names = ("travel", "speed_95", "speed_max", "acceleration_95", "acceleration_max", "moving")
        values: dict[str, object] = {name: getattr(self.numbers, name).tolist() for name in names}
        return {**values, "standstill": self.numbers.standstill, "stale": self.numbers.stale}

    def lines(self) -> list[str]:
        """Return the result as lines of text."""
        return [*self._head(), *self._table(), *(f"  {f.line()}" for f in self.findings), self._last()]

    def _head(self) -> list[str]:
        """Return the lines about the file and its clock."""
        log, clock = self.log, self.numbers.clock
        channels = ", ".join(f"{name} [{CHANNELS[name].unit}]" for name in log.available)
        return [
            f"{log.origin.path}: {log.samples} samples, {log.joints} joints, {log.duration:.2f} s",
            f"  channels: {channels}",
            *(f"  reading: {note}" for note in log.origin.notes),
            f"  clock: {clock.rate:.2f} Hz, jitter {1e3 * clock.jitter_rms:.3f} ms rms, "
            f"steps {_milliseconds(clock.quantiles)} ms, segments: {len(clock.segments)}",
            f"  standstill: {100 * self.numbers.standstill:.0f} % of the samples",
        ]

    def _table(self) -> list[str]:
        """Return one line a joint."""
        numbers, q = self.numbers, self.numbers.channels["q"]
        output = next((name for name in OUTPUTS if name in numbers.channels), None)
        columns = {
            "from [rad]": q.low,
            "to [rad]": q.high,
            "speed 95 %": numbers.speed_95,
            "speed max": numbers.speed_max,
            "accel. 95 %": numbers.acceleration_95,
            "accel. max": numbers.acceleration_max,
            "q step mrad": 1e3 * q.quantum,
        }
        if output is not None:
            columns["noise " + CHANNELS[output].unit] = numbers.channels[output].noise
        titles = "  joint" + "".join(f"  {title:>11}" for title in columns)
        rows = ["".join(f"  {column[j]:>11.4f}" for column in columns.values()) for j in range(self.log.joints)]
        return [titles, *(f"  {j + 1:>5}{row}" for j, row in enumerate(rows))]

    def _last(self) -> str:
        """Return the verdict as a line."""
        return f"verdict: {self.verdict}. {self.advice}"


def check_quality(log: Log, robot: Robot | None = None) -> DataQuality:
    """Return the quality of a log: clock, channels, motion, suspicious units and signs.

    Args:
        log: The log.
        robot: The robot of the log; adds checks against its joint count, limits and gear ratios.

    Returns:
        The numbers of the log, the findings (the most severe first) and a verdict.
    """
    numbers = _measures(log)
    findings = [*numbers.clock.findings]
    if robot is not None and robot.dof != log.joints:
        message = f"the log has {log.joints} joints, {robot.name} has {robot.dof}."
        findings.append(Finding("error", "joints", message, "Give the robot of this log.", code="joint-count"))
    if numbers.clock.median_step > 0.0:
        findings += [*suspicions(log, numbers, robot), *_extent(log, numbers), *_channels(log, numbers)]
    findings += _motion(log, numbers)
    return DataQuality(log, numbers, tuple(_without_consequences(most_severe_first(findings))))


def _without_consequences(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings without limits of an output that has a few levels only: the least and the largest are two."""
    coarse = {(finding.channel, finding.joint) for finding in findings if finding.code == "coarse-output"}
    consequences = ("saturated", "current-limit")
    return [f for f in findings if f.code not in consequences or (f.channel, f.joint) not in coarse]


_CACHE: WeakKeyDictionary[Log, Measures] = WeakKeyDictionary()


def _measures(log: Log) -> Measures:
    """Return the measures of a log, computed once for it."""
    if log not in _CACHE:
        _CACHE[log] = measure(log)
    return _CACHE[log]


def _milliseconds(quantiles: tuple[float, ...]) -> str:
    """Return least, median and largest step in ms."""
    return " / ".join(f"{1e3 * quantiles[k]:.3g}" for k in (0, 2, 4)) if quantiles else "-"


def _extent(log: Log, numbers: Measures) -> Iterator[Finding]:
    """Yield the limits that length, sampling rate and missing channels set."""
    if not any(name in log.available for name in OUTPUTS):
        advice = "It can only be predicted, not calibrated or validated."
        yield Finding("warning", "output", "neither current nor torque was measured.", advice, code="no-output")
    if log.duration < SHORTEST:
        yield Finding(
            "warning", "duration", f"only {log.duration:.2f} s long.", "Record some ten seconds or more.", code="short"
        )
    if numbers.clock.rate < SLOWEST_RATE:
        yield Finding(
            "warning",
            "sampling rate",
            f"only {numbers.clock.rate:.3g} Hz.",
            "Record at 100 Hz or more.",
            code="slow-rate",
            channel="t",
        )
    if numbers.stale > MOST_STALE:
        message = f"{100 * numbers.stale:.0f} % of the samples repeat the one before while the robot moves."
        yield Finding("warning", "samples", message, "Record at the robot's own rate.", code="stale")


def _motion(log: Log, numbers: Measures) -> Iterator[Finding]:
    """Yield what does not move."""
    if not numbers.moved.any():
        yield Finding(
            "error",
            "motion",
            "nothing moves.",
            "Record a motion of every joint; standstill only serves validation.",
            code="no-motion",
            channel="q",
        )
        return
    for j in np.flatnonzero(~numbers.moved):
        message = f"{log.names['q'][j]} never moves (range {numbers.travel[j]:.2g} rad)."
        advice = f"Friction and inertia of joint {j + 1} stay unknown."
        yield Finding("warning", log.names["q"][j], message, advice, code="still-joint", joint=int(j), channel="q")


def _channels(log: Log, numbers: Measures) -> Iterator[Finding]:
    """Yield frozen, saturated and coarse channels."""
    for name in ("q", "qd", "theta", *OUTPUTS):
        if name in numbers.channels:
            for j in range(log.joints):
                yield from _joint(log, numbers, name, j)


def _joint(log: Log, numbers: Measures, name: str, j: int) -> Iterator[Finding]:
    """Yield what is wrong with one channel of one joint."""
    values, label = numbers.channels[name], log.names[name][j]
    longest = max(20.0, LONGEST_FROZEN * numbers.clock.rate)
    if values.high[j] == values.low[j] and _should_move(numbers, name, j):
        severity: Severity = "warning" if name in ("qd", "theta") else "error"
        message = f"{label} is constant ({values.low[j]:.4g}) while the joint moves."
        yield Finding(
            severity,
            label,
            message,
            f"Record it again, or leave it out{_option(name, j)}.",
            code="frozen",
            joint=j,
            channel=name,
        )
    elif values.frozen[j] > longest and values.saturated[j] == 0.0 and name not in ("q", "theta"):
        message = f"{label} repeats one value for {int(values.frozen[j])} samples while the joint moves."
        yield Finding("warning", label, message, "Cut that part out.", code="frozen", joint=j, channel=name)
    yield from _saturated_or_coarse(log, numbers, name, j)


def _option(name: str, j: int) -> str:
    """Return the option that leaves an output out."""
    return f" (--ignore-output {j + 1})" if name in OUTPUTS else ""


def useless_outputs(log: Log) -> tuple[int, ...]:
    """Return the joints (0-based) whose output is constant while they move, or comes in few steps."""
    found = check_quality(log).findings
    useless = [f for f in found if f.code == "coarse-output" or (f.code == "frozen" and f.severity == "error")]
    return tuple(sorted({f.joint for f in useless if f.channel in OUTPUTS and f.joint is not None}))


def coarse_outputs(log: Log, output: str) -> list[int]:
    """Return the joints (0-based) that move and whose output (current or torque) has a few levels only."""
    found = (f.joint for f in check_quality(log).findings if f.code == "coarse-output" and f.channel == output)
    return [joint for joint in found if joint is not None]


def _saturated_or_coarse(log: Log, numbers: Measures, name: str, j: int) -> Iterator[Finding]:
    """Yield an output that stays at its extreme, and outputs and positions in coarse steps."""
    values, label = numbers.channels[name], log.names[name][j]
    levels = (values.high[j] - values.low[j]) / values.quantum[j] if values.quantum[j] > 0.0 else np.inf
    moved = bool(numbers.moved[j])
    if name == "q" and values.quantum[j] > COARSEST and moved:
        message = f"{label} comes in steps of {values.quantum[j]:.2g} rad."
        yield Finding("warning", label, message, "Speeds will be noisy.", code="coarse", joint=j, channel=name)
    if name not in OUTPUTS:
        return
    if levels < FEWEST_LEVELS and moved:
        message = f"{label} has only {levels + 1:.0f} levels, {values.quantum[j]:.2g} {CHANNELS[name].unit} apart."
        yield Finding(
            "warning", label, message, f"Leave it out{_option(name, j)}.", code="coarse-output", joint=j, channel=name
        )
    if values.saturated[j] > MOST_SATURATED and values.high[j] > values.low[j]:
        message = f"{label} sits at its extreme in {100 * values.saturated[j]:.1f} % of the samples."
        yield Finding("warning", label, message, "Move less violently.", code="saturated", joint=j, channel=name)


def _should_move(numbers: Measures, name: str, j: int) -> bool:
    """Return whether other channels say that the joint moved."""
    if name != "q":
        return bool(numbers.moved[j])
    speed, command = numbers.channels.get("qd"), numbers.channels.get("q_des")
    by_speed = speed is not None and max(abs(speed.low[j]), abs(speed.high[j])) > 0.1
    return bool(by_speed or (command is not None and command.high[j] - command.low[j] > 0.05))
