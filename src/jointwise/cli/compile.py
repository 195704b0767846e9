"""AURT's first two commands: a robot description from a table, and the friction model with it."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Literal

from jointwise.cli.command import Command, Common
from jointwise.cli.output import check_files, note, show
from jointwise.settings import Count, Number, option

BODIES = """\
examples:
  jointwise compile-rbd --mdh mdh.csv --out rigid_body_dynamics

The table has columns d, a, alpha, each row followed by its a and alpha (convention mdh-following), unless a line
'# convention: dh' (or mdh) says otherwise. Next: jointwise compile-rd"""
FRICTION = """\
examples:
  jointwise compile-rd --model-rbd rigid_body_dynamics --friction-torque-model square --friction-viscous-powers 1 2 3 \\
      --out robot_dynamics

Next: jointwise calibrate --model robot_dynamics --data log.csv --gravity 0 0 -9.81 --out-calibrated-model rd"""


@dataclass(frozen=True, kw_only=True)
class Bodies(Common):
    """AURT's options of the first step."""

    mdh: str = option(help="table of modified DH parameters", metavar="FILE")
    out: str = option(help="description to write, JSON", metavar="F")
    gravity: tuple[Number, Number, Number] | None = option(
        None, "accepted and ignored: pass it to calibrate", metavar=("X", "Y", "Z")
    )
    plot: bool = option(False, "accepted and ignored")


@dataclass(frozen=True, kw_only=True)
class Friction(Common):
    """AURT's options of the second step."""

    model_rbd: str = option(help="output of compile-rbd", metavar="F")
    friction_torque_model: Literal["none", "square", "absolute"] = option(
        MISSING, "dependence of Coulomb friction on the load", "--friction-torque-model", "--friction-load-model"
    )
    friction_viscous_powers: tuple[Count, ...] = option(
        help="exponents of the speed, such as 1 2 3", metavar="P", many="words"
    )
    out: str = option(help="model file to write, JSON", metavar="F")


def compile_bodies(settings: Bodies) -> int:
    """Check and store the description."""
    from jointwise.cli.aurt import read_mdh, save_bodies

    check_files([settings.mdh], {"--out": settings.out})
    robot = read_mdh(settings.mdh)
    if settings.plot:
        note("--plot is ignored: 'jointwise robots show' prints the frames.")
    if settings.gravity:
        note("--gravity is ignored here: calibrate and predict take it.")
    save_bodies(robot, settings.out)
    facts = {"file": settings.out, "joints": robot.dof}
    show(settings, lambda: facts, lambda: f"{settings.out}: {robot.dof} joints")
    return 0


def compile_friction(settings: Friction) -> int:
    """Check and store the model."""
    from jointwise.cli.aurt import AurtModel, load_bodies, save_aurt_model

    check_files([settings.model_rbd], {"--out": settings.out})
    powers = tuple(float(power) for power in sorted(set(settings.friction_viscous_powers)))
    model = AurtModel(load_bodies(settings.model_rbd), settings.friction_torque_model, powers)
    save_aurt_model(model, settings.out)
    facts = {"file": settings.out, "joints": model.robot.dof, "load": model.load, "viscous_powers": powers}
    listed = " ".join(f"{power:g}" for power in powers)
    text = f"{settings.out}: {model.robot.dof} joints, load dependence {model.load}, viscous powers {listed}"
    show(settings, lambda: facts, lambda: text)
    return 0


COMMANDS = {
    "compile-rbd": Command(
        Bodies,
        compile_bodies,
        "AURT's first step: checks a table of modified DH parameters and stores it as a robot description.",
        BODIES,
    ),
    "compile-rd": Command(
        Friction, compile_friction, "AURT's second step: adds the friction model to a robot description.", FRICTION
    ),
}
