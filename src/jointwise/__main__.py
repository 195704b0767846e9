"""`python -m jointwise`: the command line."""

import sys

from jointwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
