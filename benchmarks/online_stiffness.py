"""Online stiffness of the base of the digital UR5e, with the figures of the literature.

    python benchmarks/online_stiffness.py [--seeds 10] [--first-seed 100] [--files 1] [--known FILE] [--live S]

The axis is vertical, the other joints stand; random moves at 30 to 100 % of the limits with waits of up to 1 s, 35 s,
1 kHz. Friction, hysteresis, gear maps and the stored stiffness come from the identification of this package on
simulated experiments of the same arm (`--files` times, other noise each; `--known` reads a joint file instead, or
writes it if it does not exist); the digital robot has all its phenomena. Accuracy is the NRMSE fit (%) of the estimated
τ_E(φ) to the true spring over the deflections of the motion; median and worst of the seeds. Literature: 95.2 % after
10 s, 96.6 % after 35 s, 94.0 % 25 s after the signal is halved at 10 s, 73.9 % of the measured τ_E predicted after 15
s, usable (80 %) within 1 s of motion. With `--live` only this: the samples of the digital robot arrive at 1 kHz in real
time for S seconds (35 at most), and every step takes what has arrived; printed are the time of a step, the share of
samples whose estimate came after the next sample, and the difference to the estimate from the whole recording. On a
busy machine give the process the priority of a controller (Linux: `chrt -f 20 python ...`).
"""

from __future__ import annotations

from timing import cpu_name, seconds, use_one_thread

use_one_thread()

import argparse  # noqa: E402
import time  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from dataclasses import astuple, dataclass, fields, replace  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from digital_joint import RATE, log_of  # noqa: E402
from joint_runs import FREQUENCY, joint_log  # noqa: E402
from jointwise.call_settings import Variant  # noqa: E402
from jointwise.control.controller import AffineControl  # noqa: E402
from jointwise.data.log import Log  # noqa: E402
from jointwise.design import make_experiment  # noqa: E402
from jointwise.joint import JointModel, identify, joint_record, load_joint, save_joint  # noqa: E402
from jointwise.joint.part import nrmse_percent  # noqa: E402
from jointwise.joint.record import LinkLoad  # noqa: E402
from jointwise.model.rigid import inverse_dynamics  # noqa: E402
from jointwise.monitoring.stiffness import (  # noqa: E402
    JointSamples,
    StiffnessEstimator,
    StiffnessState,
    StiffnessTrace,
    monitor_stiffness,
)
from jointwise.monitoring.stiffness.estimate import powers  # noqa: E402
from jointwise.monitoring.stiffness.reference import StiffnessReference  # noqa: E402
from jointwise.monitoring.stiffness.signals import JointSignals  # noqa: E402
from jointwise.runtime.observers import observed_joint  # noqa: E402
from jointwise.simulation.robot import DigitalRobot, Run, digital_robot, integrate  # noqa: E402
from jointwise.simulation.sensors import Sensors  # noqa: E402
from jointwise.spatial import Array  # noqa: E402

DURATION, CHANGE, PREDICTED = 35.0, 10.0, 15.0
"""Time of a recording, of the halved signal and from which the prediction is scored, s."""
ARM = jw.load_robot("ur5e")
FIRST_SEED = 100
"""Seeds below were used while the method was developed."""


# -- the joint file ----------------------------------------------------------------------------------------------------


def identified_joint(seed: int) -> JointModel:
    """Return the base joint as this package identifies it from simulated experiments."""
    experiments = {
        "constant-speed": ("friction",),
        "reciprocate": ("transmission", "hysteresis"),
        "locked": ("stiffness",),
    }
    model = JointModel(ARM.name, 0)
    for name, phenomena in experiments.items():
        log, digital = joint_log(name, duration=None, seed=seed, gauge=name == "locked")
        record = joint_record(log, ARM, 0, mounting=digital.gravity)
        for phenomenon in phenomena:
            model = model.with_part(identify(phenomenon, record, ARM, model))
    return model


def joint_files(args: argparse.Namespace) -> list[JointModel]:
    """Return the joint files of the options."""
    if args.known is not None and args.known.exists():
        return [load_joint(args.known, ARM.name, 0)]
    models = [identified_joint(seed) for seed in range(args.files)]
    if args.known is not None:
        save_joint(models[0], args.known)
    return models


