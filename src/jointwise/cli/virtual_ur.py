"""Serves a simulated UR controller over RTDE on the loopback interface, to rehearse recordings without a robot."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from jointwise.cli.arguments import (
    UsageError,
    add_gravity,
    add_payload,
    add_robot,
    mounting_of,
    payload_of,
    port,
    robot_of,
    seconds,
    times,
    whole,
)
from jointwise.cli.output import Progress, read_model

EXAMPLES = """\
examples:
  jointwise virtual-ur --robot ur5e                                   (an excitation of 20 s)
  jointwise virtual-ur --robot ur10e --run plan/friction.script       (a program of 'joint plan')
  jointwise virtual-ur --run trajectory.csv --stall 5,15              (1 s without data, twice)
  jointwise virtual-ur --late 0.02 --port 0 --once                    (messages 20 ms late, any free port)
  jointwise virtual-ur --model model.json                             (the twin of a calibrated robot)

In another terminal: jointwise record --host 127.0.0.1 --output log.parquet --duration 25
The program starts one second after the first client receives data. Ctrl-C ends the server."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the robot, its program and faults of the controller."""
    add_robot(parser, required=False)
    parser.add_argument(
        "--model", metavar="FILE", help="serve the digital twin of this calibrated model instead of --robot"
    )
    parser.add_argument("--run", metavar="FILE", help="program: URScript (.script), or a trajectory (.csv, .parquet)")
    add_payload(parser)
    add_gravity(parser, "table")
    parser.add_argument("--seed", type=whole, default=0, help="seed of the sensor noise (default: 0)")
    parser.add_argument("--port", type=port, default=30004, help="TCP port (default: 30004; 0: any free one)")
    parser.add_argument(
        "--once", action="store_true", help="exit when the program has ended and no client is connected"
    )
    faults = parser.add_argument_group("faults of the controller")
    faults.add_argument(
        "--stall", type=times, default=(), metavar="S[,S...]", help="send nothing for 1 s at these times"
    )
    faults.add_argument("--lose", type=whole, default=0, metavar="N", help="lose every N-th message")
    faults.add_argument("--late", type=seconds, default=0.0, metavar="S", help="delay every message by S seconds")
    faults.add_argument("--hide", metavar="NAME[,NAME...]", help="fields that the controller does not offer")
    faults.add_argument("--old", action="store_true", help="simulate a controller without protocol version 2")


def run(args: argparse.Namespace) -> int:
    """Simulate the program and serve it."""
    from jointwise.experiment import PlantOptions
    from jointwise.experiment.twin import make_twin
    from jointwise.rtde.server import LOOPBACK
    from jointwise.runtime import RobotModel
    from jointwise.virtual_ur import make_virtual_ur, serve

    if args.model is not None and args.robot is not None:
        raise UsageError("--model replaces --robot")
    args.robot = "ur5e" if args.robot is None else args.robot
    with Progress() as progress:
        twin = None if args.model is None else make_twin(RobotModel(read_model(args.model)))
        joints = None if twin is None else twin.joints
        plant = PlantOptions(payload=payload_of(args.payload), gravity=mounting_of(args), joints=joints)
        virtual = make_virtual_ur(
            robot_of(args) if twin is None else twin.robot,
            args.run,
            plant=plant,
            seed=args.seed,
            progress=lambda share: progress("simulating", share),
        )
    with contextlib.suppress(KeyboardInterrupt):
        serve(
            virtual,
            port=args.port,
            faults=_faults(args),
            once=args.once,
            ready=lambda port: print(f"{virtual.robot.name} on {LOOPBACK}:{port}, Ctrl-C ends it", flush=True),
        )
    return 0


def _faults(args: argparse.Namespace) -> Any:
    """Return the faults of the options."""
    from jointwise.rtde.server import Faults

    hidden = tuple(args.hide.split(",")) if args.hide else ()
    return Faults(stall=args.stall, lose=args.lose, late=args.late, hide=hidden, protocol=1 if args.old else 2)
