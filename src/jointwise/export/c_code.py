"""The model as a C99 library: the runtime core as it is, a header of numbers, a test program, and compilers for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

from jointwise.errors import ModelError
from jointwise.export.package import Comparison, Content, compared, not_compared
from jointwise.export.simple_friction import planned_losses
from jointwise.model.terms import DRIVERS, LOADS, NUMBERS, CoreTerm
from jointwise.result.predict import Use
from jointwise.runtime import RobotModel
from jointwise.runtime.packing import CoreJoint, CoreModel
from jointwise.spatial import Array

LONGEST_RUN = 120.0
"""s; a compilation takes some seconds."""
STRICT = ("-Wall", "-Wextra", "-Werror")
CORE = ("number.h", "terms.h", "runtime.h", "runtime.c")
"""Files of the core, in the order in which they include each other."""
STATES = 10_000
"""States at which an export is compared with the model."""
STORED = 100
"""Samples that the test program of an export holds."""
DOUBLE, FLOAT = 1e-9, 1e-4
"""Allowed differences: Nm in double, part of the largest torque of the joint in float."""
COUPLED_FLOAT = 1e-3
"""The same for a coupled transmission: positions of the motors, C q, are rounded before they deform slip elements."""
COUPLINGS = ("coupling", "decoupling")
"""Members of jw_model that hold C and its inverse; 0 without coupling."""


def compiler(variable: str = "CC", names: Sequence[str] = ("cc", "gcc", "clang")) -> str | None:
    """Return the C compiler: that of the environment variable, else the first one that is installed.

    It is None where there is none.
    """
    chosen = os.environ.get(variable)
    return chosen if chosen and shutil.which(chosen) else next(filter(None, map(shutil.which, names)), None)


def cpp_compiler() -> str | None:
    """Return the C++ compiler, None without any."""
    return compiler("CXX", ("c++", "g++", "clang++"))


def run(command: Sequence[str], folder: Path, data: bytes = b"") -> bytes:
    """Return what a program prints on its standard output.

    Raises:
        ModelError: The program failed; with the first line that it printed on its standard error.

    """
    result = subprocess.run(command, cwd=folder, input=data, capture_output=True, timeout=LONGEST_RUN, check=False)
    if result.returncode != 0:
        lines = [line for line in result.stderr.decode(errors="replace").splitlines() if line.strip()]
        first = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
        raise ModelError(f"{Path(command[0]).name} failed ({result.returncode}): {first}")
    return result.stdout


def write_files(files: dict[str, bytes], folder: Path) -> None:
    """Write files into a temporary folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def c_library(model: RobotModel, rate: float, use: Use = "feed-forward") -> Content:
    """Return the model as a C library for a sampling rate (Hz).

    Args:
        model: The model.
        rate: Sampling rate, Hz.
        use: The estimate: `feed-forward` for planned positions, `sensor` for measured channels.

    """
    losses, model = planned_losses(model) if use == "feed-forward" else (), model.for_use(use)
    content = {**library_files(model, rate), **program_files(model, rate)}
    content["README.md"] = filled("c_readme.md", name=identifier(model.name), rate=f"{rate:g}")
    return Content(
        content,
        losses=losses,
        checks=c_checks(model, rate, content),
        next_step="cmake -B build -S . && cmake --build build && ctest --test-dir build",
    )


def library_files(model: RobotModel, rate: float) -> dict[str, bytes]:
    """Return the core and the header of numbers."""
    core = files("jointwise.runtime") / "core"
    return {
        **{name: (core / name).read_bytes() for name in CORE},
        "robot_model.h": numbers_header(model.core_numbers(rate), model).encode(),
    }


