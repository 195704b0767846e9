"""Output fields of a UR controller: types, units, and the sets that `jointwise record` requests.

Names and types are those of the RTDE guide of Universal Robots; a controller answers a name that it does not know with
NOT_FOUND, and the recording continues without it.
"""

from __future__ import annotations

from types import MappingProxyType

_VECTOR6 = (
    "target_q", "target_qd", "target_qdd", "target_current", "target_moment", "actual_q", "actual_qd", "actual_current",
    "actual_current_window", "actual_current_as_torque", "joint_control_output", "actual_TCP_pose", "actual_TCP_speed",
    "actual_TCP_force", "target_TCP_pose", "target_TCP_speed", "joint_temperatures", "actual_joint_voltage",
    "payload_inertia", "ft_raw_wrench",
)  # fmt: skip
_DOUBLE = (
    "timestamp", "actual_execution_time", "speed_scaling", "target_speed_fraction", "actual_momentum",
    "actual_main_voltage", "actual_robot_voltage", "actual_robot_current", "payload", "tcp_force_scalar",
    "standard_analog_input0", "standard_analog_input1", "standard_analog_output0", "standard_analog_output1",
    "io_current", "euromap67_24V_voltage", "euromap67_24V_current", "tool_analog_input0", "tool_analog_input1",
    "tool_output_current", "tool_temperature", "collision_detection_ratio", "joint_position_deviation_ratio",
)  # fmt: skip
_UINT32 = (
    "runtime_state", "robot_status_bits", "safety_status_bits", "analog_io_types", "euromap67_input_bits",
    "euromap67_output_bits", "tool_mode", "tool_analog_input_types", "output_bit_registers0_to_31",
    "output_bit_registers32_to_63", "input_bit_registers0_to_31", "input_bit_registers32_to_63", "script_control_line",
)  # fmt: skip
_VECTOR3 = ("actual_tool_accelerometer", "elbow_position", "elbow_velocity", "payload_cog", "gravity")
_INT32 = ("robot_mode", "safety_mode", "safety_status", "tool_output_voltage", "time_scale_source")
_REGISTERS = 48
"""Number of integer and of floating-point registers in either direction."""

FIELDS = MappingProxyType(
    dict.fromkeys(_VECTOR6, "VECTOR6D")
    | dict.fromkeys(_DOUBLE, "DOUBLE")
    | dict.fromkeys(_UINT32, "UINT32")
    | dict.fromkeys(_VECTOR3, "VECTOR3D")
    | dict.fromkeys(_INT32, "INT32")
    | {"joint_mode": "VECTOR6INT32", "actual_digital_input_bits": "UINT64", "actual_digital_output_bits": "UINT64"}
    | dict.fromkeys(("tool_output_mode", "tool_digital_output0_mode", "tool_digital_output1_mode"), "UINT8")
    | {f"{side}_int_register_{k}": "INT32" for side in ("input", "output") for k in range(_REGISTERS)}
    | {f"{side}_double_register_{k}": "DOUBLE" for side in ("input", "output") for k in range(_REGISTERS)}
    | {f"{side}_bit_register_{k}": "BOOL" for side in ("input", "output") for k in range(64, 128)}
)
"""Output field -> type."""

UNITS = MappingProxyType(
    {
        "timestamp": "s",
        **dict.fromkeys(("target_q", "actual_q"), "rad"),
        **dict.fromkeys(("target_qd", "actual_qd"), "rad/s"),
        "target_qdd": "rad/s^2",
        **dict.fromkeys(("target_current", "actual_current", "joint_control_output", "actual_robot_current"), "A"),
        **dict.fromkeys(("target_moment", "actual_current_as_torque"), "Nm"),
        "joint_temperatures": "degC",
        **dict.fromkeys(("actual_main_voltage", "actual_robot_voltage", "actual_joint_voltage"), "V"),
        "payload": "kg",
        "payload_cog": "m",
        "payload_inertia": "kg m^2",
        "gravity": "m/s^2",
    }
)
"""Field -> unit, for the fields of the presets that have one."""

_MOTION = ("timestamp", "actual_q", "actual_qd", "actual_current", "target_q", "target_qd", "target_qdd")
_STATE = ("robot_mode", "joint_mode", "safety_mode", "runtime_state", "speed_scaling")
_PAYLOAD = ("payload", "payload_cog", "payload_inertia", "gravity")
_POWER = ("actual_main_voltage", "actual_robot_voltage", "actual_robot_current", "actual_joint_voltage")
_TORQUES = ("target_current", "target_moment", "actual_current_as_torque", "joint_temperatures")

PRESETS = MappingProxyType(
    {
        "calibration": (*_MOTION, *_TORQUES, *_PAYLOAD, *_STATE),
        "energy": (*_MOTION, *_TORQUES, *_POWER, *_PAYLOAD, *_STATE),
        "all": (
            *_MOTION, *_TORQUES, *_POWER, *_PAYLOAD, *_STATE, "joint_control_output", "actual_TCP_pose",
            "actual_TCP_speed", "actual_TCP_force", "target_TCP_pose", "target_TCP_speed", "actual_tool_accelerometer",
            "ft_raw_wrench", "safety_status_bits", "robot_status_bits", "target_speed_fraction",
            "actual_execution_time", "actual_digital_input_bits", "actual_digital_output_bits",
        ),
    }
)  # fmt: skip
"""Name of a preset -> output fields."""
