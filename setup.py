"""Builds the native kernel; without a C compiler the package installs all the same.

NumPy then gives the same results, slower; only the digital robot has no twin and refuses to run.
"""

import os
import sys

from setuptools import Extension, setup

LIMITED_API = "0x030B0000"
OPTIMISE = ["/O2"] if sys.platform == "win32" else ["-O3", "-fno-math-errno", "-ffp-contract=fast", "-std=c11", "-Wall"]

native = Extension(
    "jointwise._native",
    sources=["src/native/module.c", "src/native/signals.c", "src/native/plant.c", "src/native/hysteresis.c"],
    depends=[
        f"src/native/{name}.h" for name in ("arguments", "compiler", "lanes", "rigid", "links", "composite", "plant")
    ],
    define_macros=[("Py_LIMITED_API", LIMITED_API)],
    extra_compile_args=OPTIMISE,
    py_limited_api=True,
    optional=True,
)

setup(
    ext_modules=[] if os.environ.get("JOINTWISE_BUILD_NATIVE") == "0" else [native],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
