"""Numerical tests on the BLAS kernels, compiler options, Pythons and libraries that this machine has.

Usage: .venv/bin/python tools/compat.py [WORD ...]

Tests marked `compat` run once for every row of the table that is printed; with words, for the rows whose name contains
one of them. A row that the machine cannot run is skipped with the reason. Environments and kernels are kept in
`build/compat`, with the output of every row; the source tree is not written to.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "compat"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ("report", "plot", "dataframe", "ros")
"""Installed beside the dependencies. Pinocchio (`peers`) needs a newer NumPy than the oldest that is supported."""
TOOLS = ("pytest", "hypothesis")
"""Packages of the extra `test` that the tests need."""
KERNELS = {
    "-O3": {},
    "-O1": {"JOINTWISE_CFLAGS": "-O1"},
    "-march=native": {"JOINTWISE_CFLAGS": "-march=native"},
    "absent": {"JOINTWISE_BUILD_NATIVE": "0", "JOINTWISE_NATIVE": "0"},
}
"""Builds of the native kernel, and the environment variables that make and use them."""
CORE_TYPES = {
    "x86_64": ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"),
    "aarch64": ("ARMV8", "CORTEXA57", "NEOVERSEN1", "NEOVERSEV1", "NEOVERSEN2"),
}
"""Values of OPENBLAS_CORETYPE by processor; wheels contain the kernels of some of them."""
PROBE = """
import json
import numpy, scipy, scipy.linalg, threadpoolctl, platform
import jointwise
from jointwise.backend import native
from numpy._core import _multiarray_umath as core
x = numpy.random.default_rng(0).normal(size=(300, 300))
for linalg in numpy.linalg, scipy.linalg:  # an instruction that the CPU lacks ends the process here
    linalg.qr(x), linalg.svd(x), linalg.eigh(x + x.T), linalg.cholesky(x @ x.T), linalg.solve(x, x)
print(json.dumps({
    "blas": sorted({i["architecture"] for i in threadpoolctl.threadpool_info() if i["internal_api"] == "openblas"}),
    "simd": [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]],
    "files": [jointwise.__file__, native().__file__ if native() else ""],
    "versions": f"Python {platform.python_version()}, NumPy {numpy.__version__}, SciPy {scipy.__version__}",
}))
"""


class Skipped(Exception):  # noqa: N818  it is not an error
    """The machine cannot run a row, for the reason that is given."""


class Failed(Exception):  # noqa: N818
    """A row does not hold, for the reason that is given."""


@dataclass(frozen=True)
class Row:
    """A configuration.

    Attributes:
        name: Name in the table.
        kernel: Build of the native kernel.
        variables: Further environment variables.
        python: Version of Python such as 3.12; that of this environment where it is empty.
        constraints: Versions of the libraries, for another Python than that of this environment.
        skipped: Why the machine cannot run it.
    """

    name: str
    kernel: str = "-O3"
    variables: dict[str, str] = field(default_factory=dict)
    python: str = ""
    constraints: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables."""
        kernel = {**KERNELS[self.kernel], "PYTHONPATH": str(BUILD / f"kernel{self.kernel}")}
        return {"OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(BUILD / "pycache"), **kernel, **self.variables}


def log_file(name: str) -> Path:
    """Return the file with the output of a row or of another step."""
    return BUILD / f"{re.sub(r'[^a-z0-9.=-]+', '-', name.lower())}.txt"


@dataclass(frozen=True)
class Ended:
    """A process that has ended: exit code (negative for a signal), output, and CPU time in s."""

    code: int
    output: str
    seconds: float


def run(command: list[str | Path], log: str, variables: dict[str, str]) -> Ended:
    """Run a command in the root directory; its output goes to the log file too."""
    with log_file(log).open("w") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **variables}, stdout=file, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(process.returncode, log_file(log).read_text(errors="replace"), used.ru_utime + used.ru_stime)


def last_line(text: str) -> str:
    """Return the last line of an output."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no output")


# -- what rows need ----------------------------------------------------------------------------------------------------


def build(kernel: str) -> None:
    """Copy the package and build its native kernel there; unchanged sources are not compiled again."""
    folder = BUILD / f"kernel{kernel}"
    shutil.rmtree(folder / "jointwise", ignore_errors=True)
    others = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(ROOT / "src" / "jointwise", folder / "jointwise", ignore=others)
    if kernel == "absent":
        return
    places = ["--build-lib", folder / "extension", "--build-temp", folder / "objects"]
    run([sys.executable, "setup.py", "-q", "build_ext", *places], f"build {kernel}", KERNELS[kernel])
    for path in (folder / "extension").glob("jointwise/_native.*"):
        shutil.copy2(path, folder / "jointwise")


def requirements() -> list[Requirement]:
    """Return what the tests need, from pyproject.toml."""
    extras = PROJECT["optional-dependencies"]
    tools = [text for text in extras["test"] if Requirement(text).name in TOOLS]
    return [Requirement(text) for text in [*PROJECT["dependencies"], *(t for e in EXTRAS for t in extras[e]), *tools]]


def oldest() -> tuple[str, ...]:
    """Return the lower bounds of the requirements as constraints."""
    return tuple(
        f"{r.name}=={bound.version}" for r in requirements() for bound in r.specifier if bound.operator == ">="
    )


def locked() -> tuple[str, ...]:
    """Return the versions of the lock file as constraints."""
    lines = (ROOT / "requirements-dev.lock").read_text().splitlines()
    return tuple(line.rstrip(" \\") for line in lines if "==" in line.partition(";")[0])


def interpreter(version: str) -> Path:
    """Return a Python of a version such as 3.12, from the path or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    check = f"import ensurepip, ssl, sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
    for path in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python{version}"))):
        if path and subprocess.run([path, "-c", check], capture_output=True, check=False).returncode == 0:
            return Path(path)
    raise Skipped(f"python{version} is not installed")


