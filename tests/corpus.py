"""Bad input for every command, generated in code: valid command lines, and what replaces one of their words.

A command line is a list of words. A word in braces names a file that `Files` writes (``{log}``, ``{model}``), and
``{out}`` (or ``{out.csv}``) a new file in an empty directory, which a refused command must leave empty.

To add a command, add a valid command line to `COMMANDS`: all bad contents of its files are then tried with it. Add its
numeric options to `NUMBERS` and a new kind of file to `Files` and `BAD`.
"""

from __future__ import annotations

import functools
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

import jointwise as jw
from cli_runs import PLAIN, bench, done
from computed import once, run_folder
from jointwise import Payload, read_log
from jointwise.data import write_log
from jointwise.energy import PowerModel
from jointwise.energy.signals import CURRENT, VOLTAGE
from motor_sheets import sheet_text
from synthetic import synthetic_log

TEST_DATA = Path(__file__).parent / "data"

OTHER = (*PLAIN, "--accept-implausible")
"""Options of a calibration with another robot than that of the log."""
COMMANDS: dict[str, list[str]] = {
    "inspect": ["inspect", "{log}", "--robot", "planar2"],
    "inspect-robot": ["inspect", "{log}", "--robot", "{robot.toml}"],
    "inspect-columns": ["inspect", "{log}", "--robot", "planar2", "--columns", "{columns.toml}"],
    "calibrate": ["calibrate", "{log}", "--robot", "planar2", "--output", "{out}", *PLAIN],
    "calibrate-parquet": ["calibrate", "{log.parquet}", "--robot", "planar2", "--output", "{out}", *PLAIN],
    "calibrate-table": ["calibrate", "{log}", "--robot", "{robot.csv}", "--output", "{out}", *OTHER],
    "calibrate-urdf": ["calibrate", "{log}", "--robot", "{robot.urdf}", "--output", "{out}", *OTHER],
    "calibrate-joint": [
        *("calibrate", "{log}", "--robot", "planar2", "--joint", "{joint.json}", "--output", "{out}", "--gains", "9"),
        *("9", "--direction", "tanh"),
    ],
    "calibrate-aurt": ["calibrate", "--model", "{aurt.json}", "--data", "{log}", "--out-params", "{out}", OTHER[-1]],
    "calibrate-validate": [
        *("calibrate-validate", "--model", "{aurt.json}", "--data", "{log}", "--calibration-data-rel", "0.6"),
        *("--out-params", "{out}", "--out-prediction", "{out}2", "--accept-implausible"),
    ],
    "validate": ["validate", "{model}", "{other}"],
    "validate-parquet": ["validate", "{model}", "{log.parquet}", "--json"],
    "predict": ["predict", "{model}", "{other}", "--output", "{out}"],
    "predict-columns": ["predict", "{model}", "{other}", "--columns", "{columns.toml}", "--output", "{out}"],
    "compare": ["compare", "{model}", "{model2}", "{other}"],
    "monitor": ["monitor", "{model}", "{other}", "--report", "{out.html}", "--json"],
    "report": ["report", "{model}", "{other}", "--output", "{out}"],
    "robots-show": ["robots", "show", "{robot.toml}"],
    "robots-show-urdf": ["robots", "show", "{robot.urdf}", "--json"],
    "robots-check": ["robots", "check", "{robot.csv}"],
    "simulate": ["simulate", "--robot", "{robot.toml}", "--duration", "1", "--rate", "50", "--output", "{out.csv}"],
    "simulate-drive": [
        *("simulate", "--robot", "planar2", "--joints", "{drive.toml}", "--duration", "1", "--rate", "50"),
        *("--output", "{out.csv}", "--truth", "{out}2"),
    ],
    "simulate-motion": ["simulate", "--robot", "planar2", "--motion", "{motion}", "--output", "{out.csv}"],
    "joint-friction": [
        *("joint", "friction", "{log}", "--robot", "planar2", "--joint", "1", "--gain", "10", "--output", "{out}")
    ],
    "joint-load-model": [
        *("joint", "load", "{log}", "--robot", "planar2", "--joint", "1", "--gain", "10", "--model", "{model}"),
        *("--output", "{out}"),
    ],
    "joint-all": ["joint", "all", "{log}", "--robot", "planar2", "--joint", "1", "--gain", "10", "--output", "{out}"],
    "joint-plan": ["joint", "plan", "--robot", "{robot.toml}", "--joint", "1", "--output", "{out}"],
    "excite": [
        *("excite", "--robot", "planar2", "--duration", "5", "--no-clearance", "--model", "{model}", "--output"),
        "{out}",
    ],
    "convert": ["convert", "{log}", "{out.parquet}"],
    "payload": ["payload", "{model}", "{loaded}"],
    "motor": ["motor", "{targets}", "--robot", "ur5e", "--output", "{out}"],
    "energy-fit": ["energy", "fit", "{bus}", "--robot", "planar2", "--gains", "9,9", "--output", "{out}"],
    "energy-report": ["energy", "report", "{power.json}", "{bus}"],
    "energy-predict": [
        *("energy", "predict", "{power.json}", "{motion}", "--model", "{model}", "--output", "{out.csv}"),
    ],
    "energy-sheet": ["energy", "sheet", "{sheet}", "--output", "{out}"],
    "export": ["export", "{model}", "--to", "mjcf", "--log", "{other}", "--output", "{out}"],
    "export-urdf": ["export", "{arm}", "--to", "urdf", "--urdf", "{robot.urdf}", "--output", "{out}"],
    "virtual-ur": ["virtual-ur", "--run", "{program.script}", "--port", "0"],
    "virtual-ur-motion": ["virtual-ur", "--run", "{trajectory.csv}", "--port", "0"],
    "record": ["record", "--host", "127.0.0.1", "--port", "1", "--duration", "1", "--output", "{out.csv}"],
    "rehearse": ["rehearse", "--duration", "5", "--output", "{out}"],
    "compile-rbd": ["compile-rbd", "--mdh", "{robot.csv}", "--out", "{out}"],
    "compile-rd": [
        *("compile-rd", "--model-rbd", "{bodies.json}", "--friction-torque-model", "none"),
        *("--friction-viscous-powers", "1", "--out", "{out}"),
    ],
}
"""Valid command lines by name; those of one command differ in the kinds of their files."""

