"""What was measured."""

from jointwise.data.clock import Clock, Repaired, examine_clock, repair_clock
from jointwise.data.finding import Finding
from jointwise.data.log import Chunk, Log, Origin
from jointwise.data.quality import Examination, examine
from jointwise.data.read import read_log
from jointwise.data.split import blocks, holdout
from jointwise.data.write import write_log

__all__ = [
    "Chunk",
    "Clock",
    "Examination",
    "Finding",
    "Log",
    "Origin",
    "Repaired",
    "blocks",
    "examine",
    "examine_clock",
    "holdout",
    "read_log",
    "repair_clock",
    "write_log",
]
