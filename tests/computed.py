"""Simulated logs and calibrations that several tests need, computed once in a run of pytest, whatever its processes.

The results of a run are in a directory that ends with it (`conftest.py`), so that none outlives a change of the code.
The name of a result is the hash of the function and of the content of its arguments; a lock makes other processes wait.
"""

from __future__ import annotations

import copyreg
import fcntl
import hashlib
import io
import os
import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from tempfile import gettempdir
from types import MappingProxyType
from typing import Any, TypeVar

import jointwise as jw

T = TypeVar("T")
VARIABLE = "JOINTWISE_TEST_RUN"
"""Environment variable with the directory of the run."""
_KNOWN: dict[str, Any] = {}


def mapping(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a read-only mapping."""
    return MappingProxyType(content)


class Pickler(pickle.Pickler):
    """Writes read-only mappings too. Only results of this run of the tests are read back."""

    dispatch_table = copyreg.dispatch_table | {MappingProxyType: lambda proxy: (mapping, (dict(proxy),))}


class KeyPickler(Pickler):
    """Writes of dataclasses their fields alone, without what they computed on first use."""

    def reducer_override(self, content: Any) -> Any:
        """Return type and fields of a dataclass."""
        if isinstance(content, type) or not is_dataclass(content):
            return NotImplemented
        return mapping, ({"type": repr(type(content)), **{f.name: getattr(content, f.name) for f in fields(content)}},)


def pickled(content: Any, pickler: type[Pickler] = Pickler) -> bytes:
    """Return an object as bytes."""
    stream = io.BytesIO()
    pickler(stream, pickle.HIGHEST_PROTOCOL).dump(content)
    return stream.getvalue()


def once(function: Callable[..., T], *args: Any, **options: Any) -> T:
    """Return what a function returns for some arguments; it runs once in a run of the tests."""
    key = hashlib.sha256(pickled((function.__module__, function.__qualname__, args, options), KeyPickler)).hexdigest()
    if key not in _KNOWN:
        _KNOWN[key] = _shared(key, lambda: function(*args, **options))
    result: T = _KNOWN[key]
    return result


def _shared(key: str, compute: Callable[[], Any]) -> Any:
    """Return the result that the directory of the run holds by a name, computed by the first process that needs it."""
    if VARIABLE not in os.environ:  # not in a run of pytest
        return compute()
    file = run_folder() / key
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            part = file.with_suffix(".part")
            part.write_bytes(pickled(compute()))
            part.rename(file)
    return pickle.loads(file.read_bytes())


def run_folder() -> Path:
    """Return the directory of this run of the tests, which ends with it."""
    return Path(os.environ.get(VARIABLE) or gettempdir())


def simulated(robot: str | jw.Robot, experiment: str = "excitation", **options: Any) -> jw.SimulationResult:
    """Return `jw.simulate` of the arguments."""
    return once(jw.simulate, robot, experiment, **options)


def calibrated(logs: Any, robot: str | jw.Robot, **options: Any) -> jw.Calibration:
    """Return `jw.calibrate` of the arguments."""
    return once(jw.calibrate, logs, robot, **options)
