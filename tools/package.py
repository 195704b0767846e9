"""Build the sdist and the wheel as for a release, and use them as a user without a compiler would.

Usage: .venv/bin/python tools/package.py [FOLDER]

The packages are kept in FOLDER (default: `dist`). The source tree is copied first and not written to.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from compat import ROOT, locked

LARGEST = 4_000_000
"""Bytes of a package: twice what it has. Half of that is plotly.js and half the native kernel; a figure or a log that
gets into the package by mistake is larger than the rest."""
ONE_LINE = "jointwise: note: the native kernel is not built: NumPy is used"
IGNORED = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "*.so", "*.pyd", "_build")


class PackageError(Exception):
    """A package is not what it should be."""


def check(holds: bool, message: str) -> None:
    """Raise an error with a message if something does not hold."""
    if not holds:
        raise PackageError(message)


def run(command: list[str | Path], folder: Path, code: int = 0, **variables: str) -> str:
    """Run a command, which must end with an exit code; return what it printed on both streams."""
    environment = {**{k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CC", "CXX")}, **variables}
    ended = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    words = " ".join(map(str, command))
    check(ended.returncode == code, f"{words} ended with {ended.returncode} instead of {code}:\n{ended.stdout[-3000:]}")
    return ended.stdout


# -- contents ----------------------------------------------------------------------------------------------------------


def sources(tree: Path) -> set[str]:
    """Return the files of the package in a source tree, as paths in the wheel."""
    return {str(path.relative_to(tree / "src")) for path in (tree / "src" / "jointwise").rglob("*") if path.is_file()}


def check_wheel(wheel: Path, tree: Path) -> None:
    """Check that a wheel has every file of the package, the kernel for all Pythons, the licence, and nothing else."""
    check(re.search(r"-cp311-abi3-\w+\.whl$", wheel.name) is not None, f"{wheel.name} is not for the stable ABI")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    kernel = {name for name in names if re.fullmatch(r"jointwise/_native\.(abi3\.so|pyd)", name)}
    metadata = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    check(len(kernel) == 1, f"{wheel.name} contains no native kernel: {sorted(kernel)}")
    check(any(name.endswith("/licenses/LICENSE") for name in metadata), f"{wheel.name} contains no licence")
    compare(wheel, names - kernel - metadata, sources(tree))


def check_sdist(sdist: Path, tree: Path) -> None:
    """Check that an sdist has the package, the sources of the kernel and what builds them, and nothing else."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    made = {name for name in names if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    build = {"setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"}
    kernel = {str(path.relative_to(tree)) for path in (tree / "src" / "native").glob("*.[ch]")}
    compare(sdist, names - made, build | kernel | {f"src/{name}" for name in sources(tree)})


def compare(package: Path, found: set[str], wanted: set[str]) -> None:
    """Check that a package has exactly the wanted files, and print its size."""
    check(found >= wanted, f"{package.name} lacks {sorted(wanted - found)[:10]}")
    check(found <= wanted, f"{package.name} contains {sorted(found - wanted)[:10]}, which do not belong there")
    size = package.stat().st_size
    check(size < LARGEST, f"{package.name} has {size} bytes, more than {LARGEST}")
    print(f"{package.name}: {len(found)} files, {size / 1e6:.2f} MB", flush=True)


# -- use ---------------------------------------------------------------------------------------------------------------


def installed(package: Path, folder: Path) -> dict[str, str]:
    """Install a package into an empty environment; return the variables of a machine without a compiler."""
    run([sys.executable, "-m", "venv", folder], folder.parent)
    (folder / "constraints.txt").write_text("\n".join(locked()))
    # The path has the environment alone: no compiler, whatever is installed on this machine.
    alone = {
        "PATH": str(folder / "bin"),
        "CC": "false",
        "CXX": "false",
        "PIP_CONSTRAINT": str(folder / "constraints.txt"),
    }
    run([folder / "bin" / "pip", "install", "--quiet", "--no-compile", f"{package}[report]"], folder, **alone)
    return alone


