"""Motions of files: what was planned is run, and not the rounding of its digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointwise
from jointwise.data import read_log
from jointwise.design import Trajectory, make_experiment, sampled_motion
from jointwise.design.sampled import experiment_from_log, noise_of
from jointwise.errors import JointwiseError
from jointwise.spatial import Array

ARM = jointwise.load_robot("ur5e")
FINE = np.linspace(0.0, 4.0, 3001)


def planned(name: str = "ellipse", rate: float = 500.0) -> tuple[Trajectory, Array, Array]:
    motion = make_experiment(name, ARM, 4.0).motion
    t = np.arange(0.0, 4.0 + 1e-9, 1.0 / rate)
    return motion, t, motion.position(t)


@pytest.mark.parametrize("step", [5e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("rate", [500.0, 125.0, 50.0])
def test_rounding_does_not_become_acceleration(step: float, rate: float) -> None:
    """A quintic through positions rounded to 0.1 mrad at 500 Hz would be off by 20 rad/s² rms."""
    motion, t, q = planned(rate=rate)
    error = sampled_motion(ARM, t, step * np.round(q / step)).at(FINE).qdd - motion.at(FINE).qdd
    assert error.std() < 0.03 * motion.at(FINE).qdd.std()


def test_noise_and_an_uneven_clock_do_not_become_acceleration() -> None:
    motion, t, _ = planned()
    rng = np.random.default_rng(1)
    uneven = t + np.where((t > 0.0) & (t < 4.0), rng.uniform(-4e-4, 4e-4, len(t)), 0.0)
    q = motion.position(uneven) + 5e-5 * rng.normal(size=(len(t), 6))
    np.testing.assert_allclose(noise_of(uneven, q), 5e-5, rtol=0.1)
    assert (sampled_motion(ARM, uneven, q).at(FINE).qdd - motion.at(FINE).qdd).std() < 0.1


def test_a_motion_goes_along_all_samples_by_their_resolution() -> None:
    """Also where the acceleration jumps, as in the moves of many planners."""
    _, t, q = planned("bang-coast-bang")
    again = sampled_motion(ARM, t, np.round(q, 4))
    assert np.abs(again.position(t) - q).max() < 1.5e-4
    ends = again.at(np.array([0.0, 4.0 - 1e-12]))
    assert np.abs(ends.qd).max() < 1e-9 and np.abs(ends.qdd).max() < 1e-6


def test_positions_with_all_digits_are_kept() -> None:
    for rate in (500.0, 50.0):
        motion, t, q = planned("bspline", rate)
        assert np.abs(sampled_motion(ARM, t, q).at(FINE).qdd - motion.at(FINE).qdd).max() < 1e-4


def written(path: Path, t: Array, q: Array, names: str = "q") -> Path:
    head = ",".join(["t", *(f"{names}{k}" for k in range(1, q.shape[1] + 1))])
    np.savetxt(path, np.column_stack([t, q]), delimiter=",", header=head, comments="", fmt="%.9g")
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, q: (t, np.rad2deg(q)), "plan.csv: the position of joint .* in degrees"),
        (lambda t, q: (t + 9.0 * (np.arange(len(t)) < 7), q), "row 9"),
        (lambda t, q: (np.delete(t, slice(800, 1200)), np.delete(q, slice(800, 1200), 0)), "0.802 s are missing"),
        (lambda t, q: (t[::200], q[::200]), "0.4 s between samples"),
        (lambda t, q: (t[500:], q[500:]), "cut the file"),
        (lambda t, q: (t, q[:, :5]), "has 5 joints"),
    ],
)
def test_files_that_are_no_motion_are_refused_with_their_name(tmp_path: Path, change: Any, words: str) -> None:
    path = written(tmp_path / "plan.csv", *change(*planned()[1:]))
    with pytest.raises(JointwiseError, match=words) as problem:
        experiment_from_log(ARM, read_log(path, joints=6, needed=()))
    assert "plan.csv: " in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize("digits", [15, 3])
def test_the_arm_stands_where_samples_of_a_rest_are_missing(digits: int) -> None:
    _, t, q = planned()
    times = np.concatenate([t, [4.002, 4.004, 33.996, 33.998], 34.0 + t])
    positions = np.round(np.vstack([q, np.repeat(q[-1:], 4, axis=0), q[-1] + q - q[0]]), digits)
    motion = sampled_motion(ARM, times, positions)
    waiting = motion.at(np.linspace(4.1, 33.9, 300))
    assert motion.duration == pytest.approx(38.0)
    assert np.abs(waiting.q - q[-1]).max() < 10.0**-digits + 1e-9 and np.abs(waiting.qd).max() < 0.01


def test_a_log_is_replayed_as_it_was_commanded(tmp_path: Path) -> None:
    made = jointwise.simulate("planar2", "bspline", duration=4.0)
    made.write(tmp_path / "log.csv")
    log = read_log(tmp_path / "log.csv")
    plan = experiment_from_log(made.digital.robot, log)
    assert plan.note == "q_des of log.csv"
    np.testing.assert_allclose(plan.motion.at(log.t - log.t[0]).qdd, log.qdd_des, atol=1e-3)
    truth = jointwise.simulate("planar2", plan).truth["experiment"]
    assert truth["source"] == {
        "file": "log.csv", "sha256": log.origin.sha256, "channel": "q_des", "samples": log.samples,
    }  # fmt: skip


def test_smoothing_and_repeated_samples_are_reported(tmp_path: Path) -> None:
    _, t, q = planned()
    rows = np.sort(np.append(np.arange(len(t)), 300))
    note = experiment_from_log(ARM, read_log(written(tmp_path / "p.csv", t[rows], np.round(q[rows], 4)))).note
    assert "1 samples dropped" in note and "smoothed by up to" in note
