"""Joint models that calibrations select, and what they predict: for the comparison of copies of a log and of machines.

    python tests/selection_trial.py NAME PREDICTION.npy

prints the selected structure of the log NAME and writes the predicted outputs, A or Nm, along the same log.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

import jointwise as jw
from data_files import SHARED

REAL = ("ur10e/id_20_02_12_50sec_12harm", "ur10e/id_20_02_19_14harm50sec")
SIMULATED = ("ur5e", "panda", "puma560")
NOISE = 1e-9


@cache
def original(name: str) -> jw.Log:
    """Return a real log of a UR10e, or a simulated one of another robot."""
    if name in REAL:
        return jw.read_log(SHARED / f"{name}.csv")
    return jw.simulate(name, duration=20.0, rate=125.0, seed=5, keep=0).log


def copy(name: str, number: int) -> jw.Log:
    """Return a log with noise of 1e-9 (rad, rad/s, A, Nm) on every channel; number 0 is the log itself."""
    log, rng = original(name), np.random.default_rng(number)
    if number == 0:
        return log
    channels = {key: getattr(log, key) for key in ("q", "qd", "current", "torque", "theta")}
    noisy = {key: x + NOISE * rng.normal(size=x.shape) for key, x in channels.items() if x is not None}
    return replace(log, **noisy)


def calibrated(name: str, number: int = 0) -> jw.Calibration:
    """Return the calibration of a copy of a log, without bodies."""
    return jw.calibrate(copy(name, number), "ur10e" if name in REAL else name, physical=False)


def selected(calibration: jw.Calibration) -> tuple[str, ...]:
    """Return what was selected: filters and joint model, in words."""
    choices = [choice for choice in calibration.choices if "lag" not in choice.question]  # a continuous number
    return (calibration.structure_text, *(f"{choice.question}: {choice.taken}" for choice in choices))


def main() -> None:
    name, target = sys.argv[1], Path(sys.argv[2])
    calibration = calibrated(name)
    print("\n".join(selected(calibration)))
    np.save(target, jw.predict(calibration, original(name)))


if __name__ == "__main__":
    main()
