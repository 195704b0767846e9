"""`python -m jointwise`: the command line."""

import os
import sys

INTERRUPTED = 130


def run() -> int:
    """Return the exit code of the command line, interrupted while it was still loading or later."""
    try:
        from jointwise.cli import main

        return main()
    except KeyboardInterrupt:
        print("jointwise: interrupted.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    code = run()
    if code == INTERRUPTED:  # `python -m` may remember an interrupt that was dealt with and end by the signal instead
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
