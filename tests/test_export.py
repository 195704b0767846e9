"""Exports: what is written agrees with the model in the programs that read it, and losses are measured."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from cli_runs import done, refused, run
from jointwise import export
from jointwise.calibration import Options
from jointwise.description.urdf import robot_from_urdf, urdf_text
from jointwise.errors import ModelError, OutputError
from jointwise.estimation.structure import Structure
from jointwise.export import Comparison
from jointwise.export.c_code import library_files, program_files, random_motion
from jointwise.export.package import Content, compared, write_export
from jointwise.export.simple_friction import simple_friction
from jointwise.export.ur_script import read_script
from jointwise.export.urdf_edit import edited_urdf
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import Coulomb, Viscous
from runtime_models import exact, fitted, integrated
from synthetic import synthetic_log

IN_CI = bool(os.environ.get("CI"))
"""In continuous integration a missing compiler is an error."""
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None and not IN_CI, reason="gcc is not installed")
needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def every_term() -> jw.RobotModel:
    return exact("ur5e")


@pytest.fixture(scope="module")
def model() -> jw.RobotModel:
    return jw.RobotModel(fitted("ur5e"))


@pytest.fixture(scope="module")
def log() -> jw.Log:
    return synthetic_log(jw.load_robot("ur5e"), duration=10.0, rate=100.0, seed=7).log


# -- C -----------------------------------------------------------------------------------------------------------------


@needs_gcc
def test_the_c_library_has_the_torques_of_python(every_term: jw.RobotModel, tmp_path: Path) -> None:
    made = export.c(every_term, tmp_path / "c", rate=500.0)
    double, single = made.checks
    assert (double.tolerance, single.tolerance) == (1e-9, 1e-4)
    assert double.difference < 1e-11
    assert single.difference < 1e-5
    assert made.losses == ("measured speeds and rotor positions are not used",)
    assert export.c(every_term, tmp_path / "sensor", rate=500.0, use="sensor").losses == ()
    core = Path(jw.__file__).parent / "runtime" / "core"
    for name in ("runtime.c", "runtime.h", "terms.h", "number.h"):
        assert (tmp_path / "c" / name).read_bytes() == (core / name).read_bytes()
    build = ["gcc", *STRICT, "-O2", "test_model.c", "runtime.c", "-lm", "-o", "test_model"]
    subprocess.run(build, cwd=tmp_path / "c", check=True)
    answer = subprocess.run([tmp_path / "c" / "test_model"], capture_output=True, text=True, check=True)
    assert "6 joints, 100 samples" in answer.stdout


@needs_gcc
def test_a_wrong_number_fails_the_test_program(every_term: jw.RobotModel, tmp_path: Path) -> None:
    files = {**library_files(every_term, 500.0), **program_files(every_term, 500.0)}
    header = files["robot_model.h"].decode()
    rotor = next(line for line in header.splitlines() if ".rotor" in line)
    files["robot_model.h"] = header.replace(rotor, "     .rotor = JW(0.7),", 1).encode()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    subprocess.run(["gcc", *STRICT, "test_model.c", "runtime.c", "-lm", "-o", "test"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "test"], capture_output=True, check=False).returncode == 1


def sanitized(model: jw.RobotModel, folder: Path, flags: tuple[str, ...]) -> Path:
    """Compile the test program and a program that moves the arm, with instrumentation."""
    for name, data in {**library_files(model, 500.0), **program_files(model, 500.0)}.items():
        (folder / name).write_bytes(data)
    (folder / "move.c").write_text(
        '#include "robot_model.h"\n#include <stdio.h>\n'
        "int main(void) {\n jw_state s; jw_real q[ROBOT_JOINTS] = {0}, v[ROBOT_JOINTS] = {0}, t[ROBOT_JOINTS];\n"
        " jw_init(&robot_model, q, 0, &s);\n"
        " for (int k = 0; k < 200; k++) {\n"
        "  for (int j = 0; j < ROBOT_JOINTS; j++) t[j] = 20 * jw_sin((jw_real)(k * (j + 1)) / 50);\n"
        "  if (jw_move(&robot_model, &s, t, 0, q, v)) return 2;\n }\n"
        ' printf("%g %s\\n", (double)q[0], robot_joint_names[0]);\n return !(q[0] == q[0]);\n}\n'
    )
    compiler = ["gcc", *STRICT, "-g", *flags]
    subprocess.run([*compiler, "-O1", "-c", "runtime.c", "-o", "runtime.o"], cwd=folder, check=True)
    for program in ("test_model", "move"):
        command = [*compiler, f"{program}.c", "runtime.o", "-lm", "-o", program]
        subprocess.run(command, cwd=folder, check=True)
    return folder


@needs_gcc
@pytest.mark.parametrize("number", [(), ("-DJW_FLOAT",)], ids=["double", "float"])
def test_the_core_is_clean_under_sanitizers(every_term: jw.RobotModel, tmp_path: Path, number: tuple[str, ...]) -> None:
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-ffloat-store", *number)
    folder = sanitized(every_term, tmp_path, flags)
    data = np.concatenate(random_motion(every_term, 500, 500.0), axis=1).tobytes()
    runs = (([folder / "test_model"], b""), ([folder / "test_model", "-"], data), ([folder / "move"], b""))
    for command, content in runs:
        result = subprocess.run(command, input=content, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr.decode()
        assert b"runtime error" not in result.stderr


@needs_gcc
@needs_valgrind
def test_the_core_is_clean_under_valgrind(every_term: jw.RobotModel, tmp_path: Path) -> None:
    folder = sanitized(every_term, tmp_path, ())
    for program in ("test_model", "move"):
        command = ["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", folder / program]
        result = subprocess.run(command, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr.decode()
        assert result.stderr == b""


# -- FMU ---------------------------------------------------------------------------------------------------------------


@needs_gcc
def test_units_are_valid_complete_and_agree_in_fmpy(every_term: jw.RobotModel, tmp_path: Path) -> None:
    from fmpy.validation import validate_fmu

    made = export.fmu(every_term, tmp_path / "fmu", rate=500.0)
    units = sorted((tmp_path / "fmu").glob("*.fmu"))
    assert [unit.name for unit in units] == [
        f"ur5e_{kind}_fmi{version}.fmu" for kind in ("forward", "inverse") for version in (2, 3)
    ]
    assert len(made.checks) == 4
    assert all(check.severity == "ok" for check in made.checks)
    assert list(made.losses) == ["measured speeds and rotor positions are not used"]
    for unit in units:
        assert validate_fmu(str(unit)) == []
        with zipfile.ZipFile(unit) as archive:
            names = archive.namelist()
            assert {"sources/fmu.c", "sources/runtime.c", "sources/runtime.h"} <= set(names)
            binary = next(name for name in names if name.startswith("binaries/"))
            archive.extract(binary, tmp_path)
    needed = subprocess.run(["readelf", "-d", tmp_path / binary], capture_output=True, text=True, check=True).stdout
    libraries = {line.split("[")[1].rstrip("]") for line in needed.splitlines() if "NEEDED" in line}
    assert libraries <= {"libc.so.6", "libm.so.6"}
    ctypes.CDLL(str(tmp_path / binary))


@needs_gcc
def test_fmpy_simulates_the_forward_unit_as_an_independent_integrator_does(tmp_path: Path) -> None:
    from fmpy import simulate_fmu

    terms = ((Viscous((1.0,)), Coulomb("absolute", "tanh", 0.1)),) * 2
    model = exact("planar2", terms=terms)
    export.fmu(model, tmp_path / "fmu", rate=1000.0)
    torque = model.gravity(np.zeros(2)) + np.array([8.0, 5.0])
    expected = integrated(model, torque, 0.3)
    for version in (2, 3):
        result = simulate_fmu(
            str(tmp_path / "fmu" / f"planar2_forward_fmi{version}.fmu"),
            stop_time=0.3,
            output_interval=1e-3,
            step_size=1e-3,
            start_values={"tau[1]": torque[0], "tau[2]": torque[1]},
            output=["q[1]", "q[2]", "qd[1]", "qd[2]"],
        )
        last = np.array(list(result[-1])[1:])
        np.testing.assert_allclose(last, expected, atol=2e-3 * np.abs(expected).max())


@needs_gcc
def test_units_keep_their_state_and_refuse_other_steps(tmp_path: Path) -> None:
    from fmpy import extract, read_model_description
    from fmpy.fmi2 import FMU2Slave

    model = exact("planar2", terms=((Coulomb(), Viscous()),) * 2)
    export.fmu(model, tmp_path / "fmu", rate=500.0)
    path = str(tmp_path / "fmu" / "planar2_forward_fmi2.fmu")
    description = read_model_description(path)
    unit = FMU2Slave(
        guid=description.guid,
        unzipDirectory=extract(path, tmp_path / "unit"),
        modelIdentifier="planar2_forward",
        instanceName="u",
    )
    unit.instantiate()
    unit.setupExperiment(startTime=0.0)
    unit.enterInitializationMode()
    unit.setReal([4, 5], [0.3, -0.2])  # q_start
    unit.exitInitializationMode()
    assert unit.getReal([8, 9]) == [0.3, -0.2]
    unit.setReal([0, 1], [5.0, 2.0])
    unit.doStep(0.0, 0.01)
    state, first = unit.getFMUState(), unit.getReal([8, 9, 10, 11])
    unit.doStep(0.01, 0.002)
    unit.setFMUState(state)
    assert unit.getReal([8, 9, 10, 11]) == first
    with pytest.raises(Exception, match="DoStep"):
        unit.doStep(0.01, 0.0013)
    with pytest.raises(Exception, match="SetReal"):
        unit.setReal([8], [1.0])
    unit.freeFMUState(state)
    unit.freeInstance()


# -- URDF and MJCF -----------------------------------------------------------------------------------------------------

USER_FILE = """<?xml version="1.0"?>
<!-- a comment that stays -->
<robot name="arm" xmlns:xacro="http://wiki.ros.org/xacro">
  <link name="base"><visual><geometry><mesh filename="package://arm/base.dae"/></geometry></visual></link>
  <link name='upper'  >
    <inertial><!-- from CAD --><origin xyz="0 0 0.2"/><mass value="4"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial>
    <visual><geometry><box size="1 1 1"/></geometry></visual>
  </link>
  <link name="lower"/>
  <link name="flange"><inertial><mass value="0.2"/>
    <inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.1" rpy="0.1 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="100" velocity="3"/><dynamics damping="99"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.4 0 0.1" rpy="0 0.3 0"/><axis xyz="0 0.6 0.8"/></joint>
  <joint name="fixed" type="fixed"><parent link="lower"/><child link="flange"/><origin xyz="0.3 0 0"/></joint>
  <gazebo reference="upper"><material>Gazebo/Orange</material></gazebo>