NUMBERS: dict[str, dict[str, str]] = {
    "calibrate": {
        **dict.fromkeys(
            ("--holdout", "--stribeck", "--relaxation", "--gains", "--payload", "--position-cutoff"), "any"
        ),
        **dict.fromkeys(("--parallel-cutoff", "--lag", "--decimation", "--elements", "--viscous-powers"), "any"),
    },
    "validate": {"--min-r2": "number"},
    "monitor": dict.fromkeys(("--payload", "--false-alarms", "--idle"), "any"),
    "simulate": {
        **dict.fromkeys(("--duration", "--rate", "--control-rate", "--bandwidth", "--jitter", "--dropped"), "any"),
        **dict.fromkeys(("--repeated", "--payload", "--temperature", "--seed", "--joint", "--clearance"), "any"),
        **dict.fromkeys(("--tool", "--payload-at", "--push", "--age", "--wear"), "any"),
    },
    "joint-friction": dict.fromkeys(("--joint", "--gain", "--payload"), "any"),
    "joint-all": dict.fromkeys(("--elements",), "any"),
    "joint-plan": dict.fromkeys(("--rate", "--joint", "--payload", "--clearance", "--tool"), "any"),
    "excite": dict.fromkeys(("--duration", "--speed", "--seed"), "any"),
    "calibrate-validate": {"--calibration-data-rel": "any"},
    "compile-rd": {"--friction-viscous-powers": "any"},
    "motor": {"--payload": "any"},
    "energy-fit": {"--gains": "any"},
    "energy-sheet": dict.fromkeys(("--gear-ratio", "--standing", "--conversion"), "any"),
    "export": dict.fromkeys(("--rate", "--payload"), "any"),
    "virtual-ur": dict.fromkeys(("--payload", "--seed", "--port", "--lose", "--late"), "any"),
    "record": dict.fromkeys(("--duration", "--rate", "--port"), "any"),
    "rehearse": dict.fromkeys(("--duration", "--seed"), "any"),
}
"""Options that take numbers, by command line; "number": any finite number is allowed."""
WRONG_NUMBERS = ("nan", "inf", "-inf", "", "x", "1e999", "9" * 5000, "1,2,3,4,5,6,7", "\x1b[31m1", "1e", "--", "0x10")
WRONG_SIZES = ("-1e9", "1e300", "-1")
"""Wrong for every option whose range is not all numbers."""

