"""The joint report: findings, meanings of parameters, measured areas, systematic residuals."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from jointwise.formatting import number
from jointwise.joint.curve import Curve, Surface, plain
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part, TriedModel, value_of
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.report.figure import packed
from jointwise.report.joint import curve_figure, measured_areas, render_joints, surface_figure
from jointwise.report.joint_text import MEANINGS, finding, fit_grade, meaning
from jointwise.result.diagnostics import smooth_share
from report_numbers import numbers

RNG = np.random.default_rng(1)
SPEEDS = np.geomspace(0.1, 2.0, 30)


def friction(quality: float = 98.0) -> Part:
    line = np.concatenate([-SPEEDS[::-1], SPEEDS])
    torque = np.sign(line) * 10.0 + 5.0 * line
    y = plain(torque)
    curve = Curve("Friction", "speed [rad/s]", "friction [Nm]", plain(line), y, plain(line), y, y, y, (0.0,) * 60)
    values = (value_of("F_C", "Nm", 10.0, 0.1), value_of("F_V1", "Nm s/rad", 14760.0, 300.0))
    ranges = {"speed": (0.1, 2.0), "load": (-1.0, 2.0)}
    return Part("friction", "Coulomb + viscous", values, quality, quality, ranges=ranges, curves=(curve,))


def load() -> Part:
    grid = (tuple(np.linspace(0.1, 2.0, 5)), tuple(np.linspace(0.0, 60.0, 5)))
    surface = Surface("Map", "speed [rad/s]", "load [Nm]", "friction [Nm]", *grid, ((1.0,) * 5,) * 5)
    ranges = {"speed": (0.5, 0.5), "load": (-60.0, 10.0)}
    values = (value_of("F_l", "1/Nm", 1e-3, 1e-4),)
    return Part("load", "square", values, 90.0, 90.0, ranges=ranges, surfaces=(surface,))


def page(*parts: Part) -> str:
    return render_joints([JointModel("ur5e", 1, {part.phenomenon: part for part in parts})], "joint2.json")


def words(text: str) -> str:
    return re.sub(r"<[^>]+>", " ", text)


def test_page_states_findings_and_usage() -> None:
    text = words(page(friction()))
    assert "Universal Robots UR5e, joint 2" in text
    assert "Coulomb friction is 10 Nm [9.804, 10.2]; at 2 rad/s the total friction is 20 Nm." in text
    assert "The fit to held-out data is very good." in text
    assert "fit 98.0 % on all data, 98.0 % on held-out data (100 is perfect)" in text
    assert "speed 0.1 to 2 rad/s" in text
    assert "jointwise calibrate LOG --robot ur5e --joint joint2.json" in text
    assert "14760" in text
    assert "e+04" not in text
    assert "NRMSE" not in text


@pytest.mark.parametrize(("quality", "word"), [(96.0, "very good"), (85.0, "good"), (60.0, "moderate"), (10.0, "poor")])
def test_grade_follows_the_fit(quality: float, word: str) -> None:
    assert fit_grade(friction(quality)) == f"The fit to held-out data is {word}."


def test_every_phenomenon_has_meanings_and_unknown_names_have_a_dash() -> None:
    assert set(MEANINGS) == set(PHENOMENA)
    assert meaning("hysteresis", "k12") == "stiffness of slip element 12 before it slips: W12/D12"
    assert meaning("load", "F_0 at 0.05 rad/s").startswith("friction at zero load at 0.05 rad/s")
    assert meaning("stiffness", "a_3") != meaning("stiffness", "a_1")
    assert meaning("stiffness", "unknown") == "–"


def test_insignificant_load_dependence_is_stated() -> None:
    part = Part("load", "square", (value_of("F_l", "1/Nm", 1e-6, 1e-4),), 50.0, ranges={"load": (0.0, 60.0)})
    assert finding(part) == "No load-dependent friction was found up to a load of 60 Nm."
    none = Part("load", "none", (), 0.0, -1.0, ranges={"load": (0.0, 60.0)})
    assert finding(none) == finding(part)
    assert fit_grade(none) == ""


def spring(damping: float, deviation: float) -> Part:
    values = (value_of("a_1", "Nm/rad", 15000.0, 50.0), value_of("damping", "Nm s/rad", damping, deviation))
    return Part("stiffness", "linear", values, 99.0)


def test_damping_is_stated_if_it_is_identifiable() -> None:
    assert "The damping is 8 Nm s/rad [7.608, 8.392]." in finding(spring(8.0, 0.2))
    assert "not identifiable from these data (at most 1.1 Nm s/rad)." in finding(spring(0.1, 0.5))
    assert "damping" not in finding(replace(spring(8.0, 0.2), values=spring(8.0, 0.2).values[:1]))


def gear(lost: np.ndarray, mean: float) -> Part:
    angles = np.linspace(0.0, 6.3, len(lost))
    half = np.full(len(lost), 2e-6)
    lines = [plain(angles), plain(lost), plain(lost - half), plain(lost + half)]
    curves = tuple(Curve(name, "angle [rad]", "[rad]", (), (), *lines) for name in ("Kinematic error", "Backlash"))
    values = (value_of("backlash_mean", "rad", mean, 2e-6),)
    return Part("transmission", "made", values, 99.0, ranges={"theta": (0.0, 6.3)}, curves=curves)


def test_significant_variation_of_lost_motion_is_stated() -> None:
    wave = 1e-4 * np.sin(np.linspace(0.0, 6.3, 200))
    assert "varying with position from 0.2 to 0.4 mrad." in finding(gear(3e-4 + wave, 3e-4))
    assert "without significant variation over position" in finding(gear(3e-4 + 1e-3 * wave, 3e-4))
    assert "no lost motion was found" in finding(gear(1e-9 * wave, 1e-7))


def test_lag_and_limit_of_the_current_are_stated_in_ms_and_amperes() -> None:
    values = (value_of("gain", "Nm/A", 10.0, 0.1), value_of("lag", "s", 5e-3, 1e-4), value_of("limit", "A", 5.7, 0.01))
    text = finding(Part("motor", "made", values, 99.0))
    assert "The current lags its setpoint by 5 ms [4.804, 5.196]." in text
    assert "The current is limited to 5.7 A [5.68, 5.72]." in text


def test_backlash_and_reach_are_half_the_travel() -> None:
    assert "the lost motion at a reversal is ±0.3 mrad [0.2961, 0.3039]" in finding(gear(np.full(200, 3e-4), 3e-4))
    for name in ("backlash_mean", "backlash_amplitude_3", "reach"):
        assert meaning("transmission", name).startswith("half the ")


def test_partial_turn_is_stated() -> None:
    turn = gear(np.full(200, 3e-4), 3e-4)
    arc = words(page(replace(turn, ranges={"theta": (-1.6, 1.7)})))
    assert "mrad over the measured angles" in arc and "it is not known at other angles" in arc
    assert "repeats every turn" not in arc and "over a turn" not in arc
    assert "mrad over a turn" in words(page(turn)) and "repeats every turn" in words(page(turn))


def test_friction_curve_is_interrupted_at_standstill_and_a_spring_is_not() -> None:
    def gaps(curve: Curve) -> int:
        (trace,) = [each for each in curve_figure(curve).traces if each["name"] == "model"]
        return int(np.isnan(numbers(trace["x"])).sum())

    assert gaps(friction().curves[0]) == 1
    x = plain(np.linspace(-1.0, 1.0, 40))
    assert gaps(Curve("Spring", "twist [rad]", "torque [Nm]", line_x=x, line_y=x)) == 0


def test_fit_states_its_data() -> None:
    """The chosen model was fitted to all data, those that were tried to a part, or to all but each in turn."""
    tried = (TriedModel("square", 97.0, 90.0), TriedModel("absolute", 80.0, 70.0))
    apart, in_turn = (Part("load", "square", (), fit, 90.0, alternatives=tried) for fit in (98.0, 97.0))
    first, second = (words(page(part)) for part in (apart, in_turn))
    assert "fit 98.0 % on all data, 90.0 % on held-out data" in first
    assert "training part" in first
    assert "Fit, all data" in second
    assert "training part" not in second


def test_residual_has_the_unit_of_its_curve() -> None:
    assert curve_figure(friction().curves[0]).layout["yaxis2"]["title"]["text"] == "residual [Nm]"


def test_unmeasured_areas_are_grey() -> None:
    part, model = load(), JointModel("ur5e", 1, {"friction": friction(), "load": load()})
    areas = measured_areas(part.surfaces[0], part, model)
    assert sorted(areas) == [((0.1, 2.0), (0.0, 2.0)), ((0.5, 0.5), (0.0, 60.0))]
    shapes = surface_figure(part.surfaces[0], areas).layout["shapes"]

    def is_grey(x: float, y: float) -> bool:
        return any(area["x0"] < x < area["x1"] and area["y0"] < y < area["y1"] for area in shapes)

    assert is_grey(1.5, 30.0)
    assert is_grey(0.2, 59.0)
    assert not is_grey(1.5, 1.0)
    assert not is_grey(0.505, 40.0)
    assert "Grey areas contain no data" in page(friction(), part)
    assert "shapes" not in surface_figure(part.surfaces[0]).layout


def test_smooth_residual_is_distinguished_from_noise() -> None:
    x = RNG.uniform(-1.0, 1.0, 400)
    noise = RNG.normal(0.0, 0.1, 400)
    share = smooth_share(x, x**2 - np.mean(x**2) + noise)
    assert share == pytest.approx(1.0 - 0.01 / (0.01 + 4.0 / 45.0), abs=0.08)
    false = sum(smooth_share(RNG.normal(size=n), RNG.normal(size=n)) is not None for n in (30, 60, 400) * 100)
    assert false == 0
    assert smooth_share(x[:10], x[:10]) is None


def test_large_numbers_have_no_exponent() -> None:
    assert [number(x) for x in (14761.0, -123456.0, 2.5e7, 0.01234, 9999.6)] == [
        "14760",
        "-123500",
        "2.5e+07",
        "0.01234",
        "10000",
    ]


def test_numbers_of_a_figure_keep_their_digits_on_linear_and_logarithmic_axes() -> None:
    for values in (np.linspace(-3.0, 4.0, 1000), np.array([2.0, np.nan, 5.0]), np.full(3, 7.0), np.array([np.nan])):
        span = np.ptp(values[np.isfinite(values)]) if np.isfinite(values).any() else 0.0
        np.testing.assert_allclose(numbers(packed(values)), values, rtol=1e-15, atol=span / 131068.0)
    travel = np.geomspace(4e-3, 40.0, 60)
    np.testing.assert_allclose(numbers(packed(travel)), travel, rtol=1e-3)
