"""Stiffness: the spring of the digital robot lies within its interval; data that do not determine it are rejected."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from joint_runs import joint_log
from jointwise.errors import EstimationError
from jointwise.joint.gear import stiffness_of
from jointwise.joint.part import Part, value_of
from jointwise.joint.record import JointRecord, joint_record
from jointwise.joint.stiffness import PolynomialSpring, find_damping, fit_spring, identify_stiffness, stiffness_rows
from jointwise.model.spring import OddPolynomial

GEAR = ("kinematic_error", "lost_motion")
LINEAR, CUBIC = 15_000.0, 5e7


@cache
def locked(gauge: bool = True, seed: int = 0, without: tuple[str, ...] = GEAR) -> JointRecord:
    log, digital = joint_log("locked", gauge=gauge, seed=seed, without=without)
    return joint_record(log, digital.robot, 0)


@cache
def gauged() -> Part:
    return identify_stiffness(locked())


def test_a_locked_output_with_gauge_and_current_gives_the_cubic_spring() -> None:
    part = gauged()
    assert part.model == "cubic"
    assert part.value("a_1").covers(LINEAR) and part.value("a_3").covers(CUBIC)
    assert part["a_1"] == pytest.approx(LINEAR, rel=1e-3) and part["a_3"] == pytest.approx(CUBIC, rel=1e-2)
    assert part.held_out is not None and part.held_out > 98.0


def test_the_current_alone_gives_the_spring_if_rotor_friction_is_separated_from_it() -> None:
    part = identify_stiffness(locked(gauge=False))
    assert part.value("a_1").covers(LINEAR) and part.value("a_3").covers(CUBIC)
    quality = {item.model: item.held_out or 0.0 for item in part.alternatives}
    assert quality["cubic"] > quality["cubic, friction neglected"] + 5.0


@cache
def unknown_gear() -> Part:
    return identify_stiffness(moved()[0])


def test_free_motion_of_a_loaded_joint_gives_the_spring_through_the_errors_of_the_gear() -> None:
    part = unknown_gear()
    assert part.settings["data"] == "free"
    assert part.value("a_1").covers(LINEAR) and part.value("a_3").covers(CUBIC)


@cache
def moved() -> tuple[JointRecord, Part]:
    """Free motion of the shoulder with all phenomena, and the true gear as a transmission part."""
    log, digital = joint_log("bang-coast-bang", joint=None, duration=20.0)
    joint = digital.joints[1]
    waves = {key: [getattr(wave, key[:-1]) for wave in joint.kinematic_error] for key in ("amplitudes", "phases")}
    orders = [int(wave.order) for wave in joint.kinematic_error]
    lost = (joint.lost_motion.fraction * np.array(joint.backlash.values)).tolist()
    settings = {"kinematic_error": {"mean": 0.0, "orders": orders, **waves}, "lost_motion": {"values": lost}}
    settings["reach"] = joint.lost_motion.reach
    gear = Part("transmission", "true", (value_of("offset", "rad", 0.0, 0.0),), 100.0, settings=settings)
    return joint_record(log, digital.robot, 1), gear


def test_damping_comes_back_from_free_motion_where_the_gear_is_known() -> None:
    record, gear = moved()
    part = identify_stiffness(record, transmission=gear)
    assert part.value("damping").covers(8.0)
    assert part["damping"] == pytest.approx(8.0, rel=0.05)
    law = stiffness_of(Part.from_dict(part.to_dict()))
    phi, rate = np.array([0.001, -0.002]), np.array([0.5, 0.1])
    np.testing.assert_allclose(law.damped_torque(phi, rate) - law.torque(phi), part["damping"] * rate)
    curve = next(curve for curve in part.curves if curve.title.startswith("Damping"))
    assert float(np.std(curve.residual)) < 0.3 * float(np.std(curve.y))


def test_an_unknown_gear_hides_the_damping_in_free_motion() -> None:
    part = unknown_gear()
    assert all(value.name != "damping" for value in part.values)
    assert "damping is not determined: kinematic errors mask it" in " ".join(part.notes)
    assert stiffness_of(part).damping == 0.0


def test_a_locked_output_determines_damping_by_its_gauge_and_not_by_the_current() -> None:
    assert gauged().value("damping").covers(8.0)
    assert gauged()["damping"] == pytest.approx(8.0, rel=0.15)
    rows = stiffness_rows(locked(gauge=False)).reduced()
    value, words = find_damping(fit_spring(PolynomialSpring(2), rows), False)
    assert value is None
    assert "rotor friction hides it" in words


def test_a_torque_that_is_stamped_late_gives_no_damping() -> None:
    record = locked()
    assert record.gauge is not None
    rows = stiffness_rows(replace(record, gauge=np.roll(record.gauge, 3))).reduced()  # 3 ms; D/K is 0.5 ms
    value, words = find_damping(fit_spring(PolynomialSpring(2), rows), False)
    assert value is None
    assert "ms late" in words


def test_shuffled_rates_give_no_damping() -> None:
    rows = stiffness_rows(locked()).reduced()
    mixed = replace(rows, rate=np.random.default_rng(0).permutation(rows.rate))
    value, _ = find_damping(fit_spring(PolynomialSpring(2), mixed), False)
    assert value is None or value.covers(0.0)


@pytest.mark.thorough
def test_an_unknown_gear_widens_the_interval_so_that_it_holds_the_spring() -> None:
    part = identify_stiffness(locked(without=()))
    assert part.value("a_1").covers(LINEAR) and part.value("a_3").covers(CUBIC)
    assert any("Identify the transmission first" in note for note in part.notes)
    band = next(curve for curve in part.curves if curve.title == "Stiffness over deformation")
    at_zero = int(np.argmin(np.abs(band.line_x)))
    a_1 = part.value("a_1")
    assert (band.low[at_zero], band.high[at_zero]) == pytest.approx((a_1.low, a_1.high), rel=0.01)


@pytest.mark.thorough
def test_intervals_of_noisy_gauges_cover_the_truth_at_most_seeds() -> None:
    record, spring = locked(), OddPolynomial((LINEAR, CUBIC))
    assert record.phi is not None
    covered = []
    for seed in range(6):
        noise = 3.0 * np.random.default_rng(seed).normal(size=record.samples)
        noisy = replace(record, gauge=spring.torque(record.phi) + noise, unit="A")
        part = identify_stiffness(noisy)
        a_1, extra = part.value("a_1"), 0.02 * part["a_1"]
        bare = np.sqrt(a_1.deviation**2 - extra**2)
        covered.append(abs(a_1.value - LINEAR) < 2.04 * bare)
    assert sum(covered) >= 4


def test_fitted_segments_stiffen_and_beat_a_line() -> None:
    part = gauged()
    assert 0.0 < part["K1"] <= part["K2"] <= part["K3"] and part["T1"] < part["T2"]
    quality = {item.model: item.held_out or 0.0 for item in part.alternatives}
    assert quality["segments, fitted"] > quality["linear"]
    assert quality["cubic"] > quality["segments, HFUS-20"] + 10.0


def test_the_law_survives_a_file_and_inverts_itself() -> None:
    law = stiffness_of(Part.from_dict(gauged().to_dict()))
    torque = np.linspace(-150.0, 150.0, 31)
    np.testing.assert_allclose(law.torque(law.deformation(torque)), torque, atol=1e-8)
    beyond = np.array([law.largest, 2.0 * law.largest])
    assert np.ptp(law.stiffness(beyond)) == 0.0


def test_curves_hold_band_and_residual() -> None:
    titles = [curve.title for curve in gauged().curves]
    assert "Stiffness over deformation" in titles and "Hysteresis of the locked rotor" in titles
    curve = gauged().curves[0]
    assert len(curve.line_x) == len(curve.low) == len(curve.high)
    assert len(curve.residual) == len(curve.x)


def assert_rejected(record: JointRecord, words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        identify_stiffness(record)


def test_without_rotor_encoder_it_is_rejected() -> None:
    assert_rejected(replace(locked(), phi=None, theta=None), "no rotor position")


def test_a_deformation_of_a_few_counts_is_rejected() -> None:
    record = locked()
    assert record.theta is not None and record.phi is not None
    step = 2 * np.pi / 2048
    coarse = np.round(record.theta / step) * step
    assert_rejected(replace(record, theta=coarse, phi=coarse - (record.theta - record.phi)), "counts")


def test_a_load_that_never_varies_is_rejected() -> None:
    record = locked()
    still = np.full(record.samples, 5.0)
    assert_rejected(replace(record, gauge=still), "load never varies")


def test_a_saturated_current_is_rejected() -> None:
    record = locked(gauge=False)
    assert_rejected(replace(record, motor=np.clip(record.motor, -40.0, 40.0)), "saturated")


def test_shuffled_torques_are_rejected() -> None:
    record = locked()
    mixed = np.random.default_rng(0).permutation(record.samples)
    assert record.gauge is not None
    assert_rejected(replace(record, gauge=record.gauge[mixed], motor=record.motor[mixed]), "beyond noise")


def test_torques_of_another_time_are_rejected() -> None:
    record = locked()
    assert record.gauge is not None
    other = np.roll(record.gauge, record.samples // 3)[::-1]
    assert_rejected(replace(record, gauge=other, unit="A"), "does not follow|standard error of")


def test_slow_motion_without_load_is_rejected() -> None:
    log, digital = joint_log("reciprocate", duration=34.0)
    quiet = joint_record(log, digital.robot, 0, load=lambda q, qd, qdd: np.zeros_like(q))
    assert_rejected(quiet, "load never varies")