ROBOT_TOML = """schema = 1
name = "arm"
convention = "mdh"
[[joint]]
a = 0.0
alpha = 0.0
d = 0.1
mass = 2.0
center_of_mass = [0.2, 0.0, 0.0]
inertia = [0.01, 0.0, 0.0, 0.02, 0.0, 0.02]
lower = -3.0
upper = 3.0
velocity = 2.0
[[joint]]
a = 0.4
alpha = 0.0
d = 0.0
mass = 1.0
center_of_mass = [0.1, 0.0, 0.0]
inertia = [0.01, 0.0, 0.0, 0.01, 0.0, 0.01]
"""
ROBOT_CSV = "# convention: mdh\nd,a,alpha\n0.1,0,0\n0,0.4,0\n"
ROBOT_URDF = """<robot name="arm">
<link name="base"/>
<link name="one"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<link name="two"><inertial><mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>
</inertial></link>
<joint name="a" type="revolute"><parent link="base"/><child link="one"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="50" velocity="2"/></joint>
<joint name="b" type="revolute"><parent link="one"/><child link="two"/><origin xyz="0.4 0 0"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="50" velocity="2"/></joint>
</robot>
"""
COLUMNS_TOML = '[columns]\nt = "t"\nq = ["q1", "q2"]\nqd = ["qd1", "qd2"]\ncurrent = ["i1", "i2"]\n'
PROGRAM = "movej([0, -1.5, 0, 0, 0, 0])\nmovej([0.2, -1.5, 0.1, 0, 0, 0], a=2.0, v=0.5)\n"
DRIVE_TOML = "schema = 1\n[drive]\nlinear = 20000.0\ncoulomb = 0.1\n"


@dataclass(frozen=True)
class Files:
    """The valid files of the command lines by name, in one directory."""

    folder: Path

    def path(self, name: str) -> Path:
        """Return a file by the name in braces."""
        return self.folder / name


def valid_files() -> Files:
    """Return the valid files, written once in a run of the tests."""
    return once(_valid_files)


def _valid_files() -> Files:
    folder, files = Path(mkdtemp(prefix="corpus-", dir=run_folder())), bench()
    short = read_log(files.training).slice(0, 800)
    write_log(short, folder / "log.csv")
    (folder / "log.csv").rename(folder / "log")
    write_log(read_log(files.unseen).slice(0, 600), folder / "other.csv")
    (folder / "other.csv").rename(folder / "other")
    write_log(short, folder / "log.parquet")
    times = np.arange(0.0, 2.0, 0.01)
    path = np.outer(0.5 - 0.5 * np.cos(np.pi * np.clip(times - 0.5, 0.0, 1.0)), [1.0, 0.5])
    six = np.column_stack([times, path, np.zeros((len(times), 4))])
    header = ",".join(["t", *(f"q{k}" for k in range(1, 7))])
    np.savetxt(folder / "trajectory.csv", six, "%.9g", ",", header=header, comments="")
    np.savetxt(folder / "motion", np.column_stack([times, path]), "%.9g", ",", header="t,q1,q2", comments="")
    for name in ("model", "model2"):
        (folder / name).write_bytes(files.model.read_bytes())
    _write_power_files(folder)
    texts = {
        "program.script": PROGRAM,
        "sheet": sheet_text(),
        "robot.toml": ROBOT_TOML,
        "robot.csv": ROBOT_CSV,
        "robot.urdf": ROBOT_URDF,
        "columns.toml": COLUMNS_TOML,
    }
    for name, text in (texts | {"drive.toml": DRIVE_TOML}).items():
        (folder / name).write_text(text)
    joints = (TEST_DATA / "joints_schema1.json").read_text(encoding="utf-8")
    document = json.loads(joints.replace('"ur5e"', '"planar2"'))
    del document["joints"][0]["parts"]["temperature"]  # the log has none
    (folder / "joint.json").write_text(json.dumps(document), encoding="utf-8")
    arm = ("--robot", folder / "robot.urdf", "--output", folder / "arm", *OTHER)
    done("calibrate", folder / "log", *arm)
    done("compile-rbd", "--mdh", folder / "robot.csv", "--out", folder / "bodies.json")
    friction = ("--friction-torque-model", "none", "--friction-viscous-powers", 1)
    done("compile-rd", "--model-rbd", folder / "bodies.json", *friction, "--out", folder / "aurt.json")
    return Files(folder)


