"""Use a calibrated model as feed-forward: tracking error of a PD controller without and with it.

Run: python examples/feed_forward.py
"""

from __future__ import annotations

import numpy as np

import jointwise as jw

KP, KD = 3000.0, 100.0  # Nm/rad, Nm s/rad


class FeedForwardPD:
    """PD control of the rotor positions plus the predicted torque of the planned motion."""

    def __init__(self, motion, rate, model=None):
        """Evaluate the plan at the control rate (Hz); without a model the feed-forward is zero."""
        t = np.arange(round(motion.duration * rate)) / rate
        self.rate, self.q, self.qd = rate, motion(t, 0), motion(t, 1)
        planned = jw.Motion(rate, self.q, self.qd, motion(t, 2))
        self.torque = np.zeros_like(self.q) if model is None else model.torque(planned)

    def init(self, sample):
        """Return the state of the controller: none."""
        return

    def step(self, state, sample):
        """Return the torque (joints,) in Nm for one control period."""
        k = min(round(sample.time * self.rate), len(self.q) - 1)
        return self.torque[k] + KP * (self.q[k] - sample.theta) + KD * (self.qd[k] - sample.speed), state


def main(duration: float = 30.0) -> dict[str, float]:
    """Return the largest tracking error (rad) of each controller on a motion that was not used for training."""
    robot = jw.load_robot("ur5e")
    model = jw.calibrate(jw.simulate(robot, "excitation", duration=duration, rate=200, seed=1).log, robot)
    errors = {}
    for name, used in {"PD": None, "PD with feed-forward": model}.items():
        recording = jw.simulate(
            robot,
            "bspline",
            duration=8,
            seed=3,
            controller=lambda motion, rate, used=used: FeedForwardPD(motion, rate, used),
        )
        errors[name] = float(np.abs(recording.log.q - recording.log.q_des).max())
        print(f"{name:24}{1e3 * errors[name]:8.2f} mrad")
    return errors


if __name__ == "__main__":
    main()
