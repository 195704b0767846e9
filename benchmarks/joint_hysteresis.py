"""Hysteresis on the digital robot: the methods beside the thesis' figures, and what hysteresis is worth under load.

    python benchmarks/joint_hysteresis.py [--quick]

Methods: the slow reciprocation of a UR5e's base (1 kHz, one turn, 1,005 s), fitted on 50 s and tested on the rest, four
elements, the mean backlash known (from the transmission experiment). Current noise is chosen once so that the ceiling
is near the thesis' 82 %. Truth: the digital robot's own elements, a perturbation of them (other limits and shares), and
everything switched on that the methods do not model (Stribeck, warmth, asymmetry, position-dependent backlash).
Load: joint 2 with 7.5 kg, from no load to more than 150 Nm with reversals; fitted on one run, tested on another.
Torque: mean squared error against the noisy measurement. Tracking: both laws as feed-forward along the reference of the
same robot under the same PD controller.
Real (`--data`, the folder of the UR10e's logs): everything from one excitation log - calibration, viscous friction,
hysteresis joint by joint - and how well friction is told on other logs while the joint moves, with memory and without.
"""

from __future__ import annotations

from timing import use_one_thread

use_one_thread()

import argparse  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

import jointwise  # noqa: E402
from jointwise.calibrate import calibrate  # noqa: E402
from jointwise.data.log import Log, Origin  # noqa: E402
from jointwise.data.read import read_log  # noqa: E402
from jointwise.description.payload import Payload  # noqa: E402
from jointwise.description.robot import Robot  # noqa: E402
from jointwise.errors import EstimationError  # noqa: E402
from jointwise.joint.hysteresis import FrictionLaw, Motion, friction_law, identify_hysteresis  # noqa: E402
from jointwise.joint.hysteresis.loops import at_rest  # noqa: E402
from jointwise.joint.part import Part  # noqa: E402
from jointwise.joint.quality import nrmse_percent  # noqa: E402
from jointwise.joint.record import JointRecord, joint_record  # noqa: E402
from jointwise.model.rigid import inverse_dynamics  # noqa: E402
from jointwise.simulation.references import make_experiment  # noqa: E402
from jointwise.simulation.robot import AffineControl, DigitalRobot, Run, Slip, digital_robot, simulate  # noqa: E402
from jointwise.simulation.sensors import Readings, Sensors  # noqa: E402
from jointwise.spatial import Array  # noqa: E402

RATE = 1000.0
NOISE = 0.165
"""Current noise (A rms) of the reciprocation, half of its variance below 10 Hz."""
TRAIN = slice(10_000, 60_000)
THESIS = {"nlr": 82.3, "lr-polynomial": 82.0, "gms": 80.7, "lr-linear": 73.7, "stribeck": 68.9}
NOT_MODELLED = ("stribeck", "temperature", "asymmetry", "backlash")
PERTURBED = Slip((0.005, 0.05, 0.40, 1.25), (0.46, 0.27, 0.17, 0.10))
"""Limits relative to B and shares near, but not at, the pre-assigned ones."""
BANDWIDTH = 150.0
"""Of the position controller of the motors, rad/s: 4e4 Nm/rad at the base."""
COMPENSATION = 8.0
"""Friction (Nm) that the robot's own controller compensates while it reciprocates, as a UR's does."""
LOAD_NOISE = 0.03
PAYLOAD = Payload(7.5, (0.0, 0.0, 0.32))
WRIST = (0.0, 0.5 * np.pi, 0.0)
"""The payload's lever and the last three joints: the arm stretched out asks for 150 Nm."""


# -- running the digital robot ---------------------------------------------------------------------------------------


def run_along(digital: DigitalRobot, q: Array, qd: Array, torque: Array) -> Run:
    """Return a run under PD control of the rotors along a reference (periods, joints) with a feed-forward torque."""
    B = np.array([joint.inertia for joint in digital.joints])
    stiffness, damping = B * BANDWIDTH**2, 1.4 * B * BANDWIDTH
    control = AffineControl(theta=q, speed=qd, torque=torque, k_theta=stiffness, k_speed=damping)
    return simulate(digital, digital.rest(q[0]), control, rate=RATE)


def log_of(run: Run, digital: DigitalRobot, noise: float, seed: int) -> Log:
    """Return what the sensors read of a run."""
    sensors = Sensors(rate=RATE, current_noise=noise, seed=seed)
    ratios = np.array([joint.gear_ratio for joint in digital.joints])
    return Log(
        t=run.t,
        q=sensors.position(run.q),
        theta=sensors.rotor(run.theta, ratios),
        current=Readings(sensors).current(run.current),
        origin=Origin("digital"),
    )


# -- the methods -----------------------------------------------------------------------------------------------------


