"""Drive gains from a known payload: the same motion without and with it, the difference of the currents.

``i_with - i_without = g_j (m a_j + B_j x + Δ_j) + friction``, g_j = 1/K_j. The mass m is known and sets the scale;
first moments and inertia x of the payload are estimated with the gains, as every joint sees the same body. Δ is what
the described links ask for the slightly different motion. Friction changes between the runs: by an offset, a Coulomb
and a viscous part (the joints get warmer) and by the load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from jointwise.data.log import Log
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Robot
from jointwise.errors import DataError, EstimationError
from jointwise.joint.jackknife import FEWEST_BLOCKS, block_count, half_width, jackknife
from jointwise.joint.motor.bilinear import BODY, Products, Solution, residual_variances, solve
from jointwise.joint.motor.gain import GainEstimate, JointGain, inverse_value, same_drives, status_of
from jointwise.joint.motor.pair import CUTOFF, Pair, align_pair
from jointwise.joint.part import Alternative, Curve, plain, value_of
from jointwise.joint.quality import nrmse_percent
from jointwise.model.rigid import compute_regressor, inverse_dynamics
from jointwise.spatial import Array

SLOW = 0.02
"""Speed (rad/s) below which a joint's friction is not known by its direction; such samples are left out."""
REVERSAL = 0.05
"""Time (s) before and after such samples that is left out too: the two runs turn back at slightly different moments."""
WIDTH = 0.01
"""Speed (rad/s) of the direction ``tanh(v/width)``."""
ARM = 0.2
"""Rough distance (m) of a payload's mass from the flange: the scale of its unknown first moments and inertia."""
LAWS = ("none", "absolute", "square")
"""How friction may grow with the load; the best on blocks left out is taken, none where it does as well."""
ASYMMETRIC = ", asymmetric"
ASYMMETRY = 0.1
"""Part by which that growth may differ with direction: looks like a gain, so what it would change widens intervals."""
ALIKE = 0.1
"""Mean of ln(MSE) over the joints by which a law may be worse than the best one and still be as likely."""
WORTH = 0.01
"""Mean of ln(MSE) over the joints by which friction without load may be worse and is taken."""
FOLDS = 4
OUTER = 3
"""Rounds in which the weights and the load that rubs are brought up to date."""
LEAST_DIFFERENCE = 1e-3
"""Difference of the currents (A rms) below which no payload was carried."""


def identify_gains_from_payload(
    unloaded: Log | Sequence[Log],
    loaded: Log | Sequence[Log],
    robot: Robot,
    payload_mass: float | None,
    *,
    mounting: Mounting = "table",
    cutoff: float = CUTOFF,
    law: str | None = None,
) -> GainEstimate:
    """Return the drive gains (Nm/A) of all joints from pairs of logs of the same motion.

    The k-th `loaded` log repeats the k-th `unloaded` one with the same payload of `payload_mass` (kg). `law` fixes how
    friction grows with the load (none, absolute, square); without it the best on blocks left out is taken.
    """
    mass = _checked_mass(payload_mass)
    if law is not None and law not in LAWS:
        raise EstimationError(f"law must be one of {', '.join(LAWS)}. Got '{law}' instead.")
    data = _data(_pairs(unloaded, loaded, cutoff), robot, mass, gravity_vector(mounting))
    tried = {name: _fit(data, name) for name in (LAWS if law is None else (law,))}
    best = min(tried.values(), key=lambda fit: fit.error)
    if "none" in tried and tried["none"].error <= best.error + WORTH:
        best = tried["none"]
    doubts = [] if best.law == "none" else [_fit(data, best.law + ASYMMETRIC, best)]
    rivals = [fit for fit in (*tried.values(), *doubts) if fit is not best and fit.error < best.error + ALIKE]
    return _estimate(data, robot, tried, best, rivals)


