"""Records the outputs of a UR controller over RTDE. It only reads: it sends no command that could move the robot."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jointwise.call_settings import RecordingSettings
from jointwise.cli.command import Common
from jointwise.cli.output import check_file, is_terminal, note, show
from jointwise.settings import option, stated

if TYPE_CHECKING:
    from jointwise.rtde.recorder import RecordingStatus

EXAMPLES = """\
examples:
  jointwise record --host 192.168.0.10 --output log.parquet --duration 60
  jointwise record --host 192.168.0.10 --output log.parquet --preset energy          (until Ctrl-C)
  jointwise record --host 192.168.0.10 --output log.parquet --fields actual_TCP_force --port 30004
  jointwise record --host 127.0.0.1 --output log.csv --duration 20                   (from 'jointwise virtual-ur')

During a recording, samples are appended to OUTPUT.recording. If the process is killed, 'jointwise convert
OUTPUT.recording OUTPUT' completes the log. Fields that the controller does not offer are omitted and listed."""


@dataclass(frozen=True, kw_only=True)
class Settings(RecordingSettings, Common):
    """The address, the output and what to record."""

    host: str = option(help="name or address of the controller", metavar="H")
    output: str = option(help="log to write, .parquet or .csv", metavar="FILE")


def run(settings: Settings) -> int:
    """Record, and print what was recorded."""
    from jointwise.rtde.recorder import missing_field_notes, record

    check_file(settings.output)
    live = not settings.silent and is_terminal(sys.stderr)
    try:
        result = record(
            settings.host, settings.output, **stated(RecordingSettings, settings),
            progress=_print_status if live else None,
        )  # fmt: skip
    finally:
        if live:
            print(file=sys.stderr)
    for line in missing_field_notes([name for name in result.missing_fields if name in settings.fields]):
        note(line)
    show(settings, result.to_dict, result.summary)
    return 0


def _print_status(status: RecordingStatus) -> None:
    """Rewrite the live line."""
    text = f"{status.seconds:8.1f} s  {status.samples} samples  {status.rate:.0f} Hz  {status.lost} lost  {status.mode}"
    print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)
