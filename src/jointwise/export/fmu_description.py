"""Model descriptions of the units, as FMI 2.0 and 3.0 define them."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from jointwise import __version__
from jointwise.runtime import RobotModel

TOOL = f"Jointwise {__version__}"
UNITS = {
    "rad": 'rad="1"',
    "m": 'm="1"',
    "rad/s": 'rad="1" s="-1"',
    "m/s": 'm="1" s="-1"',
    "rad/s2": 'rad="1" s="-2"',
    "m/s2": 'm="1" s="-2"',
    "N.m": 'kg="1" m="2" s="-2"',
    "N": 'kg="1" m="1" s="-2"',
    "A": 'A="1"',
    "degC": 'K="1" offset="273.15"',
    "s": 's="1"',
}
"""Units by name, as multiples of the base units."""


@dataclass(frozen=True)
class Variable:
    """A variable of a unit; its index is its value reference.

    Attributes:
        causality: "input", "output" or "parameter".
        name: Name.
        unit: Unit.
        meaning: Description.
        start: Start value, in the unit.
    """

    causality: str
    name: str
    unit: str
    meaning: str
    start: float = 0.0


def inverse_variables(model: RobotModel) -> list[Variable]:
    """Return the variables of the inverse model in the order of their value references."""
    return [
        *_signals(model, "input", "q", "", "position"),
        *_signals(model, "input", "qd", "/s", "speed"),
        *_signals(model, "input", "qdd", "/s2", "acceleration"),
        *_temperatures(model),
        *_torques(model, "output"),
        *[
            Variable("output", f"{_output(model)}[{j}]", _output_unit(model, j), "measured output")
            for j in _joints(model)
        ],
    ]


def forward_variables(model: RobotModel) -> list[Variable]:
    """Return the variables of the forward model in the order of their value references."""
    return [
        *_torques(model, "input"),
        *_temperatures(model),
        *_signals(model, "parameter", "q_start", "", "position at the start"),
        *_signals(model, "parameter", "qd_start", "/s", "speed at the start"),
        *_signals(model, "output", "q", "", "position"),
        *_signals(model, "output", "qd", "/s", "speed"),
    ]


def _joints(model: RobotModel) -> range:
    return range(1, model.dof + 1)


def _length(model: RobotModel, j: int) -> str:
    return "rad" if model.robot.revolute[j - 1] else "m"


def _signals(model: RobotModel, causality: str, name: str, per: str, meaning: str) -> list[Variable]:
    return [
        Variable(causality, f"{name}[{j}]", _length(model, j) + per, f"{meaning} of joint {j}") for j in _joints(model)
    ]


def _torques(model: RobotModel, causality: str) -> list[Variable]:
    units = ["N.m" if _length(model, j) == "rad" else "N" for j in _joints(model)]
    meaning = "torque of the motor at the joint"
    return [Variable(causality, f"tau[{j}]", unit, f"{meaning} {j}") for j, unit in enumerate(units, start=1)]


def _temperatures(model: RobotModel) -> list[Variable]:
    references = [joint.reference for joint in model.core_numbers().joints]
    return [
        Variable("input", f"temperature[{j}]", "degC", f"temperature of joint {j}", start)
        for j, start in zip(_joints(model), references, strict=True)
    ]


def _output(model: RobotModel) -> str:
    return "current" if model.output == "current" else "measured_torque"


def _output_unit(model: RobotModel, j: int) -> str:
    return "A" if model.output == "current" else "N.m" if _length(model, j) == "rad" else "N"


def _units(variables: list[Variable]) -> str:
    used = {"s", *(variable.unit for variable in variables)}
    return "".join(f'<Unit name="{name}"><BaseUnit {base}/></Unit>' for name, base in UNITS.items() if name in used)


def _start(variable: Variable) -> str:
    return "" if variable.causality == "output" else f' start="{variable.start!r}"'


def _variability(variable: Variable) -> str:
    return "fixed" if variable.causality == "parameter" else "continuous"


def description2(name: str, token: str, title: str, variables: list[Variable], period: float) -> str:
    """Return the model description of FMI 2.0; `name` is the model identifier, `token` the GUID."""
    rows = [
        f'<ScalarVariable name="{v.name}" valueReference="{k}" description={quoteattr(v.meaning)} '
        f'causality="{v.causality}" variability="{_variability(v)}"{_initial(v)}>'
        f'<Real unit="{v.unit}"{_start(v)}/></ScalarVariable>'
        for k, v in enumerate(variables)
    ]
    unknowns = "".join(f'<Unknown index="{k}"/>' for k, v in enumerate(variables, start=1) if v.causality == "output")
    sources = "".join(f'<File name="{file}"/>' for file in ("fmu.c", "runtime.c"))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<fmiModelDescription fmiVersion="2.0" modelName={quoteattr(name)} guid="{token}" '
        f'description={quoteattr(title)} generationTool="{TOOL}" variableNamingConvention="structured">\n'
        f'<CoSimulation modelIdentifier="{name}" canHandleVariableCommunicationStepSize="false" '
        'canGetAndSetFMUstate="true" canNotUseMemoryManagementFunctions="true">\n'
        f"<SourceFiles>{sources}</SourceFiles></CoSimulation>\n"
        f"<UnitDefinitions>{_units(variables)}</UnitDefinitions>\n"
        f'<DefaultExperiment startTime="0" stopTime="1" stepSize="{period!r}"/>\n'
        "<ModelVariables>\n" + "\n".join(rows) + "\n</ModelVariables>\n"
        f"<ModelStructure><Outputs>{unknowns}</Outputs><InitialUnknowns>{unknowns}</InitialUnknowns></ModelStructure>\n"
        "</fmiModelDescription>\n"
    )


def _initial(variable: Variable) -> str:
    return {"output": ' initial="calculated"', "parameter": ' initial="exact"'}.get(variable.causality, "")


def description3(name: str, token: str, title: str, variables: list[Variable], period: float) -> str:
    """Return the model description of FMI 3.0; `token` is the instantiation token."""
    rows = [
        f'<Float64 name="{v.name}" valueReference="{k}" description={quoteattr(v.meaning)} causality="{v.causality}" '
        f'variability="{_variability(v)}"{_initial(v)} unit="{v.unit}"{_start(v)}/>'
        for k, v in enumerate(variables)
    ]
    time = (
        f'<Float64 name="time" valueReference="{len(rows)}" causality="independent" variability="continuous" unit="s"/>'
    )
    rows.append(time)
    outputs = [k for k, v in enumerate(variables) if v.causality == "output"]
    structure = [f'<{kind} valueReference="{k}"/>' for kind in ("Output", "InitialUnknown") for k in outputs]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<fmiModelDescription fmiVersion="3.0" modelName={quoteattr(name)} instantiationToken="{token}" '
        f'description={quoteattr(title)} generationTool="{TOOL}" variableNamingConvention="structured">\n'
        f'<CoSimulation modelIdentifier="{name}" fixedInternalStepSize="{period!r}" canGetAndSetFMUState="true"/>\n'
        f"<UnitDefinitions>{_units(variables)}</UnitDefinitions>\n"
        f'<DefaultExperiment startTime="0" stopTime="1" stepSize="{period!r}"/>\n'
        "<ModelVariables>\n" + "\n".join(rows) + "\n</ModelVariables>\n"
        f"<ModelStructure>{''.join(structure)}</ModelStructure>\n</fmiModelDescription>\n"
    )


def build_description(name: str) -> str:
    """Return the build description of the sources of a unit of FMI 3.0."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiBuildDescription fmiVersion="3.0">\n'
        f'<BuildConfiguration modelIdentifier="{name}"><SourceFileSet language="C99"><SourceFile name="fmu.c"/>'
        '<SourceFile name="runtime.c"/></SourceFileSet></BuildConfiguration>\n</fmiBuildDescription>\n'
    )
