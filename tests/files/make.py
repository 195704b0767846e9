"""Writes the files of this directory: one of each kind, by the release that is installed, and what they predict.

    python tests/files/make.py [DIRECTORY] [--only NAME ...]

`tests/test_files.py` loads each of them and compares the predictions. Run this with `--only` for a new kind of file:
the files of a release stay as they are, so that later versions keep reading them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np

import jointwise as jw
from cli_runs import done
from jointwise.monitoring import History, monitor_log
from runtime_models import exact
from stored_files import numbers
from test_transmission import arm, coupled_log

HERE = Path(__file__).parent
LENGTHS = {"locked": 40.0, "constant-speed": 60.0, "load": 60.0, "reciprocate": 60.0, "warm-up": 1800.0}
"""Experiments of a joint and their durations, s."""


def simulated(robot: str | jw.Robot, seed: int, duration: float = 20.0, **options: object) -> jw.Log:
    """Return the log of a simulated excitation."""
    return jw.simulate(robot, duration=duration, rate=200.0, seed=seed, keep=0, **options).log  # type: ignore[arg-type]


def calibrated(log: jw.Log, robot: str | jw.Robot, **fixed: object) -> jw.Calibration:
    """Return a calibration with parts of the friction model fixed."""
    return jw.calibrate(log, robot, options=jw.with_friction(jw.Options(), [log], **fixed))  # type: ignore[arg-type]


def records(robot: jw.Robot, joint: int) -> list[jw.joint.JointRecord]:
    """Return the records of all experiments with a joint (from 0)."""
    found = []
    for experiment, duration in LENGTHS.items():
        rate = 20.0 if experiment == "warm-up" else 100.0
        made = jw.simulate(robot, experiment, joint=joint, duration=duration, rate=rate, seed=11, keep=0)
        found.append(jw.joint.joint_record(made.log, robot, joint, mounting=made.experiment.gravity.tolist()))
    return found


def model_ur10e(path: Path) -> None:
    """Everything selected, validated on another log."""
    jw.save_model(jw.calibrate(simulated("ur10e", 1), "ur10e", validation=simulated("ur10e", 2, 10.0)), path)


def model_panda(path: Path) -> None:
    """Joint torques instead of currents."""
    made = jw.simulate("panda", duration=20.0, rate=200.0, seed=3, keep=0)
    torque = made.log.channel("current") * np.array(made.truth["gains"])
    jw.save_model(jw.calibrate(replace(made.log, current=None, torque=torque), "panda"), path)


def model_two_encoders(path: Path) -> None:
    """Friction and rotor inertia at the rotors."""
    log = simulated("planar2", 4)
    jw.save_model(calibrated(log, "planar2", two_encoders=True), path)


def model_power_flow(path: Path) -> None:
    """Dry friction by the direction of power."""
    jw.save_model(calibrated(simulated("ur5e", 5), "ur5e", power_flow=True), path)


def model_spring(path: Path) -> None:
    """A counterbalance at every joint."""
    jw.save_model(calibrated(simulated("planar2", 6), "planar2", terms=("spring",)), path)


def model_coupled(path: Path) -> None:
    """Motors of the wrist that turn with other joints."""
    jw.save_model(calibrated(coupled_log(arm(), 7), arm()), path)


def model_payload(path: Path) -> None:
    """A payload during training, another mounting, the outputs of two joints ignored."""
    load = jw.Payload(2.0, (0.01, 0.02, 0.08), 0.01 * np.eye(3))
    log = simulated("ur5e", 8, plant=jw.PlantOptions(payload=load, gravity="ceiling"))
    current = np.array(log.current)
    current[:, 4:] = np.nan
    jw.save_model(jw.calibrate(replace(log, current=current), "ur5e", payload=load, mounting="ceiling"), path)


def model_lugre(path: Path) -> None:
    """A model with friction of a joint file, LuGre among it, held as it is."""
    log, joints = simulated("ur5e", 9), jw.joint.load_joints(path.with_name("joint_lugre.json"))
    jw.save_model(jw.calibrate(log, "ur5e", joints=joints, joint_values="known"), path)


def model_every_term(path: Path) -> None:
    """Every kind of term with random values."""
    jw.save_model(replace(exact("ur5e").calibration, spread=None), path)


def joint_all(path: Path) -> None:
    """All seven phenomena of a joint."""
    robot = jw.load_robot("ur5e")
    found = jw.joint.identify_all(records(robot, 1), robot)
    assert len(found.found) == len(jw.joint.PHENOMENA), found.refused
    jw.joint.save_joint(found.model, path)


def joint_lugre(path: Path) -> None:
    """LuGre, slip elements, rate-dependent ones, and the non-linear regression: one joint each."""
    robot = jw.load_robot("ur5e")
    for joint, method in enumerate(("lugre", "gms", "rate-gms", "nlr")):
        made = jw.simulate(robot, "reciprocate", joint=joint, duration=60.0, rate=100.0, seed=12, keep=0)
        record = jw.joint.joint_record(made.log, robot, joint, mounting=made.experiment.gravity.tolist())
        part = jw.joint.identify_hysteresis(record, method=method)
        jw.joint.save_joint(jw.joint.JointModel("ur5e", joint).with_part(part), path)


def truth(path: Path) -> None:
    """The truth of a simulated recording with a payload, pushes and wear."""
    events = jw.Events(pushes=[jw.Push(1.0, 0.2, (5.0, 0.0, 0.0))], wear={"friction": 0.1})
    plant = jw.PlantOptions(payload=jw.Payload(1.0, (0.0, 0.0, 0.1)))
    made = jw.simulate("ur5e", duration=3.0, rate=100.0, seed=13, events=events, plant=plant)
    with TemporaryDirectory() as folder:
        made.write(Path(folder) / "log.csv", path)


def power(path: Path) -> None:
    """A power model of the DC bus."""
    logs = [simulated("ur5e", seed, sensors=jw.Sensors(rate=200.0, seed=seed, bus=True)) for seed in (14, 15)]
    jw.energy.fit_power(logs, jw.load_robot("ur5e")).save(path)


def excitation(path: Path) -> None:
    """An optimal excitation of 5 s, without its page."""
    jw.excite("planar2", path, jw.design.ExcitationOptions(duration=5.0, seed=3))
    (path / "excitation.html").unlink()


def plan(path: Path) -> None:
    """The plan of the experiments with a joint, without their trajectories."""
    with TemporaryDirectory() as folder:
        made = Path(folder) / "plan"
        done("joint", "plan", "--robot", "ur5e", "--joint", 2, "--output", made)
        shutil.copy(made / "plan.json", path)


def history(path: Path) -> None:
    """Three runs of a monitor."""
    model = jw.load_model(path.with_name("model_ur10e.json"))
    for day in (1, 2, 3):
        result = monitor_log(
            model, simulated("ur10e", 20 + day, plant=jw.PlantOptions(age={"friction": 0.05 * day}))
        ).result()
        History(path).add(result, date=datetime(2026, 1, 10 * day, tzinfo=UTC))


def aurt_bodies(path: Path) -> None:
    """A robot description that `compile-rbd` stored."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "mdh.csv"
        table.write_text("d,a,alpha\n0,0,pi/2\n0,0.5,0\n")
        done("compile-rbd", "--mdh", table, "--out", path)


