"""Time of one step of the controllers and observers of a UR5e, as they run beside a robot at 1 kHz.

    python benchmarks/online_steps.py [--steps 300] [--live S]

Printed are the median and the 99th percentile of the time of a single `step` called from Python, in µs; a period of
1 kHz has 1000. With `--live` the controllers run in real time instead, S seconds each: every millisecond a sample
of the planned motion arrives, and printed is the share of torques that came after the next sample. On a busy machine
give the process the priority of a controller (Linux: `chrt -f 20 python ...`).
"""

from __future__ import annotations

from timing import cpu_name, use_one_thread

use_one_thread()

import argparse  # noqa: E402
from time import perf_counter, sleep  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import jointwise as jw  # noqa: E402
from jointwise.control import (  # noqa: E402
    ControlSample,
    adaptive,
    computed_torque,
    feedback_linearisation,
    flexible_feedforward,
    hand_guiding,
    torque_feedback,
)
from jointwise.design import make_experiment  # noqa: E402
from jointwise.experiment.closed_loop import drives_of, sample_of  # noqa: E402
from jointwise.experiment.controllers import slip_friction_of  # noqa: E402
from jointwise.runtime.observers import TorqueFusion, TorqueObserver  # noqa: E402
from jointwise.simulation.robot import DigitalRobot, digital_robot  # noqa: E402

RATE = 1000.0


def controllers(digital: DigitalRobot, motion: Any) -> dict[str, Any]:
    """Return the controllers by name."""
    robot, drives, friction = digital.robot, drives_of(digital), slip_friction_of(digital)
    return {
        "computed torque": computed_torque(robot, motion, RATE, drives=drives),
        "adaptive feed-forward": adaptive(
            robot, motion, RATE, motor_gains=digital.gains, friction=friction, drives=drives
        ),
        "torque feedback": torque_feedback(robot, motion, RATE, drives=drives),
        "flexible feed-forward": flexible_feedforward(robot, motion, RATE, drives=drives),
        "feedback linearisation": feedback_linearisation(robot, motion, RATE, drives=drives),
        "hand guiding": hand_guiding(robot, RATE, friction=friction, drives=drives),
    }


def print_times(name: str, times: list[float]) -> None:
    """Print median and 99th percentile of times, s."""
    median, late = 1e6 * np.quantile(times, [0.5, 0.99])
    print(f"{name:<28}{median:>10.1f}{late:>12.1f}", flush=True)


def controller_times(controller: Any, sample: Any, steps: int) -> list[float]:
    """Return the times (s) of single steps."""
    state, times = controller.init(sample), []
    for _ in range(steps):
        begin = perf_counter()
        _, state = controller.step(state, sample)
        times.append(perf_counter() - begin)
    return times


def planned_samples(digital: DigitalRobot, motion: Any, count: int) -> list[ControlSample]:
    """Return samples of a robot that follows the motion exactly, its motors at rest."""
    t = np.arange(count) / RATE
    none, warm = np.zeros(digital.robot.dof), np.full(digital.robot.dof, 35.0)
    rows = zip(t, motion.position(t), motion.derivative(t, 1), strict=True)
    return [ControlSample(q, qd, q, qd, none, warm, float(time)) for time, q, qd in rows]


def print_live(name: str, controller: Any, samples: list[ControlSample]) -> None:
    """Print how a controller keeps up with samples that arrive in real time."""
    state, delays, steps = controller.init(samples[0]), np.empty(len(samples)), np.empty(len(samples))
    begin = perf_counter() + 1.0 / RATE
    for k, sample in enumerate(samples):
        sleep(max(0.0, begin + k / RATE - perf_counter()))
        start = perf_counter()
        _, state = controller.step(state, sample)
        end = perf_counter()
        delays[k], steps[k] = end - begin - k / RATE, end - start
    late = 100.0 * np.mean(delays > 1.0 / RATE)
    print(
        f"{name:<28}{len(samples)} samples, steps of {1e6 * np.median(steps):.0f} us (median), delay median "
        f"{1e3 * np.median(delays):.2f} ms, later than the next sample {late:.2f} %",
        flush=True,
    )


def observer_times(steps: int) -> dict[str, list[float]]:
    """Return the times (s) of single steps of the observers of six joints."""
    observer, fusion, x = TorqueObserver(np.ones(6), 60.0, RATE), TorqueFusion(3, RATE), np.ones(6)
    state, sums = observer.init(x), fusion.init()
    times: dict[str, list[float]] = {"torque observer, six joints": [], "fusion of three torques": []}
    for _ in range(steps):
        begin = perf_counter()
        _, state = observer.step(state, x, x, x)
        middle = perf_counter()
        _, sums = fusion.step(sums, x[:3])
        times["torque observer, six joints"].append(middle - begin)
        times["fusion of three torques"].append(perf_counter() - middle)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--live", type=float, metavar="S", help="only run in real time for S seconds each")
    args = parser.parse_args()
    steps, digital = args.steps, digital_robot(jw.load_robot("ur5e"))
    motion = make_experiment("bspline", digital.robot, max(2.0, args.live or 0.0), 1).motion
    if args.live is not None:
        samples = planned_samples(digital, motion, round(args.live * RATE))
        for name, controller in controllers(digital, motion).items():
            print_live(name, controller, samples)
        return
    sample = sample_of(digital.rest(motion.position(np.zeros(1))[0], 35.0))
    print(f"{cpu_name()}: time of a step in µs")
    print(f"{'':<28}{'median':>10}{'99 %':>12}")
    for name, controller in controllers(digital, motion).items():
        print_times(name, controller_times(controller, sample, steps))
    for name, times in observer_times(steps).items():
        print_times(name, times)


if __name__ == "__main__":
    main()
