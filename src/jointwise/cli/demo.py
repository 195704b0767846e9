"""A short tour on the UR5e: base parameters, and torques computed in independent ways."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np

import jointwise
from jointwise.cli.text import as_json
from jointwise.description import Robot
from jointwise.model.base import base_parameters
from jointwise.model.rigid import compute_regressor, forward_dynamics, inverse_dynamics, is_native

EXAMPLES = """\
examples:
  jointwise demo
  jointwise demo --samples 100000 --json"""

_FORMULAS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--samples", type=_positive, default=2000, help="random states to compare (default: 2000)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the tour."""
    robot = jointwise.robot("ur5e")
    base = base_parameters(robot, gravity="table", rotors=False)
    facts = {
        "robot": robot.title,
        "joints": robot.dof,
        "base_parameters": base.count,
        "standard_parameters": 10 * robot.dof,
        "formulas": [formula for formula in base.formulas if "+" in formula][:_FORMULAS],
        **compare_torques(robot, args.samples),
    }
    print(as_json(facts) if args.json else _text(facts))
    return 0


def compare_torques(robot: Robot, samples: int) -> dict[str, Any]:
    """Return the largest differences (Nm, rad/s²) between independent computations, and their time (µs a sample)."""
    q, qd, qdd = np.random.default_rng(1).uniform(-np.pi, np.pi, (3, samples, robot.dof))
    torque = inverse_dynamics(robot, q, qd, qdd)
    started = perf_counter()
    inverse_dynamics(robot, q, qd, qdd)
    elapsed = perf_counter() - started
    regressed = compute_regressor(robot, q, qd, qdd).torque(robot.inertials)
    returned = forward_dynamics(robot, q, qd, torque)
    return {
        "samples": samples,
        "largest_torque": float(np.abs(torque).max()),
        "regressor_difference": float(np.abs(torque - regressed).max()),
        "round_trip_difference": float(np.abs(returned - qdd).max()),
        "kernel": "native" if is_native() else "NumPy",
        "microseconds_per_sample": 1e6 * elapsed / samples,
    }


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number > 0. Got '{text}' instead.")
    return int(text)


def _text(facts: dict[str, Any]) -> str:
    formulas = "\n".join(f"    {formula}" for formula in facts["formulas"])
    return f"""\
{facts["robot"]}, {facts["joints"]} joints

  {facts["standard_parameters"]} inertial parameters act on torque in {facts["base_parameters"]} combinations; some:
{formulas}

  Torque at {facts["samples"]} random states, up to {facts["largest_torque"]:.0f} Nm:
    inverse dynamics against regressor x parameters    {facts["regressor_difference"]:.1e} Nm apart
    forward dynamics of inverse dynamics               {facts["round_trip_difference"]:.1e} rad/s^2 apart
    inverse dynamics, {facts["kernel"]} kernel: {facts["microseconds_per_sample"]:.2f} microseconds a sample

  Next: jointwise robots show ur5e"""
