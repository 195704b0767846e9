"""Settings that a command and a call share: declared here once, and nothing heavy is imported.

A command inherits the class; the call takes its defaults from it (``rate: float = Recording.rate``), or its options
object inherits it and is checked with `settings.check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from jointwise.settings import (
    Count,
    Gain,
    Hertz,
    Metres,
    Number,
    Port,
    Positive,
    Range,
    Seconds,
    Share,
    Whole,
    converted,
    option,
)

Goal = Literal["all", "bodies", "friction", "payload"]
Basis = Literal["fourier", "bspline"]
Optimality = Literal["d", "a"]
Side = Literal["motor", "link", "fused"]
Variant = Literal["plain", "exponential", "reset", "on-off", "directional", "directional-floor"]
Feedback = Literal["states", "sensors"]
Rotors = Literal["spong", "complete"]
Preset = Literal["calibration", "energy", "all"]
Method = Literal["wls", "ols", "huber", "iv"]
PriorKind = Literal["entropic", "euclidean"]
Time = Annotated[float, Range(0.0, 1e5, "s")]
Lag = Annotated[float, Range(-10.0, 10.0, "s")]
"""As in a model file; that of a drive is some milliseconds."""
Jitter = Annotated[float, Range(0.0, 1.0, "s")]
PlanRate = Annotated[float, Range(1.0, 1e4, "Hz")]
"""No controller takes more, and the files grow with it."""
FAULTS, SENSORS, SIGNALS = (
    "faults of the controller",
    "controller and sensors",
    "signals and estimation (default: selected from the data)",
)
"""Headings in the help."""


def names(text: str) -> tuple[str, ...]:
    """Return the names of a list `a,b`."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def times(text: str) -> tuple[float, ...]:
    """Return times in s, separated by commas."""
    return tuple(converted(word, Time) for word in text.split(","))


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a calibration may fix of the treatment of the signals and of the fit."""

    gains: tuple[Gain, ...] | None = option(
        None, "drive gains in Nm/A, one value per joint", metavar="K", many="words", group=SIGNALS
    )
    position_cutoff: Hertz | None = option(
        None, "cut-off frequency of the low-pass filter of the positions", metavar="HZ", group=SIGNALS
    )
    parallel_cutoff: Hertz | None = option(
        None, "cut-off frequency of a low-pass filter of regressor and output", metavar="HZ", standard="none",
        group=SIGNALS,
    )  # fmt: skip
    lag: Lag | None = option(
        None, "lag: the output at time t belongs to the motion at t + lag", metavar="S", group=SIGNALS
    )
    decimation: Count | None = option(None, "use every N-th sample", metavar="N", group=SIGNALS)
    method: Method = option(
        "wls", "weighted, ordinary or robust least squares, or instrumental variables from q_des1..", group=SIGNALS
    )
    body_prior: PriorKind = option("entropic", "distance between consistent and described bodies", group=SIGNALS)


@dataclass(frozen=True, kw_only=True)
class DirectorySettings:
    """The directory of a command's files."""

    output: str = option(help="directory for the files, new or empty", metavar="DIR")
    force: bool = option(False, "overwrite files in a directory that is not empty")


@dataclass(frozen=True, kw_only=True)
class ClearanceSettings:
    """The height above the mounting plane that planned motions keep, None without one."""

    clearance: Metres | None = option(
        0.05, "least height of the arm above the mounting plane", metavar="M", one_of="clearance",
        off=("--no-clearance", "do not check the mounting plane, for an arm on a pedestal"),
    )  # fmt: skip


