"""How fast a calibration is, and how much memory it needs.

    python benchmarks/calibration.py [--quick] [--only kernel|long|stages]

kernel: regressor, parallel filter, decimation and least squares of 100,000 samples of a six-axis arm, against
Pinocchio's regressor in a loop, scipy's filtfilt and numpy's lstsq, in turns. stages: the automatic calibration of a
50 s log. long: 500 Hz logs of 15, 30 and 60 minutes from file to model with a fixed structure, each in a process of its
own.
"""

from __future__ import annotations

from timing import Task, cpu_name, ratios, take_turns, use_one_thread

use_one_thread()

import argparse  # noqa: E402
import json  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the synthetic logs, which are test support

import numpy as np  # noqa: E402

from jointwise.calibration import calibrate  # noqa: E402
from jointwise.data.filters import decimate, decimation_taps  # noqa: E402
from jointwise.description import load_robot  # noqa: E402
from jointwise.design import fourier_trajectory  # noqa: E402
from jointwise.estimation.bounded import bounded_least_squares  # noqa: E402
from jointwise.estimation.factors import triangle  # noqa: E402
from jointwise.estimation.least_squares import Layout, stacked  # noqa: E402
from jointwise.model.dynamics import Dynamics  # noqa: E402
from jointwise.model.rigid import compute_regressor, inverse_dynamics  # noqa: E402
from jointwise.motion import Motion  # noqa: E402
from jointwise.simulation.sensors import Readings, Sensors  # noqa: E402
from jointwise.spatial import INERTIAL_NAMES, Array  # noqa: E402
from synthetic import synthetic_log  # noqa: E402

ARM = "ur5e"
GRAVITY = (0.0, 0.0, -9.81)
RATE, CUTOFF, STEP = 500.0, 20.0, 10
TARGET = 10.0
THEIRS = ("m", "mX", "mY", "mZ", "XX", "XY", "YY", "XZ", "YZ", "ZZ")
"""Pinocchio's order of the parameters of a body."""
BLOCK = 60.0
"""Seconds of motion, from rest to rest, of which a long log is made again and again."""

CHILD = """
import json, pathlib, resource, sys, time
from jointwise.calibration import calibrate
from jointwise.options import Options
from jointwise.data import read_log
from jointwise.description import load_robot
from jointwise.estimation.structure import Structure
start = time.perf_counter()
log = read_log(sys.argv[1])
read = time.perf_counter()
structure = Structure("hysteresis", "square", (1.0, 2.0))
model = calibrate(log, load_robot(sys.argv[2]), options=Options(structure=structure, free=()))
done = time.perf_counter()
status = pathlib.Path("/proc/self/status")  # ru_maxrss would count the process that started this one
if status.exists():
    peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
nmse = sum(model.training.nmse) / log.joints
print(json.dumps([log.samples, read - start, done - read, time.process_time(), peak, nmse]))
"""


# -- regressor, filter, least squares ----------------------------------------------------------------------------


def jointwise_task(model: Dynamics, motion: Motion, y: Array) -> Task:
    """Return the computation of Jointwise: base columns, filtered only where a row is kept, one factor a joint."""
    taps = decimation_taps(CUTOFF, RATE)
    layout = Layout([which for _, which in model.rigid_index], np.zeros(model.base.count, dtype=bool))

    def run() -> Array:
        Y = compute_regressor(model.robot, motion.q, motion.qd, motion.qdd, gravity=GRAVITY)
        parts = []
        for (series, _), output in zip(model.rigid_index, y.T, strict=True):
            rows = [decimate(values, taps, STEP) for values in (*(Y.series[k] for k in series), output)]
            parts.append(triangle(np.stack(rows).T))
        return bounded_least_squares(triangle(stacked(parts, layout, np.ones(len(parts)))), layout.bound)

    return run


