"""The model as Functional Mock-up Units (FMI 2.0 and 3.0, co-simulation): inverse and forward, binary and sources."""

from __future__ import annotations

import hashlib
import io
import math
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from platform import machine
from typing import Any

import numpy as np

from jointwise.backend import native
from jointwise.errors import ModelError
from jointwise.export.c_code import (
    STRICT,
    compiler,
    filled,
    identifier,
    library_files,
    numbers_header,
    random_motion,
    run,
    write_files,
)
from jointwise.export.fmu_description import (
    Variable,
    build_description,
    description2,
    description3,
    forward_variables,
    inverse_variables,
)
from jointwise.export.package import Comparison, Content, compared, not_compared
from jointwise.export.simple_friction import planned_losses
from jointwise.runtime import RobotModel
from jointwise.runtime.stream import NativeCore
from jointwise.spatial import Array

KINDS = ("inverse", "forward")
SAMPLES = 200
"""Samples of the comparison of a unit with the model."""
TOLERANCE = 1e-9
"""Allowed difference of the inverse model, Nm."""
PLANT_RATE = 4000.0
"""Hz; at least this often a second the forward model is integrated: its method is of first order."""
PLATFORMS = {"linux": ("linux64", "x86_64-linux", ".so"), "darwin": ("darwin64", "x86_64-darwin", ".dylib")}
"""Folders of the binaries in FMI 2.0 and 3.0 and their ending, by `sys.platform`."""


def fmu_units(model: RobotModel, rate: float) -> Content:
    """Return four units for a sampling rate (Hz): inverse and forward model, FMI 2.0 and 3.0.

    Raises:
        ModelError: There is no C compiler, or the system is not one for which binaries can be made here.

    """
    losses, model = planned_losses(model), model.for_use("feed-forward")
    sources, name = unit_sources(model, rate), identifier(model.name)
    binary = _compiled(sources)
    units = {
        f"{name}_{kind}_fmi{version}.fmu": _archive(model, rate, kind, version, sources, binary)
        for kind in KINDS
        for version in (2, 3)
    }
    return Content(
        units,
        losses=losses,
        checks=fmu_checks(model, rate, units),
        next_step=f"fmpy simulate {name}_forward_fmi2.fmu --show-plot",
    )


def token(model: RobotModel, rate: float, kind: str) -> str:
    """Return the instantiation token of a unit: it changes with the numbers of the model."""
    digest = hashlib.sha256(model.core_numbers(rate).packed().tobytes()).hexdigest()
    return f"{{{kind}-{digest[:24]}}}"


def unit_sources(model: RobotModel, rate: float) -> dict[str, bytes]:
    """Return the sources of the units, the same for all of them."""
    tokens, steps = {kind: token(model, rate, kind) for kind in KINDS}, plant_steps(rate)
    plant = numbers_header(model.core_numbers(steps * rate), model, "plant")
    return {
        **library_files(model, rate),
        "plant_model.h": plant.encode(),
        "fmu.c": filled("fmu.c", steps=str(steps), **tokens),
    }


def plant_steps(rate: float) -> int:
    """Return the number of integration steps of the forward model in a sample at a rate (Hz)."""
    return math.ceil(PLANT_RATE / rate)


def _platform() -> tuple[str, str, str]:
    if sys.platform not in PLATFORMS or machine() not in ("x86_64", "AMD64"):
        raise ModelError(f"an FMU for {sys.platform} on {machine()} cannot be built: only 64-bit x86 Linux and macOS.")
    return PLATFORMS[sys.platform]


def _compiled(sources: dict[str, bytes]) -> bytes:
    """Return the shared library of the units."""
    cc = compiler()
    if cc is None:
        raise ModelError("an FMU needs a C compiler, and none was found. Install gcc or clang, or set CC.")
    _platform()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(sources, folder)
        flags = ["-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", *STRICT]
        run([cc, *flags, "fmu.c", "runtime.c", "-lm", "-o", "unit"], folder)
        return (folder / "unit").read_bytes()