def _write_power_files(folder: Path) -> None:
    """Write a log with a payload, one with the controller's targets, one with the power on the bus, a power model."""
    loaded = synthetic_log(jw.load_robot("planar2"), "fourier", duration=15.0, rate=100.0, seed=5, payload=Payload(2.0))
    targets = jw.simulate("ur5e", duration=8.0, rate=125.0, seed=1, keep=0).log
    for name, log in {"loaded": loaded.log, "targets": targets}.items():
        write_log(log, folder / f"{name}.csv")
        (folder / f"{name}.csv").rename(folder / name)
    power = PowerModel("planar2", 20.0, 1.0, (9.0, 9.0), (0.5, 0.5), (0.1, 0.1))
    power.save(folder / "power.json")
    log = read_log(folder / "log")
    watts = power.power(log.channel("current"), log.channel("qd")) + np.random.default_rng(0).normal(size=log.samples)
    first, *rows = (folder / "log").read_text().split()
    lines = (f"{row},48,{watt / 48.0:.9g}" for row, watt in zip(rows, watts.tolist(), strict=True))
    (folder / "bus").write_text("\n".join([f"{first},{VOLTAGE},{CURRENT}", *lines, ""]))


def text_junk() -> dict[str, bytes]:
    """Return contents that are wrong for every kind of file."""
    return {
        "empty": b"",
        "zero bytes": bytes(1000),
        "random bytes": np.random.default_rng(0).bytes(4000),
        "deep brackets": b"[" * 100_000,
        "html": b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
        "utf-16": "t,q1,q2\n0,0,0\n".encode("utf-16"),
        "not utf-8": b"\xff\xfe\xfd\x80name = \xe9\n",
        "long line": b"a" * 300_000,
        "escape sequences": b"\x1b[2J\x1b]0;title\x07,\x1b[31m\n1,2\n",
        "cut zip": b"PK\x03\x04abcdef",
    }


def changed_csv(change: Callable[[list[list[str]]], list[list[str]]]) -> bytes:
    """Return the log after a change of its cells."""
    rows = [line.split(",") for line in valid_files().path("log").read_text().split()]
    return ("\n".join(",".join(row) for row in change(rows)) + "\n").encode()


def with_cells(rows: list[list[str]], column: int, text: str, row: int | None = None) -> list[list[str]]:
    """Return rows with a cell replaced in one row, or in all but the header."""
    for k in range(1, len(rows)) if row is None else [row]:
        rows[k][column] = text
    return rows


