"""Units simulated by FMPy."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from fmpy import extract, read_model_description
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

from jointwise.spatial import Array


def problems_of(path: Path) -> list[str]:
    """Return what FMPy finds wrong with a unit."""
    return [str(problem) for problem in validate_fmu(str(path))]


def simulated(path: Path, inputs: dict[str, Array], period: float) -> Array:
    """Return the outputs of a unit: torques of an inverse one, positions and speeds of a forward one.

    Args:
        path: The unit.
        inputs: Inputs (samples, joints) by the name of the variables.
        period: Communication step, s.

    Returns:
        Outputs after every step, (samples, outputs).

    """
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