@dataclass(frozen=True)
class ExcitationSettings:
    """The optimisation of a motion for the identification of a robot."""

    duration: Seconds = option(20.0, "duration from rest to rest", metavar="S")
    speed: Share = option(0.6, "fraction of the speed limits")
    seed: Whole = option(1, "seed of the random starts")
    goal: Goal = option(
        "all", "parameters to determine: all, bodies, friction, or payload of a calibrated arm", "--for", metavar="GOAL"
    )
    basis: Basis = option("fourier", "fourier (series) or bspline (quintic, at most 60 s)")
    criterion: Optimality = option("d", "d (volume of the confidence region) or a (mean squared standard error)")
    acceleration: Positive | None = option(
        None, "acceleration limit of joints without one in the description", metavar="A",
        standard="6 rad/s^2 or 3 m/s^2",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    """The files of a plan."""

    rate: PlanRate = option(125.0, "sampling rate of the trajectories", metavar="HZ")


@dataclass(frozen=True, kw_only=True)
class EnergySettings:
    """The search for the motion with the least energy."""

    duration: Positive | None = option(
        None, "duration from rest to rest", metavar="S", one_of="times", standard="that of --motion"
    )
    longest: Positive | None = option(
        None, "upper limit of the duration, which is optimised as well", metavar="S", one_of="times"
    )
    path: Literal["free", "fixed"] = option("free", "fixed: only the timing changes")
    speed: Share = option(1.0, "fraction of the speed limits")
    acceleration: Positive | None = option(
        None, "acceleration limit of joints without one in the description, rad/s^2", metavar="A", standard="6"
    )
    power_limit: Positive | None = option(None, "limit of the power on the bus", metavar="W")


@dataclass(frozen=True, kw_only=True)
class MotorSheet:
    """What a joint calibration sheet does not state."""

    gear_ratio: Positive = option(101.0, "gear ratio", metavar="R")
    standing: Number = option(0.0, "standing power", metavar="W")
    conversion: Number = option(0.0, "loss of the drives per motor power", metavar="C")


@dataclass(frozen=True, kw_only=True)
class RecordingSettings:
    """A recording over RTDE."""

    duration: Positive | None = option(None, "duration in s", metavar="S", standard="until Ctrl-C")
    rate: Hertz = option(500.0, "sampling rate, at most 500", metavar="HZ")
    preset: Preset = option("calibration", "group of RTDE fields to record")
    fields: tuple[str, ...] = option((), "additional RTDE output fields", metavar="NAME[,NAME...]", parse=names)
    port: Port = option(30004, "TCP port")


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """A server of RTDE."""

    port: Port = option(30004, "TCP port; 0: any free one")
    once: bool = option(False, "exit when the program has ended and no client is connected")


@dataclass(frozen=True)
class FaultSettings:
    """Faults of a controller, to test clients."""

    stall: tuple[float, ...] = option(
        (), "send nothing for 1 s at these times", metavar="S[,S...]", parse=times, group=FAULTS
    )
    lose: Whole = option(0, "lose every N-th message; 0: none", metavar="N", group=FAULTS)
    late: Time = option(0.0, "delay every message by S seconds", metavar="S", group=FAULTS)
    hide: tuple[str, ...] = option(
        (), "fields that the controller does not offer", metavar="NAME[,NAME...]", parse=names, group=FAULTS
    )


@dataclass(frozen=True, kw_only=True)
class RehearsalSettings:
    """The motions of a rehearsal."""

    duration: Seconds = option(30.0, "duration of each motion", metavar="S")
    seed: Whole = option(0, "seed of motions and noise")
    optimize: bool = option(False, "train on an optimal excitation (jointwise excite)")


@dataclass(frozen=True, kw_only=True)
class SimulationSettings:
    """A simulated recording: its length, what drives the arm, and what the sensors do to it."""

    experiment: str = option("excitation", "name from --list", metavar="NAME", one_of="what")
    duration: Seconds | None = option(
        None, "duration of the recording", metavar="S", standard="depends on the experiment"
    )
    seed: Whole = option(0, "seed of motion and noise", metavar="N")
    rotors: Rotors = option("spong", "model of the rotors", group="the robot")
    rate: Hertz = option(500.0, "sampling rate of the log", metavar="HZ", group=SENSORS)
    controller: str = option("servo", "name from --list", metavar="NAME", group=SENSORS)
    control_rate: Hertz = option(1000.0, "rate of the controller", metavar="HZ", group=SENSORS)
    bandwidth: Hertz | None = option(
        None, "bandwidth of the controller", metavar="HZ", standard="depends on the controller", group=SENSORS
    )
    feedback: Feedback = option(
        "states", "input of the controller: true positions and speeds, or encoders", group=SENSORS
    )
    jitter: Jitter = option(0.0, "rms jitter of the clock", metavar="S", group=SENSORS)
    dropped: Share = option(0.0, "fraction of the samples that are lost", metavar="PART", group=SENSORS)
    repeated: Share = option(0.0, "fraction of the rows that are repeated", metavar="PART", group=SENSORS)
    bus: bool = option(False, "also log voltage and current of the DC bus, for 'energy fit'", group=SENSORS)


@dataclass(frozen=True, kw_only=True)
class MonitoringSettings:
    """What a monitor accepts."""

    false_alarms: Positive = option(1.0, "accepted rate of false contacts per hour", metavar="N")


@dataclass(frozen=True, kw_only=True)
class StiffnessSettings:
    """The stiffness of a joint while the robot works."""

    side: Side = option("fused", "torque from the motor, from the links, or both by inverse variance (fused)")
    variant: Variant = option("directional-floor", "how old samples are forgotten", metavar="NAME")
    watch: Number = option(7.5, "loss of stiffness that gives the status watch", metavar="PERCENT")
    worn: Number = option(15.0, "loss of stiffness that gives the status worn", metavar="PERCENT")


@dataclass(frozen=True, kw_only=True)
class DriveSettings:
    """The drives of a robot from one log."""

    alike: bool = option(False, "joints with the same torque limit share their inertia")