</robot>
"""


@pytest.fixture(scope="module")
def user_model(tmp_path_factory: pytest.TempPathFactory) -> tuple[jw.RobotModel, Path]:
    """Return a model that was calibrated with a user's URDF, and the file; the true arm is heavier than in the file."""
    path = tmp_path_factory.mktemp("urdf") / "arm.urdf"
    path.write_text(USER_FILE)
    robot = jw.load_robot(path)
    heavier = robot.inertials.copy()
    heavier[0] *= 1.5
    heavier[1] += jw.Link.from_center("", 2.0, (0.1, 0.02, 0.0), 0.01 * np.eye(3)).inertial
    true = replace(robot, links=tuple(replace(link, inertial=x) for link, x in zip(robot.links, heavier, strict=True)))
    log = synthetic_log(true, duration=15.0, rate=100.0, seed=1, gains=(10.0, 10.0)).log
    options = Options(structure=Structure("tanh"), free=(), position_cutoff=15.0, lag=0.0, gains=(10.0, 10.0))
    return jw.RobotModel(jw.calibrate(log, robot, options=options)), path


def test_the_users_urdf_changes_in_inertials_and_dynamics_only(
    user_model: tuple[jw.RobotModel, Path], tmp_path: Path
) -> None:
    model, path = user_model
    made = export.urdf(model, tmp_path / "urdf", urdf=path)
    assert [check.severity for check in made.checks] == ["ok"] * 3
    text = (tmp_path / "urdf" / "arm.urdf").read_text()
    assert path.read_text() == USER_FILE
    for kept in (
        "<!-- a comment that stays -->",
        "package://arm/base.dae",
        "<gazebo reference",
        "<link name='upper'  >",
    ):
        assert kept in text
    assert 'damping="99"' not in text
    without = [_stripped(document) for document in (text, USER_FILE)]
    assert without[0] == without[1]
    robot, friction = robot_from_urdf(text, "arm"), simple_friction(model)
    q, qd, qdd = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 30, 2))
    expected = inverse_dynamics(model.consistent().robot, q, qd, qdd)
    np.testing.assert_allclose(inverse_dynamics(robot, q, qd, qdd), expected, atol=1e-9)
    assert f'damping="{float(friction.damping[1])!r}"' in text
    assert robot_from_urdf(USER_FILE, "arm").links[0].mass == 4.0
    assert robot.links[0].mass != 4.0


