"""Build of the native kernel; without a C compiler the package installs without it.

NumPy then computes the same results at lower speed; the simulated robot requires the kernel and raises an error.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

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
OPTIMISE = ["/O2"] if sys.platform == "win32" else [
    "-O3", "-g0", "-fno-math-errno", "-ffp-contract=fast", "-std=c11", "-Wall",
]  # fmt: skip

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


class ParallelBuild(build_ext):
    """Compiles the sources on all cores: setuptools compiles those of one extension one after the other."""

    def build_extension(self, extension):
        """Build an extension."""
        compile_files = self.compiler.compile

        def compile_in_parallel(sources, **options):
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda source: compile_files([source], **options), sources)
                return [path for paths in objects for path in paths]

        if sys.platform != "win32":  # its compiler object is initialised by the first call
            self.compiler.compile = compile_in_parallel
        super().build_extension(extension)


setup(
    cmdclass={"build_ext": ParallelBuild},
    ext_modules=[] if os.environ.get("JOINTWISE_BUILD_NATIVE") == "0" else [native],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