def reciprocation(kind: str, duration: float | None) -> tuple[JointRecord, float]:
    """Return the record of the base joint for a kind of truth, and the mean backlash (rad)."""
    arm = jointwise.robot("ur5e")
    experiment = make_experiment("reciprocate", arm, duration, joint=0)
    digital = digital_robot(arm, gravity=experiment.gravity).without(*(() if kind == "all" else NOT_MODELLED))
    if kind == "perturbed":
        base = digital.joints[0]
        base = replace(base, friction=replace(base.friction, slip=PERTURBED))
        digital = replace(digital, joints=(base, *digital.joints[1:]))
    states = experiment.motion.at(np.arange(0.0, experiment.motion.duration, 1.0 / RATE))
    torque = inverse_dynamics(arm, states.q, states.qd, states.qdd, gravity=digital.gravity)
    torque[:, 0] += COMPENSATION * np.tanh(states.qd[:, 0] / 0.005)
    run = run_along(digital, states.q, states.qd, torque)
    record = joint_record(log_of(run, digital, NOISE, seed=7), arm, 0, mounting=experiment.gravity)
    return record, digital.joints[0].backlash.mean


def held_out(record: JointRecord, method: str, backlash: float) -> float:
    """Return the NRMSE (%) of a method fitted on 50 s, on what follows them."""
    part = identify_hysteresis(record.take(np.r_[TRAIN]), method=method, elements=4, backlash=backlash)
    model = friction_law(part).torque(record)
    return nrmse_percent(record.friction[TRAIN.stop :], model[TRAIN.stop :])


def method_rows(kind: str, duration: float | None) -> list[tuple[str, float, float]]:
    """Return method, thesis' figure, ours for a kind of truth."""
    record, backlash = reciprocation(kind, duration)
    return [(method, thesis, held_out(record, method, backlash)) for method, thesis in THESIS.items()]


# -- what it is worth under load -------------------------------------------------------------------------------------


def load_reference(seed: int, steps: int = 14) -> tuple[Array, Array, Array]:
    """Return q, q̇, q̈ (periods, joints) of joint 2 from upright to level: forwards and back a little, 0.05 rad/s."""
    rng = np.random.default_rng(seed)
    forwards, back = rng.uniform(0.14, 0.20, steps), rng.uniform(0.04, 0.09, steps)
    forwards *= (0.5 * np.pi + back.sum()) / forwards.sum()
    pieces, start = [], -0.5 * np.pi
    for way in np.column_stack([forwards, -back]).ravel():
        pieces.append(start + _ramped(way))
        start += way
    q = np.tile([0.0, 0.0, 0.0, *WRIST], (sum(map(len, pieces)), 1))
    q[:, 1] = np.concatenate(pieces)
    qd = np.gradient(q, 1.0 / RATE, axis=0)
    return q, qd, np.gradient(qd, 1.0 / RATE, axis=0)


def _ramped(way: float, speed: float = 0.05, rise: float = 0.2) -> Array:
    """Return positions from 0 to `way` at a speed that rises and falls as a half cosine in `rise` s."""
    time = abs(way) / speed + rise
    t = np.arange(0.0, time, 1.0 / RATE)
    up = np.clip(t / rise, 0.0, 1.0)
    down = np.clip((time - t) / rise, 0.0, 1.0)
    profile = 0.25 * (1.0 - np.cos(np.pi * up)) * (1.0 - np.cos(np.pi * down))
    path = np.cumsum(profile)
    result: Array = way * path / path[-1]
    return result


def under_load() -> dict[str, float]:
    """Return the largest load (Nm) and how many times better E-GMS is than the sgn law, in torque and in tracking."""
    arm = jointwise.robot("ur5e")
    digital = digital_robot(arm, payload=PAYLOAD)
    trained = {method: _trained(arm, digital, method) for method in ("nlr", "sgn")}
    q, qd, qdd = load_reference(seed=2)
    rigid = inverse_dynamics(arm, q, qd, qdd, payload=PAYLOAD)
    record = _record(arm, digital, run_along(digital, q, qd, rigid), seed=12)
    torque = {m: float(np.mean((record.friction - law.torque(record)) ** 2)) for m, law in trained.items()}
    load = inverse_dynamics(arm, q, qd, qdd, payload=PAYLOAD, rotor_inertias=np.zeros(arm.dof))[:, 1]
    tracking = {}
    for method, law in trained.items():
        forward = rigid.copy()
        forward[:, 1] += law.torque(Motion(q[:, 1], qd[:, 1], load, 1.0 / RATE))
        run = run_along(digital, q, qd, forward)
        tracking[method] = float(np.mean((run.theta[:, 1] - q[:, 1]) ** 2))
    return {
        "load": float(np.abs(load).max()),
        "sgn torque": torque["sgn"],
        "nlr torque": torque["nlr"],
        "sgn tracking": tracking["sgn"],
        "nlr tracking": tracking["nlr"],
    }


def _record(arm: Robot, digital: DigitalRobot, run: Run, seed: int) -> JointRecord:
    return joint_record(log_of(run, digital, LOAD_NOISE, seed), arm, 1, payload=PAYLOAD)


def _trained(arm: Robot, digital: DigitalRobot, method: str) -> FrictionLaw:
    q, qd, qdd = load_reference(seed=1)
    run = run_along(digital, q, qd, inverse_dynamics(arm, q, qd, qdd, payload=PAYLOAD))
    return friction_law(identify_hysteresis(_record(arm, digital, run, seed=11), method=method, load="square"))


