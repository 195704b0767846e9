"""Native kernel, NumPy kernels, Pinocchio and MuJoCo give the same answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from jointwise.description import list_robots, load_robot
from kernels import ENGINES, assert_all_agree, engine, natural_scales
from peers import jointwise_answers, mujoco_answers, pinocchio_answers
from robots import Case, cases, law, random_case

PEERS = {"pinocchio": pinocchio_answers, "mujoco": mujoco_answers}


def assert_engines_agree_with_peers(case: Case) -> None:
    answers = {}
    for name in ENGINES:
        with engine(name):
            answers[name] = jointwise_answers(case)
    for ask in PEERS.values():
        theirs = ask(case)
        scales = natural_scales(case, theirs)
        for name in ENGINES:
            assert_all_agree(answers[name], theirs, scales)


@pytest.mark.parametrize("name", list_robots())
def test_every_engine_agrees_with_the_peers_on_the_catalogue(name: str) -> None:
    rng = np.random.default_rng(sum(name.encode()))
    assert_engines_agree_with_peers(random_case(rng, load_robot(name), samples=19))


@law(60)
@given(cases())
def test_every_engine_agrees_with_the_peers_on_random_chains(case: Case) -> None:
    assert_engines_agree_with_peers(case)
