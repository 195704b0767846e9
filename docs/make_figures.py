"""Makes the figures of README and docs: run `python docs/make_figures.py` (needs the extra `plot`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import jointwise
from jointwise.calibrate import calibrate
from jointwise.simulation import synthetic_log

FIGURES = Path(__file__).parent / "figures"
MEASURED, PREDICTED, RESIDUAL = "#9aa5b1", "#d1495b", "#30638e"


def prediction_figure(path: Path) -> None:
    """Measured and predicted current of a simulated UR5e on a motion the model has not seen."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    robot = jointwise.robot("ur5e")
    training = synthetic_log(robot, duration=40, seed=1, jitter=2e-4).log
    unseen = synthetic_log(robot, "point_to_point", duration=20, seed=2, jitter=2e-4).log
    model = calibrate(training, robot)
    predicted = model.predict(unseen)
    assert unseen.current is not None
    figure, axes = plt.subplots(3, 1, figsize=(9, 5.4), sharex=True, constrained_layout=True)
    for axis, joint in zip(axes, (1, 2, 4), strict=True):
        measured = unseen.current[:, joint]
        axis.plot(unseen.t, measured, color=MEASURED, linewidth=2.2, label="measured")
        axis.plot(unseen.t, predicted[:, joint], color=PREDICTED, linewidth=1.0, label="predicted")
        axis.plot(unseen.t, measured - predicted[:, joint], color=RESIDUAL, linewidth=0.7, label="residual")
        r2 = 1 - np.mean((measured - predicted[:, joint]) ** 2) / np.var(measured)
        axis.set_ylabel(f"joint {joint + 1} [A]")
        axis.set_title(f"R² = {r2:.4f}", loc="right", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(loc="upper left", ncols=3, frameon=False, fontsize=9)
    axes[-1].set_xlabel("time [s]")
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    prediction_figure(FIGURES / "prediction.png")
