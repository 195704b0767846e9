"""Identification of friction over temperature."""

from __future__ import annotations

import numpy as np

from jointwise.estimation.cross_validation import held_out_predictions, simplest_candidate, unit_errors, unit_folds
from jointwise.joint.checks import check_gravity, check_moving_unsaturated, refuse
from jointwise.joint.friction.data import Flags
from jointwise.joint.friction.law import friction_settings
from jointwise.joint.part import Part, TriedModel
from jointwise.joint.quality import MIN_QUALITY, tried_model
from jointwise.joint.record import JointRecord
from jointwise.joint.temperature.data import COLDEST, TemperaturePairs, temperature_pairs
from jointwise.joint.temperature.fit import TemperatureModel
from jointwise.joint.temperature.law import PARAMETERS
from jointwise.joint.temperature.result import temperature_part, temperature_quality
from jointwise.spatial import Array


def identify_temperature(record: JointRecord, *, steady: Part | None = None, reference: float | None = None) -> Part:
    """Identify friction over temperature, as `jointwise joint temperature` does.

    ``f_T = sgn(ω) √|ω| (F_T1 + F_T2 T + F_T3 T⁻³)`` or an affine law times an exponential one, selected by the
    one-standard-error rule on held-out blocks of time. Every speed has its own friction at the reference temperature,
    so that errors of a velocity law are not taken for an effect of temperature.

    Args:
        record: Signals of the joint during a warm-up, see `joint_record`.
        steady: Part from `identify_friction`: its temperature is the default reference, and a note states how much
            friction at the reference differs from it.
        reference: Temperature T0 (°C) at which f_T is zero; by default that of `steady`, else the mean of the log.

    Returns:
        The phenomenon "temperature".

    Raises:
        EstimationError: If the record does not determine friction over temperature.
    """
    check_gravity(record)
    check_moving_unsaturated(record, "temperature")
    pairs = temperature_pairs(record)
    laws = [law for law in PARAMETERS if law != "three-parameter" or pairs.temperature.min() >= COLDEST]
    T0, test = _reference(pairs, steady, reference), pairs.held_out
    models = {law: TemperatureModel(law, pairs, T0) for law in laws}
    tried = {law: _alternative(model, test) for law, model in models.items()}
    errors = {law: _held_out_errors(model, ~test) for law, model in models.items() if law != "none"}
    chosen = simplest_candidate(errors)
    held_out = tried[chosen].held_out
    if held_out is None or held_out < MIN_QUALITY:
        reason = f"friction does not follow the temperature (fit {held_out:.0f} % on held-out data)"
        raise refuse(record, "temperature", reason)
    return temperature_part(record, models[chosen], tuple(tried.values()), steady)


def _reference(pairs: TemperaturePairs, steady: Part | None, requested: float | None) -> float:
    """Return T0, °C: as requested, else that of the velocity law, else the mean; within the measured range."""
    T = pairs.temperature
    known = None if steady is None else friction_settings(steady).temperature
    chosen = next((x for x in (requested, known) if x is not None), float(T.mean()))
    return float(np.clip(chosen, T.min(), T.max()))


def _alternative(model: TemperatureModel, test: Flags) -> TriedModel:
    """Return the quality of a law fitted to the training pairs, on training and test pairs."""
    friction = model.friction(model.solve(~test))
    note = f"{PARAMETERS[model.law]} parameters"
    return tried_model(model.law, lambda use: temperature_quality(model.pairs, friction, use), ~test, test, note)


def _held_out_errors(model: TemperatureModel, use: Flags) -> Array:
    """Return the mean squared error of every block in use, predicted from the other folds."""
    block = model.pairs.block
    predicted = held_out_predictions(unit_folds(block, use), lambda training: model.friction(model.solve(training)))
    return unit_errors(model.pairs.friction - predicted, block)
