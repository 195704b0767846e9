"""The program `jointwise`, `python -m jointwise` too: small, so that an interrupt is heard while the rest loads."""

import os
import sys

INTERRUPTED = 130


def start() -> None:
    """Run the command line and leave with its exit code, interrupted while it was still loading or later."""
    try:
        from jointwise.cli import main

        code = main()
    except KeyboardInterrupt:
        print("jointwise: interrupted.", file=sys.stderr)
        code = INTERRUPTED
    if code == INTERRUPTED:  # Python may remember an interrupt that was dealt with and end by the signal instead
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    start()
