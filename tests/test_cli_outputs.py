"""Output files of commands: devices, pipes, links and read-only files; sets of files; two writers of one file."""

from __future__ import annotations

import csv
import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import jointwise
from cli_runs import PLAIN, bench, done, refused
from jointwise.atomic import SUFFIX, output_set
from jointwise.cli import main
from jointwise.cli.output import LONGEST_LINE, one_line
from jointwise.errors import OutputError
from jointwise.joint import JointModel, Part, Value, load_joint, load_joints, save_joint

MDH = "d,a,alpha\n0.1,0,0\n0,0.4,0\n"
JOINT = ("--robot", "ur5e", "--joint", 2)


def calibration() -> tuple[object, ...]:
    return ("calibrate", bench().training, "--robot", "planar2", *PLAIN)


def prediction() -> tuple[object, ...]:
    return ("predict", bench().model, bench().unseen)


def commands(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return one command of each kind that writes a single file, without the name of the file."""
    (folder / "mdh.csv").write_text(MDH, encoding="utf-8")
    return {
        "predict": (*prediction(), "--output"),
        "calibrate": (*calibration(), "--output"),
        "parameters": (*calibration(), "--out-params"),
        "compile-rbd": ("compile-rbd", "--mdh", folder / "mdh.csv", "--out"),
        "truth": (
            *("simulate", "--robot", "planar2", "--duration", 1, "--rate", 50, "--output", folder / "log.csv"),
            "--truth",
        ),
    }


KINDS = ("predict", "calibrate", "parameters", "compile-rbd", "truth")


@pytest.mark.parametrize("kind", KINDS)
def test_devices_are_written_to_and_stay_devices(tmp_path: Path, kind: str) -> None:
    command = commands(tmp_path)[kind]
    done(*command, "/dev/null")
    assert "/dev/full: cannot be written (No space left on device)" in refused(*command, "/dev/full")
    assert all(stat.S_ISCHR(Path(name).stat().st_mode) for name in ("/dev/null", "/dev/full"))


@pytest.mark.parametrize("kind", KINDS)
def test_link_is_followed_and_read_only_file_is_kept(tmp_path: Path, kind: str) -> None:
    command, target = commands(tmp_path)[kind], tmp_path / "real" / "target"
    target.parent.mkdir()
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    done(*command, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    written = target.read_text()
    assert written != "old"
    target.chmod(0o444)
    for name in (target, tmp_path / "link"):
        assert f"{name}: is read-only" in refused(*command, name)
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == (written, 0o444)


@pytest.mark.parametrize("kind", KINDS)
def test_pipe_is_written_to_if_a_program_reads_it(tmp_path: Path, kind: str) -> None:
    command, pipe, content = commands(tmp_path)[kind], tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    assert "no program reads this pipe" in refused(*command, pipe)
    guard = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # the command may open the pipe before the thread does
    reader = threading.Thread(target=lambda: content.append(pipe.read_bytes()))
    reader.start()
    done(*command, pipe)
    reader.join(10)
    os.close(guard)
    assert len(content[0]) > 10
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "link"])
def test_content_on_stdout_is_not_mixed_with_text(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, name: str
) -> None:
    command = commands(tmp_path)[kind]
    (tmp_path / "link").symlink_to("/dev/stdout")
    assert main([str(word) for word in (*command, tmp_path / "expected")]) == 0
    text = capfd.readouterr().out
    assert main([str(word) for word in (*command, str(tmp_path / name))]) == 0
    out, err = capfd.readouterr()
    expected = (tmp_path / "expected").read_text()
    if kind != "calibrate":  # a model holds the date and the duration of its calibration
        assert out == expected
    assert len(out.splitlines()) == len(expected.splitlines())
    assert len(err.splitlines()) >= len(text.splitlines())


def test_file_behind_stdout_is_appended_to(tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_text("before\n")
    argv = [sys.executable, "-m", "jointwise", *map(str, prediction()), "--output", "/dev/stdout"]
    with (tmp_path / "all.csv").open("a") as stdout:
        subprocess.run(argv, stdout=stdout, check=True)
    done(*prediction(), "--output", tmp_path / "expected.csv")
    assert (tmp_path / "all.csv").read_text() == "before\n" + (tmp_path / "expected.csv").read_text()
    piped = subprocess.run(argv, capture_output=True, check=True, text=True).stdout
    assert piped == (tmp_path / "expected.csv").read_text()


def unwritable(folder: Path) -> Path:
    """Return a file that passes the checks at the start of a command and cannot be written at its end."""
    return Path("/dev/full") if Path("/dev/full").exists() else folder / "missing" / "file"


def test_failed_calibration_writes_none_of_its_files(tmp_path: Path) -> None:
    files = {"--output": tmp_path / "model.json", "--out-params": tmp_path / "parameters.csv"}
    for full in files:
        named = {**files, full: unwritable(tmp_path)}
        words = [word for option in named.items() for word in option]
        assert "cannot be written" in refused(*calibration(), *words, "--report", tmp_path / "deep" / "report")
        assert list(tmp_path.iterdir()) == []


def test_failed_prediction_of_calibrate_validate_writes_no_model(tmp_path: Path) -> None:
    refused(
        *("calibrate-validate", *calibration()[1:], "--calibration-data-rel", 0.7),
        *("--output", tmp_path / "model.json", "--out-prediction", unwritable(tmp_path)),
    )
    assert list(tmp_path.iterdir()) == []


def test_failed_simulation_writes_none_of_its_files(tmp_path: Path) -> None:
    simulation = ("simulate", "--robot", "planar2", "--duration", 1, "--rate", 50)
    (tmp_path / "log.csv").write_text("old")
    refused(
        *simulation, "--output", tmp_path / "log.csv", "--truth", "/dev/full", "--report", tmp_path / "new" / "deep"
    )
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"log.csv": "old"}


def test_failed_plan_does_not_block_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ("joint", "plan", "--robot", "ur5e", "--joint", 1, "--experiments", "friction", "--rate", 10)
    with monkeypatch.context() as broken:
        broken.setattr("jointwise.experiment.plan_files._rows", _full_disk)
        assert "No space left" in refused(*plan, "--output", tmp_path / "new" / "plan")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / f".README.md.killed{SUFFIX}").touch()
    done(*plan, "--output", tmp_path / "plan")
    names = sorted(path.name for path in (tmp_path / "plan").iterdir())
    assert names == ["1-friction.csv", "1-friction.script", "README.md", "plan.json"]


def _full_disk(*_: object) -> Iterator[None]:
    yield from ()
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def part(phenomenon: str, value: float = 1.0) -> Part:
    """Return a part with one parameter."""
    name = {"load": "F_l", "stiffness": "a_1", "motor": "gain"}[phenomenon]
    settings: dict[str, dict[str, object]] = {
        "load": {"law": {"kind": "square", "factor": 1e-3, "largest": 60.0}},
        "stiffness": {"kind": "polynomial", "coefficients": [15000.0, 5e7]},
        "motor": {"method": "links", "gear_ratio": 100.0},
    }
    ranges = {"phi": (-0.006, 0.006)}
    return Part(
        phenomenon, "any", (Value(name, "-", value, 0.1, value, value),), 99.0, None, settings[phenomenon], ranges
    )


def test_joint_is_added_to_and_only_named_phenomena_are_replaced(tmp_path: Path) -> None:
    path, empty = tmp_path / "joint.json", JointModel("ur5e", 1)
    save_joint(empty.with_part(part("stiffness")), path)
    save_joint(JointModel("ur5e", 0).with_part(part("motor")), path)
    known = load_joint(path, "ur5e", 1)
    save_joint(empty.with_part(part("stiffness", 2.0)), path)
    save_joint(known.with_part(part("load")), path, ["load"])
    first, second = load_joints(path)
    assert list(first.parts) == ["motor"]
    assert [part.values[0].value for part in second.parts.values()] == [2.0, 1.0]


def test_writer_of_a_joint_waits_for_the_set_of_another(tmp_path: Path) -> None:
    path, empty = tmp_path / "joint.json", JointModel("ur5e", 1)
    other = threading.Thread(target=lambda: save_joint(empty.with_part(part("load")), path))
    with output_set():
        save_joint(empty.with_part(part("stiffness")), path)
        other.start()
        other.join(0.3)
        assert other.is_alive()
        assert not path.exists()
    other.join(10)
    assert list(load_joint(path, "ur5e", 1).parts) == ["stiffness", "load"]


@pytest.mark.thorough
def test_two_commands_on_one_joint_file_keep_both_parts(tmp_path: Path) -> None:
    path = tmp_path / "joint.json"
    logs = {"friction": tmp_path / "speeds.parquet", "load": tmp_path / "slow.parquet"}
    for log, experiment in zip(logs.values(), ("constant-speed", "load"), strict=True):
        jointwise.simulate("ur5e", experiment, joint=1, duration=40.0, rate=100.0, seed=1, keep=0).write(log)
    for _ in range(5):
        path.unlink(missing_ok=True)
        commands = [
            [sys.executable, "-m", "jointwise", "joint", name, str(log), *map(str, JOINT), "--output", str(path)]
            for name, log in logs.items()
        ]
        processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
        assert [process.wait(60) for process in processes] == [0, 0]
        assert list(load_joint(path, "ur5e", 1).parts) == ["friction", "load"]
    assert sorted(tmp_path.iterdir()) == sorted([path, *logs.values()])


def test_joint_file_on_stdout_starts_empty(tmp_path: Path) -> None:
    save_joint(JointModel("ur5e", 1).with_part(part("load")), "/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(OutputError, match="is read-only"):
        (tmp_path / "joint.json").touch(0o444)
        save_joint(JointModel("ur5e", 1), tmp_path / "joint.json")


def test_column_names_of_a_prediction_are_quoted(tmp_path: Path) -> None:
    header, _, rows = bench().unseen.read_text().partition("\n")
    (tmp_path / "log.csv").write_text(header.replace("i1", '"cur, A"') + "\n" + rows)
    (tmp_path / "columns.toml").write_text('[columns]\ni = ["cur, A", "i2"]\n')
    files = (tmp_path / "log.csv", "--columns", tmp_path / "columns.toml", "--output", tmp_path / "p.csv")
    done("predict", bench().model, *files)
    with (tmp_path / "p.csv").open(newline="") as file:
        assert next(csv.reader(file)) == ["t", "cur, A_pred", "i2_pred"]


def test_long_paths_lose_their_folders_before_a_message_loses_its_middle() -> None:
    folder = "/home/someone/measurements/" + "/".join(f"session-{k}" for k in range(7))
    message = "friction of joint 3 was not fitted together with the temperature, and its speeds differ by 20 rad/s"
    shown = one_line(f"jointwise: {folder}/first.json and '{folder}/second.json' disagree: {message}. See {folder}/.")
    assert shown == f"jointwise: .../first.json and '.../second.json' disagree: {message}. See .../session-6/."
    short = f"jointwise: {folder}/first.json: {message}."
    assert one_line(short) == short
    damaged = one_line("x/y " * 500)
    assert len(damaged) <= LONGEST_LINE
    assert "..." in damaged
