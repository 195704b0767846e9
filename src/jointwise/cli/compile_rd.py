"""AURT's second step: adds the friction model to a robot description."""

from __future__ import annotations

import argparse

from jointwise.cli.arguments import count
from jointwise.cli.output import check_files

EXAMPLES = """\
examples:
  jointwise compile-rd --model-rbd rigid_body_dynamics --friction-torque-model square --friction-viscous-powers 1 2 3 \\
      --out robot_dynamics

Next: jointwise calibrate --model robot_dynamics --data log.csv --gravity 0 0 -9.81 --out-calibrated-model rd"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add AURT's options."""
    parser.add_argument("--model-rbd", required=True, metavar="F", help="what compile-rbd wrote")
    parser.add_argument(
        "--friction-torque-model",
        "--friction-load-model",
        required=True,
        choices=("none", "square", "absolute"),
        help="dependence of Coulomb friction on the load",
    )
    parser.add_argument(
        "--friction-viscous-powers", required=True, nargs="+", type=count, metavar="P", help="such as 1 2 3"
    )
    parser.add_argument("--out", required=True, metavar="F", help="the model, JSON")


def run(args: argparse.Namespace) -> int:
    """Check and store the model."""
    from jointwise.cli.aurt import AurtModel, load_bodies, save_aurt_model

    check_files([args.model_rbd], {"--out": args.out})
    powers = tuple(float(power) for power in sorted(set(args.friction_viscous_powers)))
    model = AurtModel(load_bodies(args.model_rbd), args.friction_torque_model, powers)
    save_aurt_model(model, args.out)
    print(f"{args.out}: {model.robot.dof} joints, load dependence {model.load}, viscous powers {_listed(powers)}")
    return 0


def _listed(powers: tuple[float, ...]) -> str:
    return " ".join(f"{power:g}" for power in powers)
