"""Drive gains of a real UR10e from a known payload, beside those of its controller."""

from __future__ import annotations

from pathlib import Path

import jointwise
from jointwise.data import read_log
from jointwise.joint.motor import gains_from_targets, identify_gains_from_payload

LOGS = Path(__file__).parents[1].parent / "shared" / "data" / "ur10e"
PAIRS = (
    ("id_20_01_31_unload", "id_20_01_31_load"),
    ("id_20_02_19_14harm50sec", "id_20_02_19_14harm50secLoad"),
)
MASS = 2.805
"""Payload of both pairs, kg; nothing else about it is used."""


def rows() -> list[tuple[str, float, float]]:
    """Return name, the controller's gain and ours (Nm/A): every joint by itself, then joints with the same drive."""
    robot = jointwise.robot("ur10e")
    standing = [read_log(path) for path in sorted(LOGS.glob("val_*.csv"))]
    controller = gains_from_targets([*standing, read_log(LOGS / "joint_20_01_22_joint_2.csv")], robot).gains
    logs = [[read_log(LOGS / f"{name}.csv") for name in names] for names in zip(*PAIRS, strict=True)]
    result: list[tuple[str, float, float]] = []
    for title, pairs in (("20 s pair", slice(0, 1)), ("50 s pair", slice(1, 2)), ("both pairs", slice(0, 2))):
        found = identify_gains_from_payload(logs[0][pairs], logs[1][pairs], robot, MASS)
        for own, believed in zip(found.joints, controller, strict=True):
            if own.gain is not None:
                result.append((f"{title}, joint {own.joint + 1}, {own.status}", float(believed), own.gain.value))
            if own.alone is not None and own.shared is not None:
                result.append((f"{title}, joint {own.joint + 1}, alone", float(believed), own.alone.value))
    return result


def main() -> None:
    """Print the table; joint 6 never stands under load, so its controller's gain is not seen in the signals (nan)."""
    print(f"{'drive gain [Nm/A], payload 2.805 kg':<42}{'controller':>11}{'ours':>9}{'%':>8}")
    for name, believed, ours in rows():
        print(f"{name:<42}{believed:>11.3f}{ours:>9.3f}{100.0 * (ours / believed - 1.0):>+8.1f}")


if __name__ == "__main__":
    main()
