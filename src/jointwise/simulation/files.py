"""The truth behind a synthetic log on disk."""

from __future__ import annotations

import json
from pathlib import Path

from jointwise.atomic import atomic_write
from jointwise.simulation.truth import Truth


def write_truth(truth: Truth, path: str | Path) -> None:
    """Write the parameters behind a log as JSON (see `Truth.to_dict`); the file appears only when it is whole."""
    with atomic_write(path) as file:
        file.write(json.dumps(truth.to_dict(), indent=1) + "\n")