@dataclass(frozen=True, eq=False)
class _Data:
    """Everything that does not depend on the payload's unknown numbers; arrays (samples, joints)."""

    mass: float
    names: tuple[str, ...]
    difference: Array
    direction: Array
    speed: Array
    pair: NDArray[np.intp]
    block: NDArray[np.intp]
    used: NDArray[np.bool_]
    base: Array
    known: Array
    body: Array

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.difference.shape[1])

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return int(self.block.max()) + 1


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit under one law: `parts` (blocks, joints, columns, columns) and the solution over all of them."""

    law: str
    parts: Array
    weights: Array
    solution: Solution
    modelled: Array
    payload: Array
    fitted: Array
    held_out: Array
    error: float


def _data(pairs: list[Pair], robot: Robot, mass: float, gravity: Array) -> _Data:
    pieces = [_piece(pair, robot, mass, gravity) for pair in pairs]
    numbers = [np.full(pair.samples, k) for k, pair in enumerate(pairs)]
    speed = np.concatenate([pair.speed for pair in pairs])
    data = _Data(
        mass=mass,
        names=tuple(dict.fromkeys(name for pair in pairs for name in pair.names)),
        difference=np.concatenate([pair.difference for pair in pairs]),
        direction=np.tanh(speed / WIDTH),
        speed=speed,
        pair=np.concatenate(numbers),
        block=_blocks(pairs),
        used=np.concatenate([_clear(pair.speed, pair.rate) for pair in pairs]),
        base=np.concatenate([piece[0] for piece in pieces]),
        known=np.concatenate([piece[1] for piece in pieces]),
        body=np.concatenate([piece[2] for piece in pieces]),
    )
    _refuse_unusable(data)
    return data


def _clear(speed: Array, rate: float) -> NDArray[np.bool_]:
    """Return which samples (samples, joints) are in motion and away from reversals, whose pulses the filter spreads."""
    slow = np.abs(speed) <= SLOW
    clear: NDArray[np.bool_] = ~maximum_filter1d(slow, 2 * int(REVERSAL * rate) + 1, axis=0)
    return clear


def _piece(pair: Pair, robot: Robot, mass: float, gravity: Array) -> tuple[Array, Array, Array]:
    """Return the load of the links, the known part ``m a + Δ`` (samples, joints) and B (samples, joints, 9), Nm."""
    if pair.loaded.shape[1] != robot.dof:
        raise DataError(f"{pair.names[0]}: the log has {pair.loaded.shape[1]} joints, {robot.name} has {robot.dof}.")
    before, after = (inverse_dynamics(robot, *motion, gravity=gravity) for motion in (pair.before, pair.after))
    last = compute_regressor(robot, *pair.after, gravity=gravity).matrices()[:, :, -BODY - 1 :]
    links = before - robot.rotor_inertias * pair.before[2]  # rotors load the motor, not the gear
    return links, mass * last[:, :, BODY] + after - before, last[:, :, :BODY]


def _blocks(pairs: list[Pair]) -> NDArray[np.intp]:
    """Return the block of every sample: equal parts of each pair."""
    numbers: list[NDArray[np.intp]] = []
    first = 0
    for pair in pairs:
        count = max(1, block_count(pair.samples / pair.rate))
        numbers.append(first + np.arange(pair.samples) * count // pair.samples)
        first += count
    return np.concatenate(numbers)


def _fit(data: _Data, law: str, known: _Fit | None = None) -> _Fit:
    """Return the fit under a law of the load: solved again as the weights and the rubbing load become known.

    With a `known` fit the load that rubs and the weights are those of that fit.
    """
    weights = 1.0 / _spread(data) ** 2 if known is None else known.weights
    body = np.zeros(BODY) if known is None else known.solution.body
    solution: Solution | None = None
    for _ in range(OUTER if known is None else 1):
        columns = _columns(data, law, body)
        parts = _products(data, columns)
        products = Products(parts.sum(axis=0), np.arange(data.joints), _scales(data.mass))
        solution = solve(products, weights, solution)
        weights = 1.0 / np.maximum(residual_variances(products, solution, data.used.sum(axis=0)), 1e-12)
        body = solution.body
    assert solution is not None
    modelled = _modelled(columns, solution)
    predicted = _left_out(data, columns, parts, weights, solution)
    fitted, held_out = (_qualities(data, values) for values in (modelled, predicted))
    error = float(np.log(_errors(data, predicted)).mean())
    return _Fit(law, parts, weights, solution, modelled, data.known + data.body @ body, fitted, held_out, error)


def _columns(data: _Data, law: str, body: Array) -> Array:
    """Return ``[m a + Δ | B | friction]`` (samples, joints, columns); friction of every pair, and of the load."""
    payload = data.known + data.body @ body
    own = [data.direction, data.speed, np.ones_like(data.speed)]
    friction = [np.where((data.pair == k)[:, None], values, 0.0) for k in np.unique(data.pair) for values in own]
    if law != "none":
        more = _rubbing(data.base + payload, law) - _rubbing(data.base, law)
        friction.append((data.direction + (ASYMMETRY if law.endswith(ASYMMETRIC) else 0.0)) * more)
    return np.concatenate([data.known[..., None], data.body, np.stack(friction, axis=-1)], axis=-1)


def _rubbing(load: Array, law: str) -> Array:
    return np.abs(load) if law.startswith("absolute") else 1e-2 * load**2


def _products(data: _Data, columns: Array) -> Array:
    """Return the normal products (blocks, joints, columns + 1, columns + 1) of the samples in motion."""
    whole = np.concatenate([columns, data.difference[..., None]], axis=-1)
    parts = np.empty((data.blocks, data.joints, whole.shape[2], whole.shape[2]))
    for block in range(data.blocks):
        inside = data.block == block
        for j in range(data.joints):
            rows = whole[inside & data.used[:, j], j]
            parts[block, j] = rows.T @ rows
    return parts


def _left_out(data: _Data, columns: Array, parts: Array, weights: Array, solution: Solution) -> Array:
    """Return the prediction (samples, joints) of every block by a fit without it and every fourth other."""
    predicted = np.empty_like(data.difference)
    total, scales = parts.sum(axis=0), _scales(data.mass)
    for fold in range(FOLDS):
        out = np.arange(data.blocks) % FOLDS == fold
        products = Products(total - parts[out].sum(axis=0), np.arange(data.joints), scales)
        own = out[data.block]
        predicted[own] = _modelled(columns[own], solve(products, weights, solution))
    return predicted


def _modelled(columns: Array, solution: Solution) -> Array:
    result: Array = np.einsum("sjc,jc->sj", columns, solution.coefficients())
    return result


def _scales(mass: float) -> Array:
    """Return rough sizes of the payload's inertia (6, kg m²) and first moments (3, kg m): a weak prior."""
    return np.array([mass * ARM**2] * 6 + [mass * ARM] * 3)


