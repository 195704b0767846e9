"""The README of an experiment plan in Markdown: what to record, in which order, and why."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from jointwise.design.clearance import APART, Body
from jointwise.design.plan import Plan, PlannedExperiment

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
    """Return the README of a plan; `facts` are those of its steps (`PlannedExperiment.facts`) with their files."""
    robot, number = plan.robot, plan.joint + 1
    planned = [step for step in facts if step["refused"] is None]
    total = sum(step["duration_s"] * step["runs"] for step in planned) / 60.0
    parts = [
        f"# Experiments on joint {number} of {robot.title or robot.name}",
        f"{len(planned)} experiments, {total:.0f} minutes of motion. Run them in this order: the first one starts "
        "cold, for the others the joint is warm. Positions, speeds, accelerations and torques stay within the limits "
        "of the description.",
        _links(plan),
        _plane(plan),
        "**Other collisions are not checked**, such as those with objects in the cell, cables or the payload. Run "
        "every motion in a simulator or at 10 % speed first, and keep a hand on the stop button. The rehearsals use "
        "the current mounting; if you turn the base for an experiment, plan it again with that `--mounting`.",
        _overview(facts),
        *(_section(k, step, each) for k, (step, each) in enumerate(zip(plan.steps, facts, strict=True), start=1)),
        "## Identification\n\nIdentify all phenomena into one file for `jointwise calibrate --joint joint.json` (logs "
        "with a payload need the commands above, which add to the same file):\n\n"
        f"    jointwise joint all LOG... {_robot(plan.steps[0])} --output joint.json",
    ]
    return "\n\n".join(parts) + "\n"


def _links(plan: Plan) -> str:
    """Return how the distance between links was checked."""
    body = Body(plan.robot)
    thick = 1e3 * body.radii[body.pieces]
    tool = "no tool (specify its length with `--tool`)" if plan.tool is None else f"a tool of {plan.tool.length:g} m"
    return (
        f"Links that can collide stay at least {APART:g} m apart, also on the paths from and to the upright pose. They "
        f"are modelled as cylinders of {thick.max():.0f} to {thick.min():.0f} mm radius along the axes of the "
        f"kinematics, estimated from the length of the arm and not from CAD data, with {tool}."
    )


def _plane(plan: Plan) -> str:
    """Return how the distance to the mounting plane was checked."""
    pose = _degrees(plan.steps[0].home.tolist())
    paths = (
        f"Every program begins and ends in the upright pose, {pose}, and moves straight from there to its first pose; "
        "this path is checked too. The path from the current pose to the upright pose is not checked: move the arm "
        "near the upright pose first."
    )
    if plan.clearance is None:
        return (
            "**The mounting plane is not checked** (`--no-clearance`): the arm may pass below z = 0 of its base frame. "
            f"Each experiment states how far. {paths}"
        )
    return (
        f"The arm stays at least {plan.clearance:g} m above the mounting plane, z = 0 of the base frame, with the "
        f"radii above. {paths}"
    )


def _overview(facts: list[dict[str, Any]]) -> str:
    rows = [
        "| experiment | identifies | minutes | axis | lowest point, m | link distance, m | reach, m | files |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for step in facts:
        minutes = step["duration_s"] * step["runs"] / 60.0
        names = ", ".join(step["files"].values()) or "none: no clearance"
        rows.append(
            f"| {step['name']} | {', '.join(step['identifies'])} | {minutes:.1f} | {step['axis']} | "
            f"{_metres(step['lowest_m'])} | {_apart(step)} | {step['reach_m']:.2f} | {names} |"
        )
    return "\n".join(rows)


def _section(number: int, step: PlannedExperiment, facts: dict[str, Any]) -> str:
    if step.rejection is not None:
        return f"## {number}. {facts['title']}\n\n**Not planned:** {step.rejection}."
    points = [
        f"Purpose: {facts['why']}",
        f"Preparation: {facts['prepare']}",
        f"Start pose: {_degrees(facts['pose_rad'])} (joints 1 to {step.robot.dof}); {_range(step, facts)}",
        f"Motion: {facts['motion']}; {facts['duration_s']:.0f} s{', twice' if facts['runs'] > 1 else ''}.",
        *_levels(facts),
        f"Lowest point {_height(facts['lowest_m'])}, reach {facts['reach_m']:.2f} m from the axis of the base; "
        f"{_nearest(facts)}.",
        f"Mounting: {_mounting(step)}",
        *_payload(step),
        _channels(facts),
    ]
    listed = "\n".join(f"- {point}" for point in points)
    return f"## {number}. {facts['title']}\n\n{listed}\n\nRehearse and identify:\n\n{_commands(step)}"


def _levels(facts: dict[str, Any]) -> list[str]:
    """Return the torques and speeds of an experiment that steps through them."""
    torques, speeds = (", ".join(f"{x:.3g}" for x in facts[name] or ()) for name in ("torque_Nm", "speeds_rad_s"))
    lines = [f"Torques: {torques} Nm, in ramps."] if torques else []
    return [*lines, f"Speeds: {speeds} rad/s, in both directions."] if speeds else lines


def _channels(facts: dict[str, Any]) -> str:
    """Return the channels to record."""
    required, optional = (", ".join(CHANNELS[name] for name in facts[key] or ()) for key in ("log", "helps"))
    more = f" Recommended: {optional}." if optional else ""
    return f"Record {required}, at {facts['log_rate_Hz']:g} Hz or faster.{more}"


def _metres(height: float | None) -> str:
    return "-" if height is None else f"{height:.2f}"


def _height(height: float | None) -> str:
    if height is None:
        return "at a constant height"
    return f"{abs(height):.2f} m {'above' if height >= 0.0 else '**below**'} the mounting plane"


def _apart(facts: dict[str, Any]) -> str:
    return "-" if facts["links_m"] is None else f"{facts['links_m']:.3f}"


def _nearest(facts: dict[str, Any]) -> str:
    """Return the links that come closest to each other."""
    if facts["links_m"] is None:
        return "the links cannot collide"
    return f"{' and '.join(facts['links_nearest'])} come closest, {facts['links_m']:.3f} m"


def _degrees(angles: list[float]) -> str:
    return ", ".join(f"{np.rad2deg(angle) + 0.0:.1f}°" for angle in angles)


def _range(step: PlannedExperiment, facts: dict[str, Any]) -> str:
    moving = [k - 1 for k in facts["moving_joints"]]
    if not moving:
        return "no joint moves."
    low, high = np.rad2deg(facts["lowest_rad"]), np.rad2deg(facts["highest_rad"])
    parts = [
        f"joint {k + 1} {low[k]:.0f}° to {high[k]:.0f}°, up to {facts['fastest_rad_s'][k]:.2g} rad/s and "
        f"{facts['strongest_rad_s2'][k]:.2g} rad/s²"
        for k in moving
    ]
    return "; ".join(parts) + "."


def _mounting(step: PlannedExperiment) -> str:
    axis, joint = step.purpose.axis, step.joint + 1
    if axis == "any":
        return "unchanged."
    wanted = ", ".join(f"{value:.3g}" for value in step.experiment.gravity)
    if step.turned:
        return f"unchanged: the axis of joint {joint} is {axis}."
    if step.suits:
        return f"unchanged: gravity loads joint {joint} with at most {step.largest_gravity:.2g} Nm."
    if axis == "vertical":
        return (
            f"the axis of joint {joint} should be vertical (gravity [{wanted}] m/s² in the base frame); it is not "
            "in the current mounting. Turn the base, or record it nevertheless: gravity then loads the joint with up "
            f"to {step.largest_gravity:.3g} Nm, which is subtracted with the accuracy of the link model."
        )
    return (
        f"the axis of joint {joint} should be horizontal (gravity [{wanted}] m/s² in the base frame), so that gravity "
        f"loads it; in the current mounting the load is at most {step.largest_gravity:.3g} Nm. Turn the base, or skip "
        "this experiment: its effect is not identifiable from a constant load."
    )


def _payload(step: PlannedExperiment) -> list[str]:
    checked = "`jointwise joint plan --payload KG` checks it"
    if step.purpose.twice:
        mass = f"close to the maximum payload; {checked}" if step.payload is None else f"{step.payload.mass:g} kg"
        return [f"Payload: {mass}. In the second run only."]
    if not step.purpose.carries:
        return []
    mass = f"KG is its mass; {checked}" if step.payload is None else f"{step.payload.mass:g} kg"
    return [
        f"Payload: {mass}. X,Y,Z is its centre of mass in the flange frame, m (0,0,0 in the rehearsal); omit "
        "`--payload` without payload."
    ]


def _stands(step: PlannedExperiment) -> str:
    """Return the option for gravity in the current mounting."""
    return " --gravity " + " ".join(f"{g + 0.0:g}" for g in step.gravity)


def _robot(step: PlannedExperiment) -> str:
    """Return the options for robot, joint and gravity."""
    return f"--robot {shlex.quote(step.called or step.robot.name)} --joint {step.joint + 1}{_stands(step)}"


def _rehearsal(step: PlannedExperiment) -> str:
    """Return the command that simulates the motion of a step in the current mounting."""
    purpose = step.purpose
    words = [
        f"jointwise simulate --robot {shlex.quote(step.called or step.robot.name)} --experiment {purpose.experiment}",
        "" if purpose.twice else f" --joint {step.joint + 1}",
        "" if step.seed == 0 else f" --seed {step.seed}",
        f" --clearance {'links' if step.clearance is None else f'{step.clearance:g}'}",
        *_tool(step),
        _stands(step),
    ]
    return "".join(words)


def _tool(step: PlannedExperiment) -> list[str]:
    tool = step.experiment.tool
    if tool is None:
        return []
    return [f" --tool {tool.length:g}" + ("" if tool.radius is None else f",{tool.radius:g}")]


def _commands(step: PlannedExperiment) -> str:
    purpose, robot = step.purpose, _robot(step)
    mass = "KG" if step.payload is None else f"{step.payload.mass:g}"
    if purpose.twice:
        lines = [
            f"{_rehearsal(step)} --output unloaded.csv",
            f"{_rehearsal(step)} --payload {mass} --output loaded.csv",
            f"jointwise joint motor UNLOADED --loaded LOADED --payload-mass {mass} {robot} --output joint.json",
        ]
    else:
        simulated, located = (f" --payload {mass}", f" --payload {mass},X,Y,Z") if purpose.carries else ("", "")
        lines = [f"{_rehearsal(step)}{simulated} --output rehearsal.csv"]
        lines += [f"jointwise joint {name} LOG {robot}{located} --output joint.json" for name in purpose.phenomena]
    return "\n".join(f"    {line}" for line in lines)
