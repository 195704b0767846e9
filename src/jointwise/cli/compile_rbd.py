"""AURT's first step: checks a table of modified DH parameters and stores it as a robot description."""

from __future__ import annotations

import argparse

from jointwise.cli.arguments import add_json, finite
from jointwise.cli.output import as_json, check_files, note

EXAMPLES = """\
examples:
  jointwise compile-rbd --mdh mdh.csv --out rigid_body_dynamics

The table has columns d, a, alpha, each row followed by its a and alpha (convention mdh-following), unless a line
'# convention: dh' (or mdh) says otherwise. Next: jointwise compile-rd"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add AURT's options."""
    parser.add_argument("--mdh", required=True, metavar="FILE", help="table of modified DH parameters")
    parser.add_argument("--out", required=True, metavar="F", help="description to write, JSON")
    parser.add_argument(
        "--gravity", nargs=3, type=finite, metavar=("X", "Y", "Z"), help="accepted and ignored: pass it to calibrate"
    )
    parser.add_argument("--plot", action="store_true", help="accepted and ignored")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check and store the description."""
    from jointwise.cli.aurt import read_mdh, save_bodies

    check_files([args.mdh], {"--out": args.out})
    robot = read_mdh(args.mdh)
    if args.plot:
        note("--plot is ignored: 'jointwise robots show' prints the frames.")
    if args.gravity:
        note("--gravity is ignored here: calibrate and predict take it.")
    save_bodies(robot, args.out)
    print(as_json({"file": args.out, "joints": robot.dof}) if args.json else f"{args.out}: {robot.dof} joints")
    return 0