def _stripped(urdf: str) -> str:
    """Return a URDF without inertials, dynamics and white space."""
    bare = re.sub(r"\s|<inertial>.*?</inertial>|<dynamics[^>]*/>", "", urdf, flags=re.DOTALL)
    return bare.replace('name="lower"></link>', 'name="lower"/>')


def test_edits_leave_every_other_byte() -> None:
    body = jw.Link.from_center("", 2.0, (0.1, 0.0, 0.0), np.eye(3)).inertial
    same = edited_urdf(USER_FILE, {}, {})
    assert same == USER_FILE
    removed = edited_urdf(USER_FILE, {"flange": None}, {})
    assert robot_from_urdf(removed, "arm").links[1].mass == 0.0
    odd = USER_FILE.replace('name="lower"/>', 'name="lower" note="a > b"/>').replace("\n", "\r\n")
    edited = edited_urdf(odd, {"lower": body}, {"elbow": (1.0, 2.0)})
    assert edited.count("\r\n") >= odd.count("\r\n")
    assert 'note="a > b"><inertial>' in edited
    assert robot_from_urdf(edited.replace(' note="a > b"', ""), "arm").links[1].mass == pytest.approx(2.2)


def test_a_urdf_of_another_robot_is_refused(
    model: jw.RobotModel, user_model: tuple[jw.RobotModel, Path], tmp_path
) -> None:
    with pytest.raises(ModelError, match="has 2 moving joints, the model 6"):
        export.urdf(model, tmp_path / "a", urdf=user_model[1])
    other = tmp_path / "moved.urdf"
    other.write_text(USER_FILE.replace('xyz="0.4 0 0.1"', 'xyz="0.5 0 0.1"'))
    with pytest.raises(ModelError, match="joint 'elbow' is not where the model has 'elbow'"):
        export.urdf(user_model[0], tmp_path / "a", urdf=other)
    assert not (tmp_path / "a").exists()


