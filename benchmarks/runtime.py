"""Time of one step of the calibrated robot: C core, `RobotModel.step`, and a batch; time and parity of all exports.

Run: python benchmarks/runtime.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from jointwise import export
from jointwise.runtime import RobotModel
from jointwise.runtime.stream import NativeCore, Sample
from runtime_models import all_friction, fitted, swinging

RATE = 1000.0
SAMPLES = 1000
REPEATS = 200
"""Short runs, of which the fastest counts: other programs of the machine interrupt long ones."""


def best(function: object, count: int) -> float:
    """Return the shortest time of `REPEATS` calls of a function, in µs per item."""
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        function()  # type: ignore[operator]
        times.append(perf_counter() - start)
    return 1e6 * min(times) / count


def main() -> None:
    model = all_friction()
    q, qd, qdd = (np.ascontiguousarray(x) for x in swinging(6, SAMPLES, RATE))
    speed, temperature = qd + 1e-3 * np.sin(np.arange(SAMPLES))[:, None], np.full_like(q, 30.0)
    core = NativeCore(model.core_numbers(RATE))
    memory, sample = core.init(q[0], None), Sample(q, qd, qdd, speed, q, temperature)
    planned = Sample(q, qd, qdd)

    def python_steps() -> None:
        state = model.init(q[0], rate=RATE)
        for k in range(SAMPLES):
            _, state = model.step(state, q[k], qd[k], qdd[k])

    print(f"terms per joint: {', '.join(term.kind for term in model.calibration.model.terms[0])}")
    print(f"C core, all signals measured   {best(lambda: core.steps(memory, sample), SAMPLES):8.2f} µs per step")
    print(f"C core, planned motion         {best(lambda: core.steps(memory, planned), SAMPLES):8.2f} µs per step")
    print(f"RobotModel.step                {best(python_steps, SAMPLES):8.2f} µs per step")
    print(f"RobotModel.torque, batch       {best(lambda: model.torque(q, qd, qdd), SAMPLES):8.2f} µs per sample")
    export_times()


def export_times() -> None:
    """Print the processor time of an export of a calibrated UR10e to all targets, compilers included."""
    model = RobotModel(fitted("ur10e"))
    with TemporaryDirectory() as folder:
        before = os.times()
        exports = export.write_all(model, folder)
        after = os.times()
    used = sum(after[:4]) - sum(before[:4])
    print(f"export to {', '.join(each.target for each in exports)}: {used:.1f} s of processor time")
    for each in exports:
        for check in each.checks:
            print(f"  {check}")


if __name__ == "__main__":
    main()
