"""Options of a calibration: what a user fixes instead of leaving it to the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jointwise.arguments import checked, checked_fields
from jointwise.call_settings import Fit
from jointwise.data.log import Log
from jointwise.description.files import as_robot
from jointwise.description.robot import Robot
from jointwise.errors import DataError, JointwiseError, ModelError
from jointwise.estimation.structure import JointTerms, Structure
from jointwise.model.terms import Hysteresis
from jointwise.settings import check

if TYPE_CHECKING:
    from jointwise.joint.model import JointModel

AUTOMATIC = ("ripple", "direction", "powers", "stribeck", "load")
"""Fields of the structure that are selected by default."""
SCALE = 5e-3
"""rad; largest slip limit from which the choice of scales starts."""
MOST_ELEMENTS = 30
"""Slip elements of one joint; the data of a log determine fewer than ten."""
RELAXATION = 3.0
"""s; default relaxation time of hysteresis, typical of strain-wave gears."""


@checked_fields
@dataclass(frozen=True)
class Options(Fit):
    """Options of a calibration; None selects a value from the data.

    Attributes:
        output: Signal to predict, `current` or `torque`.
        structure: Joint model. The fields named in `free` are selected by cross-validation, the others are fixed.
        free: Names of the fields of `structure` to select; empty to fix all of them.
        position_cutoff: Cut-off frequency of the low-pass filter of the positions, Hz.
        lag: The output at time t belongs to the motion at t + lag, s.
        parallel_cutoff: Cut-off frequency of a filter of regressor and output, Hz; None for no filter.
        decimation: Use every n-th sample.
        rate: Sampling rate of the conditioned signals, Hz.
        gains: Drive gains, Nm per unit of the output, one per joint.
        gain_source: Origin of the gains, as text.
        rotors: Whether reflected rotor inertias are estimated.
        method: `wls` (weighted), `ols` (ordinary), `huber` (robust) least squares, or `iv` (instrumental variables).
        load_basis: Load torque of friction terms: `model`, or `row_sum` as in AURT.
        scaled: Select the scale of the slip limits for each joint.
        joints: Terms of single joints (0-based) from experiments on these joints. They replace those of `structure` if
            they predict held-out data at least as well or are held fixed.
        body_prior: Divergence of physically consistent bodies from the described ones, `entropic` or `euclidean`.
        essential: Tolerance of the held-out error (0.005 is 0.5 %) within which base parameters that are not essential
            are set to zero; None to keep all of them.

    """

    output: Literal["current", "torque"] | None = None
    structure: Structure = field(default_factory=Structure)
    free: tuple[str, ...] = AUTOMATIC
    rate: float | None = None
    gain_source: str = "given"
    rotors: bool = True
    load_basis: str = "model"
    scaled: bool = False
    joints: Mapping[int, JointTerms] = field(default_factory=dict)
    essential: float | None = None

    def __post_init__(self) -> None:
        """Reject values out of range."""
        check(self)

    def with_joints(
        self,
        models: Sequence[JointModel],
        robot: Robot,
        *,
        rotor: bool,
        known: bool,
        accept_implausible: bool = False,
    ) -> Options:
        """Return the options with the friction and the drive gains from experiments on single joints.

        `rotor`: the logs have rotor positions; `known`: the values of the friction are held, else estimated again;
        `accept_implausible`: use drive gains that contradict the description.
        """
        if not models:
            return self
        from jointwise.joint.calibration_terms import USED, joint_terms

        used = [model for model in models if any(name in model.parts for name in USED)]
        joints = {model.joint: joint_terms(model, known, rotor) for model in used}
        gains = None if self.gains is not None else _identified_gains(models, robot, accept_implausible)
        if gains is None:
            return replace(self, joints=joints)
        described = gains == [joint.motor.joint_gain for joint in robot.joints]  # none of the files was used
        source = f"description of {robot.name}" if described else "joint files, else the description"
        return replace(self, joints=joints, gains=tuple(gains), gain_source=source)


def _identified_gains(models: Sequence[JointModel], robot: Robot, accept_implausible: bool) -> list[float] | None:
    """Return the drive gains of joints whose motor was identified, those of the description for the others."""
    from jointwise.joint.calibration_terms import drive_gain

    identified = {model.joint: model for model in models if "motor" in model.parts}
    if not identified:
        return None
    described = [joint.motor.joint_gain for joint in robot.joints]
    gains = [
        drive_gain(identified[j], gain, accept_implausible=accept_implausible) if j in identified else gain
        for j, gain in enumerate(described)
    ]
    complete = [gain for gain in gains if gain is not None]
    if len(complete) < robot.dof:
        raise ModelError("only some drive gains are known: pass all of them with --gains.")
    return complete


@checked
def read_joints(paths: Sequence[str | Path], robot: Robot | str | Path) -> list[JointModel]:
    """Return the joints of some joint files for a calibration of `robot`.

    Args:
        paths: Files that `jointwise joint` wrote.
        robot: The robot, or its name, of which every joint may appear once.

    Returns:
        The joint models, for `Options.with_joints`.

    Raises:
        ModelError: A file is damaged, or a joint belongs to another robot or appears twice.

    """
    robot = as_robot(robot)
    models = [model for path in paths for model in _usable_joints(path)]
    numbers = [model.joint for model in models]
    for model in models:
        if model.robot != robot.name or not 0 <= model.joint < robot.dof:
            raise ModelError(f"joint {model.joint + 1} of {model.robot} is not a joint of {robot.name}.")
        if numbers.count(model.joint) > 1:
            raise ModelError(f"joint {model.joint + 1} must be in one joint file. Got several.")
    return models


def _usable_joints(path: str | Path) -> list[JointModel]:
    """Return the joints of a file, after a check that their friction can become terms."""
    from jointwise.joint.calibration_terms import USED, joint_terms
    from jointwise.joint.model import load_joints

    models = load_joints(path)
    try:
        for model in models:
            if any(name in model.parts for name in USED):
                joint_terms(model)
    except (JointwiseError, ValueError) as problem:
        raise ModelError(f"{path}: {problem}") from None
    return models


@checked
def with_friction(
    options: Options,
    logs: Sequence[Log],
    *,
    direction: Literal["sign", "tanh", "hysteresis"] | None = None,
    load: Literal["none", "square", "absolute"] | None = None,
    viscous_powers: Sequence[float] | None = None,
    stribeck: float | None = None,
    power_flow: bool = False,
    ripple: bool | None = None,
    elements: int | None = None,
    relaxation: float | None = None,
    terms: Sequence[str] = (),
    two_encoders: bool = False,
    rotor_inertias: Sequence[float] | None = None,
) -> Options:
    """Return options with parts of the friction model fixed; None leaves a part to the automatic choice.

    Args:
        options: Options to start from.
        logs: The training logs: their channels decide what hysteresis and ripple depend on.
        direction: How dry friction changes with the direction of motion.
        load: Dependence of dry friction on the load torque.
        viscous_powers: Powers of the speed.
        stribeck: Stribeck velocity in rad/s, 0 for none.
        power_flow: Dry friction by direction of power instead of Coulomb friction.
        ripple: Whether the response of the drive to speed ripple is modelled; needs measured speeds.
        elements: Number of slip elements of hysteresis, with limits by a power law up to a scale per joint.
        relaxation: Relaxation time of hysteresis in s, 0 for none.
        terms: Kinds of further terms of every joint, such as "spring" (a counterbalance) or a registered term.
        two_encoders: Friction and rotor inertia on the measured motion of the rotors (`theta`), bodies on that of the
            links.
        rotor_inertias: Known rotor inertias reflected to the joints, kg m², with two encoders; None to estimate them.

    Raises:
        ModelError: A value is out of range.
        DataError: A log has no measured speed, which `ripple` needs.

    """
    choices = {
        "load": None if power_flow else load,
        "powers": None if viscous_powers is None else tuple(viscous_powers),
        "stribeck": stribeck,
        "ripple": None if ripple is None else _ripple_step(logs, ripple),
    }
    fixed = _direction(direction, power_flow, elements, relaxation)
    fixed |= {name: value for name, value in choices.items() if value is not None}
    fixed |= _rotor_side(logs, two_encoders, rotor_inertias)
    if fixed.get("direction") == "hysteresis":
        fixed["drivers"] = _drivers(logs)
    free = tuple(name for name in options.free if name not in fixed)
    structure = replace(options.structure, **fixed, extra=(*options.structure.extra, *terms))
    structure.extra_terms()  # an unknown kind is rejected here
    return replace(options, structure=structure, free=free, scaled=elements is not None)


def _direction(
    direction: str | None, power_flow: bool, elements: int | None, relaxation: float | None
) -> dict[str, Any]:
    """Return the fields of the structure that describe dry friction."""
    slips = elements is not None or relaxation is not None
    chosen = direction or ("hysteresis" if slips else "sign" if power_flow else None)
    fixed: dict[str, Any] = {} if chosen is None else {"direction": chosen}
    if power_flow:  # replaces Coulomb friction and its dependence on load
        fixed |= {"power_flow": True, "load": "none"}
    if chosen == "hysteresis":
        fixed["relaxation"] = RELAXATION if relaxation is None else relaxation
        fixed |= {} if elements is None else {"limits": _limits(elements)}
    return fixed


def _drivers(logs: Sequence[Log]) -> tuple[str, ...]:
    """Return the signals that drive hysteresis: positions, and the integrated speed where every log has it."""
    return ("q", "track") if all(log.qd is not None for log in logs) else ("q",)


def _rotor_side(logs: Sequence[Log], two_encoders: bool, rotor_inertias: Sequence[float] | None) -> dict[str, Any]:
    """Return the fields of the structure for two encoders."""
    if not two_encoders:
        if rotor_inertias is not None:
            raise ModelError("known rotor inertias are used with two encoders only: add --two-encoders.")
        return {}
    for log in logs:
        if log.theta is None:
            raise DataError(f"{log.origin.path}: no rotor positions (theta1..), which two encoders need.")
        if rotor_inertias is not None and len(rotor_inertias) != log.joints:
            raise ModelError(f"rotor inertias must be {log.joints} numbers. Got {len(rotor_inertias)} instead.")
    return {"rotor_side": True, "rotor_inertias": tuple(rotor_inertias or ())}


def _limits(elements: int) -> tuple[float, ...]:
    if not 1 <= elements <= MOST_ELEMENTS:
        raise ModelError(f"elements must be from 1 to {MOST_ELEMENTS}. Got {elements} instead.")
    return Hysteresis.polynomial_limits(elements, SCALE)


def _ripple_step(logs: Sequence[Log], modelled: bool) -> float:
    """Return the time step (s) of the response to speed ripple: the period of the logs; 0 if it is not modelled."""
    if not modelled:
        return 0.0
    for log in logs:
        if log.qd is None:
            raise DataError(f"{log.origin.path}: no measured speed (qd1..), which ripple needs.")
    return float(np.median([log.clock.median_step for log in logs]))
