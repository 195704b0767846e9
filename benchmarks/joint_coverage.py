"""How often the 95 % intervals of hysteresis hold the truth, over joints and seeds of the digital robot.

Every run is a slow reciprocation with noise; friction over speed and the shape of the backlash map are known from
elsewhere, as `jointwise joint all` would know them; in a second round friction over speed is estimated, from a run of
its own. Run: ``python benchmarks/joint_coverage.py [seconds]``.
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
"""The same of the round in which friction over speed is estimated."""
METHODS = ("lr-polynomial", "nlr")
SECONDS = 240.0


def truths(joint: dict[str, Any]) -> dict[str, float]:
    """Return the true values by the names of the part's."""
    friction, backlash = joint["friction"], float(np.mean(joint["backlash"]["values"]))
    found = {"F_C": friction["coulomb"], "B": backlash}
    slip = zip(friction["slip"]["shares"], friction["slip"]["limits"], strict=True)
    for i, (share, limit) in enumerate(slip, start=1):
        W, D = share * friction["coulomb"], limit * backlash
        found |= {f"W{i}": W, f"D{i}": D, f"k{i}": W / D}
    return found


def friction_part(joint: dict[str, Any]) -> Part:
    """Return the friction over speed as its own experiment would tell it, with its usual deviations."""
    own = joint["friction"]
    known = {
        "F_C": (own["coulomb"], 0.05),
        "F_S-F_C": (own["stribeck"]["extra"], 0.05),
        "V_S": (own["stribeck"]["speed"], 0.002),
        "F_V1": (own["viscous"], 0.1),
        "F_V2": (own["square"], 0.05),
    }
    return Part("friction", "known", tuple(value_of(name, "", *pair) for name, pair in known.items()), 90.0)


def transmission_part(joint: dict[str, Any]) -> Part:
    """Return the lost motion as its own experiment would tell it."""
    lost = {"values": list(joint["backlash"]["values"])}
    settings = {"lost_motion": lost, "kinematic_error": {"values": [0.0, 0.0]}, "reach": 0.03}
    return Part("transmission", "known", (value_of("offset", "rad", 0.0, 0.0),), 90.0, settings=settings)


def estimated_friction(robot: str, joint: int, seed: int) -> Part:
    """Return the friction over speed that runs at constant speeds tell."""
    run = jointwise.simulate(robot, "constant-speed", joint=joint - 1, rate=500.0, seed=seed)
    return identify_friction(joint_record(run.log, jointwise.robot(robot), joint - 1, mounting=run.truth["gravity"]))


def covered(
    robot: str, joint: int, seed: int, seconds: float, estimated: bool
) -> dict[str, list[tuple[str, bool, float]]]:
    """Return for every method the values: name, whether the interval holds the truth, its half width over the value."""
    run = jointwise.simulate(robot, "reciprocate", joint=joint - 1, duration=seconds, rate=500.0, seed=seed)
    truth = run.truth["joints"][joint - 1]
    record = joint_record(run.log, jointwise.robot(robot), joint - 1, mounting=run.truth["gravity"])
    friction = estimated_friction(robot, joint, seed + 100) if estimated else friction_part(truth)
    transmission = transmission_part(truth)
    found = {}
    for method in METHODS:
        part = identify_hysteresis(record, method=method, elements=4, backlash=transmission, steady=friction)
        known = {**truths(truth), "F_V": truth["friction"]["viscous"] - friction["F_V1"]}
        told = [(part.value(name), x) for name, x in known.items() if any(own.name == name for own in part.values)]
        found[method] = [(v.name, v.covers(x), (v.high - v.low) / (2.0 * abs(v.value))) for v, x in told]
    return found


def main(seconds: float = SECONDS) -> None:
    """Print what was held and what was not, and the whole figure."""
    for estimated, runs in ((False, RUNS), (True, ESTIMATED)):
        print(f"friction over speed {'estimated' if estimated else 'known'}")
        every: dict[str, list[tuple[str, bool, float]]] = {method: [] for method in METHODS}
        for robot, joint, seed in runs:
            for method, rows in covered(robot, joint, seed, seconds, estimated).items():
                missed = ", ".join(name for name, held, _ in rows if not held) or "none"
                print(f"{robot} joint {joint} seed {seed} {method}: {len(rows)} values, missed {missed}", flush=True)
                every[method] += rows
        for method, rows in every.items():
            share = 100.0 * np.mean([held for _, held, _ in rows])
            width = np.median([own for name, _, own in rows if name != "F_V"])
            print(f"{method}: {share:.0f} % of {len(rows)} intervals hold the truth; median half width {width:.1%}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
