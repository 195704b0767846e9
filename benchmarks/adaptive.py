"""Adaptive feed-forward of friction on the simulated UR5e: six waypoints with 7.5 kg, two parameters per joint.

    python benchmarks/adaptive.py [--only NAME ...] [--quick] [--plot docs/figures/adaptive.png]

The figures are mean squared errors over two rounds before the release at 30 s (0.900 to 27.816 s) and two rounds after
it (55.075 to 81.991 s), joint by joint: of the torque, as the estimator predicts it from the delayed measurement
(f - f̂), and of the position (q - q_d).

- `thesis`: start (0.47, 0.04). In the thesis' experiment the torque error fell by 84.2 % and the position error by
  20.0 % on average (its units are not credible, its ratios are).
- `simple`: the same, but the controller knows a plainer law: no Stribeck curve, no asymmetry, no thermal part, the mean
  backlash.
- `nominal`, `cold` (13 °C, the thermal law unknown), `worn` (friction +50 %), `payload` (5 kg declared, 7.5 kg
  carried): start (1, 0).
- `laws`: feed-forward laws of friction without adaptation: E-GMS, GMS (no load dependence), sgn and tanh.
- `step`: time of a control step.

`--plot` draws a1 and the errors of `thesis` over time.
"""

from __future__ import annotations

from timing import cpu_name, use_one_thread

use_one_thread()

import argparse  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from pathlib import Path  # noqa: E402
from time import perf_counter  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise.control import (  # noqa: E402  # noqa: E402
    AdaptationOptions,
    PeriodicTable,
    SlipFriction,
    Stribeck,
    ThermalFriction,
    adaptive,
    computed_torque,
)
from jointwise.design.piecewise import thesis_waypoints  # noqa: E402
from jointwise.experiment.closed_loop import drives_of, run_loop, sample_of  # noqa: E402
from jointwise.experiment.controllers import slip_friction_of  # noqa: E402
from jointwise.model.terms import direction  # noqa: E402
from jointwise.simulation.robot import DigitalRobot, digital_robot  # noqa: E402
from jointwise.spatial import Array  # noqa: E402

RATE = 1000.0
PAYLOAD = jw.Payload(7.5, (0.0, 0.0, 0.1))
WARM, COLD = 35.0, 13.0
THESIS_TORQUE = (91.5, 75.7, 87.4, 65.6, 90.7, 94.0)
THESIS_POSITION = (42.3, 40.8, 21.4, 4.8, 2.9, 7.6)
TANH_WIDTH = 0.05
"""rad/s"""
JOINTS = ("#1b4965", "#3d82ab", "#8fbcd4", "#7f4f24", "#c97b3c", "#e6b98a")
"""Colours of the joints."""


@dataclass(frozen=True)
class Windows:
    """Times in s: duration, release, and the two parts that are compared."""

    duration: float = 82.0
    release: float = 30.0
    before: tuple[float, float] = (0.9, 27.816)
    after: tuple[float, float] = (55.075, 81.991)


QUICK = Windows(41.0, 13.5, (0.9, 13.5), (27.816, 40.416))
"""The same part of the round before and after."""


class Recorder:
    """Keeps a1, a2 and the prediction error of every period."""

    def __init__(self, controller: Any) -> None:
        self.controller, self.rate, self.periods = controller, controller.rate, controller.periods
        self.rows: list[tuple[Array, Array, Array]] = []
        self.memory: Any = None

    def init(self, sample: Any) -> Any:
        """Return the memory of the controller."""
        return self.controller.init(sample)

    def step(self, memory: Any, sample: Any) -> tuple[Array, Any]:
        """Return the torque and the memory of the controller."""
        torque, memory = self.controller.step(memory, sample)
        self.rows.append((memory.adapted.factor, memory.adapted.viscous, memory.adapted.error))
        self.memory = memory
        return torque, memory


def plain(friction: SlipFriction) -> SlipFriction:
    """Return a law without Stribeck curve, asymmetry and thermal part, and with the mean backlash."""
    laws = [replace(law, stribeck=Stribeck(), asymmetry=0.0, thermal=ThermalFriction()) for law in friction.laws]
    tables = [PeriodicTable((float(np.mean(table.values)),)) for table in friction.backlash]
    return SlipFriction(tuple(laws), tuple(tables))


class Outcome(NamedTuple):
    """Torque error, position error, a1 and a2 (samples, joints), and notes at the end."""

    error: Array
    position: Array
    a1: Array
    a2: Array
    notes: list[str]