def _archive(
    model: RobotModel, rate: float, kind: str, version: int, sources: dict[str, bytes], binary: bytes
) -> bytes:
    """Return a unit: the archive of its description, sources and binary."""
    name, period = f"{identifier(model.name)}_{kind}", 1.0 / rate
    variables: list[Variable] = (inverse_variables if kind == "inverse" else forward_variables)(model)
    title = f"{kind} dynamics of {identifier(model.name)}, calibrated on {model.calibration.provenance.date[:10]}"
    describe = description2 if version == 2 else description3
    old, new, ending = _platform()
    entries = {
        "modelDescription.xml": describe(name, token(model, rate, kind), title, variables, period).encode(),
        f"binaries/{old if version == 2 else new}/{name}{ending}": binary,
        **{f"sources/{file}": data for file, data in sources.items()},
        **({"sources/buildDescription.xml": build_description(name).encode()} if version == 3 else {}),
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in entries.items():
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


# -- checks ------------------------------------------------------------------------------------------------------------


def fmu_checks(model: RobotModel, rate: float, units: dict[str, bytes]) -> tuple[Comparison, ...]:
    """Return the comparisons of the units with the model, simulated by FMPy where it is installed."""
    try:
        from fmpy.validation import validate_fmu
    except ImportError:
        return (not_compared("units simulated by FMPy", "FMPy is not installed (pip install 'jointwise[fmu]')"),)
    checks = []
    with tempfile.TemporaryDirectory() as folder:
        for name, data in units.items():
            path = Path(folder) / name
            path.write_bytes(data)
            if problems := validate_fmu(str(path)):
                raise ModelError(f"{name} is not a valid FMU: {problems[0]}")
            kind = "inverse" if "_inverse_" in name else "forward"
            if kind == "forward" and native() is None:
                checks.append(not_compared(f"{name} simulated by FMPy", "the native kernel is not built"))
                continue
            inputs, expected = (_inverse_case if kind == "inverse" else _forward_case)(model, rate)
            apart = float(np.abs(_simulated(path, inputs, 1.0 / rate) - expected).max())
            unit = "Nm" if kind == "inverse" else "rad, rad/s"
            checks.append(compared(f"{name} simulated by FMPy, {SAMPLES} steps", apart, TOLERANCE, unit))
    return tuple(checks)


def _inverse_case(model: RobotModel, rate: float) -> tuple[dict[str, Array], Array]:
    """Return inputs of the inverse unit by name, (samples, joints), and the torques that they require."""
    q, qd, qdd = random_motion(model, SAMPLES, rate, seed=2)
    warm = model.core_numbers(rate)
    temperature = np.array([joint.reference for joint in warm.joints]) + 5.0 * np.ones_like(q)
    torque = model.torque(q, qd, qdd, rate=rate, temperature=temperature)
    return {"q": q, "qd": qd, "qdd": qdd, "temperature": temperature}, torque


def _forward_case(model: RobotModel, rate: float) -> tuple[dict[str, Array], Array]:
    """Return torques of the forward unit, (samples, joints), and the positions and speeds that they cause."""
    core, steps = NativeCore(model.core_numbers(plant_steps(rate) * rate)), plant_steps(rate)
    q, qd = np.zeros(model.dof), np.zeros(model.dof)
    memory, weight = core.init(q, None), model.gravity(q)
    t = np.arange(SAMPLES)[:, None] / rate
    torque = weight + (1.0 + np.abs(weight)) * np.sin(5.0 * t + np.arange(model.dof))
    states = []
    for row in torque:
        q, qd, memory = core.move(memory, row, q, qd, steps)
        states.append(np.concatenate([q, qd]))
    return {"tau": torque}, np.array(states)


def _simulated(path: Path, inputs: dict[str, Array], period: float) -> Array:
    """Return the outputs of a unit: torques of an inverse one, positions and speeds of a forward one.

    Args:
        path: The unit.
        inputs: Inputs (samples, joints) by the name of the variables.
        period: Communication step, s.

    Returns:
        Outputs after every step, (samples, outputs).

    """
    from fmpy import read_model_description

    description = read_model_description(str(path))
    references = {variable.name: variable.valueReference for variable in description.modelVariables}
    joints = next(iter(inputs.values())).shape[1]
    written = [references[f"{name}[{j + 1}]"] for name in inputs for j in range(joints)]
    names = ("tau",) if "q" in inputs else ("q", "qd")
    wanted = [references[f"{name}[{j + 1}]"] for name in names for j in range(joints)]
    table = np.concatenate(list(inputs.values()), axis=1)
    return _run(path, description, period, table, written, wanted)


def _run(path: Path, description: Any, period: float, table: Array, written: list[int], wanted: list[int]) -> Array:
    """Return the wanted variables after every step, with the rows of a table as inputs."""
    from fmpy import extract
    from fmpy.fmi2 import FMU2Slave
    from fmpy.fmi3 import FMU3Slave

    folder = extract(str(path))
    second = description.fmiVersion.startswith("2")
    unit = (FMU2Slave if second else FMU3Slave)(
        guid=description.guid,
        unzipDirectory=folder,
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="unit",
    )
    write, read = ("setReal", "getReal") if second else ("setFloat64", "getFloat64")
    try:
        unit.instantiate()
        if second:
            unit.setupExperiment(startTime=0.0)
        unit.enterInitializationMode()
        unit.exitInitializationMode()
        rows = []
        for k, row in enumerate(table):
            getattr(unit, write)(written, row.tolist())
            unit.doStep(currentCommunicationPoint=k * period, communicationStepSize=period)
            rows.append(getattr(unit, read)(wanted))
        unit.terminate()
        unit.freeInstance()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return np.array(rows, dtype=np.float64)