# -- a real robot ---------------------------------------------------------------------------------------------------

REAL_TRAIN = "id_20_02_12_50sec_12harm.csv"
REAL_TEST = ("id_20_02_12_40sec_12harm.csv", "id_20_02_19_14harm50sec.csv", "id_20_02_05_20sec_8harm.csv")
REAL_CUTOFF = 8.0
REAL_LOAD = 30.0
"""Load (Nm) from which on friction may grow with it."""


def real_rows(folder: Path) -> list[tuple[int, str, float, float]]:
    """Return joint, what was found, and the mean NRMSE (%) of friction on unseen logs: without memory and with."""
    arm, train = jointwise.robot("ur10e"), read_log(folder / REAL_TRAIN)
    known = calibrate(train, arm)
    found = []
    for joint in range(arm.dof):
        options = {"gain": float(known.gains[joint]), "load": known.body_torque, "inertia": 0.0, "cutoff": REAL_CUTOFF}
        own = joint_record(train, arm, joint, **options)  # type: ignore[arg-type]
        others = [joint_record(read_log(folder / name), arm, joint, **options) for name in REAL_TEST]  # type: ignore[arg-type]
        found.append((joint + 1, *_real_scores(own, others)))
    return found


def _real_scores(own: JointRecord, others: list[JointRecord]) -> tuple[str, float, float]:
    viscous, loaded = viscous_of(own), "square" if float(np.abs(own.load).max()) > REAL_LOAD else "none"

    def score(part: Part) -> float:
        law = friction_law(part)
        moving = [~at_rest(one.path, one.rate) for one in others]
        told = [law.torque(one) + viscous(one.speed, None) for one in others]
        pairs = zip(others, told, moving, strict=True)
        return float(np.mean([nrmse_percent(one.friction[m], t[m]) for one, t, m in pairs]))

    static = max(score(identify_hysteresis(own, method=name, steady=viscous, load=loaded)) for name in ("sgn", "tanh"))
    try:
        part = identify_hysteresis(own, steady=viscous, load=loaded)
    except EstimationError as refusal:
        return str(refusal).split(": ", 2)[2].split(";")[0], static, float("nan")
    limits = ", ".join(f"{1e3 * D:.2g}" for D in part.settings["law"]["limits"])
    return f"{part.model}, D {limits} mrad", static, score(part)


def viscous_of(record: JointRecord) -> Callable[[Array, Array | None], Array]:
    """Return ``a ω + b |ω| ω + c sgn(ω) √|ω|`` fitted beside Coulomb friction and an offset where the joint moves."""

    def columns(speed: Array) -> Array:
        return np.column_stack([speed, np.abs(speed) * speed, np.sign(speed) * np.sqrt(np.abs(speed))])

    moving = np.abs(record.speed) > 0.05
    all_columns = np.column_stack([columns(record.speed), np.sign(record.speed), np.ones(record.samples)])
    factors = np.linalg.lstsq(all_columns[moving], record.friction[moving], rcond=None)[0][:3]
    return lambda speed, _: columns(speed) @ factors


# -- the table ---------------------------------------------------------------------------------------------------------


def rows(quick: bool = False) -> list[tuple[str, float, float]]:
    """Return what, the thesis' figure and ours."""
    duration = 250.0 if quick else None
    found = [(f"hysteresis {name}, M = 4, %", a, b) for name, a, b in method_rows("perturbed", duration)]
    worth = under_load()
    found.append(("E-GMS against sgn: torque MSE, times", 2.1, worth["sgn torque"] / worth["nlr torque"]))
    found.append(("E-GMS against sgn: tracking MSE, times", 1.5, worth["sgn tracking"] / worth["nlr tracking"]))
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="250 s instead of a whole turn")
    parser.add_argument("--data", type=Path, help="folder of the UR10e's logs")
    asked = parser.parse_args()
    quick = asked.quick
    if asked.data is not None:
        print("UR10e, NRMSE % of friction on unseen logs: best map without memory, with hysteresis")
        for joint, what, static, own in real_rows(asked.data):
            print(f"joint {joint}: {static:6.1f}{own:7.1f}   {what}")
        return
    print(f"fitted on 50 s, tested on what follows; current noise {NOISE} A rms; four elements, mean backlash known")
    for kind in ("perturbed", "own", "all"):
        print(f"\ntruth: {kind}\n{'method':16}{'thesis %':>10}{'ours %':>10}")
        for method, thesis, ours in method_rows(kind, 250.0 if quick else None):
            print(f"{method:16}{thesis:10.1f}{ours:10.2f}")
    print("\nunder load (joint 2, 7.5 kg, 0.05 rad/s), E-GMS against sgn")
    worth = under_load()
    print(f"largest load {worth['load']:.0f} Nm")
    for what, unit, least in (("torque", "Nm²", 2.1), ("tracking", "rad²", 1.5)):
        sgn, own = worth[f"sgn {what}"], worth[f"nlr {what}"]
        print(f"{what:10} MSE sgn {sgn:.4g} {unit}, E-GMS {own:.4g} {unit}: {sgn / own:.2f} times (thesis {least})")


if __name__ == "__main__":
    main()
