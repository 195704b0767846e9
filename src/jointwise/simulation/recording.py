"""Recordings of the digital robot: runs sampled by its sensors become a log; the truth behind it as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from jointwise.atomic import atomic_write
from jointwise.data.channels import CHANNELS
from jointwise.data.coordinates import logged_output, logged_position
from jointwise.data.log import Log, Origin, log_from_matrix
from jointwise.data.spool import Spool
from jointwise.description.files import PayloadDocument, RobotDocument, robot_to_dict
from jointwise.description.robot import Payload, loaded_inertials
from jointwise.document import Kind, check_kind, decode, read_document
from jointwise.errors import ModelError
from jointwise.model.base import base_parameters
from jointwise.model.spring import Cubic, Rigid, Segments
from jointwise.model.terms import JointLaw, term_from_dict
from jointwise.simulation.robot.defaults import joint_effort
from jointwise.simulation.robot.digital import DigitalRobot, Supply
from jointwise.simulation.robot.joint import Elasticity, JointPlant
from jointwise.simulation.robot.run import Run, TrueSignals
from jointwise.simulation.sensors import Encoders, Readings, Sensors
from jointwise.spatial import Array

ORIGIN = "digital robot"
BUS = ("actual_robot_voltage", "actual_robot_current")
"""Columns of the DC bus, as the RTDE fields of a UR controller are named: V and A."""


@dataclass(frozen=True)
class Targets:
    """What the controller logs beside the measurements, (samples, joints) each.

    Attributes:
        q_des: Reference positions, rad.
        qd_des: Reference speeds, rad/s.
        qdd_des: Reference accelerations, rad/s².
        torque_des: Commanded torques, Nm.
    """

    q_des: Array
    qd_des: Array
    qdd_des: Array
    torque_des: Array


class Recorder:
    """Sensors on a digital robot for `duration` (s); `gauge` adds load cells at the joints (channel `torque`).

    Runs are added in order with `times` and `add`; `finish` returns the log. A large log is stored on disk. `sensors`
    get the default current noise of the drives unless they set it.
    """

    def __init__(self, digital: DigitalRobot, sensors: Sensors, duration: float, gauge: bool = False) -> None:
        """Lay out the clock of the whole recording."""
        efforts = np.array([joint_effort(joint) for joint in digital.robot.joints])
        self.sensors = sensors.at_drives(efforts, digital.gains)
        self._digital, self._gauge = digital, gauge
        self._taken, self._stamps = self.sensors.clock(duration)
        self._ratios = np.array([joint.gear_ratio for joint in digital.joints])
        self._readings = Readings(self.sensors)
        self._next = 0
        self._spool: Spool | None = None
        self._widths: dict[str, int] = {}
        self._bus: list[tuple[Array, Array]] = []

    @property
    def encoders(self) -> Encoders:
        """The encoders of the robot, as a controller reads them."""
        return self.sensors.encoders(self._ratios)

    @property
    def end(self) -> float:
        """When the last sample is taken, s."""
        return float(self._taken[-1])

    def times(self, until: float) -> Array:
        """Return when the samples are taken that come next, up to `until` (s, not included)."""
        last = int(np.searchsorted(self._taken, until, side="left"))
        return self._taken[self._next : last]

    def add(self, run: Run, rate: float, until: float, targets: Targets) -> None:
        """Record a run made at a control rate (Hz) with the targets at `times(until)`."""
        times = self.times(until)
        if len(times) == 0:
            return
        signals, readings, robot = signals_at(run, rate, times), self._readings, self._digital.robot
        channels: dict[str, Array | None] = {
            "t": self._stamps[self._next : self._next + len(times), None],
            "q": self.sensors.position(logged_position(signals.q, robot)),
            "qd": readings.speed(logged_position(signals.qd, robot)),
            "theta": self.sensors.rotor(signals.theta, self._ratios),
            "current": readings.current(signals.current),
            "torque": readings.torque(logged_output(signals.load, "torque", robot)) if self._gauge else None,
            "temperature": readings.temperature(signals.temperature),
            **self._logged(targets),
            "current_des": signals.command / self._digital.gains,
        }
        if self.sensors.bus:
            supply = self._digital.supply
            voltage, current = supply.bus(supply.power(self._digital.joints, signals.current, signals.speed))
            self._bus.append((voltage, readings.bus_current(current)))
        self._append({name: channels[name] for name in CHANNELS if channels.get(name) is not None})
        self._next += len(times)

    def _logged(self, targets: Targets) -> dict[str, Array | None]:
        """Return the targets in the coordinates of the log."""
        robot = self._digital.robot
        return {
            name: logged_output(x, "torque", robot) if name == "torque_des" else logged_position(x, robot)
            for name, x in vars(targets).items()
        }

    def _append(self, channels: dict[str, Array | None]) -> None:
        columns = {name: values for name, values in channels.items() if values is not None}
        if self._spool is None:
            self._widths = {name: values.shape[1] for name, values in columns.items()}
            self._spool = Spool(sum(self._widths.values()))
        self._spool.append(np.column_stack(list(columns.values())))

    def finish(self) -> Log:
        """Return the log, without the samples that are lost."""
        if self._spool is None or self._next < len(self._taken):
            raise ModelError("the recording must be added to its end before it is finished.")
        matrix, pages = self._spool.finish()
        log = log_from_matrix(matrix, self._widths, {}, Origin(path=ORIGIN), pages)
        if self._bus:
            channels = (np.concatenate(parts) for parts in zip(*self._bus, strict=True))
            log = replace(log, extra=dict(zip(BUS, channels, strict=True)))
        if self.sensors.dropped == 0.0 and self.sensors.repeated == 0.0:
            return log
        return log.take(self.sensors.written(len(self._taken)), "samples lost and repeated on purpose")


ROUNDING = 1e-6
"""Part of a period by which a time may miss the start of its period."""


def signals_at(run: Run, rate: float, times: Array) -> TrueSignals:
    """Return the signals of a run, made at a control rate (Hz), at times (samples,) s from its start to its end.

    Positions are the cubics through positions and speeds at both ends of a period, the rest is linear; a command holds
    until the next. At the start of a period the values of the run are returned exactly.
    """
    place = (times - run.t[0]) * rate
    k = np.clip(np.floor(place + ROUNDING), 0, len(run.t) - 1).astype(np.intp)
    s = np.clip(place - k, 0.0, 1.0)[:, None]
    s[s < ROUNDING] = 0.0

    def linear(name: str) -> Array:
        before, after = _ends(run, name, k)
        result: Array = before + s * (after - before)
        return result

    return TrueSignals(
        q=_cubic(_ends(run, "q", k), _ends(run, "qd", k), s, rate),
        qd=linear("qd"),
        theta=_cubic(_ends(run, "theta", k), _ends(run, "speed", k), s, rate),
        speed=linear("speed"),
        current=linear("current"),
        temperature=linear("temperature"),
        load=linear("load"),
        command=run.command[k],
    )


def _ends(run: Run, name: str, k: Array) -> tuple[Array, Array]:
    """Return a series at the start and at the end of the periods k, (samples, joints)."""
    series = np.vstack([getattr(run, name), run.final.row(name)])
    return series[k], series[k + 1]


def _cubic(x: tuple[Array, Array], v: tuple[Array, Array], s: Array, rate: float) -> Array:
    """Return Hermite's cubic at parts s of a period; x + s (...) so that s = 0 gives x to the bit."""
    step = x[1] - x[0]
    a, b = v[0] / rate - step, step - v[1] / rate
    return x[0] + s * (step + (1.0 - s) * ((1.0 - s) * a + s * b))


