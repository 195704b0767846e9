"""The page of a plan: what to do, in which order, and why; Markdown."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointwise.plan.plan import Plan, Step
from jointwise.simulation.references import APART, Body

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
    made = [own for own in facts if own["refused"] is None]
    total = sum(own["duration_s"] * own["runs"] for own in made) / 60.0
    parts = [
        f"# Experiments on joint {number} of {robot.title or robot.name}",
        f"{len(made)} experiments, {total:.0f} minutes of motion. Make them in this order: the first starts cold, the "
        "others find the joint warm. Positions, speeds, accelerations and torques keep the limits of the description.",
        _links(plan),
        _plane(plan),
        "**Other collisions are not checked**: nobody knows what stands in the cell, nor how cables and payload hang. "
        "Look at every motion in a simulator or at 10 % speed first, and keep a hand on the stop button. The "
        "rehearsals stand as the robot stands; if you turn the base for an experiment, plan it again with that "
        "`--mounting`.",
        _overview(facts),
        *(_section(k, step, own) for k, (step, own) in enumerate(zip(plan.steps, facts, strict=True), start=1)),
        "## Then\n\nAll of it in one file, which `jointwise calibrate --joint joint.json` takes (logs with a "
        "payload only by their own commands above, which add to the same file):\n\n"
        f"    jointwise joint all LOG... {_robot(plan.steps[0])} --output joint.json",
    ]
    return "\n\n".join(parts) + "\n"


def _links(plan: Plan) -> str:
    """Return what was looked at of the arm itself."""
    body = Body(plan.robot)
    thick = 1e3 * body.radii[body.pieces]
    tool = "no tool: give its length as `--tool`" if plan.tool is None else f"a tool of {plan.tool.length:g} m"
    return (
        f"Links that can meet stay {APART:g} m or more apart, also on the ways from and to the upright pose. They are "
        f"looked at as round bars of {thick.max():.0f} to {thick.min():.0f} mm radius along the axes of the "
        f"kinematics, taken from the length of the arm and not from a drawing, with {tool}."
    )


def _plane(plan: Plan) -> str:
    """Return what was looked at of the plane that the robot is mounted on."""
    pose = _degrees(plan.steps[0].home.tolist())
    ways = (
        f"Every program begins and ends upright, at {pose}, and goes straight from there to its first pose; that way "
        "is checked too. The way from where the arm stands to the upright pose is not: bring it near that pose first."
    )
    if plan.clearance is None:
        return (
            "**The mounting plane is not checked** (`--no-clearance`): the arm may go through z = 0 of its base frame. "
            f"Each experiment tells how far. {ways}"
        )
    return (
        f"The arm stays {plan.clearance:g} m or more above the mounting plane, z = 0 of the base frame, links as thick "
        f"as told. {ways}"
    )


def _overview(facts: list[dict[str, Any]]) -> str:
    rows = [
        "| experiment | identifies | minutes | axis | lowest point, m | links apart, m | reach, m | files |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for own in facts:
        minutes = own["duration_s"] * own["runs"] / 60.0
        names = ", ".join(own["files"].values()) or "none: not clear"
        rows.append(
            f"| {own['name']} | {', '.join(own['identifies'])} | {minutes:.1f} | {own['axis']} | "
            f"{own['lowest_m']:.2f} | {_apart(own)} | {own['reach_m']:.2f} | {names} |"
        )
    return "\n".join(rows)


def _section(number: int, step: Step, facts: dict[str, Any]) -> str:
    if step.refusal is not None:
        return f"## {number}. {facts['title']}\n\n**Not planned:** {step.refusal}."
    points = [
        f"Why: {facts['why']}",
        f"Prepare: {facts['prepare']}",
        f"Pose at the start: {_degrees(facts['pose_rad'])} (joints 1 to {step.robot.dof}); {_range(step, facts)}",
        f"Motion: {facts['motion']}; {facts['duration_s']:.0f} s{', twice' if facts['runs'] > 1 else ''}.",
        f"Lowest point {_height(facts['lowest_m'])}, reach {facts['reach_m']:.2f} m from the axis of the base; "
        f"{_nearest(facts)}.",
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
    return f"## {number}. {facts['title']}\n\n{listed}\n\nRehearse and identify:\n\n{_commands(step)}"


def _height(height: float) -> str:
    return f"{abs(height):.2f} m {'above' if height >= 0.0 else '**below**'} the mounting plane"


def _apart(facts: dict[str, Any]) -> str:
    return "-" if facts["links_m"] is None else f"{facts['links_m']:.3f}"


def _nearest(facts: dict[str, Any]) -> str:
    """Return which links come nearest."""
    if facts["links_m"] is None:
        return "its links cannot meet"
    return f"{' and '.join(facts['links_nearest'])} come nearest, {facts['links_m']:.3f} m"


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
    if step.turned:
        return f"as it is: the axis of joint {joint} is {own.axis}."
    if step.suits:
        return f"as it is: gravity loads joint {joint} with {step.largest_gravity:.2g} Nm at most."
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
    checked = "`jointwise joint plan --payload KG` checks it"
    if step.purpose.twice:
        mass = f"near the largest allowed; {checked}" if step.payload is None else f"{step.payload.mass:g} kg"
        return [f"Payload: {mass}. For the second run only."]
    if not step.purpose.carries:
        return []
    mass = f"KG its mass; {checked}" if step.payload is None else f"{step.payload.mass:g} kg"
    return [
        f"Payload: {mass}. X,Y,Z is its centre of mass in the frame of the flange, m (0,0,0 in the rehearsal); "
        "without a payload leave `--payload` out."
    ]


def _stands(step: Step) -> str:
    """Return the option that tells gravity as the robot stands."""
    return " --gravity " + " ".join(f"{g + 0.0:g}" for g in step.gravity)


def _robot(step: Step) -> str:
    """Return the options that tell robot, joint and gravity."""
    return f"--robot {step.called or step.robot.name} --joint {step.joint + 1}{_stands(step)}"


def _rehearsal(step: Step) -> str:
    """Return the command that makes the motion of a step on the digital robot, standing as the robot stands."""
    own = step.purpose
    words = [
        f"jointwise simulate --robot {step.called or step.robot.name} --experiment {own.experiment}",
        "" if own.twice else f" --joint {step.joint + 1}",
        "" if step.seed == 0 else f" --seed {step.seed}",
        f" --clearance {'links' if step.clearance is None else f'{step.clearance:g}'}",
        *_tool(step),
        _stands(step),
    ]
    return "".join(words)


def _tool(step: Step) -> list[str]:
    own = step.experiment.tool
    if own is None:
        return []
    return [f" --tool {own.length:g}" + ("" if own.radius is None else f",{own.radius:g}")]


def _commands(step: Step) -> str:
    own, robot = step.purpose, _robot(step)
    if own.twice:
        mass = "KG" if step.payload is None else f"{step.payload.mass:g}"
        lines = [
            f"{_rehearsal(step)} --output unloaded.csv",
            f"{_rehearsal(step)} --payload {mass} --output loaded.csv",
            f"jointwise joint motor UNLOADED --loaded LOADED --payload-mass {mass} {robot} --output joint.json",
        ]
    else:
        mass = "KG" if step.payload is None else f"{step.payload.mass:g}"
        carried, told = (f" --payload {mass}", f" --payload {mass},X,Y,Z") if own.carries else ("", "")
        lines = [f"{_rehearsal(step)}{carried} --output rehearsal.csv"]
        lines += [f"jointwise joint {phenomenon} LOG {robot}{told} --output joint.json" for phenomenon in own.phenomena]
    return "\n".join(f"    {line}" for line in lines)
