"""Checks of the numbers of a log: wrong units, signs and sides of the gear, jumps, limits, saturated currents."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from jointwise.data.log import Log
from jointwise.data.measures import Measures
from jointwise.description.robot import Robot
from jointwise.finding import Finding, Severity
from jointwise.spatial import Array

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
        yield from _jumps(log, numbers)
        yield from _limits(log, numbers, robot)
    yield from _drives(log, numbers, robot)
    yield from _speeds(log, numbers, degrees=any(finding.code == "degrees" for finding in angles))
    yield from _rotor(log, numbers, robot)
    yield from _commanded(log, numbers)
    yield from _limited(log, numbers)


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


def _jumps(log: Log, numbers: Measures) -> Iterator[Finding]:
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


def _speeds(log: Log, numbers: Measures, degrees: bool) -> Iterator[Finding]:
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


def _commanded(log: Log, numbers: Measures) -> Iterator[Finding]:
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


def _limited(log: Log, numbers: Measures) -> Iterator[Finding]:
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
