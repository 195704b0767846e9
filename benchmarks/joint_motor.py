"""Drive gains of a real UR10e from a known payload, compared with those of its controller."""

from __future__ import annotations

from pathlib import Path

import jointwise
from jointwise.data import read_log
from jointwise.joint.drives import gains_from_targets, identify_gains_from_payload

LOGS = Path(__file__).parents[1].parent / "shared" / "data" / "ur10e"
PAIRS = (
    ("id_20_01_31_unload", "id_20_01_31_load"),
    ("id_20_02_19_14harm50sec", "id_20_02_19_14harm50secLoad"),
)
MASS = 2.805
"""Mass of the payload of both pairs, kg; nothing else about it is known."""


def rows() -> list[tuple[str, float, float]]:
    """Return name, gain of the controller and ours (Nm/A), of joints with the same drive together and alone."""
    robot = jointwise.load_robot("ur10e")
    standing = [read_log(path) for path in sorted(LOGS.glob("val_*.csv"))]
    controller = gains_from_targets([*standing, read_log(LOGS / "joint_20_01_22_joint_2.csv")], robot).gains
    logs = [[read_log(LOGS / f"{name}.csv") for name in names] for names in zip(*PAIRS, strict=True)]
    result: list[tuple[str, float, float]] = []
    for title, pairs in (("20 s pair", slice(0, 1)), ("50 s pair", slice(1, 2)), ("both pairs", slice(0, 2))):
        found = identify_gains_from_payload(logs[0][pairs], logs[1][pairs], robot, MASS)
        for joint, reference in zip(found.joints, controller, strict=True):
            name = f"{title}, joint {joint.joint + 1}"
            if joint.gain is not None:
                result.append((f"{name}, {joint.status}", float(reference), joint.gain.value))
            if joint.alone is not None and joint.shared is not None:
                result.append((f"{name}, alone", float(reference), joint.alone.value))
    return result


def main() -> None:
    """Print the table; joint 6 never stands under load, so that its target signals have no gain (nan)."""
    print(f"{'drive gain [Nm/A], payload 2.805 kg':<42}{'controller':>11}{'ours':>9}{'%':>8}")
    for name, reference, ours in rows():
        print(f"{name:<42}{reference:>11.3f}{ours:>9.3f}{100.0 * (ours / reference - 1.0):>+8.1f}")


if __name__ == "__main__":
    main()
