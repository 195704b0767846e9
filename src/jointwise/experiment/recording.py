"""What an experiment leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointwise.data.log import Log
from jointwise.data.write import check_suffix, write_log
from jointwise.errors import OutputError
from jointwise.simulation.recording import truth_file
from jointwise.simulation.references import Experiment
from jointwise.simulation.robot import DigitalRobot, Run


@dataclass(frozen=True)
class Recording:
    """A log, the truth behind it and how it came about.

    `truth` is the document that `write` puts beside the log; `run` holds the true signals at the control rate, every
    n-th period if so asked, None if none were kept.
    """

    log: Log
    truth: dict[str, Any]
    run: Run | None
    experiment: Experiment
    digital: DigitalRobot

    def write(self, path: str | Path, truth: str | Path | None = None) -> None:
        """Write the log as CSV or Parquet, by the ending of its name, and the truth as JSON where a path is given.

        Both files appear, or none.
        """
        check_suffix(path)
        if truth is None:
            write_log(self.log, path)
        elif Path(truth).resolve() == Path(path).resolve():
            raise OutputError(f"{path}: the log and its truth must be different files.")
        else:
            with truth_file(self.truth, truth):
                write_log(self.log, path)
