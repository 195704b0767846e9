"""Mass and centre at the flange as the logs show them, against the declared payload.

The evidence of a declaration with an unknown payload pays for all ten parameters of that payload, and centre and
inertia of a declared one are known so roughly that they adapt to the logs. A declared mass that is wrong by kilograms
therefore changes the log evidence by a few units only. The mass itself is what is declared exactly: it is compared with
its estimate under a wide prior, in standard errors.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from jointwise.finding import Finding
from jointwise.result.plausibility.alternatives import PAYLOADS
from jointwise.result.plausibility.declaration import PAYLOAD_MASS, Declaration
from jointwise.result.plausibility.evidence import Evidence, evidence
from jointwise.result.plausibility.moments import Moments
from jointwise.result.plausibility.samples import Samples
from jointwise.spatial import Array

LEAST_PAYLOAD = 0.25
"""Smallest payload (kg), and smallest deviation from the declared one, that is reported."""
MASS_SUSPECT = 2.5
"""Standard errors between declared and estimated mass that make a payload suspect. The errors come from the tolerance
of the described bodies; estimates of right payloads are within one. Bodies that are described worse than that look like
a payload too, so the mass alone contradicts nothing."""

CENTER_STEPS = 5
"""Steps of the search for the centre of a payload."""


def check_mass(samples: Samples, declaration: Declaration, moments: Moments) -> Finding:
    """Return whether the mass at the flange is the declared one.

    Args:
        samples: Conditioned samples.
        declaration: What the user declared.
        moments: Second moments of its columns.

    """
    if not declaration.described():
        return Finding("ok", "payload", "the description has no bodies to compare with")
    found = evidence(samples, replace(declaration, payload_mass=max(PAYLOADS)), moments)
    mass, error = payload_mass(found, declaration)
    declared = declared_mass(declaration)
    doubt = abs(mass - declared) / math.hypot(error, PAYLOAD_MASS * declared)
    instead = f"instead of the declared {declared:.1f} kg" if declared > 0.0 else "where none is declared"
    text = f"the bodies suggest {max(mass, 0.0):.1f} +- {error:.1f} kg at the flange {instead}"
    if doubt < MASS_SUSPECT or not is_payload(mass, error, declaration):
        return Finding("ok", "payload", text)
    return Finding("warning", "payload", f"{text} ({doubt:.1f} standard errors)", payload_advice(mass))


def payload_mass(found: Evidence, declaration: Declaration) -> tuple[float, float]:
    """Return the mass (kg) by which the last link exceeds its description, and its standard error."""
    k = 10 * declaration.robot.dof - 1
    return float(found.values[k] - declaration.robot.links[-1].mass), float(found.deviation[k])


def payload_center(found: Evidence, declaration: Declaration) -> Array:
    """Return the centre (3,) m of a declared payload in the tool frame, from the first moment of the last link."""
    robot, payload = declaration.robot, declaration.payload
    if payload is None or payload.mass <= 0.0:
        return np.zeros(3)
    k = 10 * robot.dof
    at_link = (found.values[k - 4 : k - 1] - robot.inertials[-1, 6:9]) / payload.mass
    return np.asarray(robot.tool_rotation.T @ (at_link - robot.tool_translation))


def center_shift(found: Evidence, declaration: Declaration) -> float:
    """Return how far (m) the centre of a declared payload is from the declared one."""
    declared = np.zeros(3) if declaration.payload is None else np.array(declaration.payload.center_of_mass)
    return float(np.linalg.norm(payload_center(found, declaration) - declared))


def declared_mass(declaration: Declaration) -> float:
    """Return the mass (kg) of the declared payload, 0 without one."""
    return 0.0 if declaration.payload is None else declaration.payload.mass


def is_payload(mass: float, error: float, declaration: Declaration) -> bool:
    """Return whether a payload (kg) with its standard error is one, and not the declared one."""
    declared = declared_mass(declaration)
    return mass > -2.0 * error and abs(mass - declared) > max(LEAST_PAYLOAD, PAYLOAD_MASS * declared, 2.0 * error)


def payload_text(mass: float, declared: float) -> str:
    """Return a payload (kg) other than the declared one in words."""
    if mass < LEAST_PAYLOAD:
        return f"no payload instead of the declared {declared:.1f} kg"
    instead = f" instead of the declared {declared:.1f} kg" if declared > 0.0 else ""
    return f"a payload of about {mass:.1f} kg at the flange{instead}"


def payload_advice(mass: float) -> str:
    """Return what the user can do about a payload (kg) that is not the declared one."""
    if mass < LEAST_PAYLOAD:
        return "Declare no payload for this log."
    return f"Declare it: --payload {mass:.1f},X,Y,Z, or use logs without a payload."
