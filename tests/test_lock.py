"""The lock file: every package that development needs, in a version that the project accepts, with hashes."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements-dev.lock").read_text()


def locked() -> dict[str, list[Version]]:
    """Return the versions of each package of the lock file (one for each range of Python versions)."""
    found = defaultdict(list)
    for name, version in re.findall(r"^([\w.-]+)==([^ ;\\]+)", LOCK, re.MULTILINE):
        found[canonicalize_name(name)].append(Version(version))
    return found


def test_every_requirement_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [project["project"]["dependencies"], project["build-system"]["requires"]]
    extras = {name: texts for name, texts in project["project"]["optional-dependencies"].items() if name in in_dev()}
    versions = locked()
    for text in chain(*groups, *extras.values()):
        requirement = Requirement(text)
        if requirement.name != project["project"]["name"]:
            assert versions[canonicalize_name(requirement.name)], f"{text}: not locked; run make lock"
            assert all(v in requirement.specifier for v in versions[canonicalize_name(requirement.name)]), text


def in_dev() -> set[str]:
    """Return the extras that `dev` draws in, itself included."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names, todo = set(), ["dev"]
    while todo:
        names.add(name := todo.pop())
        todo += [e for text in extras[name] if (r := Requirement(text)).name == "jointwise" for e in r.extras]
    return names


def test_every_package_has_a_hash_and_no_address() -> None:
    entries = re.split(r"\n(?=[\w])", LOCK.partition("\n")[2])
    assert len(entries) > 50
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
    assert "://" not in LOCK
    assert "index" not in LOCK


def test_continuous_integration_runs_on_every_python_that_is_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert re.search(r"^ +python: (\[.*\])$", workflow, re.MULTILINE)[1] == str(versions).replace("'", '"')
    assert versions[0] == project["requires-python"].removeprefix(">=")
