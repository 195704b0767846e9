"""Terms of other packages and springs: registered, selected with, saved and loaded."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

import jointwise as jw
from cli_runs import PLAIN, run
from jointwise.data import write_log
from jointwise.errors import ModelError
from jointwise.estimation.structure import Structure
from jointwise.finding import with_severity, worst
from jointwise.model import terms as registry
from jointwise.model.terms import Parameter, Term, register_term
from synthetic import synthetic_log

STIFFNESS = 40.0
SINE = 6.0


@dataclass(frozen=True)
class Cogging(Term):
    """``τ = A sin(n q)``: the cogging of a motor."""

    order: float = 7.0

    kind = "cogging"

    def parameters(self):
        """Return the amplitude."""
        return (Parameter("cog", "Nm"),)

    def columns(self, joint, state=None):
        """Return sin(n q)."""
        return np.sin(self.order * joint.q)[:, None], None


@pytest.fixture(scope="module")
def robot():
    return jw.load_robot("planar2")


def recorded(robot, seed, extra):
    """Return a log whose second joint has another torque, a function of its position."""
    made = synthetic_log(robot, duration=15, rate=100, seed=seed, load_dependence="none")
    current = np.array(made.log.current)
    current[:, 1] += extra(made.truth.states.q[:, 1]) / made.truth.gains[1]
    return replace(made.log, current=current), made.truth


def calibrated(log, truth, robot, extra=()):
    options = jw.Options(
        structure=Structure("tanh", extra=extra), free=("powers",), position_cutoff=10.0, gains=truth.gains.tolist()
    )
    return jw.calibrate(log, robot, options=options)


def value(model, name):
    return model.estimate.values[[info.name for info in model.model.parameters].index(name)]


def test_a_counterbalance_is_recovered(robot):
    (log, truth), (test, _) = (recorded(robot, seed, lambda q: STIFFNESS * q) for seed in (1, 2))
    model, plain = calibrated(log, truth, robot, ("spring",)), calibrated(log, truth, robot)
    assert worst(model.plausibility) == "ok"
    suspect = with_severity(plain.plausibility, "warning")
    assert [check.subject for check in suspect] == ["spring"] and "joint 2 " in suspect[0].evidence
    assert np.isclose(value(model, "K_2"), STIFFNESS, rtol=0.05)
    assert abs(value(model, "K_1")) < 0.05 * STIFFNESS
    errors = [jw.validate(each, test).joints[1].nmse for each in (model, plain)]
    assert errors[0] < 0.5 * errors[1]


def test_a_registered_term_is_recovered_and_saved(robot, tmp_path):
    register_term(Cogging)
    (log, truth), (test, _) = (recorded(robot, seed, lambda q: SINE * np.sin(7.0 * q)) for seed in (1, 2))
    model = calibrated(log, truth, robot, ("cogging",))
    assert worst(model.plausibility) == "ok"
    assert np.isclose(value(model, "cog_2"), SINE, rtol=0.05)
    jw.save_model(model, tmp_path / "model.json")
    assert np.array_equal(jw.load_calibration(tmp_path / "model.json").predict(test), model.predict(test))
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["model"]["terms"][0][-1] == {"kind": "cogging", "package": "test_custom_terms", "order": 7.0}
    registry.KINDS.pop("cogging")
    with pytest.raises(ModelError, match="term 'cogging' is from the package 'test_custom_terms'. Install it"):
        jw.load_calibration(tmp_path / "model.json")


def test_terms_of_installed_packages(monkeypatch):
    entry = SimpleNamespace(name="cogging", load=lambda: Cogging)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == "jointwise.terms" else [])
    assert Structure(extra=("cogging",)).terms()[-1] == Cogging()
    with pytest.raises(ModelError, match="unknown term 'sprng'. Did you mean spring"):
        Structure(extra=("sprng",)).terms()


def test_a_term_defined_again_replaces_its_former_definition():
    definition = "@register_term\n@dataclass(frozen=True)\nclass Ripple(Term):\n    kind = 'ripple of a cell'\n"
    names = {"register_term": register_term, "dataclass": dataclass, "Term": Term, "__name__": "notebook"}
    exec(definition, names)
    exec(definition, names)
    assert registry.KINDS["ripple of a cell"] is names["Ripple"]


def test_wrong_terms():
    @dataclass(frozen=True)
    class Taken(Term):
        kind = "viscous"

    for wrong, words in ((Taken, "must not be in use"), (int, "derived from Term")):
        with pytest.raises(ModelError, match=words):
            register_term(wrong)
    with pytest.raises(ModelError, match="must not depend on the load"):
        Structure(extra=("power_flow",)).terms()


def test_command_line(tmp_path, robot):
    log, _ = recorded(robot, 1, lambda q: STIFFNESS * q)
    write_log(log, tmp_path / "log.csv")
    arguments = ["calibrate", tmp_path / "log.csv", "--robot", "planar2", *PLAIN, "--output", tmp_path / "model.json"]
    done = run(*arguments, "--terms", "spring", "--gains", 10, 10)
    assert done.code == 0, done.err
    assert "spring" in done.out and "set-up: plausible" in done.out
    wrong = run(*arguments, "--terms", "sprong")
    assert wrong.code == 1
    assert "unknown term 'sprong'" in wrong.err
