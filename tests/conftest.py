"""What every test starts from: the terms that the package itself registers."""

from __future__ import annotations

import pytest

from jointwise.model import terms


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