def use_wheel(wheel: Path, folder: Path) -> None:
    """Run the demo, all exports and the list of robots from a wheel."""
    alone = installed(wheel, folder)
    command = folder / "bin" / "jointwise"
    check("ur10e" in run([command, "robots"], folder, **alone), "jointwise robots does not list the UR10e")
    demo = run([command, "demo"], folder, **alone)
    check("report:" in demo, f"jointwise demo wrote no report:\n{demo}")
    text = run([command, "export", "demo-output/model.json", "--to", "all", "--output", "all"], folder, **alone)
    check("without fmu: an FMU needs a C compiler" in text, f"export says nothing about the FMU:\n{text}")
    targets = sorted(path.name for path in (folder / "all").iterdir())
    check(targets == ["c", "mjcf", "ros2", "ur", "urdf"], f"export wrote {targets}")
    for words in (("--experiment", "excitation", "--seed", "1"), ("--experiment", "bspline", "--seed", "2")):
        output = f"{words[1]}.csv"
        options = ("--robot", "planar2", "--duration", "15", "--rate", "200", "--output", output)
        run([command, "simulate", *options, *words], folder, **alone)
    print(f"{wheel.name} without a compiler: robots, demo, export --to {', '.join(targets)}", flush=True)


def use_sdist(sdist: Path, folder: Path, logs: Path) -> None:
    """Run commands from an sdist that was installed without a compiler, on logs of the wheel."""
    alone = installed(sdist, folder)
    command = folder / "bin" / "jointwise"
    training, test = logs / "excitation.csv", logs / "bspline.csv"
    commands = {
        "robots": ["robots"],
        "inspect": ["inspect", training, "--robot", "planar2"],
        "calibrate": ["calibrate", training, "--robot", "planar2", "--output", "model.json"],
        "validate": ["validate", "model.json", test],
        "predict": ["predict", "model.json", test, "--output", "predicted.csv"],
        "monitor": ["monitor", "model.json", test],
        "export": ["export", "model.json", "--to", "all", "--output", "all"],
        "excite": ["excite", "--robot", "planar2", "--duration", "5", "--output", "motion"],
        "convert": ["convert", test, "test.parquet"],
    }
    for name, words in commands.items():
        text = run([command, *words], folder, **alone)
        if name in ("calibrate", "validate", "predict"):
            check(text.count(ONE_LINE) == 1, f"jointwise {name} does not name the NumPy kernels in one line:\n{text}")
    for name in (["simulate", "--robot", "planar2", "--output", "log.csv"], ["demo"]):
        text = run([command, *name], folder, code=1, **alone)
        check(
            text.count("\n") == 1 and "Reinstall jointwise with a C compiler" in text, f"jointwise {name[0]}:\n{text}"
        )
    print(f"{sdist.name} without a compiler: {', '.join(commands)}; simulate and demo state what they need", flush=True)


def main(target: Path) -> int:
    """Build, check and use both packages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree, made = folder / "tree", folder / "made"
        shutil.copytree(ROOT, tree, ignore=IGNORED)
        try:
            run([sys.executable, "-m", "build", "--no-isolation", "--outdir", made, tree], folder)
            (sdist,), (wheel,) = made.glob("*.tar.gz"), made.glob("*.whl")
            run([sys.executable, "-m", "twine", "check", "--strict", sdist, wheel], folder)
            shutil.rmtree(tree)
            shutil.copytree(ROOT, tree, ignore=IGNORED)  # as it was before the build
            check_sdist(sdist, tree)
            check_wheel(wheel, tree)
            use_wheel(wheel, folder / "wheel")
            use_sdist(sdist, folder / "sdist", folder / "wheel")
        except PackageError as problem:
            print(f"package: {problem}", file=sys.stderr)
            return 1
        target.mkdir(parents=True, exist_ok=True)
        for package in (sdist, wheel):
            shutil.copy2(package, target)
    print(f"packages: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"))
