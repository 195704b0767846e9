"""Runs of the digital robot and their logs, shared by the benchmarks of joint identification."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the runs of the digital robot, which are test support

from joint_runs import RATE, follow, log_of

__all__ = ["RATE", "follow", "log_of"]