# -- recordings --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording:
    """A recording of the moves, with the true deflections (samples,) of the spring."""

    log: Log
    digital: DigitalRobot
    run: Run

    @property
    def samples(self) -> JointSamples:
        """The samples of the base joint."""
        assert self.log.theta is not None and self.log.current is not None and self.log.temperature is not None
        return JointSamples(self.log.theta[:, 0], self.log.q, self.log.current[:, 0], self.log.temperature[:, 0])

    @property
    def deflections(self) -> Array:
        """Deflections (points,), rad, over the range of the motion."""
        largest = float(self.digital.joints[0].stiffness.deformation(np.abs(self.run.load[:, 0]).max()))
        return np.linspace(-largest, largest, 401)

    def score(self, values: Array, factor: float = 1.0) -> float:
        """Return the NRMSE fit (%) of coefficients to the true spring, or to a factor of it."""
        truth = factor * self.digital.joints[0].stiffness.torque(self.deflections)
        return nrmse_percent(truth, powers(self.deflections) @ values)


def record(seed: int, *, stiffness: float = 0.0, friction: float = 0.0, temperature: float | None = None) -> Recording:
    """Return a recording of an arm whose stiffness and friction have changed, at a temperature (°C)."""
    experiment = make_experiment("bang-coast-bang", ARM, DURATION, seed, joint=0)
    digital = digital_robot(ARM, gravity=experiment.gravity).aged(friction=friction, stiffness=stiffness)
    states = experiment.motion.at(np.arange(0.0, DURATION, 1.0 / RATE))
    torque = inverse_dynamics(ARM, states.q, states.qd, states.qdd, gravity=digital.gravity)
    B = np.array([joint.inertia for joint in digital.joints])
    control = AffineControl(
        theta=states.q, speed=states.qd, torque=torque, k_theta=10.0 * FREQUENCY**2 * B, k_speed=4.0 * FREQUENCY * B
    )
    run = integrate(digital, digital.rest(states.q[0], temperature), control, rate=RATE)
    return Recording(log_of(run, digital, Sensors(rate=RATE, seed=seed)), digital, run)


# -- the experiment of the literature ------------------------------------------------------------------------------


class HalvedReference(StiffnessReference):
    """The estimator with half the torque signal, in NumPy."""

    def torques(self, state: Array, x: JointSignals, links: Array | None) -> tuple[Array, Array, Array]:
        """Return half of the torques and of the friction."""
        torques, friction, after = super().torques(state, x, links)
        return 0.5 * torques, 0.5 * friction, after


def halved_trace(made: StiffnessEstimator, state: StiffnessState, samples: JointSamples) -> StiffnessTrace:
    """Return the trace of samples with half the torque signal."""
    signals, _ = made.path.steps(state.signals, samples)
    links = None if made.links is None else made.links(*signals.links)[:, made.index]
    return HalvedReference(made).steps(state.numbers, signals, links)[0]


@dataclass(frozen=True)
class Scores:
    """Figures of one recording, %: after 10 s and 35 s, after the halved signal, prediction; time to 80 %, s."""

    after_10: float
    after_35: float
    halved: float
    prediction: float
    usable: float
    covered: float


def make_estimator(model: JointModel, side: str, variant: Variant, maps: bool = True) -> StiffnessEstimator:
    """Return the estimator of the base joint."""
    joint = observed_joint(ARM, model)
    joint = joint if maps else replace(joint, maps=None)
    links = LinkLoad(ARM, np.array([0.0, 0.0, -9.81]), None)
    return StiffnessEstimator(joint, 0, ARM.dof, RATE, links, side, variant, temperature=True)  # type: ignore[arg-type]


