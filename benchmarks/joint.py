"""The figures of the thesis on strain-wave joints beside those reached here, on the digital robot.

Every row is NRMSE % on data held out, unless it says otherwise; noise is set so that the ceiling is near the thesis'.
"""

from __future__ import annotations

import joint_friction
import joint_hysteresis
import joint_stiffness


def main() -> None:
    """Print one table."""
    print(f"{'':46}{'thesis':>8}{'here':>8}")
    for part in (joint_stiffness, joint_friction, joint_hysteresis):
        for name, thesis, ours in part.rows():
            print(f"{name:46}{thesis:8.1f}{ours:8.1f}")


if __name__ == "__main__":
    main()