def run(
    digital: DigitalRobot, known: DigitalRobot, windows: Windows, friction: SlipFriction, *,
    start: tuple[float, float] = (1.0, 0.0), temperature: float = WARM, options: AdaptationOptions | None = None,
) -> Outcome:  # fmt: skip
    """Return what happened; the controller takes the robot for `known`."""
    motion = _rounds(thesis_waypoints(known.robot))
    controller = adaptive(
        known.robot, motion, RATE, motor_gains=known.gains, friction=friction,
        drives=drives_of(known), payload=known.payload, start=start, release=windows.release, options=options,
        duration=windows.duration,
    )  # fmt: skip
    recorder = Recorder(controller)
    state = digital.rest(motion(np.zeros(1), 0)[0], temperature)
    result = run_loop(digital, state, recorder)
    a1, a2, error = (np.array(column) for column in zip(*recorder.rows, strict=True))
    return Outcome(error, result.q - motion(result.t, 0), a1, a2, controller.notes(recorder.memory))


def _rounds(motion: Any) -> Callable[[Array, int], Array]:
    """Return a round that is repeated for ever."""
    return lambda t, order: motion.derivative(np.mod(t, motion.duration), order)


def mse(values: Array, window: tuple[float, float]) -> Array:
    rows = values[int(window[0] * RATE) : int(window[1] * RATE)]
    result: Array = np.square(rows).mean(axis=0)
    return result


def line(name: str, values: Array, form: str = "9.4g") -> None:
    print(f"  {name:32}" + "".join(f" {value:{form}}" for value in values) + f" {np.mean(values):{form}}")


def report(name: str, windows: Windows, outcome: Outcome) -> None:
    """Print mean squared errors before and after the release, and their reduction."""
    error, position, a1, a2, notes = outcome
    print(f"\n{name}: joint 1 .. 6, mean")
    for title, values, scale in (("torque MSE, Nm²", error, 1.0), ("position MSE, mrad²", position, 1e6)):
        before, after = scale * mse(values, windows.before), scale * mse(values, windows.after)
        line(f"{title} before", before)
        line(f"{title} after", after)
        line("  reduced by, %", 100.0 * (1.0 - after / before), "9.1f")
    line("a1 at the end", a1[-1], "9.3f")
    line("a2 at the end, Nm s/rad", a2[-1], "9.3f")
    for note in notes:
        print(f"  {note}")


