"""Physically consistent bodies: the programme against independent solvers, and what a calibration makes of it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import jointwise as jw
from jointwise import spatial
from jointwise.calibration import Options, calibrate
from jointwise.description.toml import robot_from_toml
from jointwise.errors import DescriptionError, EstimationError, ModelError
from jointwise.estimation.body_prior import BodyPrior, body_prior
from jointwise.estimation.cross_validation import cross_validate
from jointwise.estimation.factors import JointFactors
from jointwise.estimation.least_squares import Layout, Problem, Solution, weighted_least_squares
from jointwise.estimation.physical import OTHER_MOTIONS, PRIOR_WEIGHTS, Programme, physical_parameters
from jointwise.estimation.semidefinite import MARGIN, ConvergenceError, symmetric
from jointwise.estimation.structure import Structure
from jointwise.model.base import base_parameters
from jointwise.model.rigid import compute_regressor, inverse_dynamics
from jointwise.spatial import Array
from kernels import needs_native
from synthetic import SyntheticLog, default_friction, synthetic_log

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from physical import measure, simulated

pytestmark = pytest.mark.compat

PRIOR_WEIGHT, TOLERANCE = PRIOR_WEIGHTS[0], 0.2
UR5E, PLANAR = jw.load_robot("ur5e"), jw.load_robot("planar2")
TANH = Structure("tanh", "none", (1.0,))


def smallest(inertials: Array) -> float:
    return min(float(np.linalg.eigvalsh(spatial.pseudo_inertia(body))[0]) for body in inertials)


def regression(robot: jw.Robot, seed: int, noise: float, rows: int) -> tuple[Problem, Solution, Array]:
    """Return a short noisy regression of an arm with viscous friction and rotors of 0.5 kg m², and its projection."""
    rng = np.random.default_rng(seed)
    base, n = base_parameters(robot, rotors=True), robot.dof
    factors = [JointFactors() for _ in range(n)]
    truth = np.concatenate([robot.inertials.ravel(), np.full(n, 0.5)])
    index = [np.append(np.arange(base.count), base.count + j) for j in range(n)]
    for _ in range(8):
        q, qd, qdd = rng.uniform(-np.pi, np.pi, (3, rows, n))
        Y = compute_regressor(robot, q, qd, qdd, rotors=True).matrices()
        tau = Y @ truth + 5.0 * qd + noise * rng.normal(size=qd.shape)
        for j in range(n):
            factors[j].add(np.column_stack([Y[:, j][:, base.kept], qd[:, j], tau[:, j]]), np.ones(rows))
    layout = Layout(index, np.array([False] * base.count + [True] * n))
    problem = Problem(factors, layout)
    return problem, weighted_least_squares(problem), base.projection


def problem_of(seed: int = 0, noise: float = 3.0, rows: int = 60) -> tuple[Problem, Solution, Array, BodyPrior]:
    """Return a short noisy regression of a UR5e, and its described bodies as the prior."""
    names = tuple(link.name for link in UR5E.links)
    prior = BodyPrior(names, UR5E.inertials, np.full(6, 0.4), (None,) * 6, "test", np.full(6, TOLERANCE))
    return *regression(UR5E, seed, noise, rows), prior


def rows_of(programme: Programme) -> Array:
    """Return the rows [A b] of the residual: those of the data, and of motions in which the parameters act alone."""
    rows = programme.problem.whole(programme.solution.sigma)
    sizes = np.sqrt(OTHER_MOTIONS) * np.linalg.norm(rows[:, :-1], axis=0)
    return np.vstack([rows, np.column_stack([np.diag(sizes), sizes * programme.solution.values])])


def objective(programme: Programme, relative: Array, rotors: Array, terms: Array) -> float:
    """Return the objective of the programme, written down independently of its solver."""
    solution, rows = programme.solution, rows_of(programme)
    inertials = []
    for Q, body in zip(relative, programme.prior.inertials, strict=True):
        C = np.linalg.cholesky(spatial.pseudo_inertia(body))
        inertials.append(spatial.from_pseudo_inertia(C @ Q @ C.T))
    standard = np.concatenate([np.ravel(inertials), rotors * programme.prior.rotors])
    residual = rows[:, :-1] @ np.concatenate([programme.projection @ standard, terms]) - rows[:, -1]
    start = rows[:, :-1] @ solution.values - rows[:, -1]
    cost = 0.5 * float(residual @ residual) / float(start @ start)
    masses = np.array([body[9] for body in inertials]) / programme.prior.inertials[:, 9]
    if programme.kind == "euclidean":
        prior = 0.5 * sum(float(np.sum((Q - np.eye(4)) ** 2)) for Q in relative)
        prior += 0.5 * float(np.sum((rotors - 1) ** 2)) + 0.5 * float(np.sum((masses - 1) ** 2)) / TOLERANCE**2
    else:
        prior = sum(float(np.trace(Q) - np.linalg.slogdet(Q)[1]) for Q in relative)
        prior += float(np.sum(rotors - np.log(rotors)) + np.sum(masses - np.log(masses)) / TOLERANCE**2)
    return cost + PRIOR_WEIGHT * prior


def parts(programme: Programme, found: Any) -> tuple[Array, Array, Array]:
    base = len(programme.projection)
    return found.relative, found.standard[60:] / programme.prior.rotors, found.values[base:]


@pytest.mark.parametrize("kind", ["euclidean", "entropic"])
def test_the_programme_agrees_with_an_independent_modelling_tool(kind: Any) -> None:
    cvxpy = pytest.importorskip("cvxpy")
    problem, solution, projection, prior = problem_of()
    programme = Programme(problem, solution, projection, prior, kind)
    rows = rows_of(programme)
    Q = [cvxpy.Variable((4, 4), PSD=True) for _ in range(6)]
    rotors, terms = cvxpy.Variable(6), cvxpy.Variable(6)
    columns = []
    for j, body in enumerate(prior.inertials):
        C = np.linalg.cholesky(spatial.pseudo_inertia(body))
        units = [np.outer(a, b) for a in np.eye(4) for b in np.eye(4)]
        map_ = np.column_stack([spatial.from_pseudo_inertia(C @ (0.5 * (unit + unit.T)) @ C.T) for unit in units])
        columns.append(map_ @ cvxpy.vec(Q[j], order="C"))
    standard = cvxpy.hstack([*columns, cvxpy.multiply(rotors, prior.rotors)])
    residual = rows[:, :-1] @ cvxpy.hstack([projection @ standard, terms]) - rows[:, -1]
    start = rows[:, :-1] @ solution.values - rows[:, -1]
    cost = 0.5 * cvxpy.sum_squares(residual) / float(start @ start)
    masses = cvxpy.hstack([column[9] for column in columns]) / prior.inertials[:, 9]
    if kind == "euclidean":
        divergence = 0.5 * sum(cvxpy.sum_squares(q - np.eye(4)) for q in Q) + 0.5 * cvxpy.sum_squares(rotors - 1.0)
        divergence += 0.5 * cvxpy.sum_squares(masses - 1.0) / TOLERANCE**2
    else:
        divergence = sum(cvxpy.trace(q) - cvxpy.log_det(q) for q in Q) + cvxpy.sum(rotors - cvxpy.log(rotors))
        divergence += cvxpy.sum(masses - cvxpy.log(masses)) / TOLERANCE**2
    limits = [q - MARGIN * np.eye(4) >> 0 for q in Q] + [rotors >= 0.0, terms >= 0.0]
    oracle = cvxpy.Problem(cvxpy.Minimize(cost + PRIOR_WEIGHT * divergence), limits)
    oracle.solve(solver="SCS", eps=1e-7, max_iters=200_000)
    found = parts(programme, programme.solve(programme.factor()))
    theirs = objective(programme, np.array([q.value for q in Q]), rotors.value, terms.value)
    assert objective(programme, *found) == pytest.approx(theirs, rel=1e-5)
    np.testing.assert_allclose(found[1], rotors.value, rtol=0.01)


@pytest.mark.parametrize("kind", ["euclidean", "entropic"])
def test_the_optimum_satisfies_its_conditions(kind: Any) -> None:
    """At the optimum the gradient is a multiplier of the constraints, and zero where they are not active."""
    problem, solution, projection, prior = problem_of(noise=20.0, rows=20)
    programme = Programme(problem, solution, projection, prior, kind)
    relative, rotors, terms = parts(programme, programme.solve(programme.factor()))

    def change(*variables: Array) -> float:
        return objective(programme, *variables) - at_optimum

    at_optimum, step = objective(programme, relative, rotors, terms), 1e-5
    scale = PRIOR_WEIGHT * step
    for j, Q in enumerate(relative):
        sizes, axes = np.linalg.eigh(Q)
        for size, axis in zip(sizes, axes.T, strict=True):
            moved = relative.copy()
            moved[j] = Q + step * np.outer(axis, axis)
            slope = change(moved, rotors, terms)
            assert slope > -0.02 * scale
            if size > 10.0 * MARGIN:
                assert abs(slope) < 0.02 * scale
    for value, move in ((rotors, lambda x: (relative, x, terms)), (terms, lambda x: (relative, rotors, x))):
        for k in range(6):
            moved = value + step * (np.arange(6) == k)
            assert change(*move(moved)) > -0.02 * scale
    assert any(np.linalg.eigvalsh(Q)[0] < 2.0 * MARGIN for Q in relative) == (kind == "euclidean")


def test_log_cholesky_refinement_reaches_the_same_optimum() -> None:
    problem, solution, projection, prior = problem_of()
    programme = Programme(problem, solution, projection, prior, "entropic")
    rows = rows_of(programme)
    found = parts(programme, programme.solve(programme.factor()))
    A = np.hstack([rows[:, : len(projection)] @ projection @ programme.whitening, rows[:, len(projection) : -1]])
    b = rows[:, -1]
    start = rows[:, :-1] @ solution.values - rows[:, -1]
    lower, diagonal = np.tril_indices(4, -1), np.diag_indices(4)
    mass_rows = np.array([programme.whitening[10 * j + 9, 10 * j : 10 * j + 10] for j in range(6)])
    mass_rows /= prior.inertials[:, 9:]

    def factors(x: Array) -> Array:
        L = np.zeros((6, 4, 4))
        for j, entries in enumerate(x[:60].reshape(6, 10)):
            L[j][diagonal] = np.exp(entries[:4])
            L[j][lower] = entries[4:]
        return L

    def cost(x: Array) -> tuple[float, Array]:
        L = factors(x)
        Q = L @ L.transpose(0, 2, 1)
        v = np.concatenate([*(entries_of(q) for q in Q), np.exp(x[60:])])
        residual = A @ v - b
        down = A.T @ residual / float(start @ start)
        value = 0.5 * float(residual @ residual) / float(start @ start)
        value += PRIOR_WEIGHT * float(np.trace(Q, axis1=1, axis2=2).sum() - 2.0 * x[:60].reshape(6, 10)[:, :4].sum())
        value += PRIOR_WEIGHT * float(np.sum(np.exp(x[60:66]) - x[60:66]))
        masses = np.sum(mass_rows * v[:60].reshape(6, 10), axis=1)
        value += PRIOR_WEIGHT * float(np.sum(masses - np.log(masses))) / TOLERANCE**2
        pull = PRIOR_WEIGHT * (1.0 - 1.0 / masses) / TOLERANCE**2
        gradient = np.zeros(72)
        for j in range(6):
            slope = symmetric(down[10 * j : 10 * j + 10] + pull[j] * mass_rows[j])
            G = 2.0 * (slope + PRIOR_WEIGHT * np.eye(4)) @ L[j]
            gradient[10 * j : 10 * j + 4] = G[diagonal] * L[j][diagonal] - 2.0 * PRIOR_WEIGHT
            gradient[10 * j + 4 : 10 * j + 10] = G[lower]
        gradient[60:] = down[60:] * v[60:]
        gradient[60:66] += PRIOR_WEIGHT * (v[60:66] - 1.0)
        return value, gradient

    first = np.concatenate([np.zeros(66), np.log(found[2])])
    best = minimize(cost, first, jac=True, method="BFGS", options={"maxiter": 3000, "gtol": 1e-9})
    L = factors(best.x)
    refined = objective(programme, L @ L.transpose(0, 2, 1), np.exp(best.x[60:66]), np.exp(best.x[66:]))
    assert refined == pytest.approx(best.fun, rel=1e-9)
    assert refined == pytest.approx(objective(programme, *found), rel=1e-6)
    np.testing.assert_allclose(np.exp(best.x[60:66]), found[1], rtol=1e-2)


def entries_of(Q: Array) -> Array:
    """Return the ten coordinates of a symmetric matrix."""
    return np.array([float(np.sum(Q * symmetric(unit))) for unit in np.eye(10)])


def test_noise_makes_impossible_bodies_and_the_programme_does_not() -> None:
    problem, solution, projection, prior = problem_of(noise=20.0, rows=20)
    nearest = np.append(prior.inertials.ravel(), prior.rotors)
    nearest = nearest + np.linalg.pinv(projection) @ (solution.values[: len(projection)] - projection @ nearest)
    assert smallest(nearest[:60].reshape(6, 10)) < 0.0
    for kind in ("entropic", "euclidean"):
        found = physical_parameters(problem, solution, projection, prior, kind)  # type: ignore[arg-type]
        assert smallest(found.inertials) > 0.0
        assert np.all(found.rotor_inertias >= 0.0)
        assert np.all(found.values[len(projection) :] >= 0.0)
        assert np.all(found.eigenvalues >= 0.99 * MARGIN)


def test_a_wrong_prior_gets_less_weight_and_costs_little_held_out_error() -> None:
    problem, solution, projection, prior = problem_of(noise=0.3, rows=1000)
    good = physical_parameters(problem, solution, projection, replace(prior, rotors=np.full(6, 0.5)))
    wrong = replace(prior, inertials=0.01 * prior.inertials)
    found = physical_parameters(problem, solution, projection, wrong)
    assert good.prior_weight == PRIOR_WEIGHTS[0] > found.prior_weight
    assert good.held_out is not None and found.held_out is not None
    assert max(good.held_out.cost, found.held_out.cost) < 0.001
    strong = Programme(problem, solution, projection, wrong, "entropic")
    free, held = (
        cross_validate(problem, solution.sigma, fitted).joints.mean()
        for fitted in (None, [strong.solve(others).values for others in problem.without_folds(solution.sigma)])
    )
    assert held / free - 1.0 > 0.002
    assert found.held_out.unconstrained == pytest.approx(free, rel=1e-12)


@pytest.mark.parametrize("kind", ["entropic", "euclidean"])
@pytest.mark.parametrize("weight", [1e-4, 1e-6, 1e-8])
def test_a_mass_without_effect_stays_at_the_prior_however_weak(kind: Any, weight: float) -> None:
    problem, solution, projection, prior = problem_of()
    programme = Programme(problem, solution, projection, prior, kind, weight)
    found = programme.solve(programme.factor()).standard[:10]
    assert base_parameters(UR5E, rotors=True).classification["m1"] == "none"
    assert found[9] == pytest.approx(UR5E.inertials[0][9], rel=1e-3)


def test_a_mass_that_the_data_do_not_determine_stays_near_a_wrong_description() -> None:
    problem, solution, projection, prior = problem_of(noise=0.3, rows=400)
    factors = np.array([1.2, 0.8, 1.3, 0.7, 1.2, 0.8])
    found = physical_parameters(
        problem, solution, projection, replace(prior, inertials=factors[:, None] * prior.inertials)
    )
    np.testing.assert_allclose(found.inertials[:, 9], factors * prior.inertials[:, 9], rtol=0.3)
    truth = projection @ np.append(UR5E.inertials.ravel(), np.full(6, 0.5))
    errors = [np.linalg.norm(values[: len(truth)] - truth) for values in (found.values, solution.values)]
    assert errors[0] < errors[1]
    assert found.suspect_masses == ()
    loaded = replace(found, inertials=found.inertials * np.array([[1], [1], [2], [1], [1], [1]]))
    assert [text.split()[0] for text in loaded.suspect_masses] == ["link3"]


def scaled_masses(robot: jw.Robot, factors: Array) -> jw.Robot:
    """Return a robot whose links have other masses and inertias, and the same centres of mass."""
    pairs = zip(robot.links, factors, strict=True)
    return replace(robot, links=tuple(replace(link, inertial=factor * link.inertial) for link, factor in pairs))


@pytest.mark.parametrize("name", [name for name in jw.list_robots() if jw.load_robot(name).inertials[:, 9].all()])
def test_bodies_of_every_robot_of_the_catalogue(name: str) -> None:
    """Combinations that the data determine are right, masses that they leave open stay near the description."""
    robot = jw.load_robot(name)
    problem, solution, projection = regression(robot, 1, noise=1e-3 * np.abs(robot.inertials[:, 9]).sum(), rows=150)
    truth, factors = np.append(robot.inertials.ravel(), np.full(robot.dof, 0.5)), np.resize([1.2, 0.85], robot.dof)
    described = scaled_masses(robot, factors)
    unknown = scaled_masses(robot, np.zeros(robot.dof))
    for arm in (robot, described, unknown):
        prior = body_prior(arm, None, True, projection, problem, solution)
        found = physical_parameters(problem, solution, projection, prior)
        assert smallest(found.inertials) > 0.0 and found.held_out is not None and found.held_out.cost < 0.01
        size = np.linalg.norm(projection @ truth)
        assert np.linalg.norm(found.values[: len(projection)] - projection @ truth) < 0.01 * size
        if arm is not unknown:
            np.testing.assert_allclose(found.inertials[:, 9], arm.inertials[:, 9], rtol=0.3)
            assert found.suspect_masses == ()
        else:
            assert 0.2 < found.inertials[:, 9].sum() / robot.inertials[:, 9].sum() < 3.0


@pytest.mark.parametrize("seed", range(4))
def test_with_a_weak_prior_the_nearest_bodies_are_closer_to_the_truth_whatever_the_noise(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Projection on a convex set, in the norm of the log and of motions in which the parameters act independently."""
    problem, solution, projection, prior = problem_of(seed, noise=20.0, rows=20)
    programme = Programme(problem, solution, projection, prior, "euclidean", weight=1e-9)
    truth = np.concatenate([projection @ np.append(UR5E.inertials.ravel(), np.full(6, 0.5)), np.full(6, 5.0)])
    nearest = programme.solve(programme.factor()).values
    rows = rows_of(programme)[:, :-1]
    lengths = [np.linalg.norm(rows @ (values - truth)) for values in (nearest, solution.values)]
    assert lengths[0] < lengths[1]
    monkeypatch.setattr("jointwise.estimation.physical.OTHER_MOTIONS", 0.0)
    of_the_log = programme.solve(programme.factor()).values
    columns = np.linalg.norm(rows, axis=0)
    moved = [np.linalg.norm(columns * (values - solution.values)) for values in (nearest, of_the_log)]
    assert moved[0] < moved[1]


