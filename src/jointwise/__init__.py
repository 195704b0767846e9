"""Jointwise identifies the dynamics of robot arms from logs: ``import jointwise as jw``."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # that of typing; this module imports nothing, so that Ctrl-C is handled soon (__main__)
if TYPE_CHECKING:
    from typing import Any

    from jointwise import control as control
    from jointwise import design as design
    from jointwise import energy as energy
    from jointwise import errors as errors
    from jointwise import export as export
    from jointwise import joint as joint
    from jointwise import monitoring as monitoring
    from jointwise import virtual_ur as virtual_ur
    from jointwise.calibration import calibrate as calibrate
    from jointwise.data import Log as Log
    from jointwise.data import holdout as holdout
    from jointwise.data import read_log as read_log
    from jointwise.data import write_log as write_log
    from jointwise.data.write import convert as convert
    from jointwise.description import Limits as Limits
    from jointwise.description import Link as Link
    from jointwise.description import Motor as Motor
    from jointwise.description import Payload as Payload
    from jointwise.description import Robot as Robot
    from jointwise.description import list_robots as list_robots
    from jointwise.description import load_robot as load_robot
    from jointwise.description.check import check_robot as check_robot
    from jointwise.description.mounting import Mounting as Mounting
    from jointwise.elastic import identify_elastic as identify_elastic
    from jointwise.errors import ImplausibleError as ImplausibleError
    from jointwise.errors import JointwiseError as JointwiseError
    from jointwise.estimation.structure import Structure as Structure
    from jointwise.experiment import ControllerOptions as ControllerOptions
    from jointwise.experiment import Events as Events
    from jointwise.experiment import PlantOptions as PlantOptions
    from jointwise.experiment import Push as Push
    from jointwise.experiment import SimulationResult as SimulationResult
    from jointwise.experiment import simulate as simulate
    from jointwise.experiment.excitation_files import excite as excite
    from jointwise.experiment.motion_files import minimize_energy as minimize_energy
    from jointwise.experiment.plan_files import write_plan as write_plan
    from jointwise.experiment.twin import make_twin as make_twin
    from jointwise.inspection import LogInspection as LogInspection
    from jointwise.inspection import inspect as inspect
    from jointwise.motion import Motion as Motion
    from jointwise.options import Options as Options
    from jointwise.options import read_joints as read_joints
    from jointwise.options import with_friction as with_friction
    from jointwise.rehearsal import rehearse as rehearse
    from jointwise.report import write_report as write_report
    from jointwise.result import Calibration as Calibration
    from jointwise.result import Validation as Validation
    from jointwise.result import load_calibration as load_calibration
    from jointwise.result import save_model as save_model
    from jointwise.result import validate as validate
    from jointwise.result.logs import read_log_for as read_log_for
    from jointwise.result.predict import predict as predict
    from jointwise.result.validation import compare as compare
    from jointwise.rtde.recorder import Recording as Recording
    from jointwise.rtde.recorder import record as record
    from jointwise.runtime import IdentifiedPayload as IdentifiedPayload
    from jointwise.runtime import RobotModel as RobotModel
    from jointwise.runtime import identify_payload as identify_payload
    from jointwise.runtime import load_model as load_model
    from jointwise.simulation import Sensors as Sensors


def __getattr__(name: str) -> "Any":
    """Import a public name on first use, so that importing the package costs nothing."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module 'jointwise' has no attribute '{name}'")
    from importlib import import_module

    from jointwise.lazy import lazy_modules, lazy_names

    public = lazy_modules(__name__)
    if name == "__all__":
        return ["__version__", *sorted(public)]
    if public.get(name) == __name__:
        return import_module(f"{__name__}.{name}")
    return lazy_names(__name__)[0](name)


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return list(__getattr__("__all__"))