def aurt_model(path: Path) -> None:
    """The same with a friction model."""
    friction = ("--friction-torque-model", "square", "--friction-viscous-powers", 1, 2)
    done("compile-rd", "--model-rbd", path.with_name("aurt_bodies.json"), *friction, "--out", path)


FILES: dict[str, Callable[[Path], None]] = {
    "model_ur10e.json": model_ur10e,
    "model_panda.json": model_panda,
    "model_two_encoders.json": model_two_encoders,
    "model_power_flow.json": model_power_flow,
    "model_spring.json": model_spring,
    "model_coupled.json": model_coupled,
    "model_payload.json": model_payload,
    "model_every_term.json": model_every_term,
    "joint_all.json": joint_all,
    "joint_lugre.json": joint_lugre,
    "model_lugre.json": model_lugre,
    "truth.json": truth,
    "power.json": power,
    "excitation": excitation,
    "plan.json": plan,
    "history.sqlite": history,
    "aurt_bodies.json": aurt_bodies,
    "aurt_model.json": aurt_model,
}
"""What is written, in an order in which files that others need come first."""


def main() -> None:
    """Write the files and what they say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", nargs="?", type=Path, default=HERE)
    parser.add_argument("--only", nargs="+", choices=list(FILES), help="some files; the numbers of the others stay")
    options = parser.parse_args()
    stored = options.directory / "predictions.npz"
    found = dict(np.load(stored)) if options.only and stored.exists() else {}
    for name in options.only or FILES:
        path = options.directory / name
        print(name, flush=True)
        FILES[name](path)
        if path.suffix == ".json":  # half the size without blanks
            path.write_text(json.dumps(json.loads(path.read_text()), separators=(",", ":")) + "\n")
        found |= {f"{name}: {what}": values for what, values in numbers(path).items()}
    np.savez_compressed(stored, **found)


if __name__ == "__main__":
    main()
