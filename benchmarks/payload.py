"""Payloads identified on the digital robot: how often mass and centre lie in their 95 % confidence intervals.

Run: python benchmarks/payload.py [SEEDS [FIRST]]. Every tenth seed calibrates a new model with automatic selection
from an unloaded log; every seed identifies a random payload from another motion.
"""

from __future__ import annotations

import sys

import numpy as np

import jointwise as jw

MODELS = 10
"""Seeds that share a model."""


def random_payload(rng: np.random.Generator) -> jw.Payload:
    """Return a payload of 0.5 to 5 kg whose centre is up to 10 cm beside and 20 cm before the flange."""
    mass = rng.uniform(0.5, 5.0)
    radius = rng.uniform(0.02, 0.08)
    com = (*rng.uniform(-0.1, 0.1, 2), rng.uniform(0.0, 0.2))
    return jw.Payload(mass, com, 0.4 * mass * radius**2 * np.eye(3))


def recorded(seed: int, payload: jw.Payload | None = None) -> jw.Log:
    """Return the log of an excitation of a simulated UR5e."""
    plant = jw.PlantOptions(payload=payload)
    return jw.simulate("ur5e", "excitation", duration=25.0, rate=200.0, seed=seed, plant=plant, keep=0).log


def main(seeds: int, first: int = 0) -> None:
    """Print the errors of every seed and the coverage."""
    hits, relative = [], []
    for seed in range(first, first + seeds):
        if seed % MODELS == 0:
            model = jw.calibrate(recorded(1000 + seed), jw.load_robot("ur5e"))
        true = random_payload(np.random.default_rng(seed))
        found = jw.identify_payload(model, recorded(2000 + seed, true))
        low, high = found.com_interval.T
        inside = [found.mass_interval[0] <= true.mass <= found.mass_interval[1]]
        inside += ((low <= true.center_of_mass) & (true.center_of_mass <= high)).tolist()
        hits.append(inside)
        relative.append(found.mass / true.mass - 1.0)
        error = 1e3 * (found.com - true.center_of_mass)
        print(f"{seed:3d} {true.mass:6.3f} kg {100 * relative[-1]:+6.2f} %  centre {np.round(error, 1)} mm", flush=True)
    share = 100.0 * np.mean(hits, axis=0)
    print(f"in the interval: mass {share[0]:.0f} %, centre {share[1]:.0f} {share[2]:.0f} {share[3]:.0f} %")
    print(f"error of the mass: RMS {100 * np.sqrt(np.mean(np.square(relative))):.2f} %")


if __name__ == "__main__":
    main(*(map(int, sys.argv[1:]) if len(sys.argv) > 1 else (50,)))
