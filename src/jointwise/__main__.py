"""The program `jointwise`, `python -m jointwise` too: small, so that an interrupt is handled while the rest loads."""

from jointwise.interrupts import INTERRUPTED, exit_at_interrupts, exit_at_once

exit_at_interrupts()

import gc  # noqa: E402 - interrupts first
import os  # noqa: E402
import sys  # noqa: E402

GC_THRESHOLD = 20_000
"""New objects between searches for reference cycles, 700 by default: importing and numerical work make few cycles."""


def start() -> None:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(GC_THRESHOLD)
    code = INTERRUPTED
    try:
        from jointwise.cli import main

        code = main()
    except KeyboardInterrupt:
        exit_at_once()
    if code == INTERRUPTED:  # Python may remember the interrupt and end by the signal instead
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    start()