@needs_native
def test_bodies_predict_another_motion_where_the_log_shows_some_combinations_hardly() -> None:
    """In this log a drive offset and a first moment are hardly separable; the bodies once cost 3 % on the other."""
    row = measure(simulated("ur5e", 729), "entropic")
    assert row.eigenvalue > 0.0 and row.cost < 0.005


def test_shapes_that_nobody_described_get_weight_only_if_they_predict() -> None:
    problem, solution, projection, prior = problem_of(noise=0.3, rows=1000)
    guess = replace(prior, mass_tolerance=np.ones(6))
    assert physical_parameters(problem, solution, projection, prior).prior_weight == PRIOR_WEIGHTS[0]
    assert physical_parameters(problem, solution, projection, guess).prior_weight == PRIOR_WEIGHTS[-1]
    noisy_problem, noisy_solution, *_ = problem_of(noise=30.0, rows=20)
    assert physical_parameters(noisy_problem, noisy_solution, projection, guess).prior_weight > PRIOR_WEIGHTS[-1]


def test_the_optimum_is_independent_of_the_start() -> None:
    problem, solution, projection, prior = problem_of()
    weak, strong = (Programme(problem, solution, projection, prior, "entropic", weight) for weight in (1e-6, 1e-2))
    data = weak.factor()
    cold, warm = weak.solve(data), weak.solve(data, strong.solve(data).point)
    np.testing.assert_allclose(warm.standard, cold.standard, rtol=1e-3, atol=1e-4)