def bad_logs() -> dict[str, bytes]:
    """Return damaged logs."""
    changes: dict[str, Callable[[list[list[str]]], list[list[str]]]] = {
        "header only": lambda rows: rows[:1],
        "one row": lambda rows: rows[:2],
        "no stamps": lambda rows: [row[1:] for row in rows],
        "no positions": lambda rows: [[row[0], *row[3:]] for row in rows],
        "one position": lambda rows: [row[:2] + row[3:] for row in rows],
        "names twice": lambda rows: [["t", "q1", "q1", *rows[0][3:]], *rows[1:]],
        "text cell": lambda rows: with_cells(rows, 1, "abc", 100),
        "nan": lambda rows: with_cells(rows, 1, "nan"),
        "infinite": lambda rows: with_cells(rows, 1, "inf", 100),
        "huge": lambda rows: with_cells(rows, 1, "1e300", 100),
        "many digits": lambda rows: with_cells(rows, 1, "1" * 5000, 100),
        "escape in a cell": lambda rows: with_cells(rows, 1, "\x1b[31m", 100),
        "escape in a name": lambda rows: [["t", "\x1b[31mq1\x07", *rows[0][2:]], *rows[1:]],
        "long name": lambda rows: [["t", "q" * 100_000, *rows[0][2:]], *rows[1:]],
        "long cell": lambda rows: with_cells(rows, 1, "x" * 200_000, 100),
        "missing field": lambda rows: [*rows[:50], rows[50][:-1], *rows[51:]],
        "stamps backwards": lambda rows: [rows[0], *reversed(rows[1:])],
        "equal stamps": lambda rows: with_cells(rows, 0, "1.0"),
        "stamps of nanoseconds": lambda rows: [rows[0], *([f"{float(r[0]) * 1e9:.0f}", *r[1:]] for r in rows[1:])],
        "degrees": lambda rows: [
            rows[0],
            *([r[0], *(repr(57.3 * float(c)) for c in r[1:3]), *r[3:]] for r in rows[1:]),
        ],
        "six joints": lambda rows: [["t", *(f"q{k}" for k in range(1, 7))], *([r[0], *r[1:3] * 3] for r in rows[1:])],
        "decimal commas": lambda rows: [rows[0], *([c.replace(".", ",") for c in r] for r in rows[1:])],
        "4097 columns": lambda rows: [[*r, *["0"] * 5000] for r in rows[:3]],
        "carriage returns": lambda rows: [["\r".join(r)] for r in rows],
    }
    return {**text_junk(), **{name: changed_csv(change) for name, change in changes.items()}}


def bomb() -> bytes:
    """Return a small Parquet file of 120 million zeros, written in parts: the tests must not need its memory."""
    import pyarrow as pa
    from pyarrow import parquet

    part, sink = pa.table({name: np.zeros(1_000_000) for name in ("t", "q1", "q2", "i1")}), io.BytesIO()
    with parquet.ParquetWriter(sink, part.schema, compression="zstd") as writer:
        for _ in range(30):
            writer.write_table(part)
    return sink.getvalue()


