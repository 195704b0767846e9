"""How well a curve meets its data."""

from __future__ import annotations

import numpy as np

from jointwise.errors import EstimationError
from jointwise.spatial import Array


def nrmse_percent(measured: Array, modelled: Array) -> float:
    """Return ``100 (1 - |y - ŷ| / |y - mean y|)`` of (samples,): 100 for a perfect model, 0 for the mean."""
    spread = float(np.linalg.norm(measured - measured.mean()))
    if spread == 0.0:
        raise EstimationError("the measurement does not vary: no quality can be told.")
    return 100.0 * (1.0 - float(np.linalg.norm(measured - modelled)) / spread)


def rms(values: Array) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


def fit_text(fitted: float, held_out: float | None) -> str:
    """Return the fit (`nrmse_percent`) to all data and, by a fit without them, to those held out, as people read it."""
    held = "" if held_out is None else f", {held_out:z.1f} % on data held out"
    return f"fit {fitted:z.1f} % on all its data{held} (100 is perfect)"
