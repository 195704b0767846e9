"""Coverage of the 95 % confidence intervals of friction over speed and of hysteresis on the digital robot.

``python benchmarks/joint_coverage.py friction [runs] [first seed]``: every run is an experiment at constant speeds, of
another joint and seed; prints for every parameter the coverage and the mean and spread of the error in standard errors.

``python benchmarks/joint_coverage.py hysteresis [seconds]``: every run is slow reciprocation with noise; friction over
speed and the shape of the backlash map are known, as in `jointwise joint all`. In a second round friction over speed is
estimated from runs at constant speeds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import jointwise
from jointwise.joint import Part, joint_record
from jointwise.joint.friction import identify_friction
from jointwise.joint.hysteresis import identify_hysteresis
from jointwise.joint.part import value_of

RUNS = (("ur10e", 3, 2), ("ur5e", 3, 0), ("ur10e", 2, 1), ("ur10e", 1, 5), ("ur5e", 2, 4), ("ur5e", 1, 7))
"""Robot, joint (from 1) and seed."""
ESTIMATED = (("ur10e", 3, 2), ("ur5e", 2, 11), ("ur10e", 2, 12), ("ur5e", 3, 13), ("ur10e", 1, 14), ("ur5e", 1, 15))
"""Those of the round in which friction over speed is estimated."""
FRICTION_RUNS = 120
METHODS = ("lr-polynomial", "nlr")
SECONDS = 240.0


def truths(joint: dict[str, Any]) -> dict[str, float]:
    """Return the true values by their names in a hysteresis part."""
    friction, backlash = joint["friction"], float(np.mean(joint["backlash"]["values"]))
    found = {"F_C": friction["coulomb"], "B": backlash}
    slip = zip(friction["slip"]["shares"], friction["slip"]["limits"], strict=True)
    for i, (share, limit) in enumerate(slip, start=1):
        W, D = share * friction["coulomb"], limit * backlash
        found |= {f"W{i}": W, f"D{i}": D, f"k{i}": W / D}
    return found


def friction_part(joint: dict[str, Any]) -> Part:
    """Return a friction part with the true values and usual standard errors."""
    friction = joint["friction"]
    known = {
        "F_C": (friction["coulomb"], 0.05),
        "F_S-F_C": (friction["stribeck"]["extra"], 0.05),
        "V_S": (friction["stribeck"]["speed"], 0.002),
        "F_V1": (friction["viscous"], 0.1),
        "F_V2": (friction["square"], 0.05),
    }
    return Part("friction", "known", tuple(value_of(name, "", *pair) for name, pair in known.items()), 90.0)


def transmission_part(joint: dict[str, Any]) -> Part:
    """Return a transmission part with the true lost motion."""
    lost = {"values": list(joint["backlash"]["values"])}
    settings = {"lost_motion": lost, "kinematic_error": {"values": [0.0, 0.0]}, "reach": 0.03}
    return Part("transmission", "known", (value_of("offset", "rad", 0.0, 0.0),), 90.0, settings=settings)


def estimated_friction(robot: str, joint: int, seed: int) -> Part:
    """Return the friction part of runs at constant speeds."""
    run = jointwise.simulate(robot, "constant-speed", joint=joint - 1, rate=500.0, seed=seed)
    return identify_friction(
        joint_record(run.log, jointwise.load_robot(robot), joint - 1, mounting=run.truth["gravity"])
    )


def covered(
    robot: str, joint: int, seed: int, seconds: float, estimated: bool
) -> dict[str, list[tuple[str, bool, float]]]:
    """Return for every method: name, whether the interval covers the true value, its relative half width."""
    run = jointwise.simulate(robot, "reciprocate", joint=joint - 1, duration=seconds, rate=500.0, seed=seed)
    truth = run.truth["joints"][joint - 1]
    record = joint_record(run.log, jointwise.load_robot(robot), joint - 1, mounting=run.truth["gravity"])
    friction = estimated_friction(robot, joint, seed + 100) if estimated else friction_part(truth)
    transmission = transmission_part(truth)
    found = {}
    for method in METHODS:
        part = identify_hysteresis(record, method=method, elements=4, backlash=transmission, steady=friction)
        known = {**truths(truth), "F_V": truth["friction"]["viscous"] - friction["F_V1"]}
        names = {value.name for value in part.values}
        pairs = [(part.value(name), true) for name, true in known.items() if name in names]
        found[method] = [(v.name, v.covers(true), (v.high - v.low) / (2.0 * abs(v.value))) for v, true in pairs]
    return found


def friction_truths(friction: dict[str, Any]) -> dict[str, float]:
    """Return the true values by their names in a friction part."""
    coulomb, extra, asymmetry = friction["coulomb"], friction["stribeck"]["extra"], friction["asymmetry"]
    return {
        "F_C": coulomb, "F_S": coulomb + extra, "F_S-F_C": extra, "V_S": friction["stribeck"]["speed"],
        "mu": friction["stribeck"]["shape"], "F_V1": friction["viscous"], "F_V2": friction["square"],
        "F_V3": friction["cube"], "asymmetry": asymmetry, "F_C+": coulomb * (1.0 + asymmetry),
        "F_C-": coulomb * (1.0 - asymmetry),
    }  # fmt: skip


def friction_coverage(runs: int = FRICTION_RUNS, first: int = 2000) -> None:
    """Print the coverage of the parameters of friction over speed."""
    errors: dict[str, list[tuple[bool, float]]] = {}
    for k in range(runs):
        robot, joint = ("ur5e", "ur10e")[k % 2], (k // 2) % 6
        run = jointwise.simulate(robot, "constant-speed", joint=joint, rate=250.0, seed=first + k)
        record = joint_record(run.log, jointwise.load_robot(robot), joint, mounting=run.truth["gravity"])
        truth = friction_truths(run.truth["joints"][joint]["friction"])
        for value in identify_friction(record).values:
            if value.name in truth:
                error = (value.value - truth[value.name]) / value.deviation
                errors.setdefault(value.name, []).append((value.covers(truth[value.name]), error))
    for name, rows in errors.items():
        covers, error = np.array(rows).T
        print(f"{name:10} {100.0 * covers.mean():5.1f} % of {len(rows)}; error {error.mean():+.2f} ± {error.std():.2f}")
    every = [covers for rows in errors.values() for covers, _ in rows]
    print(f"all        {100.0 * np.mean(every):5.1f} % of {len(every)}")


def hysteresis_coverage(seconds: float = SECONDS) -> None:
    """Print the values whose interval misses the true one, and the coverage."""
    for estimated, runs in ((False, RUNS), (True, ESTIMATED)):
        print(f"friction over speed {'estimated' if estimated else 'known'}")
        every: dict[str, list[tuple[str, bool, float]]] = {method: [] for method in METHODS}
        for robot, joint, seed in runs:
            for method, rows in covered(robot, joint, seed, seconds, estimated).items():
                missed = ", ".join(name for name, covers, _ in rows if not covers) or "none"
                print(f"{robot} joint {joint} seed {seed} {method}: {len(rows)} values, missed {missed}", flush=True)
                every[method] += rows
        for method, rows in every.items():
            share = 100.0 * np.mean([covers for _, covers, _ in rows])
            width = np.median([half for name, _, half in rows if name != "F_V"])
            print(
                f"{method}: {share:.0f} % of {len(rows)} intervals cover the true value; median half width {width:.1%}"
            )


if __name__ == "__main__":
    numbers = [float(word) for word in sys.argv[2:]]
    if sys.argv[1:2] == ["friction"]:
        friction_coverage(*map(int, numbers))
    else:
        hysteresis_coverage(*numbers)
