"""Identify stiffness and friction of one joint of a simulated UR5e, each from its own experiment.

Run: python examples/identify_one_joint.py
"""

from __future__ import annotations

import jointwise as jw

JOINT = 1  # 0-based: the shoulder
EXPERIMENTS = {"stiffness": ("locked", None), "friction": ("constant-speed", 60.0)}
"""Phenomenon -> experiment that isolates it and its duration (s; None for the default)."""


def main() -> jw.joint.JointModel:
    """Record the experiments, identify the joint and return its model."""
    robot = jw.load_robot("ur5e")
    model = jw.joint.JointModel(robot.name, JOINT)
    for phenomenon, (experiment, duration) in EXPERIMENTS.items():
        recording = jw.simulate(robot, experiment, joint=JOINT, duration=duration, seed=1)
        record = jw.joint.joint_record(recording.log, robot, JOINT, mounting=recording.digital.gravity)
        part = jw.joint.identify(phenomenon, record, robot, known=model)
        model = model.with_part(part)
        print(f"\n{phenomenon}, from the experiment '{experiment}'")
        for value in part.values:
            print(f"  {value.name:8}{value.value:12.5g}  [{value.low:.5g}, {value.high:.5g}] {value.unit}")
    return model


if __name__ == "__main__":
    main()
