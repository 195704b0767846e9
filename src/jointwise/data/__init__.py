"""What was measured."""

from jointwise.data.clock import Clock
from jointwise.data.log import Log, Origin, holdout
from jointwise.data.quality import DataQuality, check_quality, useless_outputs
from jointwise.data.read import read_log
from jointwise.data.write import write_log
from jointwise.finding import Finding

__all__ = [
    "Clock",
    "DataQuality",
    "Finding",
    "Log",
    "Origin",
    "check_quality",
    "holdout",
    "read_log",
    "useless_outputs",
    "write_log",
]
