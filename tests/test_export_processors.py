"""Exported C with the compilers, options and processors of controllers: the torques of the model on each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from jointwise.export.c_code import library_files, program_files, random_motion, single
from runtime_models import exact

RATE, SAMPLES = 500.0, 5000
"""Hz, and the length of the motion"""
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror")
DOUBLE, FLOAT = 1e-13, 7e-4
"""Nm: largest difference for torques of up to 150 Nm, of which a unit in the last place is 2.8e-14 and 1.5e-5 Nm."""
TARGETS = {
    "gcc -O2": (("gcc", "-O2"), ()),
    "gcc -O3 -ffast-math": (("gcc", "-O3", "-ffast-math"), ()),
    "gcc -m32": (("gcc", "-O2", "-m32"), ()),
    "clang": (("clang", "-O2"), ()),
    "clang -O3 -ffast-math": (("clang", "-O3", "-ffast-math"), ()),
    "aarch64": (("aarch64-linux-gnu-gcc", "-O2", "-static"), ("qemu-aarch64",)),
}
"""Compiler with options, and the emulator that runs the program."""


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Return compiler and emulator; skip what this machine cannot build or run."""
    compiler, emulator = TARGETS[request.param]
    for program in (compiler[0], *emulator):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.c").write_text("#include <math.h>\nint main(void) { return 0; }\n")
    built = subprocess.run([*compiler, "probe.c", "-lm"], cwd=folder, capture_output=True, check=False)
    if built.returncode != 0:
        pytest.skip(f"{' '.join(compiler)} has no C library here")
    return compiler, emulator


@pytest.mark.parametrize(("flags", "allowed"), [((), DOUBLE), (("-DJW_FLOAT",), FLOAT)], ids=["double", "float"])
def test_exported_c_has_the_torques_of_the_model(
    target, flags: tuple[str, ...], allowed: float, tmp_path: Path
) -> None:
    compiler, emulator = target
    model = exact("panda")
    for name, data in {**library_files(model, RATE), **program_files(model, RATE)}.items():
        (tmp_path / name).write_bytes(data)
    command = [*compiler, *STRICT, *flags, "test_model.c", "runtime.c", "-lm", "-o", "test_model"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = [*emulator, tmp_path / "test_model"]
    subprocess.run(program, check=True)
    q, qd, qdd = random_motion(model, SAMPLES, 3 * RATE)
    motion = q, single(qd / 3), single(qdd / 9)  # three times as slow: accelerations that an arm reaches
    answer = subprocess.run(
        [*program, "-"], input=np.concatenate(motion, axis=1).tobytes(), capture_output=True, check=True
    )
    torque = model.torque(*motion, rate=RATE)
    assert 50.0 < np.abs(torque).max() < 150.0
    np.testing.assert_allclose(np.frombuffer(answer.stdout).reshape(torque.shape), torque, rtol=0.0, atol=allowed)