def draw(outcome: Outcome, windows: Windows, path: Path) -> None:
    """Draw a1 and the root mean square of the errors over 1 s of every joint over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 7.0), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True)
    second = int(RATE)
    t = np.arange(len(outcome.a1) // second) + 0.5
    for j, colour in enumerate(JOINTS):
        axes[0].plot(
            np.arange(len(outcome.a1))[::20] / RATE, outcome.a1[::20, j], color=colour, lw=1.1, label=f"joint {j + 1}"
        )
        for axis, values in zip(axes[1:], (outcome.error, 1e3 * outcome.position), strict=True):
            blocks = values[: len(t) * second, j].reshape(-1, second)
            axis.semilogy(t, np.sqrt(np.square(blocks).mean(axis=1)), color=colour, lw=1.1)
    for axis, label in zip(axes, ("a1 (true: 1)", "torque error [Nm]", "position error [mrad]"), strict=True):
        axis.axvline(windows.release, color="black", linewidth=0.8, linestyle=":")
        axis.set_ylabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].text(windows.release + 0.4, 0.5, "adaptation released", fontsize=9)
    axes[2].set(xlabel="time [s]", xlim=(0.0, windows.duration))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)


def scenarios(windows: Windows, plot: Path | None = None) -> dict[str, Callable[[], None]]:
    robot = jw.load_robot("ur5e")
    known = digital_robot(robot, payload=PAYLOAD)
    light = known.with_payload(jw.Payload(5.0, (0.0, 0.0, 0.1)))
    friction = slip_friction_of(known)

    def thesis(law: SlipFriction, title: str, path: Path | None = None) -> None:
        outcome = run(known, known, windows, law, start=(0.47, 0.04))
        report(title, windows, outcome)
        if path is not None:
            draw(outcome, windows, path)
        line("thesis: torque reduced by, %", np.array(THESIS_TORQUE), "9.1f")
        line("thesis: position reduced by, %", np.array(THESIS_POSITION), "9.1f")

    return {
        "thesis": lambda: thesis(friction, "start (0.47, 0.04), friction law known", plot),
        "simple": lambda: thesis(plain(friction), "start (0.47, 0.04), plainer friction law"),
        "nominal": lambda: report("start (1, 0), as described", windows, run(known, known, windows, friction)),
        "cold": lambda: report(
            "start (1, 0), 13 °C, thermal law unknown", windows,
            run(known, known, windows, plain(friction), temperature=COLD),
        ),
        "worn": lambda: report(
            "start (1, 0), friction +50 %", windows, run(known.aged(friction=0.5), known, windows, friction)
        ),
        "payload": lambda: report(
            "start (1, 0), 5 kg declared, 7.5 kg carried", windows, run(known, light, windows, friction)
        ),
        "laws": lambda: laws(known, friction),
        "step": lambda: step_time(known, friction),
    }  # fmt: skip


# -- friction laws as feed-forward -------------------------------------------------------------------------------------


def laws(digital: DigitalRobot, friction: SlipFriction) -> None:
    """Print errors of one round with four laws of friction as feed-forward: mean over the joints, relative to none."""
    robot, drives = digital.robot, drives_of(digital)
    motion = thesis_waypoints(robot)
    without = computed_torque(robot, motion, RATE, drives=drives, payload=digital.payload)
    t = np.arange(without.periods) / RATE
    q, qd, qdd = (motion.derivative(t, order) for order in range(3))
    from jointwise.model.rigid import inverse_dynamics

    load = inverse_dynamics(robot, q, qd, qdd, payload=digital.payload)
    stiff = np.array([float(joint.stiffness.stiffness(np.zeros(()))) for joint in digital.joints])
    H, _ = friction.hysteresis(friction.init(q[0]), q + load / stiff)
    tables = {
        "none": np.zeros_like(q),
        "sgn": _static(friction, direction(qd), qd, load),
        "tanh": _static(friction, direction(qd, TANH_WIDTH), qd, load),
        "GMS": _static(friction, H, qd, np.zeros_like(load)),
        "E-GMS": _static(friction, H, qd, load),
    }
    print("\nfriction laws as feed-forward of computed torque, one round: joint 1 .. 6, mean")
    start = digital.rest(q[0], WARM)
    for name, feed in tables.items():
        controller = computed_torque(robot, motion, RATE, drives=drives, payload=digital.payload, friction=feed)
        result = run_loop(digital, start, controller)
        line(f"{name}: friction MSE, Nm²", np.square(result.friction - feed).mean(axis=0))
        line(f"{name}: position MSE, mrad²", 1e6 * np.square(result.q - q).mean(axis=0))


def _static(friction: SlipFriction, H: Array, speed: Array, load: Array) -> Array:
    return friction.torque(H, speed, load, WARM).friction


# -- time of a step ----------------------------------------------------------------------------------------------------


def step_time(digital: DigitalRobot, friction: SlipFriction, repeats: int = 50, steps: int = 200) -> None:
    """Print the time of one control step and of its parts in C."""
    motion = thesis_waypoints(digital.robot)
    controller = adaptive(
        digital.robot, motion, RATE, motor_gains=digital.gains, friction=friction, drives=drives_of(digital),
        payload=digital.payload,
    )  # fmt: skip
    sample = sample_of(digital.rest(motion.position(np.zeros(1))[0], WARM))
    state = controller.init(sample)
    estimator, measured = controller.estimator, controller._measured(sample)
    many = type(measured)(*(np.tile(values, (1000, 1)) for values in measured))

    def whole() -> None:
        memory = state
        for _ in range(steps):
            _, memory = controller.step(memory, sample)

    def native() -> None:
        estimator.steps(state.estimator, many)

    whole()
    print(f"\ntime of a step, {cpu_name()}: shortest of {repeats} runs")
    print(f"  adaptive step in Python        {best(whole, repeats) / steps:8.1f} µs")
    print(f"  estimation in C, six joints    {best(native, repeats) / 1000:8.1f} µs (filter, bodies, friction, law)")


def best(function: Callable[[], None], repeats: int) -> float:
    """Return the shortest time of a function, µs."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return 1e6 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="scenarios to run")
    parser.add_argument("--quick", action="store_true", help="one round before and after")
    parser.add_argument("--plot", type=Path, help="figure of the scenario thesis")
    arguments = parser.parse_args()
    known = scenarios(QUICK if arguments.quick else Windows(), arguments.plot)
    for name in arguments.only or known:
        known[name]()


if __name__ == "__main__":
    main()
