"""Speed of the hysteresis identification on a million samples, and of the slip elements against plain loops.

    python benchmarks/gms.py [--quick]

Identification: 1,000 s of slow reciprocation at 1 kHz with known elements and noise; nlr with four elements and with
the number of elements chosen by held-out error, from the record to the values with their intervals.
Slip elements: four elements along the same path, the native kernel against a Python loop over samples with NumPy over
elements, and against a Python loop alone; they take turns in one run and must give the same result.
"""

from __future__ import annotations

from timing import cpu_name, ratios, seconds, take_turns, use_one_thread

use_one_thread()

import argparse  # noqa: E402

import numpy as np  # noqa: E402

from jointwise.joint.hysteresis import identify_hysteresis  # noqa: E402
from jointwise.joint.record import JointRecord  # noqa: E402
from jointwise.model.terms import slip_elements, slip_state  # noqa: E402
from jointwise.spatial import Array  # noqa: E402

RATE = 1000.0
LIMITS = np.array([4e-6, 6e-5, 3e-4, 1e-3])
FORCES = np.array([5.3, 3.0, 1.3, 0.4])
LEAST_RATIO = 50.0


def path(samples: int) -> tuple[Array, Array]:
    """Return position and speed (samples,) of a reciprocation: ±0.05 rad/s², 8.4 s a cycle, with a slow advance."""
    t = np.arange(samples) / RATE
    phase = np.mod(t, 8.4) / 8.4
    triangle = 0.105 * (1.0 - 4.0 * np.abs(phase - 0.5))
    speed = triangle + 0.006
    return np.cumsum(speed) / RATE, speed


def make_record(samples: int, seed: int = 0) -> JointRecord:
    """Return a record with known elements, viscous friction and noise."""
    x, speed = path(samples)
    g = slip_elements(x, LIMITS, slip_state(x[0], len(LIMITS)))[0]
    friction = g @ FORCES + 10.0 * speed + np.random.default_rng(seed).normal(scale=1.8, size=samples)
    none = np.zeros(samples)
    return JointRecord(
        robot="made", joint=0, logs=("made",), rate=RATE, unit="Nm", gain=1.0, inertia=0.0, t=np.arange(samples) / RATE,
        segment=np.zeros(samples, dtype=np.intp), q=x, qd=speed, qdd=none, position=x, speed=speed, acceleration=none,
        path=x, motor=friction, load=none,
    )  # fmt: skip


def numpy_loop(x: Array) -> Array:
    """Return δ/D (samples, elements): a loop over samples, NumPy over elements."""
    out, delta, last = np.empty((len(x), len(LIMITS))), np.zeros(len(LIMITS)), x[0]
    for k, position in enumerate(x):
        s = position - last + delta
        delta = np.sign(s) * np.minimum(np.abs(s), LIMITS)
        out[k] = delta / LIMITS
        last = position
    return out


def python_loop(x: Array) -> Array:
    """Return δ/D (samples, elements): Python alone."""
    limits, positions, out = LIMITS.tolist(), x.tolist(), []
    delta, last = [0.0] * len(limits), positions[0]
    for position in positions:
        step, last = position - last, position
        delta = [max(-D, min(D, d + step)) for d, D in zip(delta, limits, strict=True)]
        out.append([d / D for d, D in zip(delta, limits, strict=True)])
    return np.array(out)


def native(x: Array) -> Array:
    """Return δ/D (samples, elements) of the library."""
    return slip_elements(x, LIMITS, slip_state(x[0], len(LIMITS)))[0]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples in the loops, two rounds")
    quick = parser.parse_args().quick
    print(f"{cpu_name()}, one thread")
    record = make_record(1_000_000)
    for label, elements in (("four elements", 4), ("elements chosen", None)):
        took = seconds(lambda count=elements: identify_hysteresis(record, method="nlr", elements=count))  # type: ignore[misc]
        print(f"nlr on {record.samples:,} samples, {label}: {took:.2f} s")
    x = path(20_000 if quick else 200_000)[0]
    tasks = {"native": native, "NumPy loop": numpy_loop, "Python loop": python_loop}
    for name, task in tasks.items():
        assert np.allclose(task(x), native(x), atol=1e-9), name
    times = take_turns({name: lambda task=task: task(x) for name, task in tasks.items()}, 2 if quick else 5)  # type: ignore[misc]
    for name in ("NumPy loop", "Python loop"):
        faster = ratios(times[name], times["native"])
        print(
            f"slip elements, {len(x):,} samples: {faster.median:.0f} times faster than the {name} "
            f"({faster.low:.0f} to {faster.high:.0f}; required: {LEAST_RATIO:.0f})"
        )


if __name__ == "__main__":
    main()