def test_losses_are_measured_on_logs(model: jw.RobotModel, log: jw.Log, tmp_path: Path) -> None:
    made = export.urdf(model, tmp_path / "urdf", logs=[log])
    assert len(made.losses) == 3
    bodies, friction, rotors = made.costs
    assert friction.loss.startswith("friction becomes Coulomb and linear viscous friction (lost: hysteresis")
    assert bodies.before == pytest.approx(jw.validate(model, log).mean_rmse)
    assert bodies.after == friction.before
    assert friction.after > 1.1 * friction.before
    assert rotors.after > rotors.before
    report = (tmp_path / "urdf" / "EXPORT.md").read_text()
    assert f"RMSE {friction.before:.3g} -> {friction.after:.3g} A" in report
    assert all(check.severity == "ok" for check in made.checks)


def test_mujoco_has_the_inverse_dynamics_of_the_mjcf(model: jw.RobotModel, tmp_path: Path) -> None:
    import mujoco

    loaded = model.with_payload(3.0, (0.0, 0.0, 0.1))
    made = export.mjcf(loaded, tmp_path / "mjcf", rate=500.0)
    assert all(check.severity == "ok" for check in made.checks)
    arm = mujoco.MjModel.from_xml_path(str(tmp_path / "mjcf" / "ur5e.xml"))
    assert arm.nu == 6
    np.testing.assert_allclose(arm.actuator_gear[:, 0], model.gains)
    np.testing.assert_allclose(arm.dof_armature, loaded.consistent().robot.rotor_inertias)
    limits = np.array([joint.limits.effort for joint in model.robot.joints])
    np.testing.assert_allclose(arm.actuator_forcerange[:, 1], limits / model.gains)
    assert arm.body_mass.sum() == pytest.approx(loaded.consistent().robot.inertials[:, 9].sum())


def test_base_parameters_only_say_how_to_get_bodies(tmp_path: Path) -> None:
    bare = jw.RobotModel(replace(fitted("ur5e"), physical=None))
    for target in ("urdf", "mjcf", "ros2"):
        with pytest.raises(
            ModelError, match="this model has base parameters only. Calibrate again without --no-physical"
        ):
            export.write(bare, target, tmp_path / target)