def measure(made: StiffnessEstimator, recording: Recording) -> Scores:
    """Return the figures of one recording."""
    samples, change = recording.samples, round(CHANGE * RATE)
    trace, state = made.steps(made.init(samples), samples.part(slice(0, change)))
    rest, end = made.steps(state, samples.part(slice(change, None)))
    halved = halved_trace(made, state, samples.part(slice(change, None)))
    first = round((PREDICTED - CHANGE) * RATE)
    phi = np.array([0.0, 0.5 * recording.deflections[-1]])
    low, high = made.estimate(end).conf_int(phi)
    k = recording.digital.joints[0].stiffness.stiffness(phi)
    return Scores(
        recording.score(trace.values[-1]),
        recording.score(rest.values[-1]),
        recording.score(halved.values[-1], 0.5),
        nrmse_percent(rest.measured[first:], rest.predicted[first:]),
        _usable(recording, trace),
        100.0 * float(np.mean((low <= k) & (k <= high))),
    )


def _usable(recording: Recording, trace: StiffnessTrace) -> float:
    """Return the time of motion (s) after which the score stays at 80 % or more until 10 s."""
    moving = np.flatnonzero(trace.used)
    poor = [k for k in moving[::5] if recording.score(trace.values[k]) < 80.0]
    last = poor[-1] if poor else moving[0]
    return float(np.count_nonzero(trace.used[: last + 1])) / RATE


def median_and_worst(rows: Sequence[Scores]) -> tuple[Scores, Scores]:
    """Return the medians and the worst of the figures; the mean of the covered intervals in both."""
    columns = {field.name: [getattr(row, field.name) for row in rows] for field in fields(Scores)}
    medians = {name: float(np.median(values)) for name, values in columns.items()}
    worst = {name: max(values) if name == "usable" else min(values) for name, values in columns.items()}
    covered = float(np.mean(columns["covered"]))
    return Scores(**{**medians, "covered": covered}), Scores(**{**worst, "covered": covered})


SETTINGS: tuple[tuple[str, Variant, bool], ...] = (
    ("motor", "directional-floor", True),
    ("motor", "directional", True),
    ("motor", "plain", True),
    ("link", "directional-floor", True),
    ("fused", "directional-floor", True),
    ("motor", "directional-floor", False),
    ("motor", "directional", False),
    ("motor", "plain", False),
    ("fused", "directional-floor", False),
    ("motor", "exponential", True),
    ("motor", "on-off", True),
    ("motor", "reset", True),
)
"""Side, variant, and whether the gear maps of the joint file are used."""
COLUMNS = ("10 s", "35 s", "halved", "prediction", "usable, s")


def print_table(models: Sequence[JointModel], recordings: Sequence[Recording]) -> None:
    """Print the median and the worst figures of all settings."""
    print(f"{'NRMSE %, median (worst)':<40}" + "".join(f"{x:>14}" for x in COLUMNS) + "  95 % covers")
    print(f"{'literature':<40}" + "".join(f"{x:>7}       " for x in ("95.2", "96.6", "94.0", "73.9", "1.00")))
    for side, variant, maps in SETTINGS:
        made = [make_estimator(model, side, variant, maps) for model in models]
        rows = [measure(made[k % len(made)], recording) for k, recording in enumerate(recordings)]
        m, w = median_and_worst(rows)
        pairs = zip(astuple(m)[:4], astuple(w)[:4], strict=True)
        name = f"{side}, {variant}{'' if maps else ', no gear map'}"
        print(
            f"{name:<40}" + "".join(f"{x:>7.1f} ({y:4.1f})" for x, y in pairs)
            + f"{m.usable:>7.2f} ({w.usable:.2f}){m.covered:>11.0f} %", flush=True,
        )  # fmt: skip


# -- wear and warm-up --------------------------------------------------------------------------------------------------


def print_status(name: str, model: JointModel, recording: Recording, state: object) -> object:
    """Print the status after one recording and return the state to go on with."""
    report = monitor_stiffness(recording.log, ARM, model, before=state)  # type: ignore[arg-type]
    loss = report.status.loss or (float("nan"),) * 3
    print(
        f"{name:<34}{100 * loss[0]:>7.1f} [{100 * loss[1]:.1f}, {100 * loss[2]:.1f}] %   friction "
        f"{100 * report.friction_change:+.1f} %   {report.status.status}",
        flush=True,
    )
    return report.state