def test_a_method_that_is_stopped_says_so_and_keeps_its_best_point(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solution, projection, prior = problem_of()
    programme = Programme(problem, solution, projection, prior, "entropic")
    best = programme.solve(programme.factor()).point
    monkeypatch.setattr("jointwise.estimation.semidefinite.RESOLUTION", 0.0)
    with pytest.raises(
        ConvergenceError, match=r"rounding stopped the method at .* of the prior .*--no-physical"
    ) as error:
        programme.solve(programme.factor())
    assert error.value.best is not None and best is not None
    np.testing.assert_allclose(error.value.best.v[:60], best.v[:60], atol=1e-6)
    monkeypatch.setattr("jointwise.estimation.semidefinite.MAX_ITERATIONS", 1)
    with pytest.raises(ConvergenceError, match="without a point that satisfies all constraints") as error:
        programme.solve(programme.factor())
    assert error.value.best is None


def test_more_data_take_the_bodies_from_the_prior_to_the_truth() -> None:
    errors, shares = [], []
    for noise in (30.0, 3e-3):
        problem, solution, projection, prior = problem_of(noise=noise, rows=100)
        found = physical_parameters(problem, solution, projection, replace(prior, inertials=1.5 * prior.inertials))
        truth = projection @ np.append(UR5E.inertials.ravel(), np.full(6, 0.5))
        errors.append(np.linalg.norm(found.values[: len(projection)] - truth))
        shares.append(np.concatenate([found.share.ravel(), found.rotor_share]))
    assert errors[1] < 0.1 * errors[0]
    assert np.all((shares[0] >= 0.0) & (shares[1] <= 1.0))
    assert shares[1].mean() > shares[0].mean()
    kinds = base_parameters(UR5E, rotors=True).classification
    names = base_parameters(UR5E, rotors=True).standard_names
    assert all(shares[1][k] > 0.7 for k, name in enumerate(names) if kinds[name] == "alone")
    assert all(shares[1][k] < 1e-9 for k, name in enumerate(names) if kinds[name] == "none")


def test_relative_coordinates_keep_the_norm() -> None:
    entries = np.random.default_rng(3).normal(size=10)
    assert np.linalg.norm(symmetric(entries)) == pytest.approx(np.linalg.norm(entries))


def test_centres_of_mass_stay_in_their_regions() -> None:
    problem, solution, projection, prior = problem_of()
    center = prior.inertials[1, 6:9] / prior.inertials[1, 9]
    free = physical_parameters(problem, solution, projection, prior)
    moved = np.sign(free.links[1].center_of_mass - center) * np.array([0.0, 0.0, 0.002])
    box = np.array([center - 0.05, center + 0.05])
    box[int(moved[2] > 0.0), 2] = center[2] + 0.25 * (free.links[1].center_of_mass - center)[2]
    held = physical_parameters(problem, solution, projection, replace(prior, regions=(None, box, *(None,) * 4)))
    found = held.links[1].center_of_mass
    assert np.all(found >= box[0] - 1e-6) and np.all(found <= box[1] + 1e-6)
    assert 1 in held.boundary and 1 not in free.boundary


# -- what contradicts itself -----------------------------------------------------------------------------------------


def test_a_described_body_that_cannot_exist_names_the_link() -> None:
    broken = replace(UR5E.links[2], inertial=spatial.inertial_vector(2.0, [0.1, 0, 0], np.diag([0.1, 0.01, 0.01])))
    robot = replace(UR5E, links=(*UR5E.links[:2], broken, *UR5E.links[3:]))
    with pytest.raises(EstimationError, match=r"link 'link3': the described body cannot exist .*--no-physical"):
        calibrate(noisy().log, robot, options=FIXED)
    assert calibrate(noisy().log, robot, options=FIXED, physical=False).physical is None
    negative = replace(UR5E.links[1], inertial=-UR5E.links[1].inertial)
    robot = replace(UR5E, links=(UR5E.links[0], negative, *UR5E.links[2:]))
    with pytest.raises(EstimationError, match=r"link 'link2': the described body cannot exist \(mass -.*--no-physical"):
        calibrate(noisy().log, robot, options=FIXED)


def test_a_centre_of_mass_outside_its_region_names_the_link() -> None:
    away = replace(UR5E.links[1], region=np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]))
    robot = replace(UR5E, links=(UR5E.links[0], away, *UR5E.links[2:]))
    with pytest.raises(EstimationError, match=r"link 'link2': the described centre of mass .* outside the region"):
        calibrate(noisy().log, robot, options=FIXED)


