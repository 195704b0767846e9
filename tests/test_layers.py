"""Data flows one way: a package imports only what stands above it in the design."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import jointwise

ROOT = Path(jointwise.__file__).parent
USE = {"simulation", "control", "monitoring", "energy", "export", "report"}
LAYERS: list[set[str]] = [
    {"errors", "_native"},
    {"atomic", "backend"},
    {"document"},
    {"spatial"},
    {"parameters", "motion"},
    {"description"},
    {"model"},
    {"data"},
    {"design"},
    {"estimation"},
    {"joint"},
    {"result"},
    USE,
    {"calibrate", "experiment", "plan"},
    {"__init__"},
    {"fleet", "web"},
    {"cli"},
    {"__main__"},
]
"""From the top down; members of one layer do not import each other."""
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
MODULES = sorted(ROOT.rglob("*.py"))


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_layers(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the layer of every import from the package, lazy ones too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "jointwise":
            names = [f"jointwise.{alias.name}" for alias in node.names if alias.name != "__version__"]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            names = [node.module or ""]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "jointwise":
                yield node.lineno, _layer_named(name)


def _layer_named(name: str) -> str:
    part = [*name.split("."), "__init__"][1]
    return part if part in RANK else "__init__"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_upwards(path: Path) -> None:
    own = layer_of(path)
    assert own in RANK, f"{own} has no place in the layers"
    if own == "__init__":
        return  # the package's front door opens everything, lazily
    for line, other in imported_layers(path.read_text(encoding="utf-8")):
        assert other == own or RANK[other] < RANK[own], f"line {line}: {own} must not import {other}"


def test_only_one_file_of_estimation_sees_both_model_and_data() -> None:
    for path in MODULES:
        if layer_of(path) == "estimation" and path.name != "problem.py":
            seen = {other for _, other in imported_layers(path.read_text(encoding="utf-8"))}
            assert not {"model", "data"} <= seen, path.name


@pytest.mark.parametrize(
    ("source", "layers"),
    [
        ("from jointwise import spatial, __version__", ["spatial"]),
        ("import jointwise.model.base as b", ["model"]),
        ("import jointwise", ["__init__"]),
        ("from jointwise import robot", ["__init__"]),
        ("def f():\n    from jointwise.cli.text import table", ["cli"]),
        ("import numpy\nfrom os import path", []),
    ],
)
def test_the_reader_of_imports_sees_them_all(source: str, layers: list[str]) -> None:
    assert [layer for _, layer in imported_layers(source)] == layers
