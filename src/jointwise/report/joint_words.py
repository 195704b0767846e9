"""What the numbers of a joint mean, in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from jointwise.joint.part import Part, Value
from jointwise.model.periodic_table import TURN
from jointwise.report.numbers import NOTHING, number

EDGE = 0.05
"""Part of a curve at either end that rests on few samples."""

MEANINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "stiffness": (
        ("a_1", "stiffness of the gear at no load: torque per angle of twist"),
        (r"a_(\d)", "how the stiffness changes with the twist: torque per twist to the power of {0}"),
        (r"K(\d)", "stiffness in segment {0} of three, from small torques to large"),
        (r"T(\d)", "torque at which segment {0} ends"),
        ("offset", "twist that the encoders show at no torque"),
        ("damping", "torque per speed of twist: it makes vibrations of the arm fade"),
        ("coulomb", "dry friction of the rotor, seen as the width of the loop"),
    ),
    "friction": (
        ("F_C", "dry (Coulomb) friction: what is left of it when the joint slides"),
        ("F_S", "friction just before the joint slides"),
        ("F_S-F_C", "how much friction drops from start to sliding (Stribeck)"),
        ("V_S", "speed over which friction drops from start to sliding"),
        ("mu", "how sharply friction drops: power in the exponent"),
        ("F_V1", "viscous friction: grows with the speed"),
        ("F_V2", "viscous friction with the square of the speed (below zero: the curve bends down)"),
        ("F_V3", "viscous friction with the third power of the speed"),
        ("asymmetry", "how much larger dry friction is forwards than on average"),
        ("offset", "torque that does not change with the speed, such as a bias of the drive"),
        (r"F_C([+-])", "dry friction in the {0} direction"),
    ),
    "load": (
        ("F_l", "friction that the load adds: per square of the load, or per load"),
        (r"F_0( at .*)?", "friction at no load{0}, less what the friction over speed tells where that is known"),
        ("gravity slope", "measured over modelled load; 1: the bodies, payload and gain are right"),
        ("gravity offset", "measured torque at no modelled load"),
    ),
    "temperature": (
        ("F_T1", "constant: friction does not change at the reference temperature"),
        ("F_T2", "change of friction per degree, times the root of the speed"),
        ("F_T3", "how friction rises towards the cold (with the third power of 1/T)"),
        ("A_0", "size of the change"),
        ("A_1", "size of the change, per degree"),
        ("b_0", "how fast the change fades with the speed"),
        ("b_1", "how fast it fades, per degree"),
    ),
    "transmission": (
        ("offset", "mean angle between rotor and output"),
        (r"amplitude_(\d+)", "kinematic error that repeats {0} times a turn: its size"),
        (r"phase_(\d+)", "kinematic error that repeats {0} times a turn: where it begins"),
        ("backlash_mean", "half the motion lost at a reversal, mean over the angles seen"),
        (r"backlash_amplitude_(\d+)", "half the lost motion that varies {0} times a turn: its size"),
        (r"backlash_phase_(\d+)", "lost motion that varies {0} times a turn: where it begins"),
        ("reach", "half the travel after a reversal until the lost motion is made up"),
        ("compliance", "twist per torque of the gear: one over its stiffness"),
    ),
    "hysteresis": (
        ("F_C", "dry friction once all of the gear slips"),
        ("B", "half the travel after a reversal until all of the gear slips"),
        (r"W(\d+)", "friction that slip element {0} carries once it slips"),
        (r"D(\d+)", "travel from rest until slip element {0} slips"),
        (r"k(\d+)", "stiffness of slip element {0} before it slips: W{0}/D{0}"),
        ("F_C1", "growth of dry friction with the square of the load"),
        ("F_S", "how much dry friction rises towards standstill"),
        ("V_S", "speed over which that rise fades"),
        ("s1_F_C/s0", "damping of the bristles"),
        ("F_V", "viscous friction, what the friction over speed does not know"),
        ("offset", "torque that does not change with the motion, such as a bias of the drive"),
    ),
    "motor": (
        ("gain", "torque at the joint per ampere"),
        ("gain_alone", "the same from this joint alone, where several joints with this drive were asked"),
        ("offset", "current at no torque"),
        ("torque_constant", "torque at the motor per ampere: the gain over the gear ratio"),
        ("coulomb", "dry friction"),
        ("direct", "dry friction while the motor drives the load"),
        ("reverse", "dry friction while the load drives the motor"),
        ("load", "friction that the load adds, per load"),
        ("viscous", "viscous friction: grows with the speed"),
        ("square", "viscous friction with the square of the speed"),
        ("inertia", "of the rotor, at the joint"),
        ("lag", "time by which the current follows what the controller asks for, all counted"),
        ("time_constant", "time in which the drive makes up two thirds of a change of current"),
        ("limit", "largest current that the drive gives, whatever is asked for"),
    ),
}
"""What each number of a phenomenon means, by a pattern of its name; `{0}` is what the pattern found."""

RANGES = {
    "load": ("load", "Nm"),
    "gauge": ("torque measured at the output", "Nm"),
    "motor": ("torque of the motor", "Nm"),
    "links": ("torque of the links", "Nm"),
    "phi": ("twist of the gear", "rad"),
    "theta": ("rotor angle at the output", "rad"),
    "position": ("position", "rad"),
    "limit": ("travel until an element slips", "rad"),
    "speed": ("speed", "rad/s"),
    "temperature": ("temperature", "°C"),
}
"""Quantities over which a model was identified: in words, and their units."""

SMALL = 0.02
"""Angles (rad) and times (s) below this are told in mrad and ms."""
GRADES = ((95.0, "very good"), (80.0, "good"), (50.0, "rough"))
"""Least fit (%) on data held out of each word."""


def meaning(phenomenon: str, name: str) -> str:
    """Return what a number means; a dash where nothing is known of it."""
    for pattern, words in MEANINGS.get(phenomenon, ()):
        plain = re.fullmatch(pattern, name) if pattern != name else None
        if pattern == name or plain:
            return words.format(*((group or "") for group in plain.groups())) if plain else words
    return NOTHING


def told(part: Part) -> str:
    """Return what was found, in one sentence; nothing where the part lacks the numbers for it."""
    try:
        return _FOUND[part.phenomenon](part)
    except (KeyError, IndexError):
        return ""


def graded(part: Part) -> str:
    """Return how good it is, in one sentence; nothing where there is nothing to fit."""
    if part.model == "none":
        return ""
    quality = part.fitted if part.held_out is None else part.held_out
    word = next((word for least, word in GRADES if quality >= least), "poor")
    data = "its data, none were held out," if part.held_out is None else "data held out"
    return f"The fit to {data} is {word}."


def scaled(value: Value) -> tuple[float, str]:
    """Return the factor and the unit in which a number is best read: small angles in mrad, short times in ms."""
    return _scaled(value.unit, value.value, value.low, value.high)


def _scaled(unit: str, *sizes: float) -> tuple[float, str]:
    return (1e3, f"m{unit}") if unit in ("rad", "s") and max(map(abs, sizes)) < SMALL else (1.0, unit)


def whole_turn(part: Part) -> bool:
    """Tell whether a part knows all angles of a turn."""
    low, high = part.ranges.get("theta", (0.0, TURN))
    return high - low > 0.97 * TURN


def range_text(name: str, low: float, high: float) -> str:
    """Return `speed 0.1 to 2 rad/s`."""
    words, plain = RANGES.get(name, (name, ""))
    scale, unit = _scaled(plain, low, high)
    first, last = number(scale * low, 3), number(scale * high, 3)
    return f"{words} {first if first == last else f'{first} to {last}'} {unit}".rstrip()


def _with_interval(part: Part, name: str) -> str:
    """Return `10 Nm (9.8 to 10.2)`."""
    own = _value(part, name)
    scale, unit = scaled(own)
    x, low, high = (number(scale * size) for size in (own.value, own.low, own.high))
    return f"{x} {unit} ({low} to {high})"


def _has(part: Part, name: str) -> bool:
    return any(value.name == name for value in part.values)


def _value(part: Part, name: str) -> Value:
    return {value.name: value for value in part.values}[name]


def _stiffness(part: Part) -> str:
    twist = 1e3 * 10.0 / _value(part, "a_1").value
    spring = f"The gear twists by {number(twist, 3)} mrad under 10 Nm: its stiffness is {_with_interval(part, 'a_1')}."
    return spring + _damping(part)


def _damping(part: Part) -> str:
    """Return a sentence about the damping of a gear, nothing where it was not determined."""
    if not _has(part, "damping"):
        return ""
    own = _value(part, "damping")
    if own.low <= 0.0:
        return f" Its damping is too small to be seen, below {number(own.high, 2)} {own.unit}."
    return f" Its damping, which makes vibrations fade, is {_with_interval(part, 'damping')}."


def _friction(part: Part) -> str:
    curve = part.curves[0]
    fastest, torque = curve.line_x[-1], curve.line_y[-1]
    return (
        f"Dry friction is {_with_interval(part, 'F_C')}; at {number(fastest, 3)} rad/s friction is "
        f"{number(torque, 3)} Nm in all."
    )


def _load(part: Part) -> str:
    most = max(abs(side) for side in part.ranges["load"])
    unseen = f"No friction that grows with the load is seen, up to a load of {number(most, 3)} Nm."
    if part.model == "none":
        return unseen
    own, power = _value(part, "F_l"), 2 if part.model == "square" else 1
    if own.low <= 0.0 <= own.high:
        return unseen
    return (
        f"A load of {number(most, 3)} Nm adds {number(own.value * most**power, 3)} Nm of friction "
        f"({number(own.low * most**power, 3)} to {number(own.high * most**power, 3)})."
    )


def _temperature(part: Part) -> str:
    curve = part.curves[0]
    change = curve.line_y[-1] - curve.line_y[0]
    way = "falls" if change < 0.0 else "rises"
    speed = curve.title.rpartition(" at ")[2]
    return (
        f"From {number(curve.line_x[0], 3)} to {number(curve.line_x[-1], 3)} °C friction at {speed} {way} from "
        f"{number(curve.line_y[0], 3)} to {number(curve.line_y[-1], 3)} Nm."
    )


def _transmission(part: Part) -> str:
    error = max(abs(y) for y in part.curves[0].line_y)
    where = "a turn" if whole_turn(part) else "the angles seen"
    own = _value(part, "backlash_mean")
    lost = f"{_with_interval(part, 'backlash_mean')} are lost to either side{_varying(part)}"
    if own.low <= 0.0:
        lost = f"nothing is seen to be lost (below {number(1e3 * own.high, 2)} mrad)"
    return f"Over {where} the output is off by up to {number(1e3 * error, 3)} mrad, and at a reversal {lost}."


def _varying(part: Part) -> str:
    """Return between which sizes lost motion varies with the position; nothing where it does not stand out."""
    curve = part.curves[1]
    band = float(np.max(np.subtract(curve.high, curve.low), initial=0.0))
    edge = round(EDGE * len(curve.line_y))
    inner = np.array(curve.line_y[edge : len(curve.line_y) - edge])
    if not (len(inner) and np.ptp(inner) > 2.0 * band):
        return ", alike at every position as far as seen"
    least, most = (number(1e3 * own, 3) for own in (inner.min(), inner.max()))
    return f": from {least} to {most} mrad, by the position"


def _hysteresis(part: Part) -> str:
    if not _has(part, "B"):
        return f"Dry friction is {_with_interval(part, 'F_C')} once the gear slips."
    travel = 2e3 * _value(part, "B").value
    return (
        f"After a reversal friction builds up over {number(travel, 3)} mrad of travel to {_with_interval(part, 'F_C')}."
    )


def _motor(part: Part) -> str:
    gain = (
        f"One ampere gives {number(_value(part, 'gain').value)} Nm at the joint: gain {_with_interval(part, 'gain')}."
    )
    lag = f" The current comes {_with_interval(part, 'lag')} after it is asked for." if _has(part, "lag") else ""
    limit = f" More than {_with_interval(part, 'limit')} it never is." if _has(part, "limit") else ""
    return gain + lag + limit


_FOUND: dict[str, Callable[[Part], str]] = {
    "stiffness": _stiffness,
    "friction": _friction,
    "load": _load,
    "temperature": _temperature,
    "transmission": _transmission,
    "hysteresis": _hysteresis,
    "motor": _motor,
}
