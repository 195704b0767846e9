"""Column names of robots: detected by the header, with units, and never against the user's mapping."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from jointwise.data.channels import CHANNELS
from jointwise.data.columns import presets

JOINTS = 6


def write(path: Path, stems: dict[str, np.ndarray], stamp: str) -> None:
    t = np.arange(50) / 100.0
    names = [stamp, *(f"{stem}_{j}" for stem in stems for j in range(JOINTS))]
    rows = np.column_stack([t, *stems.values()])
    np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="")


def values(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(50, JOINTS))


def test_presets_name_known_channels_units_and_sources() -> None:
    for preset in presets().values():
        assert set(preset.columns) <= set(CHANNELS)
        assert set(preset.units) <= set(preset.columns)
        assert set(preset.detect) <= set(preset.columns.values())
        assert preset.source


def test_franka_state_is_read_with_both_encoders(tmp_path: Path) -> None:
    stems = {"q": values(0), "dq": values(1), "theta": values(2), "tau_J": values(3), "q_d": values(4)}
    write(tmp_path / "log.csv", stems, "time")
    log = jw.read_log(tmp_path / "log.csv")
    assert log.origin.notes[0] == "columns of the Franka robot state"
    assert "reading: columns of the Franka robot state" in jw.inspect(log).summary()
    for channel, stem in (("q", "q"), ("qd", "dq"), ("theta", "theta"), ("torque", "tau_J"), ("q_des", "q_d")):
        np.testing.assert_allclose(log.channel(channel), stems[stem])


@pytest.mark.parametrize(
    ("stems", "stamp", "scale"),
    [
        (("actual_joint_position", "actual_joint_velocity", "actual_motor_torque"), "time_stamp", np.pi / 180.0),
        (("angles", "realtime_joint_speeds", "joints_torque"), "timestamp", np.pi / 180.0),
        (("measured_joint_position", "commanded_torque", "measured_torque"), "time_stamp_sec", 1.0),
    ],
)
def test_units_of_the_interface_are_converted(
    tmp_path: Path, stems: tuple[str, str, str], stamp: str, scale: float
) -> None:
    data = {stem: values(k) for k, stem in enumerate(stems)}
    write(tmp_path / "log.csv", data, stamp)
    log = jw.read_log(tmp_path / "log.csv")
    np.testing.assert_allclose(log.q, scale * data[stems[0]])
    np.testing.assert_allclose(log.channel("torque"), data[stems[2]])


def test_mapping_of_the_user_takes_precedence(tmp_path: Path) -> None:
    stems = {"q": values(0), "dq": values(1), "tau_J": values(2)}
    write(tmp_path / "log.csv", stems, "time")
    log = jw.read_log(tmp_path / "log.csv", columns="torque=tau_J_0..tau_J_5,qd=q_0..q_5,q=dq_0..dq_5")
    np.testing.assert_allclose(log.q, stems["dq"])