def test_an_empty_region_is_rejected() -> None:
    with pytest.raises(DescriptionError, match="link 'a': the lower corner of the region"):
        jw.Link("a", np.ones(10), np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]))


def test_regions_of_a_description_turn_with_the_frame() -> None:
    table = """
schema = 1
name = "arm"
convention = "dh"
[[joint]]
a = 0.5
alpha = "pi/2"
d = 0.1
mass = 2.0
center_of_mass = [-0.2, 0.0, 0.0]
inertia = [0.01, 0, 0, 0.02, 0, 0.02]
center_region = [-0.4, -0.1, -0.05, 0.0, 0.1, 0.05]
"""
    link = robot_from_toml(table, "arm.toml").links[0]
    assert link.region is not None
    np.testing.assert_allclose(link.region, [[0.1, -0.05, -0.1], [0.5, 0.05, 0.1]], atol=1e-12)
    with pytest.raises(DescriptionError, match=r"arm.toml, joint 1: center_region must be x, y, z of the lower"):
        robot_from_toml(table.replace("-0.4, -0.1, -0.05, 0.0,", "0.4, -0.1, -0.05, 0.0,"), "arm.toml")


# -- in a calibration ------------------------------------------------------------------------------------------------

FIXED = Options(structure=TANH, free=(), position_cutoff=20.0, lag=0.0)
_NOISY: list[SyntheticLog] = []