@functools.cache
def bad_parquets() -> dict[str, bytes]:
    """Return damaged Parquet logs."""
    import pyarrow as pa
    from pyarrow import parquet

    def stored(table: Any, **options: Any) -> bytes:
        sink = io.BytesIO()
        parquet.write_table(table, sink, **options)
        return sink.getvalue()

    good = valid_files().path("log.parquet").read_bytes()
    table = parquet.read_table(io.BytesIO(good))
    nested = pa.array([0.0] * len(table))
    for _ in range(60):
        nested = pa.StructArray.from_arrays([nested], ["a"])
    names = table.column_names
    flipped = bytearray(good)
    flipped[len(good) // 3] ^= 0x40
    return {
        "cut off": good[: len(good) // 2],
        "only magic": b"PAR1",
        "magic twice": b"PAR1PAR1",
        "huge footer": b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1",
        "flipped bit": bytes(flipped),
        "text stamps": stored(table.set_column(0, "t", pa.array(["x"] * len(table)))),
        "nested": stored(table.append_column("deep", nested).set_column(1, "q1", nested)),
        "lists": stored(table.set_column(1, "q1", pa.array([[1.0]] * len(table)))),
        "nulls": stored(table.set_column(1, "q1", pa.nulls(len(table), pa.float64()))),
        "no rows": stored(table.slice(0, 0)),
        "one row": stored(table.slice(0, 1)),
        "no columns": stored(table.select([])),
        "wrong gravity": stored(table.replace_schema_metadata({"jointwise.gravity": "[1e999, 0, 0]"})),
        "deep gravity": stored(table.replace_schema_metadata({"jointwise.gravity": "[" * 50_000})),
        "names twice": stored(table.rename_columns(["t", "q1", "q1", *names[3:]])),
        "bomb": bomb(),
        "out of range": stored(table.set_column(1, "q1", pa.array(np.full(len(table), 1e200)))),
    }


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> bytes:
    """Return a JSON document with one entry replaced."""
    copy = json.loads(json.dumps(document))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return json.dumps(copy).encode()


def entries(document: Any, path: tuple[Any, ...] = (), depth: int = 4) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of the entries of a JSON document; of a list only the first."""
    children = document.items() if isinstance(document, dict) else enumerate(document[:1])
    for key, value in children:
        yield (*path, key)
        if isinstance(value, dict | list) and depth > 1:
            yield from entries(value, (*path, key), depth - 1)


def bad_documents(name: str, depth: int = 3) -> dict[str, bytes]:
    """Return a JSON document with each entry in turn replaced by something wrong."""
    content = valid_files().path(name).read_bytes()
    document, wrong = json.loads(content), (None, "\x1b[31m", -1e308, [[[]]], {"a": 1}, True, 10**400)
    cases = {
        **text_junk(),
        "cut off": content[: len(content) // 2],
        "other": b"[1]",
        "schema true": replaced(document, ("schema",), True),
    }
    for k, path in enumerate(entries(document, depth=depth)):
        value = wrong[k % len(wrong)]
        cases[f"{'.'.join(map(str, path))} = {str(value)[:12]!r}"] = replaced(document, path, value)
    return cases


def encoded(texts: Mapping[str, str]) -> dict[str, bytes]:
    """Return the bytes of texts by name."""
    return {name: text.encode() for name, text in texts.items()}


def changed(text: str, changes: Mapping[str, tuple[str, str]]) -> dict[str, bytes]:
    """Return a text with one passage replaced by another, by the name of the change."""
    return encoded({name: text.replace(*pair) for name, pair in changes.items()})


def bad_tomls(text: str) -> dict[str, bytes]:
    """Return damaged TOML files."""
    return {
        **text_junk(),
        "many digits": text.replace("0.1", "9" * 400, 1).encode() + b"\nlarge = " + b"9" * 5000,
        "deep keys": b".".join([b"a"] * 20_000) + b" = 1\n" + text.encode(),
        "deep list": b"deep = " + b"[" * 400 + b"]" * 400 + b"\n" + text.encode(),
        "unknown key": b"surprise = 1\n" + text.encode(),
        "long key": b"k" * 50_000 + b" = 1\n" + text.encode(),
        "escape in a key": b'"\\u001b[31m" = 1\n' + text.encode(),
        "cut off": text.encode()[:-3] + b"[",
    }


def bad_robots_toml() -> dict[str, bytes]:
    """Return wrong robots as TOML."""
    changes = {
        "schema true": ("schema = 1", "schema = true"),
        "no joints": ("[[joint]]", "[[link]]"),
        "nan": ("mass = 2.0", "mass = nan"),
        "infinite": ("d = 0.1", "d = inf"),
        "huge": ("d = 0.1", "d = 1e300"),
        "text": ("mass = 2.0", 'mass = "heavy"'),
        "short inertia": ("0.02, 0.0, 0.02]", "0.02]"),
        "wrong convention": ('"mdh"', '"\\u001b[31m"'),
        "name list": ('"arm"', '["arm"]'),
        "huge integer": ("d = 0.1", f"d = {'9' * 400}"),
    }
    return {**bad_tomls(ROBOT_TOML), **changed(ROBOT_TOML, changes)}


def bad_robots_csv() -> dict[str, bytes]:
    """Return wrong DH tables."""
    changes = {
        "no rows": ("0.1,0,0\n0,0.4,0\n", ""),
        "text": ("0.1", "abc"),
        "nan": ("0.1", "nan"),
        "huge": ("0.1", "1e300"),
        "missing field": ("0,0.4,0", "0,0.4"),
        "wrong convention": ("mdh", "\x1b[31m"),
        "long cell": ("0.1", "9" * 100_000),
        "formula": ("0.1", "(1" + "+1" * 5000 + ")"),
        "power": ("0.1", "9**9**9"),
        "unknown column": ("alpha", "beta"),
    }
    junk = {name: content for name, content in text_junk().items() if name != "zero bytes"}
    return {**junk, **changed(ROBOT_CSV, changes)}


def bad_urdfs() -> dict[str, bytes]:
    """Return wrong URDF files."""
    laughs = "<!DOCTYPE r [<!ENTITY a 'ha'>" + "".join(
        f"<!ENTITY {chr(98 + k)} '{f'&{chr(97 + k)};' * 10}'>" for k in range(9)
    )
    changes = {
        "no joints": ("<joint", "<junction"),
        "nan": ('value="2"', 'value="nan"'),
        "huge": ('xyz="0.1 0 0"', 'xyz="1e300 0 0"'),
        "text": ('value="2"', 'value="heavy"'),
        "two numbers": ('xyz="0.4 0 0"', 'xyz="0.4 0"'),
        "loop": ('<child link="two"/>', '<child link="base"/>'),
        "unknown link": ('<child link="two"/>', '<child link="\x1b[31m"/>'),
        "zero axis": ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 0"/>'),
        "unknown type": ('type="revolute"', 'type="ball"'),
        "not closed": ("</robot>", ""),
        "entities": ('<robot name="arm">', laughs + ']><robot name="&j;">'),
        "external entity": ('<robot name="arm">', '<!DOCTYPE r [<!ENTITY x SYSTEM "/etc/passwd">]><robot name="&x;">'),
        "deep": ("</robot>", "<a>" * 50_000),
        "twice": ('name="two"', 'name="one"'),
    }
    return {**text_junk(), **changed(ROBOT_URDF, changes)}


def bad_columns() -> dict[str, bytes]:
    """Return wrong column mappings."""
    texts = {
        "nested": "[columns]\nq = [[['q1']]]\n",
        "number": "[columns]\nt = 5\n",
        "unknown channel": "[columns]\nspeed = 'v'\n",
        "missing column": "[columns]\nt = 'nothing'\n",
        "order and columns": "order = 't,q*2'\n[columns]\nt = 't'\n",
        "order number": "order = 5\n",
        "units list": "[units]\nq = ['deg']\n",
        "unknown unit": "[units]\nq = '\\u001b[31m'\n",
        "huge count": "order = 't,q*9999'\n",
        "huge range": "[columns]\nq = 'q1..q999999999999999999'\n",
        "range of many digits": f"[columns]\nq = 'q1..q{'9' * 5000}'\n",
    }
    return {**bad_tomls(COLUMNS_TOML), **encoded(texts)}


def bad_drives() -> dict[str, bytes]:
    """Return wrong parameters of the digital joints."""
    values = {
        "unknown key": "surprise = 1",
        "negative inertia": "inertia = -1.0",
        "zero gain": "gain = 0.0",
        "nan": "coulomb = nan",
        "huge": "linear = 1e300",
        "text": "linear = 'stiff'",
        "huge integer": f"linear = {'9' * 400}",
        "elements": "elements = 1e9",
        "fraction of an element": "elements = 1.5",
        "deep value": "linear = {value = {value = {value = 1}}, power = 0}",
    }
    texts = {name: f"schema = 1\n[drive]\n{value}\n" for name, value in values.items()}
    texts |= {
        "wrong count": "schema = 1\n[[joint]]\n",
        "joint table": "schema = 1\n[joint]\nlinear = 1.0\n",
        "schema true": "schema = true\n",
        "no schema": "[drive]\nlinear = 1.0\n",
        "drive list": "schema = 1\ndrive = [1]\n",
    }
    return {**bad_tomls(DRIVE_TOML), **encoded(texts)}


def bad_programs() -> dict[str, bytes]:
    """Return URScript programs that the virtual controller does not run."""
    texts = {
        "recursion": "def p():\n  p()\nend\np()\n",
        "tower of powers": "x = 9**9**9\nmovej([x, 0, 0, 0, 0, 0])\n",
        "endless speed": "movej([0, 0, 0, 0, 0, 0])\nmovej([1, 0, 0, 0, 0, 0], a=1e-300, v=1e-300)\n",
        "not a number": "movej([nan, inf, 0, 0, 0, 0])\n",
        "overflow": "movej([1e308, 0, 0, 0, 0, 0])\nmovej([-1e308, 0, 0, 0, 0, 0])\n",
        "far away": "movej([0, 0, 0, 0, 0, 0])\nmovej([1e6, 0, 0, 0, 0, 0])\n",
        "Python": "x = ().__class__.__bases__[0].__subclasses__()\n",
        "file": "x = open('/etc/passwd')\n",
        "socket": 'socket_open("127.0.0.1", 22)\n',
        "deep blocks": "if True:\n" * 2000,
        "deep brackets": "x = " + "(" * 5000,
        "long text": "x = 'a' * 100000000000\nmovej([0, 0, 0, 0, 0, 0])\n",
        "two joints": "movej([0, 0])\n",
        "no motion": "x = 1\n",
    }
    return {**text_junk(), **encoded(texts)}


def bad_sheets() -> dict[str, bytes]:
    """Return wrong calibration sheets."""
    text = sheet_text()
    rows = text.split("\n")
    texts = {
        "no rows": "\n".join(rows[:5]),
        "one row": "\n".join(rows[:6]),
        "text": text.replace("+40.0", "warm"),
        "nan": text.replace("+40.0", "nan").replace("0.07", "nan"),
        "huge": text.replace("+40.0", "1e300").replace("+3.20", "1e300"),
        "huge joint": text.replace("Joint 0", f"Joint {'9' * 5000}"),
        "negative joint": text.replace("Joint 0", "Joint -1"),
        "joint twice": text + text,
        "joint 7 only": text.replace("Joint 0", "Joint 7"),
        "zero constant": text.replace("+0.1000", "+0.0000"),
        "missing column": "\n".join(" ".join(row.split()[:-1]) for row in rows),
        "same speeds": re.sub(r"^ [-+]\d\.\d\d", " +1.00", text, flags=re.MULTILINE),
    }
    return {**text_junk(), **encoded(texts)}


BAD: dict[str, Callable[[], dict[str, bytes]]] = {
    "log": bad_logs,
    "other": bad_logs,
    "motion": bad_logs,
    "trajectory.csv": bad_logs,
    "log.parquet": bad_parquets,
    "model": lambda: bad_documents("model"),
    "model2": lambda: bad_documents("model", depth=1),
    "joint.json": lambda: bad_documents("joint.json"),
    "aurt.json": lambda: bad_documents("aurt.json"),
    "bodies.json": lambda: bad_documents("bodies.json"),
    "robot.toml": bad_robots_toml,
    "robot.csv": bad_robots_csv,
    "robot.urdf": bad_urdfs,
    "columns.toml": bad_columns,
    "drive.toml": bad_drives,
    "loaded": bad_logs,
    "targets": bad_logs,
    "bus": bad_logs,
    "power.json": lambda: bad_documents("power.json"),
    "arm": lambda: bad_documents("model", depth=1),
    "program.script": bad_programs,
    "sheet": bad_sheets,
}
"""Wrong contents by file name."""

ENDLESS = {
    "a gap of years": ("simulate-motion", "motion", "t,q1,q2\n0,0,0\n0.01,0,0\n0.02,0,0\n1e9,0,0\n1e9,0,0\n"),
    "times in ns": ("simulate-motion", "motion", "\n".join(["t,q1,q2", *(f"{k}e9,0,0" for k in range(2000)), ""])),
    "endless loop": ("virtual-ur", "program.script", "movej([0,0,0,0,0,0])\nwhile True:\nend\n"),
}
"""Files that cost time or memory without end if a limit is missing: name -> command line, file, content."""
LARGE = [
    ("simulate", "--duration=1e5", "--rate=1e5"),
    ("simulate", "--control-rate=0.001"),
    ("joint-plan", "--rate=1e5", "--payload=1e5"),
    ("excite", "--duration=1e5"),
    ("export", "--rate=1e5"),
]
"""Numbers in the allowed range whose product is not: command line and options."""
