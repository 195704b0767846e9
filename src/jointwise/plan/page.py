"""The page of a plan: what to do, in which order, and why; Markdown."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointwise.description.mounting import gravity_vector
from jointwise.plan.plan import Plan, Step

CHANNELS = {
    "t": "time stamps t, s",
    "q": "link positions q1.., rad",
    "qd": "link speeds qd1.., rad/s",
    "theta": "rotor positions at the joint side theta1.., rad (motor encoder / gear ratio)",
    "i": "measured motor currents i1.., A",
    "i_des": "target currents i_des1.., A",
    "tau_des": "target torques tau_des1.., Nm",
    "tau": "torque at the output tau1.., Nm (force gauge times lever)",
    "temp": "joint temperatures temp1.., °C",
}


def page(plan: Plan, facts: list[dict[str, Any]]) -> str:
    """Return the README of a plan."""
    robot, number = plan.robot, plan.joint + 1
    total = sum(own["duration_s"] * own["runs"] for own in facts) / 60.0
    parts = [
        f"# Experiments on joint {number} of {robot.title or robot.name}",
        f"{len(facts)} experiments, {total:.0f} minutes of motion. Make them in this order: the first starts cold, the "
        "others find the joint warm. Positions, speeds, accelerations and torques keep the limits of the description; "
        "**collisions are not checked**: look at every motion in a simulator or at 10 % speed first, and keep a hand "
        "on the stop button. A "
        "rehearsal by `jointwise simulate` turns the base as the experiment wants it and tells the gravity to identify "
        "it with.",
        _overview(facts),
        *(_section(k, step, own) for k, (step, own) in enumerate(zip(plan.steps, facts, strict=True), start=1)),
        "## Then\n\nAll of it in one file, which `jointwise calibrate --joint joint.json` takes:\n\n"
        f"    jointwise joint all LOG... --robot {robot.name} --joint {number} --output joint.json",
    ]
    return "\n\n".join(parts) + "\n"


def _overview(facts: list[dict[str, Any]]) -> str:
    rows = ["| experiment | identifies | minutes | axis | files |", "|---|---|---|---|---|"]
    for own in facts:
        minutes = own["duration_s"] * own["runs"] / 60.0
        names = ", ".join(own["files"].values())
        rows.append(f"| {own['name']} | {', '.join(own['identifies'])} | {minutes:.1f} | {own['axis']} | {names} |")
    return "\n".join(rows)


def _section(number: int, step: Step, facts: dict[str, Any]) -> str:
    joint = step.joint
    points = [
        f"Why: {facts['why']}",
        f"Prepare: {facts['prepare']}",
        f"Pose at the start: {_degrees(facts['pose_rad'])} (joints 1 to {step.robot.dof}); {_range(step, facts)}",
        f"Motion: {facts['motion']}; {facts['duration_s']:.0f} s{', twice' if facts['runs'] > 1 else ''}.",
        f"Mounting: {_mounting(step)}",
        *_payload(step),
        f"Log {', '.join(CHANNELS[name] for name in facts['log'])}, at {facts['log_rate_Hz']:g} Hz or faster."
        + (f" Better also {', '.join(CHANNELS[name] for name in facts['helps'])}." if facts["helps"] else ""),
    ]
    if facts["speeds_rad_s"]:
        points.insert(4, f"Speeds: {', '.join(f'{v:.3g}' for v in facts['speeds_rad_s'])} rad/s, both directions.")
    if facts["torque_Nm"]:
        points.insert(4, f"Torques: {', '.join(f'{v:.3g}' for v in facts['torque_Nm'])} Nm, in ramps.")
    listed = "\n".join(f"- {point}" for point in points)
    return f"## {number}. {facts['title']}\n\n{listed}\n\nRehearse and identify:\n\n{_commands(step, joint)}"


def _degrees(angles: list[float]) -> str:
    return ", ".join(f"{np.rad2deg(angle) + 0.0:.1f}°" for angle in angles)


def _range(step: Step, facts: dict[str, Any]) -> str:
    moving = [k - 1 for k in facts["moving_joints"]]
    if not moving:
        return "nothing moves."
    low, high = np.rad2deg(facts["lowest_rad"]), np.rad2deg(facts["highest_rad"])
    parts = [
        f"joint {k + 1} {low[k]:.0f}° to {high[k]:.0f}°, up to {facts['fastest_rad_s'][k]:.2g} rad/s and "
        f"{facts['strongest_rad_s2'][k]:.2g} rad/s²"
        for k in moving
    ]
    return "; ".join(parts) + "."


def _mounting(step: Step) -> str:
    own, joint = step.purpose, step.joint + 1
    if own.axis == "any":
        return "as it is."
    wanted = ", ".join(f"{value:.3g}" for value in step.experiment.gravity)
    if step.suits:
        return f"as it is: the axis of joint {joint} is {own.axis}."
    if own.axis == "vertical":
        return (
            f"the axis of joint {joint} should be vertical (gravity [{wanted}] m/s² in the base frame); it is not, "
            f"as the robot stands. Turn the base, or record it all the same: gravity then loads the joint with up to "
            f"{step.largest_gravity:.3g} Nm, which is taken off by the model of the links, as well as they are known."
        )
    return (
        f"the axis of joint {joint} should be horizontal (gravity [{wanted}] m/s² in the base frame), so that gravity "
        f"loads it; as the robot stands the load is at most {step.largest_gravity:.3g} Nm. Turn the base, or leave "
        f"this one out: a load that never varies tells nothing."
    )


def _payload(step: Step) -> list[str]:
    if step.payload is not None:
        return [f"Payload: {step.payload.mass:g} kg{' in the second run' if step.purpose.twice else ''}."]
    if step.purpose.twice:
        return [
            "Payload: near the largest allowed, for the second run only; `jointwise joint plan --payload KG` checks it."
        ]
    return []


def _commands(step: Step, joint: int) -> str:
    name, own = step.robot.name, step.purpose
    alone = "" if own.twice else f" --joint {joint + 1}"
    rehearsal = f"jointwise simulate --robot {name} --experiment {own.experiment}{alone}"
    turned = not np.allclose(step.gravity, gravity_vector())
    stands = " --gravity " + " ".join(f"{g + 0.0:g}" for g in step.gravity) if turned else ""
    if own.twice:
        mass = "KG" if step.payload is None else f"{step.payload.mass:g}"
        lines = [
            f"{rehearsal} --output unloaded.csv",
            f"{rehearsal} --payload {mass} --output loaded.csv",
            f"jointwise joint motor UNLOADED --loaded LOADED --payload-mass {mass} --robot {name} "
            f"--joint {joint + 1}{stands} --output joint.json",
        ]
    else:
        lines = [f"{rehearsal} --output rehearsal.csv"]
        lines += [
            f"jointwise joint {phenomenon} LOG --robot {name} --joint {joint + 1}{stands} --output joint.json"
            for phenomenon in own.phenomena
        ]
    return "\n".join(f"    {line}" for line in lines)
