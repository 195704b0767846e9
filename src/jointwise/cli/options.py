"""From the flags of `calibrate` to its `Options`: a flag fixes its choice, the rest stays automatic."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise.calibrate import Options
from jointwise.cli.aurt import RobotModel
from jointwise.cli.usage import UsageError
from jointwise.data import Log, examine_clock
from jointwise.errors import DataError, JointwiseError, ModelError
from jointwise.model.terms import Hysteresis

if TYPE_CHECKING:
    from jointwise.description import Robot
    from jointwise.joint import JointModel

SCALE = 5e-3
"""Largest slip limit (rad) that the choice of scales starts from."""
MOST_ELEMENTS = 30
RELAXATION = 3.0
"""Time (s) in which hysteresis relaxes where it is asked for and nothing else is said."""


def make_options(args: argparse.Namespace, logs: list[Log], given: RobotModel | None) -> Options:
    """Return the options of a command line; `given` is a model of AURT's workflow, whose choices are made."""
    start = Options() if given is None else given.options(logs)
    chosen = {**_dry_friction(args, logs), **_other_friction(args, logs)}
    return replace(
        start,
        output=args.output_signal or start.output,
        structure=replace(start.structure, **chosen),
        free=tuple(name for name in start.free if name not in chosen),
        position_cutoff=args.position_cutoff,
        parallel_cutoff=args.parallel_cutoff,
        lag=args.lag,
        decimation=args.decimation,
        gains=args.gains,
        rotors=start.rotors and not args.no_rotors,
        method=args.method,
        scaled=args.elements is not None,
        load_basis=(args.load_basis or start.load_basis).replace("-", "_"),
    )


def known_joints(paths: list[str], robot: Robot) -> list[JointModel]:
    """Return the joints of some joint files, each once and of this robot, whose friction a calibration can take."""
    from jointwise.joint import load_joints
    from jointwise.joint.plug import USED, given_terms

    models = []
    for path in paths:
        found = load_joints(path)
        try:
            for own in found:
                if any(name in own.parts for name in USED):
                    given_terms(own)
        except (JointwiseError, ValueError) as problem:
            raise ModelError(f"{path}: {problem}") from None
        models += found
    for model in models:
        if model.robot != robot.name or not 0 <= model.joint < robot.dof:
            raise ModelError(f"--joint: joint {model.joint + 1} of {model.robot} is none of {robot.name}.")
        if sum(other.joint == model.joint for other in models) > 1:
            raise ModelError(f"--joint: joint {model.joint + 1} is in several files. Give it once.")
    return models


def _dry_friction(args: argparse.Namespace, logs: list[Log]) -> dict[str, Any]:
    """Return the fields of the structure that decide about dry friction."""
    chosen: dict[str, Any] = {} if args.load is None else {"load": args.load}
    slips = args.relaxation is not None or args.elements is not None
    direction = args.direction or ("hysteresis" if slips else None)
    if args.power_flow:  # takes the place of Coulomb friction and of its dependence on load
        chosen |= {"power_flow": True, "load": "none"}
        direction = direction or "sign"
    if direction is not None:
        chosen["direction"] = direction
    if direction == "hysteresis":
        measured = all(log.qd is not None for log in logs)
        chosen["drivers"] = ("q", "track") if measured else ("q",)
        chosen["relaxation"] = RELAXATION if args.relaxation is None else args.relaxation
    if direction == "hysteresis" and args.elements is not None:
        if not 1 <= args.elements <= MOST_ELEMENTS:
            raise UsageError(f"--elements must be from 1 to {MOST_ELEMENTS}. Got {args.elements} instead.")
        chosen["limits"] = Hysteresis.polynomial_limits(args.elements, SCALE)
    return chosen


def _other_friction(args: argparse.Namespace, logs: list[Log]) -> dict[str, Any]:
    """Return the fields of the structure for viscous friction, Stribeck and ripple."""
    chosen: dict[str, Any] = {}
    if args.viscous_powers is not None:
        chosen["powers"] = tuple(args.viscous_powers)
    if args.stribeck is not None:
        chosen["stribeck"] = args.stribeck
    if args.ripple is not None:
        chosen["ripple"] = _ripple_step(logs) if args.ripple else 0.0
    return chosen


def _ripple_step(logs: list[Log]) -> float:
    """Return the time step (s) of the answer to speed ripple: the period of the logs, which must have a speed."""
    for log in logs:
        if log.qd is None:
            raise DataError(f"{log.origin.path}: no measured speed (qd1..), which --ripple needs.")
    return float(np.median([examine_clock(log).median_step for log in logs]))
