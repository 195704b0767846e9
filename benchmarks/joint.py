"""Figures of the thesis on strain-wave joints and those of Jointwise on the digital robot.

Every row is the NRMSE fit (%) on held-out data unless it says otherwise; the noise is chosen so that a perfect model
would score about as much as the best one of the thesis.
"""

from __future__ import annotations

import joint_friction
import joint_hysteresis
import joint_stiffness


def main() -> None:
    """Print the table."""
    print(f"{'':46}{'thesis':>8}{'here':>8}")
    for benchmark in (joint_stiffness, joint_friction, joint_hysteresis):
        for name, thesis, ours in benchmark.rows():
            print(f"{name:46}{thesis:8.1f}{ours:8.1f}")


if __name__ == "__main__":
    main()
