"""Data flows in one direction: a package imports only packages to its left in the list below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import jointwise

ROOT = Path(jointwise.__file__).parent
FOUNDATIONS: list[set[str]] = [
    {"errors", "_native"},
    {"atomic", "backend", "finding", "formatting", "interrupts", "lazy", "toml"},
    {"arguments", "document", "settings"},
    {"call_settings", "spatial"},
    {"motion"},
]
"""Small modules without knowledge of robots."""
APPLICATIONS = {"simulation", "control", "monitoring", "energy", "export", "report", "rtde"}
COMPOSITION: list[set[str]] = [
    {"options", "experiment"},
    {"preparation"},
    {"calibration", "elastic"},
    {"inspection", "virtual_ur"},
    {"rehearsal"},
    {"__init__"},
    {"fleet", "web"},
]
"""Public functions that combine packages; the commands of `cli` are thin files over them."""
LAYERS: list[set[str]] = [
    *FOUNDATIONS,
    {"description"},
    {"model"},
    {"data"},
    {"design"},
    {"estimation"},
    {"joint"},
    {"result"},
    {"runtime"},
    APPLICATIONS,
    *COMPOSITION,
    {"cli"},
    {"__main__"},
]
"""From left to right; members of one layer do not import each other."""
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
def test_a_package_imports_only_packages_to_its_left(path: Path) -> None:
    layer = layer_of(path)
    assert layer in RANK, f"{layer} is missing from LAYERS"
    if layer == "__init__":
        return  # the public interface imports everything, lazily
    for line, other in imported_layers(path.read_text(encoding="utf-8")):
        assert other == layer or RANK[other] < RANK[layer], f"line {line}: {layer} must not import {other}"


def test_only_the_regression_of_estimation_imports_both_model_and_data() -> None:
    for path in MODULES:
        if layer_of(path) == "estimation" and path.name != "regression.py":
            imported = {other for _, other in imported_layers(path.read_text(encoding="utf-8"))}
            assert not {"model", "data"} <= imported, path.name


@pytest.mark.parametrize(
    ("source", "layers"),
    [
        ("from jointwise import spatial, __version__", ["spatial"]),
        ("import jointwise.model.base as b", ["model"]),
        ("import jointwise", ["__init__"]),
        ("from jointwise import load_robot", ["__init__"]),
        ("def f():\n    from jointwise.cli.output import table", ["cli"]),
        ("import numpy\nfrom os import path", []),
    ],
)
def test_every_kind_of_import_is_found(source: str, layers: list[str]) -> None:
    assert [layer for _, layer in imported_layers(source)] == layers
