"""The report: gathered, set section by section, written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from string import Template

from jointwise.atomic import atomic_write
from jointwise.data.log import Log
from jointwise.errors import MissingExtraError, OutputError
from jointwise.report.evidence import Evidence, gather
from jointwise.report.markup import Html, element, join
from jointwise.report.numbers import robot_title
from jointwise.report.sections import SECTIONS
from jointwise.result.calibration import Calibration

FILE = "report.html"
Section = tuple[str, str, Html]
"""Identifier, title and body of a part of a page."""


def write_report(
    calibration: Calibration,
    directory: str | Path,
    training: Sequence[Log],
    validation: Sequence[Log] = (),
    command: str | None = None,
    more: Sequence[Section] = (),
    file: str | Path | None = None,
) -> Path:
    """Write `report.html` into a directory (made if missing) and return its path.

    `training` are the logs the calibration came from, `validation` others with a measured output; one that shares
    samples with the training data is told apart. `command` is the line that reproduces the calibration, made up from
    the calibration where it is None. `more` sections follow the report's own. `file` is the name of the model's file,
    for the lines that use it. The page needs nothing else: no file, no network.
    """
    library = plotly_script()
    evidence = gather(calibration, training, validation, command, None if file is None else str(file))
    page = render(evidence, library, more)
    return write_page(page, Path(directory) / FILE)


def page_path(path: str | Path, name: str) -> Path:
    """Return where a page goes: `path` itself if it is a page (.html), else the page `name` in the directory `path`."""
    return Path(path) if Path(path).suffix.lower() in (".html", ".htm") else Path(path) / name


def write_page(page: str, path: Path) -> Path:
    """Write a page whole or not at all, its directory made if missing; return its path."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(f"{path.parent}: cannot be made ({problem.strerror}).") from None
    with atomic_write(path) as file:
        file.write(page)
    return path


def render(evidence: Evidence, library: str, more: Sequence[Section] = ()) -> str:
    """Return the whole page; `library` is the source of plotly.js."""
    robot, origin = robot_title(evidence.robot), evidence.calibration.provenance
    return compose(
        title=f"{robot} · calibration report",
        kind="Calibration report",
        heading=robot,
        origin=f"Calibrated {origin.date[:10]} with Jointwise {origin.version}",
        sections=[*((section.ID, section.TITLE, section.body(evidence)) for section in SECTIONS), *more],
        library=library,
    )


def compose(title: str, kind: str, heading: str, origin: str, sections: Sequence[Section], library: str) -> str:
    """Return a page of sections under a heading; `library` is the source of plotly.js."""
    first = sections[0]
    return Template(_asset("page.html")).substitute(
        title=element("title", title),
        style=_asset("style.css"),
        skip=element("a", f"Skip to: {first[1]}", class_="skip", href=f"#{first[0]}"),
        kind=element("p", kind, class_="kind"),
        robot=element("h1", heading),
        origin=element("p", origin, class_="origin"),
        contents=join(element("a", name, href=f"#{id_}") for id_, name, _ in sections),
        sections=join(_section(*own) for own in sections),
        library=library.replace("</script", "<\\/script"),
        script=page_script(),
    )


def plotly_script() -> str:
    """Return the source of plotly.js as the plotly package brings it."""
    try:
        offline = import_module("plotly.offline")
    except ImportError:
        raise MissingExtraError("plotly", "report", "a report") from None
    return str(offline.get_plotlyjs())


def page_script() -> str:
    """Return the page's own scripts: plots and tabs, and the motion in space."""
    return _asset("script.js") + _asset("motion.js")


def _section(name: str, title: str, body: Html) -> Html:
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, body, id=name, aria_labelledby=f"{name}-title")


def _asset(name: str) -> str:
    return (files("jointwise.report") / "assets" / name).read_text(encoding="utf-8")