def _spread(data: _Data) -> Array:
    return np.array([data.difference[data.used[:, j], j].std() for j in range(data.joints)])


def _qualities(data: _Data, modelled: Array) -> Array:
    """Return the NRMSE % of every joint over its samples in motion."""
    used = data.used.T
    return np.array([nrmse_percent(data.difference[u, j], modelled[u, j]) for j, u in enumerate(used)])


def _errors(data: _Data, modelled: Array) -> Array:
    squares = (data.difference - modelled) ** 2
    return np.array([squares[u, j].mean() for j, u in enumerate(data.used.T)])


def _estimate(data: _Data, robot: Robot, tried: dict[str, _Fit], fit: _Fit, rivals: list[_Fit]) -> GainEstimate:
    factor = half_width(data.blocks)
    alone = np.arange(data.joints)
    inverse, spread = _with_deviations(data, fit, rivals, alone)
    drives = same_drives(robot)
    groups = np.array([next(k for k, own in enumerate(drives) if j in own) for j in alone])
    shared, shared_spread = _with_deviations(data, fit, rivals, groups)
    joints = []
    for j in range(data.joints):
        gain = inverse_value("gain", "Nm/A", inverse[j], spread[j], factor)
        own = JointGain(
            joint=j,
            alone=gain,
            status=status_of(gain, float(fit.held_out[j])),
            fitted=float(fit.fitted[j]),
            held_out=float(fit.held_out[j]),
            model=f"gain from a payload of {data.mass:g} kg, load-dependent friction: {fit.law}",
            alternatives=tuple(
                Alternative(f"friction over load: {name}", float(f.fitted[j]), float(f.held_out[j]))
                for name, f in tried.items()
            ),
            curves=_curves(data, fit, j, spread[j] * factor) if gain else (),
        )
        if len(drives[groups[j]]) > 1:
            own = replace(own, shared=inverse_value("gain", "Nm/A", shared[j], shared_spread[j], factor))
        joints.append(replace(own, notes=_notes(robot, own, drives[groups[j]])))
    if all(own.status != "determined" for own in joints):
        raise EstimationError(
            f"{', '.join(data.names)}: the difference of the currents does not follow a payload of {data.mass:g} kg; "
            f"no gain is fitted. Record the same motion without and with the payload: "
            f"jointwise joint plan --robot {robot.name} --joint 1"
        )
    return GainEstimate(robot.name, "payload", tuple(joints), _settings(data, fit), data.names)


