"""Coverage of the 95 % confidence intervals: true values against intervals over many synthetic logs.

    python benchmarks/coverage.py [--seeds 100] [--automatic 20] [--digital 20] [--robots ur5e ur3e ur16e panda]

Every seed is another motion, other noise (half of its variance below 10 Hz, so residuals are coloured) and another
clock. The joint model is the true one, filters are chosen by the program; `--automatic` logs are calibrated with
nothing given at all; so are those of the digital robot, which no joint model describes exactly; of a UR5e the drive
gains are known, of the others they are estimated too. Printed: the share of base parameters inside their interval, over
all and for the worst parameter, and how large errors are in units of their standard deviation.
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from pathlib import Path  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the synthetic logs, which are test support

import numpy as np  # noqa: E402

import jointwise  # noqa: E402
from jointwise.calibration import calibrate  # noqa: E402
from jointwise.description import Robot, load_robot  # noqa: E402
from jointwise.estimation.structure import Structure  # noqa: E402
from jointwise.model.terms import Hysteresis  # noqa: E402
from jointwise.options import Options  # noqa: E402
from jointwise.result import Calibration  # noqa: E402
from jointwise.spatial import Array  # noqa: E402
from synthetic import SyntheticLog, default_friction, synthetic_log  # noqa: E402
from synthetic.friction import LoadDependence  # noqa: E402

SCALE = 2e-3
"""Hysteresis scale (rad) of every joint where the structure is known: one ladder of limits serves all."""


@dataclass(frozen=True)
class Case:
    """A kind of log: robot, motion, length (s), rate (Hz), jitter of its clock (s), and the friction behind it."""

    robot: str
    motion: str = "fourier"
    duration: float = 30.0
    rate: float = 200.0
    jitter: float = 0.0
    hysteresis: bool = True
    load: LoadDependence = "square"

    def label(self) -> str:
        """Return the case in words."""
        dry = "hysteresis" if self.hysteresis else "sign"
        clock = f", jitter {1e3 * self.jitter:g} ms" if self.jitter else ""
        return f"{self.robot}, {self.motion} {self.duration:g} s at {self.rate:g} Hz{clock}; {dry}, load {self.load}"

    def log(self, seed: int, scale: float | None = SCALE) -> SyntheticLog:
        """Return the log of a seed; without a scale hysteresis differs from joint to joint."""
        robot = load_robot(self.robot)
        friction = default_friction(robot, self.load)
        if scale is not None:
            friction = tuple(replace(law, scale=scale) for law in friction)
        return synthetic_log(
            robot, self.motion, duration=self.duration, rate=self.rate, seed=seed, friction=friction,
            hysteresis=self.hysteresis, load_dependence=self.load, jitter=self.jitter,
        )  # fmt: skip

    def structure(self) -> Structure:
        """Return the joint model that the log was made with."""
        limits = Hysteresis.polynomial_limits(4, SCALE)
        return Structure("hysteresis" if self.hysteresis else "sign", self.load, (1.0, 2.0), limits=limits)


CASES = (
    Case("planar2", duration=20.0, hysteresis=False, load="none"),
    Case("planar2", duration=20.0),
    Case("ur5e", hysteresis=False, load="none"),
    Case("ur5e"),
    Case("ur5e", jitter=5e-4),
    Case("ur5e", motion="point_to_point"),
)
AUTOMATIC = (Case("planar2"), Case("ur5e"), Case("ur5e", duration=50.0, rate=100.0, jitter=5e-4))
ROBOTS = ("ur5e", "ur3e", "ur16e", "panda")
"""Digital robots, the first with drive gains in its description."""


def errors(calibration: Calibration, made: SyntheticLog) -> Array:
    """Return (estimate - truth) over half the interval for every base parameter; NaN where it is undetermined."""
    estimate, count = calibration.estimate, calibration.model.base.count
    truth = calibration.model.base.from_standard(made.truth.plant.standard)
    known = np.array([status != "undetermined" for status in estimate.status[:count]])
    half = estimate.factor * estimate.deviation[:count]
    error: Array = np.divide(
        estimate.values[:count] - truth, half, out=np.full(count, np.nan), where=known & (half > 0.0)
    )
    return error


def measure(case: Case, seeds: int, automatic: bool) -> Array:
    """Return the errors of all seeds, (seeds, base parameters)."""
    robot: Robot = load_robot(case.robot)
    rows = []
    for seed in range(seeds):
        made = case.log(seed, None if automatic else SCALE)
        gains = made.truth.gains.tolist()
        options = Options(gains=gains) if automatic else Options(gains=gains, structure=case.structure(), free=())
        rows.append(errors(calibrate(made.log, robot, options=options), made))
    return np.array(rows)


def measure_digital(robot: str, seeds: int) -> Array:
    """Return the errors of all seeds on logs of the digital robot, (seeds, base parameters)."""
    rows = []
    for seed in range(seeds):
        made = jointwise.simulate(robot, "excitation", duration=30.0, rate=250.0, seed=seed, keep=0)
        calibration = calibrate(made.log, load_robot(robot))
        estimate, names = calibration.estimate, calibration.model.base.names
        truth = np.array([made.truth["base"][name] for name in names])
        rows.append((estimate.values[: len(names)] - truth) / (estimate.factor * estimate.deviation[: len(names)]))
    return np.array(rows)


def print_row(label: str, table: Array, elapsed: float) -> None:
    """Print one line: coverage of all parameters, of the worst one, and typical errors."""
    inside = np.where(np.isnan(table), np.nan, np.abs(table) <= 1.0)
    worst = np.nanmean(inside, axis=0).min()
    print(
        f"{label:68} {np.nanmean(inside):8.3f} {worst:8.2f} {np.nanmedian(np.abs(table)):8.2f} "
        f"{np.nanmax(np.abs(table)):8.2f} {np.isnan(table).sum():6d} {elapsed / len(table):7.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100, help="logs of each kind with the true joint model")
    parser.add_argument("--automatic", type=int, default=20, help="logs of each kind with nothing given")
    parser.add_argument("--digital", type=int, default=20, help="logs of the digital robot with nothing given")
    parser.add_argument("--robots", nargs="+", default=ROBOTS, help="digital robots")
    options = parser.parse_args()
    print(f"{'':68} coverage    worst    |error| / half interval    open       s")
    print(f"{'true joint model':68} {'all':>8} {'one':>8} {'median':>8} {'max':>8} {'':>6} {'a log':>7}")
    for case in CASES if options.seeds else ():
        start = time.perf_counter()
        print_row(case.label(), measure(case, options.seeds, automatic=False), time.perf_counter() - start)
    print("automatic joint model, hysteresis of another size in every joint")
    for case in AUTOMATIC if options.automatic else ():
        start = time.perf_counter()
        print_row(case.label(), measure(case, options.automatic, automatic=True), time.perf_counter() - start)
    print("automatic joint model, digital robot with every phenomenon")
    for robot in options.robots if options.digital else ():
        start = time.perf_counter()
        label = f"{robot}, excitation 30 s at 250 Hz"
        print_row(label, measure_digital(robot, options.digital), time.perf_counter() - start)


if __name__ == "__main__":
    main()
