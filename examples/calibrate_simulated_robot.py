"""Calibrate a simulated UR5e and compare the estimates with the true parameters.

Run: python examples/calibrate_simulated_robot.py
"""

from __future__ import annotations

import numpy as np

import jointwise as jw


def main(duration: float = 30.0) -> float:
    """Calibrate on one motion of `duration` seconds, validate on another, and return the mean R²."""
    robot = jw.load_robot("ur5e")
    training = jw.simulate(robot, "excitation", duration=duration, rate=200, seed=1)
    test = jw.simulate(robot, "bspline", duration=duration / 2, rate=200, seed=2)

    model = jw.calibrate(training.log, robot)
    print(model.summary())

    truth = training.truth["base"]
    print(f"\n{'parameter':12}{'true':>10}{'estimate':>10}   95 % confidence interval")
    covered = [
        print_row(parameter.name, truth[parameter.name], model.estimate.values[k], model.conf_int()[k])
        for k, parameter in enumerate(model.model.parameters)
        if parameter.name in truth
    ]
    print(f"{sum(covered)} of {len(covered)} base parameters are within their confidence intervals")

    r2 = jw.validate(model, test.log).mean_r2
    print(f"mean R² on held-out data: {r2:.4f}")
    return r2


def print_row(name: str, true: float, value: float, interval: np.ndarray) -> bool:
    """Print one parameter and return whether its interval contains the true value."""
    low, high = interval
    covered = low <= true <= high
    print(f"{name:12}{true:10.4f}{value:10.4f}   {low:.4f} to {high:.4f}{'' if covered else '  *'}")
    return covered


if __name__ == "__main__":
    main()
