"""Monitoring on the digital robot and on real recordings: contacts, false alarms, payload, friction, cost.

    python benchmarks/monitoring.py [--contacts N] [--free MINUTES] [--data DIRECTORY] [--only families --robot NAME]
    python benchmarks/monitoring.py --only free --free MINUTES --training SEED --first SEED
    python benchmarks/monitoring.py --only friction --training SEED --logs N [--coulomb]

The model is calibrated on one simulated excitation (UR5e, 500 Hz) or several, the tests are other motions. Pushes of
20 N at the tool begin at random times and in random directions; they count if a joint can see them: their torque is
above the threshold of the monitor at that moment. With a directory of UR10e logs, pushes are added to free recordings
as torques ``J^T f``, with and without an arm that gives way a little. `families` are motions unlike the excitation that
the model was calibrated with.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import jointwise as jw
from jointwise.design.piecewise import Ramp, random_points, waypoint_trajectory
from jointwise.design.trajectory import Trajectory
from jointwise.estimation.structure import JointTerms
from jointwise.model.terms import Temperature
from jointwise.monitoring import Monitor, monitor_log
from jointwise.monitoring.core import Samples, log_samples, stream_rate
from jointwise.monitoring.session import part_of
from jointwise.options import Options
from jointwise.simulation.robot import Thermal, digital_robot

FORCE = 20.0
"""N"""
WITHIN = 0.02
"""s"""
WARM_UP = 180.0
"""Time constant of the warm-up (s), faster than a real one."""
TRAINING_STEP = 50
"""Between the seeds of training logs."""
TEST_STEP = 400
"""From the seed of the first training log to that of the friction log."""
COMPLIANCE = 2e-5
"""rad/Nm by which a joint that is held by its controller gives way."""
SECTION = 14.0
"""Length (s) of the sections of recordings to which pushes are added."""
CONDUCTANCE = 50.0
"""W/K, so large that the joints approach the ambient temperature."""


def trained(seed: int = 1, logs: int = 1) -> jw.RobotModel:
    """Return the model of a simulated UR5e from excitations of 60 s, the seeds `TRAINING_STEP` apart."""
    excitations = [simulated(seed + TRAINING_STEP * k, 60.0) for k in range(logs)]
    return jw.RobotModel(jw.calibrate(excitations, jw.load_robot("ur5e"), physical=False))


def simulated(seed: int, duration: float, **options: object) -> jw.Log:
    """Return another motion of the simulated UR5e, with its channels as a robot records them."""
    log = jw.simulate("ur5e", "excitation", duration=duration, rate=500.0, seed=seed, keep=0, **options).log  # type: ignore[arg-type]
    return replace(log, torque=None, theta=None)


def contacts(model: jw.RobotModel, count: int) -> None:
    """Print how many pushes are found, and how fast."""
    rng, delays, seen = np.random.default_rng(0), [], 0
    for seed in range(100, 100 + count):
        direction = rng.normal(size=3)
        force = FORCE * direction / np.linalg.norm(direction)
        start = float(rng.uniform(6.0, 9.0))
        push = jw.Push(start, 0.3, tuple(force.tolist()))
        log = simulated(seed, 10.0, events=jw.Events(pushes=[push]))
        samples = log_samples(model, log)
        monitor = Monitor(model, stream_rate(samples.t))
        reports, _ = monitor.steps(monitor.init(), samples)
        at = int(np.searchsorted(samples.t, start))
        torque = model.jacobian(np.asarray(samples.q[at]))[:3].T @ force
        fast, slow, _ = monitor.limits
        if not (np.abs(torque) > min(fast, slow) * reports.deviation[at]).any():
            continue
        seen += 1
        found = np.flatnonzero(reports.contact[at:] != 0.0)
        delays.append(float(samples.t[at + found[0]] - start) if len(found) else np.inf)
    late = np.array(delays)
    print(f"contacts: {seen} of {count} pushes of {FORCE:g} N can be seen; {np.mean(late <= WITHIN):.0%} within 20 ms, "
          f"{np.mean(late <= 0.1):.0%} within 100 ms, median {1e3 * np.median(late):.1f} ms")  # fmt: skip


def false_alarms(model: jw.RobotModel, minutes: float, first: int) -> None:
    """Print the contacts in free motion from seed `first` on, with and without measured speeds."""
    found, seconds = np.zeros(2, dtype=int), 0.0
    for seed in range(first, first + max(round(minutes / 2.0), 1)):
        log = simulated(seed, 120.0)
        results = [monitor_log(model, known).result() for known in (log, replace(log, qd=None))]
        found, seconds = found + [len(result.contacts) for result in results], seconds + results[0].duration
    print(f"false alarms in {seconds / 3600.0:.2f} h of free motion: {found[0]}, without measured speeds {found[1]}")


def point_to_point(robot: str, seed: int) -> Trajectory:
    """Return moves between six random points with rests of some seconds, at a random speed and acceleration."""
    described, rng = jw.load_robot(robot), np.random.default_rng(seed)
    points = random_points(described, seed, 6, 1.2)
    speed, acceleration = float(rng.uniform(0.4, 1.5)), float(rng.uniform(0.8, 3.0))
    ramp: Ramp = "smooth" if seed % 2 else "constant"
    return waypoint_trajectory(described, points, None, cycle=36.0, speed=speed, acceleration=acceleration, ramp=ramp)


FAMILIES: dict[str, float | None] = {
    "excitation": 60.0,
    "bspline": 40.0,
    "waypoints": None,
    "point-to-point": None,
    "bang-coast-bang": 35.0,
    "constant-speed": 60.0,
    "load": 60.0,
    "reciprocate": 60.0,
}
"""Experiments and their durations (s); the last three move one joint."""


def families(robot: str, training: int, seeds: range) -> None:
    """Print false contacts in motions unlike the excitation that the model was calibrated with."""
    log = jw.simulate(robot, "excitation", duration=60.0, rate=500.0, seed=training, keep=0).log
    known = replace(log, theta=None, torque=None) if log.current is not None else replace(log, theta=None)
    model = jw.RobotModel(jw.calibrate(known, jw.load_robot(robot), physical=False))
    upright = jw.PlantOptions(gravity=(0.0, 0.0, -9.81))
    for name, duration in FAMILIES.items():
        found, seconds = 0, 0.0
        for seed in seeds:
            experiment = point_to_point(robot, seed) if name == "point-to-point" else name
            joint = seed % model.dof if name in ("constant-speed", "load", "reciprocate") else None
            made = jw.simulate(
                robot, experiment, duration=duration, rate=500.0, seed=seed, joint=joint, keep=0, plant=upright
            )
            result = monitor_log(model, replace(made.log, theta=None)).result()
            found, seconds = found + len(result.contacts), seconds + result.duration
        print(f"{robot} {name}: {found} false contacts in {seconds:.0f} s", flush=True)


def payloads(model: jw.RobotModel) -> None:
    """Print the error of the payload 5 s after the start of the motion."""
    errors = []
    for seed, mass in ((201, 2.0), (202, 3.0), (203, 4.0)):
        load = jw.Payload(mass, (0.02, -0.03, 0.08))
        log = simulated(seed, 6.0, plant=jw.PlantOptions(payload=load))
        errors.append(monitor_log(model, log).result().payload.mass / mass - 1.0)
    print("payload after 5.5 s:", ", ".join(f"{error:+.1%}" for error in errors))


def friction(model: jw.RobotModel, seed: int, coulomb: bool = False) -> None:
    """Print the change of friction after 10 min of a motion, and with 10 % more of it at all joints.

    Temperatures are measured, or not; with `coulomb`, Coulomb friction alone has grown.
    """
    joints = [
        replace(joint, friction=replace(joint.friction, coulomb=1.1 * joint.friction.coulomb))
        for joint in digital_robot(jw.load_robot("ur5e")).joints
    ]
    worn = jw.PlantOptions(joints=joints) if coulomb else jw.PlantOptions(age={"friction": 0.1})
    for name, options in (("nominal", {}), ("+10 % Coulomb" if coulomb else "+10 %", {"plant": worn})):
        log = simulated(seed, 600.0, **options)
        for kind, known in (("with", log), ("without", replace(log, temperature=None))):
            result = monitor_log(model, known).result()
            watched = [joint.joint for joint in result.friction if joint.status == "watch"]
            print(f"friction {name}, {kind} temperatures: change", [round(j.change, 3) for j in result.friction],
                  "watched", watched, f"{len(result.contacts)} contacts", flush=True)  # fmt: skip


def warm_up(plain: jw.RobotModel) -> None:
    """Print the friction of joints that warm up from 25 to 45 degC in 10 min, and of joints that stay cold.

    The model with temperature is calibrated on three logs of 22, 35 and 48 degC, with the terms of `plain`.
    """
    warm = temperature_model(plain)
    for name, age in (("nominal", 0.0), ("+10 %", 0.1)):
        for what, start, ambient in (("25 to 45 degC", 25.0, 46.0), ("constant 22 degC", 22.0, 22.0)):
            log = warming(301, 600.0, start, ambient, age)
            for model, kind in ((plain, "without"), (warm, "with")):
                result = monitor_log(model, log).result()
                watched = [joint.joint for joint in result.friction if joint.status == "watch"]
                change = [round(joint.change, 3) for joint in result.friction]
                print(f"friction {name}, {what}, model {kind} temperature: {change} watched {watched}", flush=True)


def temperature_model(plain: jw.RobotModel) -> jw.RobotModel:
    """Return a model with the terms of `plain` and the effect of temperature."""
    levels = enumerate((22.0, 35.0, 48.0), start=1)
    logs = [simulated(seed, 60.0, plant=jw.PlantOptions(temperature=level)) for seed, level in levels]
    terms = enumerate(plain.calibration.model.terms)
    options = Options(joints={joint: JointTerms((*found, Temperature()), firm=True) for joint, found in terms})
    return jw.RobotModel(jw.calibrate(logs, jw.load_robot("ur5e"), physical=False, options=options))


def warming(seed: int, duration: float, start: float, ambient: float, age: float) -> jw.Log:
    """Return the log of joints that start at a temperature and approach another (degC) within minutes."""
    heat = Thermal(WARM_UP * CONDUCTANCE, CONDUCTANCE, ambient)
    joints = [replace(joint, thermal=heat) for joint in digital_robot(jw.load_robot("ur5e")).joints]
    plant = jw.PlantOptions(joints=joints, temperature=start, age={"friction": age})
    return simulated(seed, duration, plant=plant)


def cost(model: jw.RobotModel) -> None:
    """Print the time per sample of all monitors in C."""
    samples = log_samples(model, simulated(400, 20.0))
    monitor = Monitor(model, 500.0)
    best = np.inf
    for _ in range(5):
        started = time.perf_counter()
        monitor.steps(monitor.init(), samples)
        best = min(best, time.perf_counter() - started)
    print(f"cost: {1e6 * best / len(samples):.2f} us per sample (6 joints)")


def pushed(
    model: jw.RobotModel, samples: Samples, force: float, rng: np.random.Generator, compliance: float = 0.0
) -> tuple[Samples, float, float]:
    """Return samples with a push of a hand at the tool, its start and its end (s).

    It rises in 0.1 to 0.3 s and is held for 0.5 to 2 s in a random direction; the joints give way by `compliance`
    (rad/Nm).
    """
    direction = rng.normal(size=3)
    rise, hold = rng.uniform(0.1, 0.3), rng.uniform(0.5, 2.0)
    start = float(samples.t[0] + rng.uniform(1.5, np.ptp(samples.t) - hold - 2.0 * rise - 0.3))
    end = start + hold + 2.0 * rise
    ramp = np.minimum(np.clip((samples.t - start) / rise, 0, 1), np.clip((end - samples.t) / rise, 0, 1))
    J = model.jacobian(np.asarray(samples.q))[:, :3]
    torque = np.einsum("kij,i->kj", J, force * direction / np.linalg.norm(direction))
    torque *= (0.5 - 0.5 * np.cos(np.pi * ramp))[:, None]
    moved = compliance * torque
    assert samples.qd is not None
    loaded = replace(
        samples,
        q=samples.q + moved,
        qd=samples.qd + np.gradient(moved, np.asarray(samples.t), axis=0),
        output=np.asarray(samples.output) - torque / model.gains,
    )
    return loaded, start, end


def section(samples: Samples, rng: np.random.Generator) -> Samples:
    """Return a random section of at most `SECTION` s: the monitor has not seen the motion before."""
    t, length = samples.t - samples.t[0], min(SECTION, float(np.ptp(samples.t)) - 0.1)
    first = rng.uniform(0.0, t[-1] - length)
    return part_of(samples, (t >= first) & (t < first + length))


def recordings(directory: Path, tries: int, training_log: str, seed: int) -> None:
    """Print false alarms, payloads and found pushes of real UR10e logs."""
    training = jw.read_log(directory / training_log)
    model = jw.RobotModel(jw.calibrate(training, jw.load_robot("ur10e"), physical=False))
    rng = np.random.default_rng(seed)
    for path in sorted(directory.glob("*.csv")):
        samples = log_samples(model, jw.read_log(path))
        result = monitor_log(model, jw.read_log(path)).result()
        line = f"{path.stem}: {result.status}, {len(result.contacts)} contacts, payload {result.payload.mass:.2f} kg"
        if result.payload.status != "watch":
            for name, compliance in (("rigid", 0.0), ("giving way", COMPLIANCE)):
                rates = [_found(model, samples, force, tries, rng, compliance) for force in (15.0, 20.0, 30.0)]
                line += f", pushes of 15, 20, 30 N ({name}) found: " + ", ".join(f"{rate:.0%}" for rate in rates)
        print(line, flush=True)


def _found(
    model: jw.RobotModel, samples: Samples, force: float, tries: int, rng: np.random.Generator, compliance: float
) -> float:
    monitor, hits = Monitor(model, stream_rate(samples.t)), 0
    for _ in range(tries):
        part = section(samples, rng)
        loaded, start, end = pushed(model, part, force, rng, compliance)
        reports, _ = monitor.steps(monitor.init(), loaded)
        hits += bool((reports.contact[(part.t >= start) & (part.t <= end + 0.1)] != 0.0).any())
    return hits / tries


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contacts", type=int, default=100)
    parser.add_argument("--free", type=float, default=180.0, help="minutes of free motion")
    parser.add_argument("--data", type=Path, help="directory of UR10e logs")
    parser.add_argument("--train", default="id_20_02_12_50sec_12harm.csv", help="log of --data to calibrate with")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first free motion")
    parser.add_argument("--seed", type=int, default=0, help="of the pushes that are added to --data")
    parser.add_argument("--robot", default="ur5e", help="of --only families")
    parser.add_argument("--only", choices=("simulation", "recordings", "free", "warm-up", "families", "friction"))
    parser.add_argument("--training", type=int, default=1, help="seed of the first training log")
    parser.add_argument("--logs", type=int, default=1, help="number of training logs")
    parser.add_argument("--coulomb", action="store_true", help="more Coulomb friction alone with --only friction")
    args = parser.parse_args()
    if args.only == "warm-up":
        warm_up(trained(args.training, args.logs))
    elif args.only == "free":
        false_alarms(trained(args.training, args.logs), args.free, args.first)
    elif args.only == "friction":
        friction(trained(args.training, args.logs), args.training + TEST_STEP, args.coulomb)
    elif args.only == "families":
        families(args.robot, 7, range(5000, 5004))
    elif args.only != "recordings":
        model = trained(args.training, args.logs)
        cost(model)
        payloads(model)
        contacts(model, args.contacts)
        false_alarms(model, args.free, args.first)
        friction(model, args.training + TEST_STEP)
        warm_up(model)
    if args.data is not None:
        recordings(args.data, 20, args.train, args.seed)


if __name__ == "__main__":
    main()
