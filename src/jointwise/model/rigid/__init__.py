"""Batched rigid-body kernels: kinematics, inverse and forward dynamics, regressors, energy."""

from jointwise.backend import NativeKernelWarning
from jointwise.model.rigid.chain import is_native
from jointwise.model.rigid.dynamics import (
    coriolis_matrix,
    coriolis_vector,
    energy_regressors,
    forward_dynamics,
    gravity_torque,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
    potential_energy,
)
from jointwise.model.rigid.kinematics import Frames, forward_kinematics, jacobian, wrench_torque
from jointwise.model.rigid.regressor import (
    Regressor,
    RegressorStructure,
    compute_regressor,
    empty_series,
    regressor_structure,
    standard_names,
)

__all__ = [
    "Frames",
    "NativeKernelWarning",
    "Regressor",
    "RegressorStructure",
    "compute_regressor",
    "coriolis_matrix",
    "coriolis_vector",
    "empty_series",
    "energy_regressors",
    "forward_dynamics",
    "forward_kinematics",
    "gravity_torque",
    "inverse_dynamics",
    "is_native",
    "jacobian",
    "kinetic_energy",
    "mass_matrix",
    "potential_energy",
    "regressor_structure",
    "standard_names",
    "wrench_torque",
]
