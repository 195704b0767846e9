"""Calibrated models for the tests of the runtime and the exports: small, quick, and with known bodies."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.integrate import solve_ivp

import jointwise as jw
from computed import calibrated
from jointwise.description import gravity_vector
from jointwise.estimation.structure import Structure
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import (
    Coulomb,
    Hysteresis,
    Offset,
    PowerFlow,
    Rated,
    SpeedRipple,
    Stribeck,
    Temperature,
    Term,
    Viscous,
)
from jointwise.options import Options
from jointwise.result import Calibration
from jointwise.result.calibration import Status
from jointwise.spatial import Array
from synthetic import synthetic_log

LIMITS = Hysteresis.geometric_limits(4, 1e-5, 1e-2)
BACKLASH = (1.0, 1.2, 0.9, 0.7, 1.2)


def some_terms(joint: int) -> tuple[Term, ...]:
    """Return terms for a joint such that six joints together have every kind and every option."""
    shape = tuple(np.full(len(LIMITS), 1.0 / len(LIMITS)).tolist())
    kinds: tuple[tuple[Term, ...], ...] = (
        (Offset(), Viscous((1.0, 0.5), 0.8), Coulomb("square", "tanh", 0.02), Stribeck(0.1), SpeedRipple(0.003, 0.3)),
        (Offset(), Viscous((1.0, 2.0)), Hysteresis(LIMITS, 2.0, "q", "absolute", shape), Temperature()),
        (
            Viscous((1.0, 3.0), 0.5),
            Hysteresis(LIMITS, 0.0, "q", "square", shape, BACKLASH),
            Hysteresis(LIMITS, 1.0, "track"),
            Stribeck(0.2, 2.0),
        ),
        (Offset(), Rated("lugre", (1e-3,), (1.0,), 0.3, 0.05, 1.0, 2e-3, "q", "absolute", BACKLASH), Temperature(30.0)),
        (Rated("rate-gms", LIMITS, shape, 0.4, 0.1, 20.0, driver="rotor", load="square", backlash=BACKLASH),),
        (
            PowerFlow(0.02),
            Viscous((1.5,)),
            Hysteresis(LIMITS, 0.0, "rotor"),
            Coulomb("none", "sign"),
            Stribeck(0.1, 0.7),
        ),
    )
    return kinds[joint % len(kinds)]


@lru_cache
def fitted(name: str = "planar2", payload: float = 0.0) -> Calibration:
    """Return a quick calibration of a robot of the catalogue."""
    robot = jw.load_robot(name)
    structure = Structure("hysteresis", "square", limits=Hysteresis.polynomial_limits(3, 3e-3), relaxation=2.0)
    options = Options(structure=structure, free=(), position_cutoff=15.0, lag=0.0, gains=(10.0,) * robot.dof)
    carried = jw.Payload(payload, (0.0, 0.0, 0.1)) if payload else None
    log = synthetic_log(robot, duration=15.0, rate=100.0, seed=1, payload=carried).log
    return calibrated(log, robot, options=options, payload=carried)


def exact(
    name: str = "ur5e",
    gravity: str = "table",
    terms: tuple[tuple[Term, ...], ...] | None = None,
    seed: int = 0,
    robot: jw.Robot | None = None,
) -> jw.RobotModel:
    """Return a model whose bodies and rotors are those of the description, with random friction of every kind."""
    robot, rng = jw.load_robot(name) if robot is None else robot, np.random.default_rng(seed)
    chosen = tuple(some_terms(j) for j in range(robot.dof)) if terms is None else terms
    x, y, z = gravity_vector(gravity).tolist()
    model = Dynamics(robot, (x, y, z), True, chosen)
    bodies = model.base.from_standard(np.concatenate([robot.inertials.ravel(), robot.rotor_inertias]))
    joints = [friction_value(info.unit, rng) for info in model.parameters[model.base.count :]]
    values = np.concatenate([bodies, joints])
    start = fitted("planar2")
    determined: Status = "determined"
    estimate = replace(
        start.estimate,
        values=values,
        covariance=np.diag(1e-6 * np.ones(model.count)),
        status=(determined,) * model.count,
        sigma=np.full(robot.dof, 0.1),
    )
    return jw.RobotModel(
        replace(
            start,
            model=model,
            estimate=estimate,
            gains=rng.uniform(5.0, 15.0, robot.dof),
            fastest=np.ones(robot.dof),
            physical=None,
            training=replace(start.training, nmse=(0.01,) * robot.dof, from_positions=None),
        )
    )


def friction_value(unit: str, rng: np.random.Generator) -> float:
    """Return a plausible random value of a friction parameter."""
    scale = {"1/Nm": 5e-4, "1": 0.05, "Nm sqrt(s/rad)/K": 0.02, "Nm sqrt(s/rad) K^3": 100.0}.get(unit, 2.0)
    return float(scale * rng.uniform(0.5, 1.0))


def swinging(joints: int, samples: int = 400, rate: float = 500.0, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return positions, speeds and accelerations of slow and fast sines with rests between, (samples, joints)."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples)[:, None] / rate
    w, phase, size = rng.uniform(2.0, 20.0, joints), rng.uniform(0.0, 6.0, joints), rng.uniform(0.05, 0.5, joints)
    q = size * np.sin(w * t + phase)
    qd, qdd = size * w * np.cos(w * t + phase), -size * w**2 * np.sin(w * t + phase)
    rest = (t[:, 0] > 0.3 * t[-1, 0]) & (t[:, 0] < 0.4 * t[-1, 0])
    q[rest], qd[rest], qdd[rest] = q[rest][:1], 0.0, 0.0
    return q, qd, qdd


def all_friction() -> jw.RobotModel:
    """Return six joints that each have an offset, two viscous powers, Stribeck, temperature, ripple and hysteresis.

    The hysteresis has nine slip elements on each of two drivers, relaxes, and grows with the load.
    """
    limits = Hysteresis.geometric_limits(9, 4e-6, 4e-2)
    shape = tuple(np.full(9, 1.0 / 9.0).tolist())
    slips = tuple(Hysteresis(limits, 3.0, driver, "square", shape) for driver in ("q", "track"))
    terms = (Offset(), Viscous((1.0, 0.5)), Stribeck(0.1), Temperature(), SpeedRipple(0.002), *slips)
    return exact("ur10e", terms=(terms,) * 6)


def integrated(model: jw.RobotModel, torque: Array, seconds: float) -> Array:
    """Return q and q̇ of a two-joint arm that starts at zero under a constant torque, by SciPy's integrator."""

    def rates(_: float, x: Array) -> Array:
        return np.concatenate([x[2:], model.forward_dynamics(x[:2], x[2:], torque)])

    result: Array = solve_ivp(rates, (0.0, seconds), np.zeros(4), rtol=1e-10, atol=1e-12).y[:, -1]
    return result
