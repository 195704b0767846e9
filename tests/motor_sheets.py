"""The calibration sheet of a motor with known constants."""

from __future__ import annotations

import numpy as np


def sheet_text(resistance: float = 0.3, back_emf: float = 0.07, constant: float = 0.1) -> str:
    """Return a sheet of one joint with exact numbers: friction 0.05 + 3e-4 w - 2e-7 w² at the motor, ratio 101."""
    lines = ["**** Joint 0 : ", "  K_tau    tau_avg  a b c d", f"  {constant:+.4f} 0.1 0.1 0.1 0.1 0.1", ""]
    lines.append("  Ang. vel.    U        I      Temp     Tau       Km ")
    for speed in (-3.2, -1.5, -0.5, -0.01, 0.0, 0.01, 0.5, 1.5, 3.2):
        w = 101.0 * abs(speed)
        torque = (0.05 + 3e-4 * w - 2e-7 * w**2) if speed else 0.0
        current = torque / constant
        voltage, sign = resistance * current + back_emf * w, np.sign(speed)
        km = "-nan" if speed == 0.0 else "0.07"
        lines.append(f" {speed:+.2f} {voltage:.9f} {sign * current:.9f} +40.0 {sign * torque:.9f} {km}")
    return "\n".join([*lines, "-----", ""])
