"""Build of the native kernel; without a C compiler the package installs without it.

NumPy then computes the same results at lower speed; the simulated robot requires the kernel and raises an error.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

CORE = "src/jointwise/runtime/core"
"""C sources that exports ship too; hence inside the package."""
SOURCES = (
    "module",
    "signals",
    "linear",
    "plant",
    "hysteresis",
    "runtime_module",
    "recursive",
    "adaptation",
    "monitor_module",
    "stiffness",
    "control",
)
LIMITED_API = "0x030B0000"
OPTIMISE = ["/O2"] if sys.platform == "win32" else ["-O3", "-fno-math-errno", "-ffp-contract=fast", "-std=c11", "-Wall"]

native = Extension(
    "jointwise._native",
    sources=[*(f"src/native/{name}.c" for name in SOURCES), f"{CORE}/runtime.c", f"{CORE}/monitor.c"],
    include_dirs=["src/native", CORE],
    depends=sorted(str(path) for folder in ("src/native", CORE) for path in Path(folder).glob("*.h")),
    define_macros=[("Py_LIMITED_API", LIMITED_API)],
    extra_compile_args=[*OPTIMISE, *os.environ.get("JOINTWISE_CFLAGS", "").split()],
    extra_link_args=os.environ.get("JOINTWISE_LDFLAGS", "").split(),
    py_limited_api=True,
    optional=True,
)

setup(
    ext_modules=[] if os.environ.get("JOINTWISE_BUILD_NATIVE") == "0" else [native],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
