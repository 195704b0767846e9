"""Records the outputs of a UR controller over RTDE. It only reads: it sends no command that could move the robot."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from jointwise.cli.arguments import add_json, frequency, port, positive
from jointwise.cli.output import as_json, check_file, is_terminal, note

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the address, the output and what to record."""
    parser.add_argument("--host", required=True, metavar="H", help="name or address of the controller")
    parser.add_argument("--output", required=True, metavar="FILE", help="log to write, .parquet or .csv")
    parser.add_argument("--duration", type=positive, metavar="S", help="duration in s (default: until Ctrl-C)")
    parser.add_argument(
        "--rate", type=frequency, default=500.0, metavar="HZ", help="sampling rate, at most 500 (default: 500)"
    )
    parser.add_argument(
        "--preset",
        choices=("calibration", "energy", "all"),
        default="calibration",
        help="group of RTDE fields to record (default: calibration)",
    )
    parser.add_argument("--fields", default="", metavar="NAME[,NAME...]", help="additional RTDE output fields")
    parser.add_argument("--port", type=port, default=30004, help="TCP port (default: 30004)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Record, and print what was recorded."""
    from jointwise.rtde.recorder import missing_field_notes, record

    check_file(args.output)
    fields = [name.strip() for name in args.fields.split(",") if name.strip()]
    live = not args.json and is_terminal(sys.stderr)
    try:
        result = record(
            args.host, args.output, duration=args.duration, rate=args.rate, preset=args.preset, fields=fields,
            port=args.port, progress=_print_status if live else None,
        )  # fmt: skip
    finally:
        if live:
            print(file=sys.stderr)
    for line in missing_field_notes([name for name in result.missing_fields if name in fields]):
        note(line)
    print(as_json(result.to_dict()) if args.json else result.summary())
    return 0


def _print_status(status: RecordingStatus) -> None:
    """Rewrite the live line."""
    text = f"{status.seconds:8.1f} s  {status.samples} samples  {status.rate:.0f} Hz  {status.lost} lost  {status.mode}"
    print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)
