"""The virtual UR: programs in URScript, and an independent client (ur_rtde) that receives the simulated values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli_runs import done, refused
from jointwise import load_robot
from jointwise.design import make_plan, urscript
from jointwise.errors import ModelError
from jointwise.virtual_ur import make_virtual_ur
from jointwise.virtual_ur.script import PERIOD, run_script

MOVES = """
def program():
  # two moves and a rest
  popup("ready?", title="x", blocking=True)
  movej([0, -1.5, 0, 0, 0, 0], a=1, v=1)
  sleep(0.1)
  movej([0.5, -1.5, 0.2, 0, 0, 0], a=2.0, v=0.5)
  n = 0
  while n < 3 and True:
    servoj([0.5 + 0.001 * (n + 1), -1.5, 0.2, 0, 0, sin(0)], 0, 0, 0.002, 0.1, 300)
    if n == 1:
      textmsg("one")
    else:
      sync()
    end
    n = n + 1
  end
  stopj(2.0)
end
program()
"""


def test_program_gives_the_commanded_positions() -> None:
    q = run_script(MOVES)
    np.testing.assert_allclose(q[0], [0, -1.5, 0, 0, 0, 0])
    np.testing.assert_allclose(q[-1], [0.503, -1.5, 0.2, 0, 0, 0], atol=1e-12)
    speed = np.diff(q, axis=0) / PERIOD
    assert np.abs(speed).max() == pytest.approx(0.5, rel=1e-6)
    acceleration = np.diff(speed, axis=0)[:-5] / PERIOD
    assert np.abs(acceleration).max() == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("movej([0,0,0,0,0,0])\nset_digital_out(1, True)", "set_digital_out"),
        ("movej([0,0,0])", "list of 6"),
        ("while True:\n  x = 1\nend", "does not end|does not move"),
        ("x = __import__('os').system('true')", "not arithmetic"),
        ("x = (1).__class__", "not arithmetic"),
        ("movej([1/0,0,0,0,0,0])", "division by zero"),
        ("movej([y,0,0,0,0,0])", "'y' has no value"),
        ("while True:", "not closed"),
        ("sleep(1)", "does not move"),
        ("movej([0,0,0,0,0,0])\nsleep(1e9)", "at most"),
        ("x = " + "(" * 300 + "1" + ")" * 300, "not an expression|nested"),
        ("if x", "must end with ':'"),
        ("while True:\nend", "does not end"),
        ("x = 2\nwhile True:\n  x = x * x\nend", "at most 1e\\+09"),
        ("x = 'a' * 100000000000", "between numbers"),
        ("movej([1e308,0,0,0,0,0])", "at most 1e\\+09"),
    ],
)
def test_programs_outside_the_subset_are_rejected_with_their_line(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jointwise.virtual_ur.script.MOST_STATEMENTS", 10_000)
    with pytest.raises(ModelError, match=message):
        run_script(text, "p.script")


def test_program_of_a_plan_runs() -> None:
    plan = make_plan(load_robot("ur5e"), 3)
    steps = [step for step in plan.steps if step.rejection is None and step.experiment.torque is None]
    for step in steps[:3]:
        q = run_script(urscript(step), step.purpose.name)
        assert len(q) * PERIOD > 0.8 * step.experiment.motion.duration
    assert steps


def test_standstill_is_repeated_around_the_program() -> None:
    virtual = make_virtual_ur("ur5e")
    assert virtual.rest > 100
    assert [virtual.row(tick) for tick in (0, virtual.rest)] == [0, 0]
    virtual.started(1000)
    first = 1000 + virtual.wait
    assert (virtual.row(first), virtual.row(first + 5000)) == (0, 5000)
    assert virtual.playing(first)
    assert virtual.finished(first + virtual.log.samples)
    assert virtual.values(first + 5000)["actual_q"] == virtual.log.q[5000].tolist()


CLIENT = """
import json, sys, time
import rtde_receive
client = rtde_receive.RTDEReceiveInterface("127.0.0.1", 500.0, ["timestamp", "actual_q", "robot_mode"])
rows = []
for _ in range(20):
    time.sleep(0.03)
    rows.append((client.getTimestamp(), client.getActualQ(), client.getRobotMode()))
print(json.dumps(rows))
"""


def test_independent_client_receives_the_simulated_values() -> None:
    pytest.importorskip("rtde_receive", reason="ur_rtde is not installed")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "jointwise", "virtual-ur", "--robot", "ur3e", "--seed", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as server:
        try:
            assert server.stdout is not None
            assert "127.0.0.1:30004" in server.stdout.readline()
            client = [sys.executable, "-c", CLIENT]
            received = subprocess.run(client, env=environment, capture_output=True, timeout=60, check=True)
        finally:
            server.terminate()
    rows = json.loads(received.stdout)
    virtual = make_virtual_ur("ur3e", seed=5)
    simulated = {tuple(row) for row in virtual.log.q.tolist()}
    assert len({stamp for stamp, _, _ in rows}) > 10
    assert all(tuple(q) in simulated and mode == 7 for _, q, mode in rows)


def test_wrong_programs_and_robots_are_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "p.script").write_bytes(b"\xff\xfe\x00")
    assert "not a text file" in refused("virtual-ur", "--run", tmp_path / "p.script")
    assert "no such file" in refused("virtual-ur", "--run", tmp_path / "absent.script")
    assert "six revolute joints" in refused("virtual-ur", "--robot", "panda")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert "is not empty" in refused("rehearse", "--output", tmp_path / "full")


def test_the_server_says_where_it_is_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = "  movej([0, -1.5, 0, 0, 0, 0])\n  movej([0.1, -1.5, 0, 0, 0, 0])"
    (tmp_path / "p.script").write_text(f"def p():\n{moves}\nend\np()\n")
    monkeypatch.setattr("jointwise.virtual_ur.serve", lambda *_, ready, **options: ready(31000))
    words = ("virtual-ur", "--run", tmp_path / "p.script")
    assert json.loads(done(*words, "--json")) == {"robot": "ur5e", "host": "127.0.0.1", "port": 31000}
    assert "ur5e on 127.0.0.1:31000" in done(*words)
    assert done(*words, "--quiet") == ""


@pytest.mark.thorough
def test_rehearsal_gives_a_model_that_predicts_another_motion(tmp_path: Path) -> None:
    text = done("rehearse", "--output", tmp_path / "r", "--duration", 12, "--json")
    result = json.loads(text)
    assert min(result["r2"]) >= 0.95  # 12 s are short; the default of 30 s gives more than 0.99
    assert [recording["lost"] for recording in result["recordings"]] == [0, 0]