# -- ROS 2 and UR ------------------------------------------------------------------------------------------------------


@needs_gcc
def test_the_ros2_package_compiles_and_its_class_agrees(model: jw.RobotModel, tmp_path: Path) -> None:
    made = export.ros2(model, tmp_path / "ros2", rate=500.0)
    assert made.checks[0].severity == "ok"
    assert made.checks[0].difference < 1e-10
    assert {"package.xml", "CMakeLists.txt", "urdf/ur5e.urdf", "config/parameters.yaml", "README.md"} <= set(made.files)
    names = (tmp_path / "ros2" / "config" / "parameters.yaml").read_text()
    assert '"shoulder_pan"' in names
    assert "ros2_stub" not in " ".join(made.files)


def test_the_ur_script_has_the_payload_and_scales(model: jw.RobotModel, tmp_path: Path) -> None:
    inertia = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.04]])
    loaded = model.with_payload(2.5, (0.01, -0.02, 0.08), inertia)
    weaker = loaded.calibration.estimate.values.copy()
    weaker[loaded.calibration.model.base.count :] *= 0.5
    worn = jw.RobotModel(replace(loaded.calibration, estimate=replace(loaded.calibration.estimate, values=weaker)))
    export.ur(worn, tmp_path / "ur", reference=loaded)
    found = read_script((tmp_path / "ur" / "ur5e.script").read_text())
    assert found["payload"] == [2.5, 0.01, -0.02, 0.08, 0.02, 0.03, 0.04, 0.001, 0.0, 0.002]
    np.testing.assert_allclose(found["viscous"], 0.5 * np.array([0.9, 0.9, 0.8, 0.9, 0.9, 0.9]), atol=1e-3)
    np.testing.assert_allclose(found["coulomb"], 0.5 * np.array([0.8, 0.8, 0.7, 0.8, 0.8, 0.8]), atol=0.03)
    with pytest.raises(ModelError, match="a UR has 6 joints, the model has 2"):
        export.ur(jw.RobotModel(fitted("planar2")), tmp_path / "other")
    with pytest.raises(ModelError, match="not a script of a UR export"):
        read_script("def program():\nend\n")


# -- all of them -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (compared("numbers", 0.0, 1e-6), "ok: numbers: largest difference 0, allowed 1e-06."),
        (compared("torques", 1e-10, 1e-9, "Nm"), "ok: torques: largest difference 1e-10 Nm, allowed 1e-09 Nm."),
        (compared("torques", 0.1, 1e-9, "Nm"), "error: torques: largest difference 0.1 Nm, allowed 1e-09 Nm."),
    ],
)
def test_a_check_is_a_line_with_its_unit(check: Comparison, line: str) -> None:
    assert check.line() == line


def test_an_export_that_does_not_agree_is_not_written(model: jw.RobotModel, tmp_path: Path) -> None:
    content = Content({"a.txt": b"a"}, checks=(compared("torques", 0.1, 1e-9, "Nm"),))
    with pytest.raises(ModelError, match="was not written: torques: largest difference 0.1 Nm"):
        write_export("c", model, content, tmp_path / "out", (), force=False)
    assert not (tmp_path / "out").exists()