def print_trends(model: JointModel, first_seed: int) -> None:
    """Print the status over simulated months of wear, and over a warm-up without wear."""
    print("\nmonths of wear: loss of stiffness by the fused estimate (95 % interval)")
    state: object = None
    for month in range(7):
        wear = month / 6
        aged = record(first_seed + 100 + month, stiffness=-0.2 * wear, friction=0.3 * wear)
        state = print_status(f"month {month}: stiffness {-20 * wear:.0f} %", model, aged, state)
    print("\nwarm-up without wear; the joint file holds at 20 °C and knows no temperature")
    state = None
    for temperature in (20.0, 25.0, 30.0, 35.0, 40.0, 45.0):
        warm = record(first_seed + 200 + int(temperature), temperature=temperature)
        state = print_status(f"{temperature:.0f} °C", model, warm, state)


def print_cost(model: JointModel, recording: Recording) -> None:
    """Print the time of a sample."""
    made = make_estimator(model, "fused", "directional-floor")
    samples = recording.samples
    whole = seconds(lambda: made.steps(made.init(samples), samples)) / len(samples)
    state = made.init(samples)
    rows = [samples.part(slice(k, k + 1)) for k in range(1000)]

    def single() -> None:
        now = state
        for row in rows:
            now = made.step(now, row)[1]

    print(f"\n{cpu_name()}: {1e6 * whole:.1f} us a sample in a run, {1e3 * seconds(single):.0f} us in single steps")


def run_live(made: StiffnessEstimator, samples: JointSamples) -> tuple[StiffnessState, Array, Array]:
    """Return the state after samples that arrive in real time, delays of their estimates and times of the steps, s.

    Every call takes the samples that have arrived since the last one: one, unless the computer was busy elsewhere.
    """
    state, first, delays, steps = made.init(samples), 0, np.empty(len(samples)), list[float]()
    begin = time.perf_counter()
    while first < len(samples):
        arrived = min(int((time.perf_counter() - begin) * RATE), len(samples))
        if arrived == first:
            time.sleep(max(0.0, begin + (first + 1) / RATE - time.perf_counter()))
            continue
        start = time.perf_counter()
        state = made.steps(state, samples.part(slice(first, arrived)))[1]
        end = time.perf_counter()
        delays[first:arrived] = end - begin - np.arange(first + 1, arrived + 1) / RATE
        steps.append(end - start)
        first = arrived
    return state, delays, np.array(steps)


def print_live(model: JointModel, recording: Recording, duration: float) -> None:
    """Print how the estimator keeps up with samples that arrive in real time."""
    samples = recording.samples.part(slice(0, round(duration * RATE)))
    for side in ("motor", "fused"):
        made = make_estimator(model, side, "directional-floor")
        cpu = time.process_time()
        state, delays, steps = run_live(made, samples)
        cpu = time.process_time() - cpu
        whole = made.steps(made.init(samples), samples)[1]
        error = np.abs(state.recursion.values / whole.recursion.values - 1.0)[:2].max()
        print(
            f"{side}: {len(samples)} samples at {RATE:g} Hz in {len(steps)} steps of {1e6 * np.median(steps):.0f} us "
            f"(median), {100.0 * cpu / duration:.0f} % of a core; delay median {1e3 * np.median(delays):.2f} ms, later "
            f"than the next sample {100.0 * np.mean(delays > 1.0 / RATE):.2f} %, than 10 ms "
            f"{100.0 * np.mean(delays > 0.01):.2f} %; difference to the whole run {error:.0e}; "
            f"{recording.score(state.recursion.values[:2]):.1f} %",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="seed of the first recording")
    parser.add_argument("--files", type=int, default=1, help="joint files identified with different noise")
    parser.add_argument("--known", type=Path, help="joint file to read, or to write if it does not exist")
    parser.add_argument("--live", type=float, metavar="S", help="only run in real time for S seconds")
    args = parser.parse_args()
    models = joint_files(args)
    if args.live is not None:
        print_live(models[0], record(args.first_seed), min(args.live, DURATION))
        return
    for part in models[0].parts.values():
        print(f"identified: {part.phenomenon}, {part.model}")
    recordings = [record(args.first_seed + seed) for seed in range(args.seeds)]
    print_table(models, recordings)
    print_trends(models[0], args.first_seed)
    print_cost(models[0], recordings[0])


if __name__ == "__main__":
    main()