def noisy() -> SyntheticLog:
    if not _NOISY:
        friction = tuple(replace(law, scale=1e-4) for law in default_friction(UR5E, "none"))
        _NOISY.append(synthetic_log(UR5E, "fourier", duration=20.0, rate=200.0, seed=4, friction=friction))
    return _NOISY[0]


@pytest.fixture(scope="module")
def calibration() -> jw.Calibration:
    return calibrate(noisy().log, UR5E, options=FIXED)


def test_a_calibration_has_bodies_that_cost_next_to_nothing(calibration: jw.Calibration) -> None:
    physical = calibration.physical
    assert physical is not None and physical.held_out is not None
    assert smallest(physical.inertials) > 0.0
    assert physical.held_out.cost < 0.01
    assert physical.prior_source == "described bodies"
    assert [link.name for link in physical.links] == [link.name for link in UR5E.links]


def test_the_identified_robot_needs_the_torque_of_the_consistent_model(calibration: jw.Calibration) -> None:
    q, qd, qdd = np.random.default_rng(5).uniform(-1.0, 1.0, (3, 50, 6))
    robot = calibration.robot_identified()
    torque = inverse_dynamics(robot, q, qd, qdd) + qdd * robot.rotor_inertias
    np.testing.assert_allclose(torque, calibration.consistent().body_torque(q, qd, qdd), atol=1e-8)
    truth = noisy().truth.plant.standard
    base = calibration.model.base
    identified = np.append(robot.inertials.ravel(), robot.rotor_inertias)
    errors = [
        np.abs(values - base.from_standard(truth)).max()
        for values in (base.from_standard(identified), calibration.estimate.values[: base.count])
    ]
    assert errors[0] < errors[1] < 0.04 * np.abs(base.from_standard(truth)).max()