@needs_gcc
def test_a_core_that_computes_something_else_is_noticed(every_term: jw.RobotModel, tmp_path: Path, monkeypatch) -> None:
    wrong = type(every_term).torque
    monkeypatch.setattr(
        type(every_term), "torque", lambda self, *args, **options: wrong(self, *args, **options) * (1.0 + 1e-9)
    )
    with pytest.raises(ModelError, match="test_model failed|does not agree with the model"):
        export.c(every_term, tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_directories_are_not_overwritten(model: jw.RobotModel, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="is not empty. Choose another directory, or overwrite files with --force"):
        export.mjcf(model, tmp_path)
    export.mjcf(model, tmp_path, force=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "ur5e.xml").exists()
    with pytest.raises(OutputError, match="is a file"):
        export.mjcf(model, tmp_path / "mine.txt")


def test_unknown_targets_are_refused_with_a_suggestion(model: jw.RobotModel, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="unknown target 'urfd'. Did you mean urdf"):
        export.write(model, "urfd", tmp_path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, model: jw.RobotModel, log: jw.Log) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    jw.save_model(model, folder / "model.json")
    jw.write_log(log, folder / "other.csv")
    return folder


@needs_gcc
def test_the_command_exports_to_all_targets(files: Path, tmp_path: Path) -> None:
    text = done("export", files / "model.json", "--to", "all", "--output", tmp_path / "all", "--json")
    made = json.loads(text)
    assert [one["target"] for one in made] == ["c", "fmu", "urdf", "mjcf", "ros2", "ur"]
    assert all(check["passed"] for one in made for check in one["checks"])
    for one in made:
        assert sorted(path.name for path in (tmp_path / "all").iterdir()) == sorted(export.TARGETS)
        assert all((tmp_path / "all" / one["target"] / name).is_file() for name in one["files"])


def test_the_command_reports_losses_and_takes_a_payload(files: Path, tmp_path: Path) -> None:
    options = ("--log", files / "other.csv", "--payload", "2.5,0,0,0.08", "--mounting", "ceiling")
    text = done("export", files / "model.json", "--to", "ur", "--output", tmp_path / "ur", *options)
    assert "only payload and scales are set" in text
    assert read_script((tmp_path / "ur" / "ur5e.script").read_text())["payload"][0] == 2.5
    text = done("export", files / "model.json", "--to", "mjcf", "--output", tmp_path / "m", *options[:2])
    assert "RMSE" in text
    assert "python -m mujoco.viewer" in text


def test_the_command_refuses_wrong_input(files: Path, tmp_path: Path) -> None:
    target = ("--output", tmp_path / "x")
    assert "unknown target 'fmi'. Did you mean fmu" in refused("export", files / "model.json", "--to", "fmi", *target)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("a")
    line = refused("export", files / "model.json", "--to", "mjcf", "--output", tmp_path / "full")
    assert "is not empty" in line
    newer = json.loads((files / "model.json").read_text())
    newer["schema"] += 1
    (tmp_path / "newer.json").write_text(json.dumps(newer))
    assert "Update jointwise." in refused("export", tmp_path / "newer.json", "--to", "c", *target)
    assert "--urdf is not for --to c" in run("export", files / "model.json", "--to", "c", "--urdf", "a", *target).err
    negative = run("export", files / "model.json", "--to", "ur", "--payload=-1", *target)
    assert (negative.code, negative.err.count("\n")) == (2, 1)
    assert "--payload: must be a number from 0" in negative.err
    wrong = refused("export", files / "model.json", "--to", "urdf", "--urdf", tmp_path / "none.urdf", *target)
    assert "no such file" in wrong
    assert not (tmp_path / "x").exists()


def test_a_new_urdf_is_that_of_the_consistent_bodies(model: jw.RobotModel, tmp_path: Path) -> None:
    export.urdf(model, tmp_path / "u")
    text = (tmp_path / "u" / "ur5e.urdf").read_text()
    plain = urdf_text(model.consistent().robot)
    assert text.count("<dynamics") == 6
    assert len(text) > len(plain)


@pytest.mark.thorough
@needs_gcc
def test_names_of_robots_and_joints_cannot_leave_their_place(model: jw.RobotModel, tmp_path: Path) -> None:
    robot = model.calibration.model.robot
    odd = replace(
        robot,
        name='../up*/ "x"',
        joints=tuple(replace(joint, name=f'j{k}" */ <&>') for k, joint in enumerate(robot.joints)),
    )
    dynamics = replace(model.calibration.model, robot=odd)
    physical = model.calibration.physical
    renamed = jw.RobotModel(replace(model.calibration, model=dynamics, physical=physical))
    made = export.write_all(renamed, tmp_path / "out")
    assert [one.target for one in made] == list(export.TARGETS)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_joints_without_a_measured_output_are_named(tmp_path: Path) -> None:
    calibration = fitted("planar2")
    partial = replace(calibration, training=replace(calibration.training, nmse=(calibration.training.nmse[0], None)))
    made = export.mjcf(jw.RobotModel(partial), tmp_path / "m")
    assert made.losses[0] == "friction of joints 2: their output was ignored in the calibration"


def test_without_a_compiler_all_targets_but_the_fmu_are_written(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    ended = run("export", files / "model.json", "--to", "all", "--output", tmp_path / "all", "--json")
    assert ended.code == 0
    assert [one["target"] for one in json.loads(ended.out)] == ["c", "urdf", "mjcf", "ros2", "ur"]
    assert ended.err == "jointwise: note: without fmu: an FMU needs a C compiler. Install gcc or clang, or set CC.\n"
