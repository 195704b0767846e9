"""The results of a joint in words: a sentence per phenomenon, and the meaning of every parameter."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from jointwise.formatting import MISSING, number
from jointwise.joint.part import Part, Value
from jointwise.model.periodic_table import TURN

CURVE_END = 0.05
"""Share of a curve at either end that is ignored because few samples support it."""
FULL_TURN = 0.97
"""Share of a turn from which the data count as covering the whole turn."""

MEANINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "stiffness": (
        ("a_1", "stiffness of the gear at zero load: torque per torsion angle"),
        (r"a_(\d)", "nonlinear stiffness: torque per torsion angle to the power of {0}"),
        (r"K(\d)", "stiffness in segment {0} of three, from small to large torques"),
        (r"T(\d)", "torque at the end of segment {0}"),
        ("offset", "torsion angle that the encoders show at zero torque"),
        ("damping", "torque per torsion speed; attenuates vibrations"),
        ("coulomb", "Coulomb friction of the rotor: half the height of the loop"),
    ),
    "friction": (
        ("F_C", "Coulomb friction"),
        ("F_S", "static friction (limit towards zero speed)"),
        ("F_S-F_C", "drop from static to Coulomb friction (Stribeck effect)"),
        ("V_S", "Stribeck velocity: speed over which the friction drops"),
        ("mu", "Stribeck exponent: how sharply the friction drops"),
        ("F_V1", "viscous friction, proportional to speed"),
        ("F_V2", "viscous friction, quadratic in speed (negative: the curve bends down)"),
        ("F_V3", "viscous friction, cubic in speed"),
        ("asymmetry", "relative difference of Coulomb friction in the positive direction from its mean"),
        ("offset", "torque that does not depend on speed, such as a bias of the drive"),
        (r"F_C([+-])", "Coulomb friction in the {0} direction"),
    ),
    "load": (
        ("F_l", "load-dependent friction: per squared load, or per load"),
        (r"F_0( at .*)?", "friction at zero load{0}, minus the known friction over speed if there is one"),
        ("gravity slope", "ratio of measured to modelled load; 1 if links, payload and gain are correct"),
        ("gravity offset", "measured torque at zero modelled load"),
    ),
    "temperature": (
        ("F_T1", "constant such that friction is unchanged at the reference temperature"),
        ("F_T2", "change of friction per degree, times the square root of the speed"),
        ("F_T3", "increase of friction at low temperatures, proportional to the cube of 1/T"),
        ("A_0", "amplitude of the change"),
        ("A_1", "amplitude of the change per degree"),
        ("b_0", "decay rate of the change with speed"),
        ("b_1", "decay rate per degree"),
    ),
    "transmission": (
        ("offset", "mean angle between rotor and output"),
        (r"amplitude_(\d+)", "kinematic error with {0} periods per turn: amplitude"),
        (r"phase_(\d+)", "kinematic error with {0} periods per turn: phase"),
        ("backlash_mean", "half the lost motion at a reversal, mean over the measured angles"),
        (r"backlash_amplitude_(\d+)", "half the lost motion that varies with {0} periods per turn: amplitude"),
        (r"backlash_phase_(\d+)", "lost motion that varies with {0} periods per turn: phase"),
        ("reach", "half the travel after a reversal over which the lost motion builds up"),
        ("compliance", "torsion angle of the gear per torque: inverse of the stiffness"),
    ),
    "hysteresis": (
        ("F_C", "Coulomb friction when all elements slip"),
        ("B", "half the travel after a reversal until all elements slip"),
        (r"W(\d+)", "friction of slip element {0} while it slips"),
        (r"D(\d+)", "deformation at which slip element {0} slips"),
        (r"k(\d+)", "stiffness of slip element {0} before it slips: W{0}/D{0}"),
        ("F_C1", "increase of Coulomb friction with the squared load"),
        ("F_S", "increase of Coulomb friction towards zero speed"),
        ("V_S", "speed over which this increase decays"),
        ("s1_F_C/s0", "damping of the bristles"),
        ("F_V", "viscous friction in addition to the known friction over speed"),
        ("offset", "torque that does not depend on the motion, such as a bias of the drive"),
    ),
    "motor": (
        ("gain", "drive gain: torque at the joint per ampere"),
        ("gain_alone", "drive gain from this joint alone, if several joints share the drive"),
        ("offset", "current at zero torque"),
        ("torque_constant", "torque at the motor per ampere: gain divided by the gear ratio"),
        ("coulomb", "Coulomb friction"),
        ("direct", "Coulomb friction while the motor drives the load"),
        ("reverse", "Coulomb friction while the load drives the motor"),
        ("load", "load-dependent friction, per load"),
        ("viscous", "viscous friction, proportional to speed"),
        ("square", "viscous friction, quadratic in speed"),
        ("inertia", "rotor inertia reflected to the joint"),
        ("lag", "total delay of the current behind its setpoint"),
        ("time_constant", "time constant of the current loop"),
        ("limit", "largest current that the drive supplies"),
    ),
}
"""Meaning of every parameter of a phenomenon, by a pattern of its name; `{0}` is the group of the pattern."""

RANGES = {
    "load": ("load", "Nm"),
    "gauge": ("torque measured at the output", "Nm"),
    "motor": ("motor torque", "Nm"),
    "links": ("link torque", "Nm"),
    "phi": ("torsion angle of the gear", "rad"),
    "theta": ("rotor angle at the output", "rad"),
    "position": ("position", "rad"),
    "limit": ("deformation at which an element slips", "rad"),
    "speed": ("speed", "rad/s"),
    "temperature": ("temperature", "°C"),
}
"""Quantities that limit the validity of a model: name and unit."""

SMALL = 0.02
"""Angles (rad) and times (s) below this are shown in mrad and ms."""
GRADES = ((95.0, "very good"), (80.0, "good"), (50.0, "moderate"))
"""Least fit (NRMSE %) of each grade."""


def meaning(phenomenon: str, name: str) -> str:
    """Return the meaning of a parameter; a dash if it is unknown."""
    for pattern, text in MEANINGS.get(phenomenon, ()):
        match = re.fullmatch(pattern, name) if pattern != name else None
        if pattern == name or match:
            return text.format(*((group or "") for group in match.groups())) if match else text
    return MISSING


def finding(part: Part) -> str:
    """Return the main result in one sentence; empty if the part lacks the parameters for it."""
    try:
        return _FINDINGS[part.phenomenon](part)
    except (KeyError, IndexError):
        return ""


def fit_grade(part: Part) -> str:
    """Return the quality of the fit in one sentence; empty if nothing was fitted."""
    if part.model == "none":
        return ""
    quality = part.fitted if part.held_out is None else part.held_out
    grade = next((grade for least, grade in GRADES if quality >= least), "poor")
    data = "the training data (no data were held out)" if part.held_out is None else "held-out data"
    return f"The fit to {data} is {grade}."


def scaled(value: Value) -> tuple[float, str]:
    """Return the factor and unit in which to show a parameter: small angles in mrad, short times in ms."""
    return _scaled(value.unit, value.value, value.low, value.high)


def covers_turn(part: Part) -> bool:
    """Return whether the data of a part cover a whole turn."""
    low, high = part.ranges.get("theta", (0.0, TURN))
    return high - low > FULL_TURN * TURN


def range_text(name: str, low: float, high: float) -> str:
    """Return a range such as `speed 0.1 to 2 rad/s`."""
    text, plain = RANGES.get(name, (name, ""))
    scale, unit = _scaled(plain, low, high)
    first, last = number(scale * low, 3), number(scale * high, 3)
    return f"{text} {first if first == last else f'{first} to {last}'} {unit}".rstrip()


def _scaled(unit: str, *sizes: float) -> tuple[float, str]:
    return (1e3, f"m{unit}") if unit in ("rad", "s") and max(map(abs, sizes)) < SMALL else (1.0, unit)


def _with_interval(part: Part, name: str) -> str:
    """Return a value with its 95 % confidence interval: `10 Nm [9.8, 10.2]`."""
    value = _value(part, name)
    scale, unit = scaled(value)
    x, low, high = (number(scale * size) for size in (value.value, value.low, value.high))
    return f"{x} {unit} [{low}, {high}]"


def _has(part: Part, name: str) -> bool:
    return any(value.name == name for value in part.values)


def _value(part: Part, name: str) -> Value:
    return {value.name: value for value in part.values}[name]


def _stiffness(part: Part) -> str:
    torsion = 1e3 * 10.0 / _value(part, "a_1").value
    spring = f"The stiffness is {_with_interval(part, 'a_1')}: a torque of 10 Nm twists the gear by"
    return f"{spring} {number(torsion, 3)} mrad.{_damping(part)}"


def _damping(part: Part) -> str:
    """Return a sentence about the damping of a gear, empty if it was not estimated."""
    if not _has(part, "damping"):
        return ""
    value = _value(part, "damping")
    if value.low <= 0.0:
        return f" The damping is not identifiable from these data (at most {number(value.high, 2)} {value.unit})."
    return f" The damping is {_with_interval(part, 'damping')}."


def _friction(part: Part) -> str:
    curve = part.curves[0]
    fastest, torque = curve.line_x[-1], curve.line_y[-1]
    return (
        f"Coulomb friction is {_with_interval(part, 'F_C')}; at {number(fastest, 3)} rad/s the total friction is "
        f"{number(torque, 3)} Nm."
    )


def _load(part: Part) -> str:
    most = max(abs(side) for side in part.ranges["load"])
    absent = f"No load-dependent friction was found up to a load of {number(most, 3)} Nm."
    if part.model == "none":
        return absent
    value, power = _value(part, "F_l"), 2 if part.model == "square" else 1
    if value.low <= 0.0 <= value.high:
        return absent
    added, low, high = (number(x * most**power, 3) for x in (value.value, value.low, value.high))
    return f"A load of {number(most, 3)} Nm adds {added} Nm [{low}, {high}] of friction."


def _temperature(part: Part) -> str:
    curve = part.curves[0]
    change = "decreases" if curve.line_y[-1] < curve.line_y[0] else "increases"
    speed = curve.title.rpartition(" at ")[2]
    return (
        f"From {number(curve.line_x[0], 3)} to {number(curve.line_x[-1], 3)} °C friction at {speed} {change} from "
        f"{number(curve.line_y[0], 3)} to {number(curve.line_y[-1], 3)} Nm."
    )


def _transmission(part: Part) -> str:
    error = max(abs(y) for y in part.curves[0].line_y)
    where = "over a turn" if covers_turn(part) else "over the measured angles"
    value = _value(part, "backlash_mean")
    backlash = f"the lost motion at a reversal is ±{_with_interval(part, 'backlash_mean')}{_variation(part)}"
    if value.low <= 0.0:
        backlash = f"no lost motion was found (at most ±{number(1e3 * value.high, 2)} mrad)"
    return f"The kinematic error is at most {number(1e3 * error, 3)} mrad {where}; {backlash}."


def _variation(part: Part) -> str:
    """Return the range over which lost motion varies with position, or that no variation is significant."""
    curve = part.curves[1]
    band = float(np.max(np.subtract(curve.high, curve.low), initial=0.0))
    edge = round(CURVE_END * len(curve.line_y))
    inner = np.array(curve.line_y[edge : len(curve.line_y) - edge])
    if not (len(inner) and np.ptp(inner) > 2.0 * band):
        return ", without significant variation over position"
    least, most = (number(1e3 * y, 3) for y in (inner.min(), inner.max()))
    return f", varying with position from {least} to {most} mrad"


def _hysteresis(part: Part) -> str:
    if not _has(part, "B"):
        return f"Coulomb friction is {_with_interval(part, 'F_C')} when the gear slips."
    travel = number(2e3 * _value(part, "B").value, 3)
    return f"After a reversal friction builds up over {travel} mrad of travel to {_with_interval(part, 'F_C')}."


def _motor(part: Part) -> str:
    gain = f"The drive gain is {_with_interval(part, 'gain')}."
    lag = f" The current lags its setpoint by {_with_interval(part, 'lag')}." if _has(part, "lag") else ""
    limit = f" The current is limited to {_with_interval(part, 'limit')}." if _has(part, "limit") else ""
    return gain + lag + limit


_FINDINGS: dict[str, Callable[[Part], str]] = {
    "stiffness": _stiffness,
    "friction": _friction,
    "load": _load,
    "temperature": _temperature,
    "transmission": _transmission,
    "hysteresis": _hysteresis,
    "motor": _motor,
}
