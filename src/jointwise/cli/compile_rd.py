"""AURT's second step: adds the friction model to a robot description."""

from __future__ import annotations

import argparse

from jointwise.cli.arguments import add_json, count
from jointwise.cli.output import as_json, check_files

EXAMPLES = """\
examples:
  jointwise compile-rd --model-rbd rigid_body_dynamics --friction-torque-model square --friction-viscous-powers 1 2 3 \\
      --out robot_dynamics

Next: jointwise calibrate --model robot_dynamics --data log.csv --gravity 0 0 -9.81 --out-calibrated-model rd"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add AURT's options."""
    parser.add_argument("--model-rbd", required=True, metavar="F", help="output of compile-rbd")
    parser.add_argument(
        "--friction-torque-model",
        "--friction-load-model",
        required=True,
        choices=("none", "square", "absolute"),
        help="dependence of Coulomb friction on the load",
    )
    parser.add_argument(
        "--friction-viscous-powers",
        required=True,
        nargs="+",
        type=count,
        metavar="P",
        help="exponents of the speed, such as 1 2 3",
    )
    parser.add_argument("--out", required=True, metavar="F", help="model file to write, JSON")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check and store the model."""
    from jointwise.cli.aurt import AurtModel, load_bodies, save_aurt_model

    check_files([args.model_rbd], {"--out": args.out})
    powers = tuple(float(power) for power in sorted(set(args.friction_viscous_powers)))
    model = AurtModel(load_bodies(args.model_rbd), args.friction_torque_model, powers)
    save_aurt_model(model, args.out)
    facts = {"file": args.out, "joints": model.robot.dof, "load": model.load, "viscous_powers": powers}
    text = f"{args.out}: {model.robot.dof} joints, load dependence {model.load}, viscous powers {_listed(powers)}"
    print(as_json(facts) if args.json else text)
    return 0


def _listed(powers: tuple[float, ...]) -> str:
    return " ".join(f"{power:g}" for power in powers)
