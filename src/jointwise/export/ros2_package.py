"""The model as a ROS 2 package: the C core behind a C++ class, a feed-forward node, URDF, parameters."""

from __future__ import annotations

import json
import re
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np

from jointwise.export.c_code import (
    STRICT,
    compiler,
    cpp_compiler,
    filled,
    identifier,
    library_files,
    random_motion,
    run,
    write_files,
)
from jointwise.export.package import Comparison, Content, compared, not_compared
from jointwise.export.simple_friction import planned_losses, simple_friction
from jointwise.export.urdf_model import urdf_model
from jointwise.runtime import RobotModel

SAMPLES = 1000
"""Samples of the comparison of the class with the model."""
TOLERANCE = 1e-9
"""Allowed difference, Nm."""


def ros2_package(model: RobotModel, rate: float) -> Content:
    """Return the package for a sampling rate (Hz); the URDF needs physically consistent bodies."""
    losses, planned = planned_losses(model), model.for_use("feed-forward")
    name = f"{re.sub(r'[^a-z0-9_]', '_', model.name.lower()).strip('_') or 'robot'}_feed_forward"
    urdf = urdf_model(model, rate).files
    words = {"package": name, "rate": f"{rate:g}", "robot": identifier(model.name), "urdf": next(iter(urdf))}
    content = {
        "package.xml": filled("ros2_package.xml", **words),
        "CMakeLists.txt": filled("ros2_CMakeLists.txt", **words),
        "README.md": filled("ros2_readme.md", **words),
        f"include/{name}/inverse_dynamics.hpp": filled("inverse_dynamics.hpp", **words),
        "src/inverse_dynamics.cpp": filled("inverse_dynamics.cpp", **words),
        "src/feed_forward_node.cpp": filled("feed_forward_node.cpp", **words),
        "config/parameters.yaml": _parameters(model, rate).encode(),
        **{f"urdf/{file}": data for file, data in urdf.items()},
        **{f"core/{file}": data for file, data in library_files(planned, rate).items()},
    }
    return Content(
        content,
        losses=losses,
        checks=ros2_checks(planned, rate, name, content),
        next_step=f"colcon build --packages-select {name} && ros2 run {name} feed_forward",
    )


def _parameters(model: RobotModel, rate: float) -> str:
    """Return the numbers of the model that other nodes need, as ROS parameters."""
    friction = simple_friction(model)
    rows = {
        "joints": "[" + ", ".join(json.dumps(joint.name) for joint in model.robot.joints) + "]",
        "rate": repr(float(rate)),
        "gravity": str(list(model.gravity_vector)),
        "drive_gains": str(model.gains.tolist()),
        "rotor_inertias": str(model.robot.rotor_inertias.tolist()),
        "coulomb_friction": str(friction.coulomb.tolist()),
        "viscous_friction": str(friction.damping.tolist()),
    }
    if model.robot.transmission is not None:  # theta = C q by rows; gains, rotors and friction are those of the motors
        rows["coupling"] = str(model.robot.transmission.matrix.ravel().tolist())
    return "/**:\n  ros__parameters:\n" + "".join(f"    {name}: {value}\n" for name, value in rows.items())


def ros2_checks(model: RobotModel, rate: float, name: str, content: dict[str, bytes]) -> tuple[Comparison, ...]:
    """Return the comparison of the compiled class with the model; the node is compiled against a stub of ROS 2."""
    cc, cpp = compiler(), cpp_compiler()
    if cc is None or cpp is None:
        return (not_compared("C++ class against Python", "no C and C++ compiler was found"),)
    q, qd, qdd = random_motion(model, SAMPLES, rate, seed=3)
    expected = model.torque(q, qd, qdd, rate=rate)
    stub = files("jointwise.export") / "assets" / "ros2_stub.hpp"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        headers = (
            "rclcpp/rclcpp.hpp",
            "std_msgs/msg/float64_multi_array.hpp",
            "trajectory_msgs/msg/joint_trajectory_point.hpp",
        )
        write_files({**content, "test.cpp": filled("test_inverse_dynamics.cpp", package=name)}, folder)
        write_files({f"stub/{header}": stub.read_bytes() for header in headers}, folder)
        run([cc, "-std=c99", "-O2", *STRICT, "-c", "core/runtime.c", "-o", "runtime.o"], folder)
        flags = ["-std=c++17", "-O1", *STRICT, "-Iinclude", "-Icore", "-Istub"]
        run([cpp, *flags, "-fsyntax-only", "src/feed_forward_node.cpp"], folder)
        run([cpp, *flags, "test.cpp", "src/inverse_dynamics.cpp", "runtime.o", "-o", "test"], folder)
        answer = run([str(folder / "test")], folder, np.concatenate([q, qd, qdd], axis=1).tobytes())
    apart = float(np.abs(np.frombuffer(answer).reshape(expected.shape) - expected).max())
    return (compared(f"C++ class against Python, {SAMPLES} samples", apart, TOLERANCE, "Nm"),)