KIND = Kind(
    format="jointwise truth",
    name="the truth of a Jointwise recording",
    noun="truth",
    remedy="Simulate again.",
)
_RENAMED = {"warmth": "thermal"}
"""Entries of friction in older files -> their present names."""
SPRINGS: dict[str, type[Elasticity]] = {"rigid": Rigid, "cubic": Cubic, "segments": Segments}


def digital_robot_to_dict(digital: DigitalRobot) -> dict[str, Any]:
    """Return a digital robot as numbers and texts, with what follows from them: gains, standard and base parameters."""
    inertials = loaded_inertials(digital.robot, digital.payload)
    rotors = np.array([joint.inertia for joint in digital.joints])
    base = base_parameters(digital.robot, _gravity(digital), True)
    values = base.from_standard(np.concatenate([inertials.ravel(), rotors]))
    content = {
        "robot": robot_to_dict(digital.robot),
        "gravity": list(_gravity(digital)),
        "payload": None if digital.payload is None else payload_to_dict(digital.payload),
        "model": digital.model,
        "joints": [joint_to_dict(joint) for joint in digital.joints],
        "supply": asdict(digital.supply),
        "gains": digital.gains.tolist(),
        "inertials": inertials.tolist(),
        "rotor_inertias": rotors.tolist(),
        "base": dict(zip(base.names, values.tolist(), strict=True)),
    }
    return KIND.stamped(content)


