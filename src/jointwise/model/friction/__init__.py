"""Friction laws of a joint, each implemented once.

Calibration terms (`model/terms`), the simulated plant (`simulation/robot`) and single-joint identification (`joint`)
evaluate these functions; the native kernels (slip.h, friction.h) are tested against them. Parameters are arguments, and
laws with memory take a state and return the next one.

Speeds ω in rad/s and torques in Nm at the joint side, positions θ in rad.

- `direction`: sgn(ω) or tanh(ω / width); `power_flow_columns`: it where the joint drives its load, and elsewhere.
- `stribeck`: exp(-(|ω| / V_S)^μ); `stribeck_slope`: its derivative with respect to ln V_S; `steady_level`: 1 + e
  times the curve.
- `viscous_columns`: sgn(ω) |ω|^p as regressor columns; `viscous_torque`: F_V1 ω + F_V2 |ω| ω + F_V3 ω³;
  `viscous_factor`: that per ω.
- `thermal_factors`: T - T0 and T⁻³ - T0⁻³; `root_speed`: sgn(ω) √|ω|; `thermal_decay`: exp(-|ω| (b_0 + b_1 T)).
- `load_growth`: |τ|^p; `LOAD_POWERS`: p by name; `check_load_law`, `load_law_name`, `load_unit`.
- `linear_limits`, `polynomial_limits`, `geometric_limits`, `polynomial_shares`: pre-assigned slip elements.
- `slip_elements` (state: `slip_state`): Maxwell-slip elements along a path, with backlash map and relaxation;
  `slip_after_reversal`: over the travel since a reversal; `slip_slopes` (`slip_slope_state`): with derivatives with
  respect to ln D_i; `rate_slip` (`rate_slip_state`): with Stribeck friction in slip.
- `lugre_deflection` (`lugre_state`): the bristles of the LuGre model.
"""

from jointwise.model.friction.lugre import lugre_deflection, lugre_state
from jointwise.model.friction.maxwell_slip import (
    geometric_limits,
    linear_limits,
    polynomial_limits,
    polynomial_shares,
    rate_slip,
    rate_slip_state,
    slip_after_reversal,
    slip_elements,
    slip_slope_state,
    slip_slopes,
    slip_state,
)
from jointwise.model.friction.steady import (
    LOAD_POWERS,
    check_load_law,
    direction,
    load_growth,
    load_law_name,
    load_unit,
    power_flow_columns,
    root_speed,
    steady_level,
    stribeck,
    stribeck_slope,
    thermal_decay,
    thermal_factors,
    viscous_columns,
    viscous_factor,
    viscous_torque,
)

__all__ = [
    "LOAD_POWERS",
    "check_load_law",
    "direction",
    "geometric_limits",
    "linear_limits",
    "load_growth",
    "load_law_name",
    "load_unit",
    "lugre_deflection",
    "lugre_state",
    "polynomial_limits",
    "polynomial_shares",
    "power_flow_columns",
    "rate_slip",
    "rate_slip_state",
    "root_speed",
    "slip_after_reversal",
    "slip_elements",
    "slip_slope_state",
    "slip_slopes",
    "slip_state",
    "steady_level",
    "stribeck",
    "stribeck_slope",
    "thermal_decay",
    "thermal_factors",
    "viscous_columns",
    "viscous_factor",
    "viscous_torque",
]
