"""Power on the bus of a real UR3e: fit on all moves but one, predict that one.

Run from the root of the repository: ``python benchmarks/energy.py [DIRECTORY]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jointwise as jw

DATA = Path("../shared/data/ur3e_power")


def main() -> None:
    """Print the errors of every move that was left out."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    robot = jw.load_robot("ur3e")
    logs = [jw.energy.read_power_log(str(path), robot) for path in sorted(folder.glob("*.csv"))]
    print(f"{'left out':<12}{'samples':>8}{'RMSE, W':>10}{'energy, %':>11}   parameters")
    for log in logs:
        model = jw.energy.fit_power([other for other in logs if other is not log], robot)
        result = jw.energy.energy_balance(model, log).to_dict()["robot"]
        values = ", ".join(f"{value.name} {value.value:.3g}" for value in model.values)
        error = 100.0 * result["energy_error"]
        print(
            f"{Path(log.origin.path).stem:<12}{log.samples:>8}{result['power_rmse']:>10.2f}{error:>+11.2f}   {values}"
        )
    print("\nall moves:\n" + jw.energy.fit_power(logs, robot).summary())


if __name__ == "__main__":
    main()
