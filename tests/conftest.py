"""What every test starts from: the terms that the package itself registers."""

from __future__ import annotations

import os
import shutil
from tempfile import mkdtemp

import pytest

from computed import VARIABLE
from jointwise.model import terms


def pytest_configure(config: pytest.Config) -> None:
    """Make the directory of `computed`, in the process that starts the others; they inherit its name."""
    if VARIABLE not in os.environ:
        folder = mkdtemp(prefix="jointwise-tests-")
        os.environ[VARIABLE] = folder
        config.add_cleanup(lambda: (os.environ.pop(VARIABLE), shutil.rmtree(folder, ignore_errors=True)))


@pytest.fixture(autouse=True)
def registered_terms(monkeypatch):
    """Forget the terms that a test registers."""
    monkeypatch.setattr(terms, "KINDS", dict(terms.KINDS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped because the recordings of real robots are not there."""
    skipped = [
        report for report in terminalreporter.stats.get("skipped", []) if "../shared/data" in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests skipped: they need the recordings in ../shared/data")