def digital_robot_from_truth(document: Mapping[str, Any]) -> DigitalRobot:
    """Return the digital robot that a truth document describes, equal in every number.

    Raises:
        ModelError: The document is of another kind, or an entry is missing or wrong; names the entry.
    """
    known = check_kind(document, KIND)
    entries = {entry.name: known[entry.name] for entry in fields(_DigitalEntries) if entry.name in known}
    return decode(entries, _DigitalEntries).digital


@dataclass(frozen=True)
class _DigitalEntries:
    """The entries of a truth document that describe the robot; the others describe the recording."""

    robot: RobotDocument
    joints: tuple[dict[str, Any], ...]
    gravity: tuple[float, float, float]
    payload: PayloadDocument | None
    model: Literal["spong", "complete"]
    supply: Supply = field(default_factory=Supply)

    def __post_init__(self) -> None:
        """Reject entries that make no robot."""
        assert self.digital

    @cached_property
    def digital(self) -> DigitalRobot:
        """The robot itself."""
        return DigitalRobot(
            robot=self.robot.robot,
            joints=tuple(_joint(entry, f"joints[{k}]") for k, entry in enumerate(self.joints)),
            gravity=self.gravity,
            payload=None if self.payload is None else self.payload.payload,
            model=self.model,
            supply=self.supply,
        )


def _joint(document: Mapping[str, Any], path: str) -> JointPlant:
    try:
        return joint_from_dict(document)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise ModelError(f"{path} is not a joint of a digital robot ({type(problem).__name__} {problem}).") from None


def save_truth(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a truth document; the file appears only when it is complete."""
    with atomic_write(path) as file:
        file.write(json.dumps(document, indent=1, allow_nan=False) + "\n")


def load_truth(path: str | Path) -> dict[str, Any]:
    """Return the truth document of a file; `digital_robot_from_truth` makes the robot of it."""
    return read_document(path, KIND)


def joint_to_dict(joint: JointPlant) -> dict[str, Any]:
    """Return a joint as numbers; a limit that is not there (inf) is None."""
    document: dict[str, Any] = _plain(asdict(replace(joint, terms=None)))
    del document["terms"]
    if joint.terms is not None:
        document["terms"] = joint.terms.to_list()
    kind = next(name for name, spring in SPRINGS.items() if isinstance(joint.stiffness, spring))
    return document | {"stiffness": {"kind": kind, **document["stiffness"]}}


def joint_from_dict(document: Mapping[str, Any]) -> JointPlant:
    """Return the joint of such a document."""
    spring = dict(document["stiffness"])
    stiffness = _built(SPRINGS[spring.pop("kind")], spring)
    friction = {_RENAMED.get(name, name): value for name, value in document.get("friction", {}).items()}
    others = {name: value for name, value in document.items() if name not in ("stiffness", "terms")}
    joint: JointPlant = _built(JointPlant, others | {"friction": friction})
    entries = [dict(entry) for entry in document.get("terms", ())]
    values = tuple(np.array(entry.pop("values"), dtype=float) for entry in entries)
    law = JointLaw(tuple(term_from_dict(entry) for entry in entries), values) if "terms" in document else None
    return replace(joint, stiffness=stiffness, terms=law)


def _plain(value: Any) -> Any:
    """Return nested values as JSON stores them: tuples as lists, infinity as None."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if value == math.inf else value


def _built(kind: Any, value: Any) -> Any:
    """Return a value of an annotated kind - a dataclass, a tuple of a kind, a number - from a plain one."""
    if is_dataclass(kind) and isinstance(kind, type):
        kinds = get_type_hints(kind)
        return kind(**{name: _built(kinds[name], item) for name, item in value.items()})
    if get_origin(kind) is tuple:
        return tuple(_built(get_args(kind)[0], item) for item in value)
    return math.inf if value is None else value


def _gravity(digital: DigitalRobot) -> tuple[float, float, float]:
    x, y, z = np.asarray(digital.gravity, dtype=float).tolist()
    return x, y, z


def payload_to_dict(payload: Payload) -> dict[str, Any]:
    """Return a payload as numbers: kg, m, kg m²."""
    return {
        "mass": payload.mass,
        "center_of_mass": np.asarray(payload.center_of_mass).tolist(),
        "inertia": np.asarray(payload.inertia).tolist(),
    }
