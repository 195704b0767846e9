"""Messages of RTDE, protocol version 2: framing, types of the fields, and their encoding.

A message is a header and a payload, big-endian: ``size (uint16, with the header) | type (uint8) | payload``. A data
message holds the number of a recipe and the values of its fields, one after the other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

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
    """The fields of the data messages of one subscription: number, names and types, in the order of the values."""

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
    """A text of the controller: message, source and level (0 exception, 1 error, 2 warning, 3 information)."""

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
