"""The command line: what it prints, in text and in JSON, and how it leaves."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli_runs import settings_for
from jointwise import __version__
from jointwise.cli import COMMANDS, main
from jointwise.description import list_robots, load_robot
from jointwise.description.urdf import urdf_text
from jointwise.joint.phenomenon import PHENOMENA

Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *argv: str) -> tuple[int, str, str]:
    code = main(argv)
    out, err = capsys.readouterr()
    return code, out, err


def test_help_names_every_command_and_examples(capsys: Capture) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert all(name in out for name in COMMANDS)
    assert "examples:" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(capsys: Capture, name: str) -> None:
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert out.startswith(f"usage: jointwise {name}")
    assert "examples:" in out


ACTIONS = {
    "robots": ("show", "check"),
    "energy": ("fit", "report", "predict", "optimize", "sheet"),
    "joint": (*PHENOMENA, "all", "plan", "online-stiffness"),
}
"""Commands that have commands themselves."""


def examples(text: str) -> list[list[str]]:
    """Return the words of the examples of a help text: one to a line, what it does after three spaces or more."""
    lines = re.sub(r"\\\n\s*", " ", text.partition("examples:")[2]).splitlines()
    starts = (re.split(r"\s{3,}| \| ", line[line.index("jointwise ") :])[0] for line in lines if "  jointwise " in line)
    return [shlex.split(start)[1:] for start in starts]


@pytest.mark.parametrize(
    "words",
    [(name,) for name in COMMANDS] + [(name, action) for name, actions in ACTIONS.items() for action in actions],
)
def test_examples_of_every_help_can_be_parsed(capsys: Capture, words: tuple[str, ...]) -> None:
    found = examples(run(capsys, *words, "--help")[1])
    assert any(example[: len(words)] == [*words] for example in found)
    for example in found:
        assert settings_for(*example) is not None


def test_version(capsys: Capture) -> None:
    assert run(capsys, "--version") == (0, f"jointwise {__version__}\n", "")


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["robot"],
        ["--loud"],
        ["robots", "shew"],
        ["robots", "show"],
        ["demo", "--samples"],
        ["robots", "--jso"],
    ],
)
def test_wrong_usage_leaves_with_two(capsys: Capture, argv: list[str]) -> None:
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("usage: jointwise" if argv == [] else "jointwise")
    assert argv == [] or err.count("\n") == 1


def test_list(capsys: Capture) -> None:
    code, out, _ = run(capsys, "robots")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(list_robots())
    robots = json.loads(run(capsys, "robots", "--json")[1])
    assert {"name": "ur5e", "title": "Universal Robots UR5e", "joints": 6, "mass_kg": pytest.approx(17.7)} in robots


@pytest.mark.parametrize("name", list_robots())
def test_show_every_robot(capsys: Capture, name: str) -> None:
    code, out, _ = run(capsys, "robots", "show", name)
    robot = load_robot(name)
    assert code == 0
    assert all(joint.name in out for joint in robot.joints)
    assert all(source in out for source in robot.sources.values())
    assert f"of {10 * robot.dof} (standard parameters" in out


def test_show_json(capsys: Capture) -> None:
    shown = json.loads(run(capsys, "robots", "show", "ur5e", "--json")[1])
    assert shown["base_parameters"]["count"] == len(shown["base_parameters"]["formulas"]) == 36
    assert shown["base_parameters"]["classification"]["m1"] == "none"
    assert shown["joints"][0]["limits"]["effort"] == 150.0
    assert shown["joints"][0]["motor"]["gear_ratio"] == 100.0
    assert shown["links"][1]["mass"] == 8.058
    assert json.loads(run(capsys, "robots", "--json", "show", "ur5e")[1]) == shown


def test_gravity_decides_the_base_parameters(capsys: Capture) -> None:
    def count(*options: str) -> int:
        shown = json.loads(run(capsys, "robots", "show", "planar2", "--json", *options)[1])
        return int(shown["base_parameters"]["count"])

    assert count("--gravity", "0", "0", "0") < count() == count("--mounting", "ceiling")
    assert run(capsys, "robots", "show", "ur5e", "--mounting", "wall", "--gravity", "0", "0", "1")[0] == 2


def test_show_a_file(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(urdf_text(load_robot("panda")))
    code, out, _ = run(capsys, "robots", "show", str(file), "--tip", "tool")
    assert code == 0
    assert "7 joints, 16.0621 kg" in out
    assert "motors; kg m^2 and Nm/A, friction at the joint in Nm and Nm s/rad\n  none given" in out


def test_show_and_check_read_a_file_as_calibrate_does(capsys: Capture, tmp_path: Path) -> None:
    file, panda = tmp_path / "arm.urdf", load_robot("panda")
    file.write_text(urdf_text(panda))
    chain = (
        str(file),
        "--base",
        panda.links[1].name,
        "--fix-joint",
        f"{panda.joints[6].name}=0.5",
        "--coupling",
        "4:3:-0.5",
    )
    shown = json.loads(run(capsys, "robots", "show", *chain, "--json")[1])
    assert [joint["name"] for joint in shown["joints"]] == [joint.name for joint in panda.joints[2:6]]
    assert shown["coupling"]["motor_from_joint"][3] == [0.0, 0.0, -0.5, 1.0]
    assert "motor 4 turns by -0.5 q3 + q4\n  logs are in joint coordinates" in run(capsys, "robots", "show", *chain)[1]
    assert run(capsys, "robots", "check", *chain)[0] == 0
    code, out, _ = run(capsys, "robots", "check", *chain[:-1], "9:3:1")
    assert (code, "joints must be from 1 to 4" in out) == (1, True)


def test_errors_are_one_line(capsys: Capture) -> None:
    code, out, err = run(capsys, "robots", "show", "ur5f")
    assert (code, out) == (1, "")
    assert err.startswith("jointwise: unknown robot 'ur5f'. Did you mean ur5")
    assert err.count("\n") == 1
    assert run(capsys, "robots", "show", "none.urdf")[2] == "jointwise: none.urdf: no such file.\n"
    assert "unknown mounting 'roof'" in run(capsys, "robots", "show", "ur5e", "--mounting", "roof")[2]


def test_check(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "arm.csv"
    file.write_text("a,alpha,d\n0.1,pi/2,0.3\n")
    code, out, _ = run(capsys, "robots", "check", str(file), "--convention", "dh")
    assert code == 0
    assert f"warning: {file}, line 2, joint 1 'joint1': no limit for lower, upper, velocity, effort.\n" in out
    assert out.endswith("errors: 0, warnings: 2, infos: 2\n")
    file.write_text("a,alpha,d\n0.1,pie,0.3\n")
    code, out, _ = run(capsys, "robots", "check", str(file), "--convention", "dh", "--json")
    assert code == 1
    [finding] = json.loads(out)
    assert finding["severity"] == "error"
    assert finding["where"] == f"{file}, line 2, column alpha"


def test_check_a_catalogue_robot(capsys: Capture) -> None:
    assert run(capsys, "robots", "check", "ur5e")[0] == 0


def test_interrupt(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("jointwise.cli.demo.run", interrupt)
    assert run(capsys, "demo") == (130, "", "jointwise: interrupted.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close otherwise there")
def test_a_reader_that_leaves_is_no_error() -> None:
    command = [sys.executable, "-m", "jointwise", "robots", "show", "ur5e", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
