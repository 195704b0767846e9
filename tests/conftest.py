"""What every test starts from: the terms that the package itself registers."""

from __future__ import annotations

import pytest

from jointwise.model import terms


@pytest.fixture(autouse=True)
def registered_terms(monkeypatch):
    """Forget the terms that a test registers."""
    monkeypatch.setattr(terms, "KINDS", dict(terms.KINDS))
