"""RTDE: encoding, hostile input, and recordings from a server with faults; every sample is accounted for."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli_runs import refused
from jointwise.data import read_log
from jointwise.errors import DataError, JointwiseError, OutputError
from jointwise.rtde.client import Client
from jointwise.rtde.protocol import (
    FIELDS,
    PRESETS,
    TYPES,
    Framer,
    MessageKind,
    ProtocolError,
    Recipe,
    Text,
    pack,
    pack_text,
    unpack_text,
)
from jointwise.rtde.recorder import find_gaps, record
from jointwise.rtde.server import Faults, Server


class Waves:
    """A source whose values follow from the tick."""

    def values(self, tick: int) -> Mapping[str, Sequence[float]]:
        t = tick / 500.0
        return {
            "timestamp": [10.0 + t],
            "actual_q": [np.sin(t + k) for k in range(6)],
            "actual_qd": [np.cos(t + k) for k in range(6)],
            "robot_mode": [7],
            "actual_digital_input_bits": [2**63 + tick],
        }

    def started(self, tick: int) -> None:
        pass


@contextlib.contextmanager
def serving(faults: Faults | None = None) -> Iterator[int]:
    """Serve waves on a free port."""
    server, stop = Server(Waves(), 0, faults), threading.Event()
    thread = threading.Thread(target=server.run, args=(stop.is_set,), daemon=True)
    thread.start()
    try:
        yield server.port
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """Serve something else: every connection is answered with the same bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    client.sendall(reply)
                    with client:
                        while client.recv(100):
                            pass

        threading.Thread(target=answer, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("type_", TYPES)
def test_values_of_every_type_survive_a_round_trip(type_: str) -> None:
    recipe = Recipe(3, ("x",), (type_,))
    values = tuple([1] * len(recipe.columns))
    assert recipe.unpack(recipe.pack(values)) == values


@given(
    st.lists(st.tuples(st.sampled_from(list(MessageKind)), st.binary(max_size=300)), max_size=20), st.integers(1, 50)
)
@settings(deadline=None)
def test_messages_are_found_however_the_stream_is_cut(messages: list[tuple[MessageKind, bytes]], size: int) -> None:
    stream, framer = b"".join(pack(kind, payload) for kind, payload in messages), Framer()
    found = [m for k in range(0, len(stream), size) for m in framer.feed(stream[k : k + size])]
    assert [(m.kind, m.payload) for m in found] == messages


@given(st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
def test_hostile_bytes_raise_only_protocol_errors(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        for message in Framer().feed(data):
            if message.kind == MessageKind.TEXT:
                unpack_text(message.payload)
            Recipe(1, ("a", "b"), ("DOUBLE", "VECTOR6D")).unpack(message.payload)


def test_text_survives_a_round_trip() -> None:
    text = Text("protective stop", "safety", 1)
    assert unpack_text(pack_text(text)) == text


def test_fields_of_presets_are_documented_fields() -> None:
    assert {name for fields in PRESETS.values() for name in fields} <= set(FIELDS)
    assert set(FIELDS.values()) <= set(TYPES)


def test_recording_keeps_every_sample_and_finds_gaps_of_exact_length(tmp_path: Path) -> None:
    output = tmp_path / "log.parquet"
    faults = Faults(stall=(0.5,), stall_seconds=1.0, hide=("gravity", "actual_current_as_torque"))
    with serving(faults) as port:
        result = record("127.0.0.1", output, duration=2.5, port=port, fields=("actual_digital_input_bits",))
    assert [(gap.index, gap.missing) for gap in result.gaps] == [(250, 500)]
    assert (result.samples, result.lost, result.controller) == (750, 500, "5.12.0.0")
    assert set(result.missing_fields) == {"gravity", "actual_current_as_torque"}
    log = read_log(output)
    np.testing.assert_array_equal(log.q[:, 0], [np.sin(round((t - 10.0) * 500.0) / 500.0) for t in log.t])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.parquet"]
    from pyarrow import parquet

    bits = parquet.read_table(output).column("actual_digital_input_bits").to_numpy()
    np.testing.assert_array_equal(np.diff(bits), np.diff(np.rint((log.t - 10.0) * 500.0)).astype(np.uint64))


def test_lost_messages_are_counted_and_lower_rates_are_kept(tmp_path: Path) -> None:
    with serving(Faults(lose=10)) as port:
        lossy = record("127.0.0.1", tmp_path / "a.csv", duration=0.5, port=port)
    assert lossy.lost == len(lossy.gaps) >= 20
    with serving() as port:
        slow = record("127.0.0.1", tmp_path / "b.csv", duration=0.5, rate=125.0, port=port)
    assert slow.lost == 0
    np.testing.assert_allclose(np.diff(read_log(tmp_path / "b.csv").t), 0.008, atol=1e-9)


def test_gaps_follow_from_the_stamps() -> None:
    stamps = np.delete(np.arange(100) / 500.0, [10, 11, 12, 50])
    assert [(gap.index, gap.missing) for gap in find_gaps(stamps, 500.0)] == [(10, 3), (47, 1)]


def test_connection_that_breaks_is_opened_again_and_marked(tmp_path: Path) -> None:
    stop, port = threading.Event(), 0
    first = Server(Waves(), 0)
    port = first.port
    until = threading.Event()
    threading.Thread(target=first.run, args=(until.is_set,), daemon=True).start()

    def restart() -> None:
        time.sleep(0.6)
        until.set()
        time.sleep(0.3)
        Server(Waves(), port).run(stop.is_set)

    thread = threading.Thread(target=restart, daemon=True)
    thread.start()
    timer = threading.Timer(2.5, stop.set)
    timer.start()
    result = record("127.0.0.1", tmp_path / "log.csv", port=port, stop=stop)
    thread.join()
    assert len(result.reconnects) == 1
    assert 0 < result.reconnects[0] < result.samples


KILLED = """
import sys, threading
from test_rtde import Waves
from jointwise.rtde.recorder import record
from jointwise.rtde.server import Server
server = Server(Waves(), 0)
threading.Thread(target=server.run, args=(lambda: False,), daemon=True).start()
record("127.0.0.1", sys.argv[1], port=server.port, progress=lambda status: print(status.samples, flush=True))
"""


@pytest.mark.parametrize("moment", [0.35, 0.6])
def test_killed_recording_is_readable_and_loses_at_most_one_second(tmp_path: Path, moment: float) -> None:
    output = tmp_path / "log.parquet"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", KILLED, output], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        written = [int(line) for line in process.stdout.read().split()]
    log = read_log(f"{output}.recording")
    assert log.samples >= max(written, default=2)
    assert not output.exists()


LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
"""
FULL = LIMITED + KILLED


def test_full_disk_ends_the_recording_in_one_line_and_keeps_the_samples(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    output = tmp_path / "log.parquet"
    command = [sys.executable, "-c", FULL, output]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "OutputError" in ended.stderr.splitlines()[-1]
    assert "cannot be written" in ended.stderr.splitlines()[-1]
    assert read_log(f"{output}.recording").samples > 100


def test_interrupted_recording_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "log.parquet.recording").write_bytes(b"")
    (tmp_path / "old.csv").write_text("t,q1\n")
    with serving() as port:
        with pytest.raises(OutputError, match="interrupted recording exists"):
            record("127.0.0.1", tmp_path / "log.parquet", duration=1.0, port=port)
        with pytest.raises(OutputError, match="does not replace"):
            record("127.0.0.1", tmp_path / "old.csv", duration=1.0, port=port)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak RTDE"),
        (b"\x00\x02V", "does not speak RTDE"),
        (b"\x00\x04V\x00", "protocol version 2"),
        (b"\x00\x04V\x01" + b"\x00\x05v\x00\x00", "nothing arrived for 1 s|none of the fields|must list"),
        (
            b"\x00\x04V\x01" + pack(MessageKind.CONTROLLER, bytes(16)) + pack(MessageKind.OUTPUTS, b"\x01DOUBLE"),
            "must list",
        ),
        (b"\x00\x04V\x01" + pack(MessageKind.CONTROLLER, bytes(16)) + pack(MessageKind.OUTPUTS, b"\x01"), "must list"),
    ],
)
def test_other_servers_are_rejected_in_one_line(tmp_path: Path, reply: bytes, message: str) -> None:
    with answering(reply) as port, pytest.raises(DataError, match=message):
        record("127.0.0.1", tmp_path / "log.csv", duration=1.0, port=port, timeout=1.0)
    assert list(tmp_path.iterdir()) == []


def test_old_controller_and_absent_controller_are_reported(tmp_path: Path) -> None:
    with serving(Faults(protocol=1)) as port, pytest.raises(DataError, match="protocol version 2"):
        record("127.0.0.1", tmp_path / "log.csv", duration=1.0, port=port)
    line = refused("record", "--host", "127.0.0.1", "--port", 9, "--output", tmp_path / "log.csv")
    assert "no controller answers" in line
    assert "Services" in line


@given(
    st.lists(st.tuples(st.sampled_from(list(MessageKind)), st.binary(max_size=40)), max_size=6), st.binary(max_size=20)
)
@settings(max_examples=25, deadline=None)
def test_hostile_clients_do_not_stop_the_server(messages: list[tuple[MessageKind, bytes]], rest: bytes) -> None:
    with serving() as port:
        with socket.create_connection(("127.0.0.1", port)) as client, contextlib.suppress(OSError):
            client.sendall(b"".join(pack(kind, payload) for kind, payload in messages) + rest)
        with Client("127.0.0.1", port, 5.0) as client:
            client.subscribe(("timestamp",), 500.0)
            client.start()
            assert len(next(client.packets())) == struct.calcsize(">Bd")


@pytest.mark.parametrize(
    "options",
    [{"rate": 0.0}, {"rate": 1e9}, {"rate": float("nan")}, {"duration": -1.0}, {"duration": float("nan")},
     {"preset": "none"}, {"fields": ("a b",)}, {"fields": ("é",)}],
)  # fmt: skip
def test_wrong_options_are_rejected_before_anything_is_opened(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(JointwiseError):
        record("127.0.0.1", tmp_path / "log.csv", port=9, **options)  # type: ignore[arg-type]
