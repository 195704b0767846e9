"""Break the sign or a factor of each law in turn, in C and in Python, and check that the fast tests notice.

    .venv/bin/python tools/mutate.py [--only TEXT] [--list]

Works on a copy of the sources; takes about half a minute for each of the mutations, more where C is compiled. Exit code
1 if a mutation is not noticed. A mutation whose text is not found any more must be adapted to the new code.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
CORE, NATIVE, TERMS = "src/jointwise/runtime/core", "src/native", "src/jointwise/model/terms"
FRICTION = ("test_terms", "test_friction", "test_runtime_stream")
RIGID = ("test_rigid_laws", "test_native")
PLANT = ("test_spring", "test_digital_laws", "test_digital_lost_motion")


@dataclass(frozen=True)
class Mutation:
    """A law, and a text of a file that is replaced; the tests (files) that must notice."""

    law: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTATIONS = (
    # laws of a joint in C
    Mutation(
        "offset, C", f"{CORE}/terms.h", ".constant = term->number[0]};", ".constant = -term->number[0]};", FRICTION
    ),
    Mutation(
        "Coulomb, C",
        f"{CORE}/terms.h",
        "{.level = term->number[0], .direction = jw_t",
        "{.level = -term->number[0], .direction = jw_t",
        FRICTION,
    ),
    Mutation(
        "load, C",
        f"{CORE}/terms.h",
        ".level = term->number[0] * jw_load",
        ".level = -term->number[0] * jw_load",
        FRICTION,
    ),
    Mutation(
        "absolute load, C", f"{CORE}/terms.h", "JW_LOAD_ABSOLUTE ? jw_fabs(load)", "JW_LOAD_ABSOLUTE ? load", FRICTION
    ),
    Mutation("Stribeck, C", f"{CORE}/terms.h", ".level = n[0] * jw_stribeck", ".level = -n[0] * jw_stribeck", FRICTION),
    Mutation("Stribeck curve, C", f"{CORE}/terms.h", "jw_exp(-power) : JW(0.0)", "jw_exp(power) : JW(0.0)", FRICTION),
    Mutation(
        "power flow, C", f"{CORE}/terms.h", "power > JW(0.0) ? n[0] : n[1]", "power > JW(0.0) ? n[1] : n[0]", FRICTION
    ),
    Mutation(
        "viscous, C",
        f"{CORE}/terms.h",
        "factor += values[i] * jw_power(size, p - JW(1.0))",
        "factor -= values[i] * jw_power(size, p - JW(1.0))",
        FRICTION,
    ),
    Mutation("viscous root, C", f"{CORE}/terms.h", "root += values[i]", "root -= values[i]", FRICTION),
    Mutation(
        "viscous beyond known speeds, C",
        f"{CORE}/terms.h",
        "jw_power(known, p) + p *",
        "jw_power(known, p) - p *",
        FRICTION,
    ),
    Mutation("temperature, C", f"{CORE}/terms.h", "FT1 * (T - T0)", "FT1 * (T0 - T)", FRICTION),
    Mutation("temperature cubed, C", f"{CORE}/terms.h", "+ FT2 * ((cube0", "- FT2 * ((cube0", FRICTION),
    Mutation("slip, C", f"{CORE}/terms.h", "torque += forces[i] * u[i]", "torque -= forces[i] * u[i]", FRICTION),
    Mutation("slip direction, C", f"{CORE}/terms.h", "H += shares[i] * u[i]", "H -= shares[i] * u[i]", FRICTION),
    Mutation(
        "slip along a path, C",
        f"{CORE}/terms.h",
        "jw_clamp(decay * memory[i] + move",
        "jw_clamp(decay * memory[i] - move",
        FRICTION,
    ),
    Mutation(
        "rate-dependent slip, C",
        f"{CORE}/terms.h",
        "H += shares[i] * memory[i]",
        "H -= shares[i] * memory[i]",
        FRICTION,
    ),
    Mutation(
        "LuGre, C", f"{CORE}/terms.h", "target = move < JW(0.0) ? -h : h", "target = move < JW(0.0) ? h : -h", FRICTION
    ),
    Mutation("LuGre damping, C", f"{CORE}/terms.h", "memory[0] + n[5] *", "memory[0] - n[5] *", FRICTION),
    Mutation("spring, C", f"{CORE}/terms.h", "term->number[1] * q * q)", "-term->number[1] * q * q)", FRICTION),
    Mutation(
        "rotor, C",
        f"{CORE}/terms.h",
        "term->number[0] * in->acceleration",
        "-term->number[0] * in->acceleration",
        FRICTION,
    ),
    Mutation("ripple, C", f"{CORE}/terms.h", "n[0] * late + (n[1]", "-n[0] * late + (n[1]", FRICTION),
    Mutation(
        "backlash map, C",
        f"{CORE}/terms.h",
        "+ (index - (jw_real)left) * rise",
        "- (index - (jw_real)left) * rise",
        FRICTION,
    ),
    # laws of a joint in Python
    Mutation("Coulomb with load, Python", f"{TERMS}/load.py", "growth * direction]", "-growth * direction]", FRICTION),
    Mutation(
        "power flow, Python",
        f"{TERMS}/power_flow.py",
        "driving * h, (1.0 - driving) * h",
        "(1.0 - driving) * h, driving * h",
        FRICTION,
    ),
    Mutation("viscous, Python", f"{TERMS}/viscous.py", "[sign * inside**p", "[-sign * inside**p", FRICTION),
    Mutation("viscous beyond known speeds, Python", f"{TERMS}/viscous.py", "[c + p *", "[c - p *", FRICTION),
    Mutation("Stribeck, Python", f"{TERMS}/stribeck.py", "self.width) * curve", "self.width) * -curve", FRICTION),
    Mutation("temperature, Python", f"{TERMS}/thermal.py", "[T - reference,", "[reference - T,", FRICTION),
    Mutation(
        "slip, Python",
        f"{TERMS}/maxwell_slip.py",
        "decay * delta + (position - last)",
        "decay * delta - (position - last)",
        FRICTION,
    ),
    Mutation(
        "LuGre, Python",
        f"{TERMS}/lugre.py",
        "math.copysign(level[k], move)",
        "math.copysign(level[k], -move)",
        FRICTION,
    ),
    Mutation(
        "rate-dependent slip, Python", f"{TERMS}/rate_slip.py", "slipped = side * h", "slipped = -side * h", FRICTION
    ),
    Mutation(
        "spring, Python", f"{TERMS}/counterbalance.py", "[joint.q, joint.q**3]", "[joint.q, -(joint.q**3)]", FRICTION
    ),
    Mutation(
        "rotor, Python", f"{TERMS}/inertia.py", "return joint.qdd[:, None]", "return -joint.qdd[:, None]", FRICTION
    ),
    Mutation("ripple, Python", f"{TERMS}/ripple.py", "[before, ripple, after]", "[-before, ripple, after]", FRICTION),
    # bodies
    Mutation(
        "gravity, C",
        f"{NATIVE}/rigid.h",
        "NAME(sub)(o, NAME(constant)(robot->gravity))",
        "NAME(add)(o, NAME(constant)(robot->gravity))",
        RIGID,
    ),
    Mutation("lever of a force, C", f"{NATIVE}/rigid.h", "v.y -= at->p.x * f.z", "v.y += at->p.x * f.z", RIGID),
    Mutation(
        "gravity, Python",
        "src/jointwise/model/rigid/numpy_kernels.py",
        "push[3] -= self.chain.gravity",
        "push[3] += self.chain.gravity",
        RIGID,
    ),
    Mutation(
        "velocity products, Python",
        "src/jointwise/model/rigid/numpy_kernels.py",
        "moved[1] -= twice * w[0]",
        "moved[1] += twice * w[0]",
        RIGID,
    ),
    Mutation(
        "rotors, Python",
        "src/jointwise/model/rigid/numpy_kernels.py",
        "+ chain.rotors[j] * qdd[j]",
        "- chain.rotors[j] * qdd[j]",
        RIGID,
    ),
    # gears of the simulated robot
    Mutation(
        "spring of a gear, C",
        f"{NATIVE}/gear.h",
        "+ spring->cubic * phi * phi * phi",
        "- spring->cubic * phi * phi * phi",
        PLANT,
    ),
    Mutation(
        "segments of a spring, C",
        f"{NATIVE}/gear.h",
        "torque += (spring->K2 - spring->K1)",
        "torque -= (spring->K2 - spring->K1)",
        PLANT,
    ),
    Mutation(
        "kinematic error, C", f"{NATIVE}/gear.h", "error += e->amplitude[k] * s", "error -= e->amplitude[k] * s", PLANT
    ),
    Mutation(
        "lost motion, C",
        f"{NATIVE}/gear.h",
        "from->play + (theta - from->theta)",
        "from->play - (theta - from->theta)",
        PLANT,
    ),
)


def survives(mutation: Mutation, folder: Path) -> bool:
    """Return whether the tests pass with a mutation; the copy in `folder` is as before afterwards."""
    file = folder / mutation.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.law}: {mutation.old!r} must be once in {mutation.file}. Adapt the mutation.")
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        if file.suffix in (".h", ".c"):
            build(folder)
        return passes(folder, mutation.tests)
    finally:
        file.write_text(text, encoding="utf-8")


def passes(folder: Path, tests: Iterable[str], show: bool = False) -> bool:
    """Return whether the fast tests of some files pass; print what they print on request."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    files = [f"tests/{name}.py" for name in tests]
    command = [sys.executable, "-m", "pytest", "-x", "-m", "not thorough", "-p", "no:cacheprovider", *files]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if show:
        print(ended.stdout[-3000:])
    if ended.returncode not in (0, 1):
        raise SystemExit(f"pytest failed ({ended.returncode}):\n{ended.stdout[-2000:]}{ended.stderr}")
    return ended.returncode == 0


def build(folder: Path) -> None:
    """Compile the extension of a copy, without optimisation."""
    environment = {**os.environ, "JOINTWISE_CFLAGS": "-O0"}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)


def main() -> None:
    """Try all mutations."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="mutations with this text in their name")
    parser.add_argument("--list", action="store_true", help="print their names alone")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation.law]
    if options.list:
        print(*(mutation.law for mutation in chosen), sep="\n")
        return
    missed = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("src", "tests", "docs", "benchmarks"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        for part in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / part, folder / part)
        build(folder)
        if not passes(folder, sorted({name for mutation in chosen for name in mutation.tests}), show=True):
            raise SystemExit("the tests must pass before anything is broken.")
        compiled = False
        for mutation in chosen:
            if compiled and not mutation.file.endswith((".h", ".c")):
                build(folder)  # of the sources as they are
            compiled = mutation.file.endswith((".h", ".c"))
            alive = survives(mutation, folder)
            print(f"{'NOT NOTICED' if alive else 'noticed':12} {mutation.law}", flush=True)
            missed += [mutation.law] if alive else []
    print(f"{len(chosen) - len(missed)} of {len(chosen)} mutations noticed")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