def test_bodies_from_a_table_without_inertia_are_possible_too() -> None:
    links = tuple(replace(link, inertial=np.zeros(10)) for link in UR5E.links)
    found = calibrate(noisy().log, replace(UR5E, links=links), options=replace(FIXED, gains=noisy().truth.gains))
    assert found.physical is not None and found.physical.held_out is not None
    assert found.physical.prior_source == "simple shapes"
    assert smallest(found.physical.inertials) > 0.0
    assert found.physical.held_out.cost < 0.01


def test_thin_described_bodies_are_a_prior() -> None:
    thin = tuple(
        replace(link, inertial=spatial.inertial_vector(5.0, [0.2, 0.0, 0.0], np.zeros((3, 3)))) for link in UR5E.links
    )
    found = calibrate(noisy().log, replace(UR5E, links=thin), options=FIXED, accept_implausible=True)
    assert found.physical is not None
    assert smallest(found.physical.inertials) > 0.0


def test_bodies_are_stored_and_optional(calibration: jw.Calibration, tmp_path: Path) -> None:
    jw.save_model(calibration, tmp_path / "model.json")
    again = jw.load_calibration(tmp_path / "model.json")
    assert again.physical is not None and calibration.physical is not None
    for name in ("inertials", "rotor_inertias", "values", "share", "rotor_share", "eigenvalues", "described_masses"):
        np.testing.assert_array_equal(getattr(again.physical, name), getattr(calibration.physical, name))
    assert again.physical.held_out == calibration.physical.held_out
    assert again.physical.prior_weight == calibration.physical.prior_weight
    document = json.loads((tmp_path / "model.json").read_text())
    del document["physical"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = jw.load_calibration(tmp_path / "old.json")
    assert old.physical is None
    with pytest.raises(ModelError, match="no physical parameters"):
        old.robot_identified()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: part["links"].pop(), "physical.links must be 6 links"),
        (lambda part: part["links"][0]["inertial"].__setitem__(9, -1.0), "link 'link1' cannot exist"),
        (lambda part: part["values"].pop(), "physical parameters do not belong to this model"),
        (lambda part: part.__setitem__("prior", "magic"), "prior"),
    ],
)
def test_damaged_bodies_in_a_file_are_rejected(
    change: Any, message: str, calibration: jw.Calibration, tmp_path: Path
) -> None:
    jw.save_model(calibration, tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    change(document["physical"])
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match=message):
        jw.load_calibration(tmp_path / "model.json")