def virtual_environment(row: Row) -> Path:
    """Return the Python of the virtual environment of a row; it is made when versions have changed."""
    if not row.python:
        return Path(sys.executable)
    python, folder = interpreter(row.python), log_file(row.name).with_suffix("")
    files = {"requirements.txt": map(str, requirements()), "constraints.txt": row.constraints}
    texts = {name: "\n".join(lines) for name, lines in files.items()}
    stamp, wanted = folder / "installed.json", json.dumps([str(python), texts])
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        for name, text in texts.items():
            (folder / name).write_text(text)
        options = ["-r", folder / "requirements.txt", "-c", folder / "constraints.txt"]
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", *options]
        if (installed := run(pip, f"install {row.name}", {})).code:
            raise Failed(f"not installed: {last_line(installed.output)}")
        stamp.write_text(wanted)
    return folder / "bin" / "python"


def probe(row: Row, python: Path) -> dict[str, Any]:
    """Return what a row computes with."""
    ended = run([python, "-c", PROBE], f"probe {row.name}", row.environment)
    if ended.code == -signal.SIGILL:
        raise Skipped("this CPU lacks its instructions")
    if ended.code:
        raise Failed(last_line(ended.output))
    return json.loads(last_line(ended.output))


# -- rows --------------------------------------------------------------------------------------------------------------


def rows() -> Iterator[Row]:
    """Yield the rows of the table."""
    found = probe(Row("this environment"), Path(sys.executable))
    yield from blas_rows(found["blas"])
    if found["simd"]:
        yield Row("NumPy without SIMD", variables={"NPY_DISABLE_CPU_FEATURES": " ".join(found["simd"])})
    else:
        yield Row("NumPy without SIMD", skipped="this NumPy chooses no instructions at run time")
    for kernel in list(KERNELS)[1:]:
        yield Row(f"kernel {kernel}", kernel=kernel)
    versions = [v for c in PROJECT["classifiers"] if (v := c.rpartition(" :: ")[2]).startswith("3.")]
    current = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in versions:
        if version != current:
            yield Row(f"Python {version}", python=version, constraints=locked())
    yield Row(f"Python {versions[0]}, oldest libraries", python=versions[0], constraints=oldest())


def blas_rows(default: list[str]) -> Iterator[Row]:
    """Yield rows for each set of BLAS kernels, with one and with two threads; first those that this CPU gets."""
    seen: dict[tuple[str, ...], str] = {}
    for name in ("", *CORE_TYPES.get(platform.machine(), ())):
        title = f"BLAS {name or ' '.join(default) or 'other than OpenBLAS'}"
        variables = {"OPENBLAS_CORETYPE": name} if name else {}
        try:
            kernels = tuple(probe(Row(title, variables=variables), Path(sys.executable))["blas"])
        except Skipped as reason:
            yield Row(title, skipped=str(reason))
            continue
        if kernels in seen:
            yield Row(title, skipped=f"the same kernels as {seen[kernels]}")
            continue
        seen[kernels] = title
        yield Row(f"{title}, 1 thread", variables={**variables, "OMP_NUM_THREADS": "1"})
        yield Row(f"{title}, 2 threads", variables={**variables, "OMP_NUM_THREADS": "2"})


def result(row: Row, files: list[Path]) -> tuple[str, str, float]:
    """Run the tests of a row; return how many passed, with which Python and libraries, and the CPU time in s."""
    if row.skipped:
        raise Skipped(row.skipped)
    python = virtual_environment(row)
    found, folder = probe(row, python), row.environment["PYTHONPATH"]
    package, kernel = found["files"]
    if not package.startswith(folder) or kernel.startswith(folder) == (row.kernel == "absent"):
        raise Failed(f"the native kernel {row.kernel} is not built: {log_file(f'build {row.kernel}')}")
    pytest = [python, "-m", "pytest", "-m", "compat and not thorough", "-p", "no:cacheprovider", "--tb=short", *files]
    tests = run(pytest, row.name, row.environment)
    if tests.code:
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", tests.output, re.MULTILINE)
        raise Failed("\n    ".join([last_line(tests.output), *failed, str(log_file(row.name))]))
    return last_line(tests.output).partition(" in ")[0], found["versions"], tests.seconds


def line(row: Row, files: list[Path]) -> tuple[bool, str]:
    """Run a row; return whether it does not fail, and its line of the table."""
    try:
        text, versions, seconds = result(row, files)
    except (Skipped, Failed) as reason:
        passed = isinstance(reason, Skipped)
        return passed, f"{row.name:33} {'':>5}  {'skipped' if passed else 'FAILED'}: {reason}"
    return True, f"{row.name:33} {seconds:5.0f}  {text:36} {versions}"


def main(words: list[str]) -> int:
    """Run the rows whose names contain one of the words, or all; print the table."""
    BUILD.mkdir(parents=True, exist_ok=True)
    files = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if "mark.compat" in path.read_text())
    build("-O3")
    chosen = [row for row in rows() if not words or any(word.lower() in row.name.lower() for word in words)]
    for kernel in {row.kernel for row in chosen} - {"-O3"}:
        build(kernel)
    print(f"{'configuration':33} {'CPU s':>5}  {'result':36} libraries", flush=True)
    ended = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for passed, text in pool.map(lambda row: line(row, files), chosen):
            ended.append(passed)
            print(text, flush=True)
    return 0 if chosen and all(ended) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