def peer_task(model: Dynamics, motion: Motion, y: Array) -> Task:
    """Return the usual way at its best: only base parameters are kept, and only entries that are not zero filtered."""
    import pinocchio as pin
    from scipy.signal import butter, filtfilt

    from rigid import pinocchio_model

    arm = pinocchio_model(model.robot)
    data = arm.createData()
    places = np.array([THEIRS.index(name) for name in INERTIAL_NAMES])
    kept = 10 * (model.base.kept // 10) + places[model.base.kept % 10]
    b, a = butter(4, CUTOFF / (RATE / 2.0))
    rows = list(zip(motion.q.copy(), motion.qd.copy(), motion.qdd.copy(), strict=True))
    there = np.zeros((len(y.T), len(kept)), dtype=bool)
    for j, (_, which) in enumerate(model.rigid_index):
        there[j, which] = True

    def run() -> Array:
        W = np.empty((len(rows), *there.shape))
        for row, (q, qd, qdd) in zip(W, rows, strict=True):
            row[...] = pin.computeJointTorqueRegressor(arm, data, q, qd, qdd)[:, kept]
        small = np.zeros((-(-len(rows) // STEP), *there.shape))
        small[:, there] = filtfilt(b, a, W[:, there], axis=0)[::STEP]
        output = filtfilt(b, a, y, axis=0)[::STEP]
        values: Array = np.linalg.lstsq(small.reshape(-1, len(kept)), output.ravel(), rcond=None)[0]
        return values

    return run


def kernel(samples: int, rounds: int) -> None:
    robot = load_robot(ARM)
    model = Dynamics(robot, GRAVITY, False, ((),) * robot.dof)
    states = fourier_trajectory(robot, samples / RATE, 1).sample(RATE)
    q, qd, qdd = (values[:samples] for values in (states.q, states.qd, states.qdd))
    noise = np.random.default_rng(0).normal(size=q.shape)
    y = inverse_dynamics(robot, q, qd, qdd, gravity=GRAVITY) + noise
    tasks = {
        kind: make(model, Motion(RATE, q, qd, qdd), y)
        for kind, make in (("jointwise", jointwise_task), ("peer", peer_task))
    }
    ours, peer = np.asarray(tasks["jointwise"]()), np.asarray(tasks["peer"]())
    apart = np.abs(ours - peer).max() / np.abs(peer).max()
    times = take_turns(tasks, rounds)
    ratio = ratios(times["peer"], times["jointwise"])
    print(
        f"\nregressor + parallel filter + least squares, {samples:,} samples, {robot.name}, "
        f"{model.base.count} parameters\n"
        f"  jointwise {np.median(times['jointwise']):7.3f} s\n"
        f"  pinocchio + filtfilt + lstsq {np.median(times['peer']):7.3f} s; estimates differ by {apart:.1e}\n"
        f"  ratio {ratio.median:.1f} ({ratio.low:.1f} .. {ratio.high:.1f}), target {TARGET:g}: "
        f"{'met' if ratio.median >= TARGET else 'missed'}"
    )


# -- long logs ---------------------------------------------------------------------------------------------------


def write_long_log(path: Path, minutes: int) -> None:
    """Write a CSV of `minutes` of motion at 500 Hz, block by block, every block with noise of its own."""
    import pyarrow as pa
    from pyarrow import csv

    made = synthetic_log(load_robot(ARM), duration=BLOCK, rate=RATE, seed=3, current_noise=0.0)
    joints = range(1, made.log.joints + 1)
    names = ["t", *(f"{stem}{j}" for stem in ("q", "qd", "i") for j in joints)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with csv.CSVWriter(path, schema, write_options=csv.WriteOptions(quoting_style="none")) as file:
        for k in range(round(minutes * 60.0 / BLOCK)):
            readings = Readings(Sensors(rate=RATE, seed=k))
            speed = readings.speed(made.truth.states.qd)
            assert speed is not None
            current = readings.current(made.truth.torque / made.truth.gains)
            block = np.column_stack([made.log.t + k * BLOCK, made.log.q, speed, current])
            file.write_table(pa.table([block[:, c] for c in range(len(names))], schema=schema))


def long_logs(lengths: tuple[int, ...]) -> None:
    print("\nfrom file to model, 500 Hz, six joints, hysteresis and load dependence, filters chosen by the program")
    print(
        f"  {'minutes':>7} {'samples':>10} {'read s':>7} {'fit s':>7} {'in all':>7} {'cpu s':>7} {'peak MB':>8} "
        f"{'nmse':>8}   target"
    )
    with tempfile.TemporaryDirectory() as folder:
        for minutes in lengths:
            path = Path(folder) / f"{minutes}.csv"
            write_long_log(path, minutes)
            done = subprocess.run(
                [sys.executable, "-c", CHILD, str(path), ARM], capture_output=True, text=True, check=True
            )
            samples, read, fit, cpu, peak, nmse = json.loads(done.stdout)
            path.unlink()
            fine = read + fit < 60.0 and peak < 1000.0
            print(
                f"  {minutes:7d} {samples:10,d} {read:7.1f} {fit:7.1f} {read + fit:7.1f} {cpu:7.1f} {peak:8.0f} "
                f"{nmse:8.5f}   "
                f"< 60 s, < 1000 MB: {'met' if fine else 'missed'}",
                flush=True,
            )


# -- stages of the automatic calibration -------------------------------------------------------------------------


def stages() -> None:
    """Print where the CPU time of an automatic calibration goes, on a log like a UR10e's: 50 s, 91 Hz, uneven clock."""
    robot = load_robot("ur10e")
    log = synthetic_log(robot, duration=50.0, rate=91.0, jitter=1e-3, seed=2).log
    steps: list[tuple[str, float]] = []
    model = calibrate(log, robot, progress=lambda step: steps.append((step, time.process_time())))
    ends = [*(at for _, at in steps[1:]), time.process_time()]
    print(f"\nautomatic calibration of a {log.duration:.0f} s log, {log.samples} samples: {model.structure_text}")
    for (step, begun), end in zip(steps, ends, strict=True):
        print(f"  {step:26} {end - begun:6.2f} s")
    print(f"  {'in all':26} {ends[-1] - steps[0][1]:6.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter logs, fewer rounds: a look, not a measurement")
    parser.add_argument("--only", choices=("kernel", "long", "stages"), help="one part alone")
    options = parser.parse_args()
    print(f"{cpu_name()}, Python {sys.version.split()[0]}, NumPy {np.__version__}, one thread")
    if options.only in (None, "kernel"):
        kernel(*(20_000, 2) if options.quick else (100_000, 5))
    if options.only in (None, "stages"):
        stages()
    if options.only in (None, "long"):
        long_logs((2, 4) if options.quick else (15, 30, 60))


if __name__ == "__main__":
    main()
