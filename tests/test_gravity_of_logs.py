"""The gravity vector of a log: stored in the file, contradicted, or visible in its torque."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise
from cli_runs import UR10E, refused, run
from data_files import needs_shared
from jointwise.data import Log, Origin, read_log, write_log
from jointwise.data.coordinates import KEY, mounting_of_logs
from jointwise.errors import DataError, EstimationError
from jointwise.experiment import PlantOptions
from jointwise.joint import joint_record
from jointwise.joint.checks import check_gravity

WALL = (0.0, 9.81, 0.0)


def still(gravity: tuple[float, ...] | None) -> Log:
    return Log(t=np.arange(20) / 100.0, q=np.zeros((20, 2)), origin=Origin(gravity=gravity))


def slow(gravity: str | None = None) -> Log:
    return jointwise.simulate(
        "ur5e", "load", joint=1, duration=30.0, rate=100.0, plant=PlantOptions(gravity=gravity), keep=0
    ).log


def test_a_parquet_log_contains_its_gravity_and_csv_does_not(tmp_path: Path) -> None:
    for name, reported in (("a.parquet", WALL), ("a.csv", None)):
        write_log(still(WALL), tmp_path / name)
        assert read_log(tmp_path / name).origin.gravity == reported


def test_metadata_that_are_no_gravity_are_refused(tmp_path: Path) -> None:
    from pyarrow import parquet

    write_log(still(None), tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet").replace_schema_metadata({KEY: b"[0, 1]"})
    parquet.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(DataError, match="three finite numbers"):
        read_log(tmp_path / "b.parquet")


def test_a_gravity_option_is_used_only_if_the_logs_do_not_contradict_it() -> None:
    silent, reported = still(None), still(WALL)
    assert mounting_of_logs([silent]) == "table"
    assert mounting_of_logs([silent, reported]) == list(WALL)
    assert mounting_of_logs([reported], "wall") == "wall"
    assert mounting_of_logs([reported], (0.0, 9.80665, 0.0)) == (0.0, 9.80665, 0.0)
    with pytest.raises(DataError, match="the one given is"):
        mounting_of_logs([reported], "table")
    with pytest.raises(DataError, match="is under"):
        mounting_of_logs([reported, still((0.0, 0.0, -9.81))])


def test_a_simulated_log_is_read_with_its_own_gravity() -> None:
    log = slow("wall")
    assert log.origin.gravity == pytest.approx(WALL)
    signals = joint_record(log, jointwise.load_robot("ur5e"), 1)
    assert signals.gravity == pytest.approx(WALL)
    assert np.array_equal(signals.load, joint_record(log, jointwise.load_robot("ur5e"), 1, mounting="wall").load)


@pytest.mark.parametrize(("true", "read"), [("table", "wall"), ("table", "ceiling"), ("wall", "table")])
def test_a_torque_that_asks_for_another_gravity_is_refused(true: str, read: str) -> None:
    robot, log = jointwise.load_robot("ur5e"), slow(true)
    log = replace(log, origin=replace(log.origin, gravity=None))
    check_gravity(joint_record(log, robot, 1, mounting=true))
    with pytest.raises(EstimationError, match="give --gravity or --mounting"):
        check_gravity(joint_record(log, robot, 1, mounting=read))


def test_a_wrong_gain_is_not_taken_for_another_gravity() -> None:
    robot, log = jointwise.load_robot("ur5e"), slow()
    gain = robot.joints[1].motor.joint_gain
    assert gain is not None
    for factor in (0.6, 1.0, 1.4):
        check_gravity(joint_record(log, robot, 1, gain=factor * gain))


def test_a_forgotten_gravity_stops_the_command_and_a_stored_one_is_reported(tmp_path: Path) -> None:
    recording = jointwise.simulate("ur5e", "constant-speed", joint=1, duration=60.0, rate=250.0, seed=1, keep=0)
    recording.write(tmp_path / "speeds.csv")
    recording.write(tmp_path / "speeds.parquet")
    words = ("--robot", "ur5e", "--joint", 2)
    text = refused("joint", "friction", tmp_path / "speeds.csv", *words)
    assert "does not fit gravity along 0 0 -9.81: give --gravity or --mounting" in text
    result = run("joint", "friction", tmp_path / "speeds.parquet", *words)
    assert result.code == 0, result.err
    assert "note: gravity 0 9.81 0 m/s^2, as stated in" in result.err
    text = refused("joint", "friction", tmp_path / "speeds.parquet", *words, "--mounting", "table")
    assert "recorded under gravity 0 9.81 0 m/s^2, but the one given is 0 0 -9.81" in text


@needs_shared
@pytest.mark.parametrize("joint", [1, 2, 3])
def test_real_logs_fit_the_table_they_stood_on(joint: int) -> None:
    robot, log = jointwise.load_robot("ur10e"), read_log(UR10E / f"joint_20_01_22_joint_{joint}.csv")
    for j in range(3):
        check_gravity(joint_record(log, robot, j))
    if joint > 1:
        with pytest.raises(EstimationError, match="does not fit gravity"):
            check_gravity(joint_record(log, robot, joint - 1, mounting="wall"))