def _with_deviations(data: _Data, fit: _Fit, rivals: list[_Fit], groups: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return 1/K (joints,), shared within groups, and its deviation: of blocks left out, and of laws as likely."""

    def gains_of(own: _Fit, gram: Array) -> Array:
        start = replace(own.solution, gains=_group_means(own.solution.gains, groups))
        return solve(Products(gram, groups, _scales(data.mass)), own.weights, start).gains

    inverse, spread = jackknife(lambda gram: gains_of(fit, gram), fit.parts)
    others = [gains_of(own, own.parts.sum(axis=0)) for own in rivals]
    structure = np.max([np.zeros(data.joints), *(np.abs(own - inverse) for own in others)], axis=0)
    return inverse, np.hypot(spread, structure)


def _group_means(gains: Array, groups: NDArray[np.intp]) -> Array:
    return np.array([gains[groups == own].mean() for own in groups])


def _settings(data: _Data, fit: _Fit) -> dict[str, object]:
    """Return what was found beside the gains: the payload in the frame of the last joint, friction per unit of load."""

    def body_of(gram: Array) -> Array:
        return solve(Products(gram, np.arange(data.joints), _scales(data.mass)), fit.weights, fit.solution).body

    body, spread = jackknife(body_of, fit.parts)
    center = [value_of("center", "m", body[6 + k] / data.mass, spread[6 + k] / data.mass) for k in range(3)]
    return {
        "payload_mass": data.mass,
        "payload_center": [own.value for own in center],
        "payload_center_deviation": [own.deviation for own in center],
        "load_law": fit.law,
        "blocks": data.blocks,
    }


def _notes(robot: Robot, own: JointGain, alike: tuple[int, ...]) -> tuple[str, ...]:
    notes: list[str] = []
    described = robot.joints[own.joint].motor.joint_gain
    if own.status == "not determined":
        notes.append("the payload loads this joint too little in this motion")
    elif own.status == "hardly determined":
        notes.append(
            f"hardly determined: the payload loads this joint little; {own.held_out or 0.0:.0f} % of the difference is "
            f"explained, and what friction did between the runs may hide in the gain"
        )
    if own.gain is not None and described:
        notes.append(f"described gain {described:g} Nm/A: {100.0 * (own.gain.value / described - 1.0):+.1f} %")
    if own.shared is not None:
        names = ", ".join(str(k + 1) for k in alike)
        notes.append(f"one gain for joints {names}, which are described with the same drive; gain_alone is of this one")
    return tuple(notes)


def _curves(data: _Data, fit: _Fit, j: int, half: float) -> tuple[Curve, ...]:
    """Return the current that the payload takes over the torque it asks, and the difference along the motion."""
    used = data.used[:, j]
    torque, inverse = fit.payload[used, j], fit.solution.gains[j]
    residual = data.difference[used, j] - fit.modelled[used, j]
    line = np.linspace(torque.min(), torque.max(), 50)
    order = np.argsort(torque, kind="stable")
    over_torque = Curve(
        title="Current of the payload over its torque",
        x_label="torque of the payload [Nm]",
        y_label="difference of the currents without friction [A]",
        x=plain(torque[order]),
        y=plain((inverse * torque + residual)[order]),
        line_x=plain(line),
        line_y=plain(inverse * line),
        low=plain(inverse * line - half * np.abs(line)),
        high=plain(inverse * line + half * np.abs(line)),
        residual=plain(residual[order]),
    )
    place = np.flatnonzero(used).astype(float)
    along = Curve(
        title="Difference of the currents along the motion",
        x_label="sample",
        y_label="loaded - unloaded [A]",
        x=plain(place),
        y=plain(data.difference[used, j]),
        line_x=plain(place),
        line_y=plain(fit.modelled[used, j]),
        residual=plain(residual),
    )
    return over_torque, along


def _pairs(unloaded: Log | Sequence[Log], loaded: Log | Sequence[Log], cutoff: float) -> list[Pair]:
    first = [unloaded] if isinstance(unloaded, Log) else list(unloaded)
    second = [loaded] if isinstance(loaded, Log) else list(loaded)
    if not first or len(first) != len(second):
        raise EstimationError(
            f"every log without payload must have one with it. Got {len(first)} without and {len(second)} with it."
        )
    return [align_pair(a, b, cutoff) for a, b in zip(first, second, strict=True)]


def _checked_mass(mass: float | None) -> float:
    if mass is None or not (np.isfinite(mass) and mass > 0.0):
        raise EstimationError(f"the payload's mass must be a positive number of kg: weigh it. Got {mass} instead.")
    return float(mass)


def _refuse_unusable(data: _Data) -> None:
    where = ", ".join(data.names)
    if np.sqrt(np.mean(data.difference**2)) < LEAST_DIFFERENCE:
        raise EstimationError(f"{where}: the currents of both logs are the same: neither or both carry the payload.")
    if data.blocks < FEWEST_BLOCKS:
        raise EstimationError(f"{where}: too short: {data.blocks} blocks of 2 s. At least {FEWEST_BLOCKS} are needed.")
    for j, used in enumerate(data.used.T):
        if used.mean() < 0.05:
            raise EstimationError(f"{where}: joint {j + 1} stands; gains from a payload need a motion of all joints.")