def program_files(model: RobotModel, rate: float) -> dict[str, bytes]:
    """Return the test program with stored samples, and the build file."""
    q, qd, qdd = random_motion(model, STORED, rate)
    torque = model.torque(q, qd, qdd, rate=rate)
    tables = {
        name: c_array(values.ravel()) for name, values in (("q", q), ("qd", qd), ("qdd", qdd), ("torque", torque))
    }
    return {
        "test_model.c": filled(
            "test_model.c", samples=str(STORED), tolerance=repr(DOUBLE), share=repr(_float_tolerance(model)), **tables
        ),
        "CMakeLists.txt": filled("CMakeLists.txt", name=identifier(model.name)),
    }


def random_motion(model: RobotModel, samples: int, rate: float, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return positions, speeds and accelerations of a motion with slow and fast parts and rests, (samples, joints).

    They are numbers of single precision: a library in float gets the motion of which the model computes the torques.
    Otherwise hysteresis shows the rounding of positions (0.02 Nm of 129 Nm), which is not an error of the library.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(samples)[:, None] / rate
    size, phase = rng.uniform(0.1, 1.0, (2, 3, model.dof)) * [[[1.0]], [[6.0]]]
    w = rng.uniform(0.5, 8.0, (3, model.dof))
    angles = w * t[:, :, None] + phase
    q = (size * np.sin(angles)).sum(axis=1)
    qd = (size * w * np.cos(angles)).sum(axis=1)
    qdd = -(size * w**2 * np.sin(angles)).sum(axis=1)
    rest = np.sin(7.0 * t[:, 0]) > 0.8
    qd[rest] = qdd[rest] = 0.0
    return single(q), single(qd), single(qdd)


def single(x: Array) -> Array:
    """Return numbers rounded to single precision."""
    return x.astype(np.float32).astype(np.float64)


def c_checks(model: RobotModel, rate: float, content: dict[str, bytes]) -> tuple[Comparison, ...]:
    """Return the comparisons of the compiled library with the model at random states, in double and in float."""
    cc = compiler()
    if cc is None:
        return (not_compared("C library against Python", "no C compiler was found"),)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(content, folder)
        absolute, _ = _differences(model, rate, cc, folder)
        _, relative = _differences(model, rate, cc, folder, "-DJW_FLOAT")
    allowed = _float_tolerance(model)
    return (
        compared(f"C library in double against Python, {STATES} states", absolute, DOUBLE, "Nm"),
        compared(f"C library in float against Python, {STATES} states", relative, allowed, "of the largest torque"),
    )


def _float_tolerance(model: RobotModel) -> float:
    return FLOAT if model.robot.transmission is None else COUPLED_FLOAT


def _differences(model: RobotModel, rate: float, cc: str, folder: Path, *flags: str) -> tuple[float, float]:
    """Return the largest difference from the model in Nm, and relative to the largest torque of a joint."""
    motion = random_motion(model, STATES, rate, seed=1)
    run([cc, "-std=c99", "-O2", *STRICT, *flags, "test_model.c", "runtime.c", "-lm", "-o", "test_model"], folder)
    program = str(folder / "test_model")
    run([program], folder)
    answer = run([program, "-"], folder, np.concatenate(motion, axis=1).tobytes())
    expected = model.torque(*motion, rate=rate)
    apart = np.abs(np.frombuffer(answer).reshape(expected.shape) - expected)
    return float(apart.max()), float((apart / np.abs(expected).max(axis=0)).max())


# -- numbers -----------------------------------------------------------------------------------------------------------


def numbers_header(core: CoreModel, model: RobotModel, prefix: str = "robot") -> str:
    """Return the header with the numbers of a model as constants: `robot_model` of type jw_model, or another prefix."""
    rate, big = 1.0 / core.period, prefix.upper()
    tables = [text for j, joint in enumerate(core.joints) for text in _joint_tables(f"{prefix}_joint{j + 1}", joint)]
    joints = ",\n".join(_joint_text(f"{prefix}_joint{j + 1}", joint) for j, joint in enumerate(core.joints))
    names = ", ".join(f'"{identifier(joint.name)}"' for joint in model.robot.joints)
    payload = model.calibration.provenance.payload_text() or "no payload"
    gravity, date = c_array(core.gravity), model.calibration.provenance.date[:10]
    couplings = dict(zip(COUPLINGS, core.matrices, strict=False))
    tables += [f"static const jw_real {prefix}_{name}[] = {c_array(x.ravel())};\n" for name, x in couplings.items()]
    coupled = ", ".join(f".{name} = {f'{prefix}_{name}' if couplings else 0}" for name in COUPLINGS)
    return (
        f"/* {identifier(model.name)}, calibrated on {date}, for {rate:g} samples a second;\n"
        f" * {payload}. Made by Jointwise: change the model, not this file. */\n"
        f"#ifndef {big}_MODEL_H\n#define {big}_MODEL_H\n\n"
        '#include "runtime.h"\n\n'
        f"#define {big}_JOINTS {len(core.joints)}\n\n"
        f"static const char *const {prefix}_joint_names[{big}_JOINTS] = {{{names}}};\n\n"
        + "\n".join(tables)
        + f"\nstatic const jw_joint {prefix}_joints[{big}_JOINTS] = {{\n{joints}}};\n\n"
        f"static const jw_model {prefix}_model = {{\n    .joints = {big}_JOINTS, .other_load = {int(core.other_load)}, "
        f".joint = {prefix}_joints,\n    .gravity = {gravity},\n    .period = {number(core.period)}, "
        f".track = {number(core.track)},\n    {coupled},\n}};\n\n#endif\n"
    )


def _joint_tables(name: str, joint: CoreJoint) -> list[str]:
    """Return the arrays of the terms of a joint and the terms themselves."""
    tables = []
    for k, term in enumerate(joint.terms):
        for part, values in (("elements", term.elements), ("backlash", term.backlash)):
            if values:
                tables.append(f"static const jw_real {name}_{part}{k}[] = {c_array(values)};\n")
    if joint.terms:
        terms = ",\n".join(f"    {_term_text(name, k, term)}" for k, term in enumerate(joint.terms))
        tables.append(f"static const jw_term {name}_terms[] = {{\n{terms}}};\n")
    return tables


def _term_text(name: str, k: int, term: CoreTerm) -> str:
    elements = f"{name}_elements{k}" if term.elements else "0"
    backlash = f"{name}_backlash{k}" if term.backlash else "0"
    heads = f"JW_TERM_{term.kind}, {LOADS[term.load]}, {DRIVERS[term.driver]}, {term.count}, {len(term.backlash)}"
    padded = [*term.number, *(0.0,) * (NUMBERS - len(term.number))]
    return f"{{{heads}, {number(term.width)},\n     {c_array(padded)}, {elements}, {backlash}}}"


def _joint_text(name: str, joint: CoreJoint) -> str:
    terms = f"{name}_terms" if joint.terms else "0"
    return (
        f"    {{.revolute = {int(joint.revolute)}, .terms = {len(joint.terms)}, .term = {terms},\n"
        f"     .rotation = {c_array(joint.rotation.ravel())},\n"
        f"     .translation = {c_array(joint.translation)},\n"
        f"     .inertial = {c_array(joint.inertial)},\n     .rotor = {number(joint.rotor)},\n"
        f"     .load_inertial = {c_array(joint.load_inertial)},\n     .load_rotor = {number(joint.load_rotor)},\n"
        f"     .gain = {number(joint.gain)}, .reference = {number(joint.reference)}}}"
    )


def c_array(values: Iterable[float]) -> str:
    """Return numbers as an initialiser in full precision."""
    return "{" + ", ".join(map(number, values)) + "}"


def number(value: float) -> str:
    """Return a number as a literal of jw_real that brings the same double back."""
    return f"JW({float(value) + 0.0!r})"


def identifier(name: str) -> str:
    """Return a name as an identifier of C."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("0123456789_") or "robot"


class _Template(Template):
    delimiter = "@"


def filled(asset: str, /, **values: str) -> bytes:
    """Return a template of the exports with its @{names} replaced."""
    text = (files("jointwise.export") / "assets" / asset).read_text(encoding="utf-8")
    return _Template(text).substitute(values).encode()
