"""Serves a simulated UR controller over RTDE on the loopback interface, to rehearse recordings without a robot."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from jointwise.call_settings import FAULTS, FaultSettings, ServerSettings
from jointwise.cli.command import Common, UsageError
from jointwise.cli.inputs import Carried, MaybeRobot, OnTable
from jointwise.cli.output import Progress, line_as_json, read_model
from jointwise.settings import Whole, option, stated

EXAMPLES = """\
examples:
  jointwise virtual-ur --robot ur5e                                   (an excitation of 20 s)
  jointwise virtual-ur --robot ur10e --run plan/friction.script       (a program of 'joint plan')
  jointwise virtual-ur --run trajectory.csv --stall 5,15              (1 s without data, twice)
  jointwise virtual-ur --late 0.02 --port 0 --once                    (messages 20 ms late, any free port)
  jointwise virtual-ur --model model.json                             (the twin of a calibrated robot)

In another terminal: jointwise record --host 127.0.0.1 --output log.parquet --duration 25
The program starts one second after the first client receives data. Ctrl-C ends the server."""


@dataclass(frozen=True, kw_only=True)
class Settings(ServerSettings, FaultSettings, MaybeRobot, Carried, OnTable, Common):
    """The robot, its program and faults of the controller."""

    json: bool = option(False, "print robot, host and port as a line of JSON", group="general")
    model: str | None = option(
        None, "serve the digital twin of this calibrated model instead of --robot", metavar="FILE"
    )
    run: str | None = option(None, "program: URScript (.script), or a trajectory (.csv, .parquet)", metavar="FILE")
    seed: Whole = option(0, "seed of the sensor noise")
    old: bool = option(False, "simulate a controller without protocol version 2", group=FAULTS)


def run(settings: Settings) -> int:
    """Simulate the program and serve it."""
    from jointwise.experiment import PlantOptions
    from jointwise.experiment.twin import make_twin
    from jointwise.rtde.server import LOOPBACK, Faults
    from jointwise.runtime import RobotModel
    from jointwise.virtual_ur import make_virtual_ur, serve

    if settings.model is not None and settings.robot is not None:
        raise UsageError("--model replaces --robot")
    with Progress(settings.silent) as progress:
        twin = None if settings.model is None else make_twin(RobotModel(read_model(settings.model)))
        joints = None if twin is None else twin.joints
        plant = PlantOptions(payload=settings.load(), gravity=settings.stated_mounting(), joints=joints)
        virtual = make_virtual_ur(
            settings.described(settings.robot or "ur5e") if twin is None else twin.robot,
            settings.run,
            plant=plant,
            seed=settings.seed,
            progress=lambda share: progress("simulating", share),
        )

    def ready(port: int) -> None:
        if settings.json:
            print(line_as_json({"robot": virtual.robot.name, "host": LOOPBACK, "port": port}), flush=True)
        elif not settings.quiet:
            print(f"{virtual.robot.name} on {LOOPBACK}:{port}, Ctrl-C ends it", flush=True)

    faults = Faults(**stated(FaultSettings, settings), protocol=1 if settings.old else 2)
    with contextlib.suppress(KeyboardInterrupt):
        serve(virtual, port=settings.port, faults=faults, once=settings.once, ready=ready)
    return 0
