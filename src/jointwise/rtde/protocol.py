"""Messages of RTDE, protocol version 2: framing, types of the fields, and their encoding.

A message is a header and a payload, big-endian: ``size (uint16, with the header) | type (uint8) | payload``. A data
message holds the number of a recipe and the values of its fields, one after the other. Names and types of the fields
are those of the RTDE guide of Universal Robots; a controller answers a name that it does not know with NOT_FOUND, and a
recording continues without it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType

from jointwise.errors import JointwiseError

PORT = 30004
VERSION = 2
HEADER = struct.Struct(">HB")
MAX_SIZE = 0xFFFF
"""Largest message in bytes: its size is 16 bits."""
NOT_FOUND = "NOT_FOUND"
IN_USE = "IN_USE"
SHOWN_BYTES = 8
"""Bytes of an unexpected message that an error shows."""
_VECTOR6 = (
    "target_q", "target_qd", "target_qdd", "target_current", "target_moment", "actual_q", "actual_qd", "actual_current",
    "actual_current_window", "actual_current_as_torque", "joint_control_output", "actual_TCP_pose", "actual_TCP_speed",
    "actual_TCP_force", "target_TCP_pose", "target_TCP_speed", "joint_temperatures", "actual_joint_voltage",
    "payload_inertia", "ft_raw_wrench",
)  # fmt: skip
_DOUBLE = (
    "timestamp", "actual_execution_time", "speed_scaling", "target_speed_fraction", "actual_momentum",
    "actual_main_voltage", "actual_robot_voltage", "actual_robot_current", "payload", "tcp_force_scalar",
    "standard_analog_input0", "standard_analog_input1", "standard_analog_output0", "standard_analog_output1",
    "io_current", "euromap67_24V_voltage", "euromap67_24V_current", "tool_analog_input0", "tool_analog_input1",
    "tool_output_current", "tool_temperature", "collision_detection_ratio", "joint_position_deviation_ratio",
)  # fmt: skip
_UINT32 = (
    "runtime_state", "robot_status_bits", "safety_status_bits", "analog_io_types", "euromap67_input_bits",
    "euromap67_output_bits", "tool_mode", "tool_analog_input_types", "output_bit_registers0_to_31",
    "output_bit_registers32_to_63", "input_bit_registers0_to_31", "input_bit_registers32_to_63", "script_control_line",
)  # fmt: skip
_VECTOR3 = ("actual_tool_accelerometer", "elbow_position", "elbow_velocity", "payload_cog", "gravity")
_INT32 = ("robot_mode", "safety_mode", "safety_status", "tool_output_voltage", "time_scale_source")
_REGISTERS = 48
"""Number of integer and of floating-point registers in either direction."""

FIELDS = MappingProxyType(
    dict.fromkeys(_VECTOR6, "VECTOR6D")
    | dict.fromkeys(_DOUBLE, "DOUBLE")
    | dict.fromkeys(_UINT32, "UINT32")
    | dict.fromkeys(_VECTOR3, "VECTOR3D")
    | dict.fromkeys(_INT32, "INT32")
    | {"joint_mode": "VECTOR6INT32", "actual_digital_input_bits": "UINT64", "actual_digital_output_bits": "UINT64"}
    | dict.fromkeys(("tool_output_mode", "tool_digital_output0_mode", "tool_digital_output1_mode"), "UINT8")
    | {f"{side}_int_register_{k}": "INT32" for side in ("input", "output") for k in range(_REGISTERS)}
    | {f"{side}_double_register_{k}": "DOUBLE" for side in ("input", "output") for k in range(_REGISTERS)}
    | {f"{side}_bit_register_{k}": "BOOL" for side in ("input", "output") for k in range(64, 128)}
)
"""Output field -> type."""

UNITS = MappingProxyType(
    {
        "timestamp": "s",
        **dict.fromkeys(("target_q", "actual_q"), "rad"),
        **dict.fromkeys(("target_qd", "actual_qd"), "rad/s"),
        "target_qdd": "rad/s^2",
        **dict.fromkeys(("target_current", "actual_current", "joint_control_output", "actual_robot_current"), "A"),
        **dict.fromkeys(("target_moment", "actual_current_as_torque"), "Nm"),
        "joint_temperatures": "degC",
        **dict.fromkeys(("actual_main_voltage", "actual_robot_voltage", "actual_joint_voltage"), "V"),
        "payload": "kg",
        "payload_cog": "m",
        "payload_inertia": "kg m^2",
        "gravity": "m/s^2",
    }
)
"""Field -> unit, for the fields of the presets that have one."""

_MOTION = ("timestamp", "actual_q", "actual_qd", "actual_current", "target_q", "target_qd", "target_qdd")
_STATE = ("robot_mode", "joint_mode", "safety_mode", "runtime_state", "speed_scaling")
_PAYLOAD = ("payload", "payload_cog", "payload_inertia", "gravity")
_POWER = ("actual_main_voltage", "actual_robot_voltage", "actual_robot_current", "actual_joint_voltage")
_TORQUES = ("target_current", "target_moment", "actual_current_as_torque", "joint_temperatures")

PRESETS = MappingProxyType(
    {
        "calibration": (*_MOTION, *_TORQUES, *_PAYLOAD, *_STATE),
        "energy": (*_MOTION, *_TORQUES, *_POWER, *_PAYLOAD, *_STATE),
        "all": (
            *_MOTION, *_TORQUES, *_POWER, *_PAYLOAD, *_STATE, "joint_control_output", "actual_TCP_pose",
            "actual_TCP_speed", "actual_TCP_force", "target_TCP_pose", "target_TCP_speed", "actual_tool_accelerometer",
            "ft_raw_wrench", "safety_status_bits", "robot_status_bits", "target_speed_fraction",
            "actual_execution_time", "actual_digital_input_bits", "actual_digital_output_bits",
        ),
    }
)  # fmt: skip
"""Name of a preset -> output fields."""


class ProtocolError(JointwiseError):
    """The other side does not speak RTDE, or a message is damaged."""


class MessageKind(IntEnum):
    """Types of messages."""

    VERSION = ord("V")
    CONTROLLER = ord("v")
    TEXT = ord("M")
    OUTPUTS = ord("O")
    INPUTS = ord("I")
    START = ord("S")
    PAUSE = ord("P")
    DATA = ord("U")


KINDS = frozenset(int(kind) for kind in MessageKind)

TYPES = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT32": "I",
    "UINT64": "Q",
    "INT32": "i",
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}
"""Type of a field -> format of `struct`."""


@dataclass(frozen=True)
class Message:
    """One message: its type and its payload."""

    kind: MessageKind
    payload: bytes


def pack(kind: MessageKind, payload: bytes = b"") -> bytes:
    """Return a message in bytes.

    Raises:
        ProtocolError: If the message would be longer than 65535 bytes.

    """
    size = HEADER.size + len(payload)
    if size > MAX_SIZE:
        raise ProtocolError(f"a message must have at most {MAX_SIZE} bytes. Got {size} instead: use fewer fields.")
    return HEADER.pack(size, kind) + payload


class Framer:
    """Splits a stream of bytes into messages."""

    def __init__(self) -> None:
        """Start with an empty buffer."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Add bytes from the connection and yield the messages that are complete.

        Raises:
            ProtocolError: If the bytes cannot be RTDE: a size below that of the header, or an unknown type.

        """
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            size, kind = HEADER.unpack_from(self._buffer)
            if size < HEADER.size or kind not in KINDS:
                start = bytes(self._buffer[:SHOWN_BYTES])
                raise ProtocolError(f"the other side does not speak RTDE. It sent {start!r}.")
            if len(self._buffer) < size:
                return
            payload = bytes(self._buffer[HEADER.size : size])
            del self._buffer[:size]
            yield Message(MessageKind(kind), payload)


@dataclass(frozen=True)
class Recipe:
    """The fields of the data messages of one subscription.

    Attributes:
        number: Number of the recipe.
        names: Names of the fields, in the order of the values.
        types: Types of the fields, keys of `TYPES`.
    """

    number: int
    names: tuple[str, ...]
    types: tuple[str, ...]

    def __post_init__(self) -> None:
        """Reject types that the protocol does not define.

        Raises:
            ProtocolError: If a type is unknown or the numbers of names and types differ.

        """
        if len(self.names) != len(self.types):
            raise ProtocolError(f"the controller must list {len(self.names)} types. Got {len(self.types)} instead.")
        for name, type_ in zip(self.names, self.types, strict=True):
            if type_ not in TYPES:
                raise ProtocolError(f"field '{name}' has the unknown type '{type_[:40]}'.")

    @cached_property
    def layout(self) -> struct.Struct:
        """Format of a data message: the number of the recipe and all values."""
        return struct.Struct(">B" + "".join(TYPES[type_] for type_ in self.types))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Name of every value: the field, with ``_0, _1, ...`` for the elements of a vector."""
        columns: list[str] = []
        for name, type_ in zip(self.names, self.types, strict=True):
            count = elements(type_)
            columns += [name] if count == 1 else [f"{name}_{k}" for k in range(count)]
        return tuple(columns)

    def unpack(self, payload: bytes) -> tuple[float, ...]:
        """Return the values of a data message, (columns,).

        Raises:
            ProtocolError: If the message belongs to another recipe or has the wrong length.

        """
        if len(payload) != self.layout.size:
            raise ProtocolError(f"a data message must have {self.layout.size} bytes. Got {len(payload)} instead.")
        number, *values = self.layout.unpack(payload)
        if number != self.number:
            raise ProtocolError(f"a data message must belong to recipe {self.number}. Got recipe {number} instead.")
        return tuple(values)

    def pack(self, values: Sequence[float]) -> bytes:
        """Return the payload of a data message."""
        return self.layout.pack(self.number, *values)


def elements(type_: str) -> int:
    """Return the number of values of a type: 1, 3 or 6."""
    digits = TYPES[type_][:-1]
    return int(digits) if digits else 1


@dataclass(frozen=True)
class Text:
    """A text of the controller.

    Attributes:
        message: The text.
        source: What it comes from.
        level: 0 for an exception, 1 an error, 2 a warning, 3 information.
    """

    message: str
    source: str
    level: int


def pack_text(text: Text) -> bytes:
    """Return the payload of a text message."""
    message, source = text.message.encode()[:255], text.source.encode()[:255]
    return bytes([len(message)]) + message + bytes([len(source)]) + source + bytes([text.level])


def unpack_text(payload: bytes) -> Text:
    """Return the text of a payload; bytes that are not UTF-8 are replaced.

    Raises:
        ProtocolError: If the lengths inside the payload contradict its size.

    """
    parts, rest = list[str](), payload
    for _ in range(2):
        if not rest or len(rest) < 1 + rest[0]:
            raise ProtocolError("a text message is cut off.")
        parts.append(rest[1 : 1 + rest[0]].decode("utf-8", "replace"))
        rest = rest[1 + rest[0] :]
    return Text(parts[0], parts[1], rest[0] if rest else 0)
