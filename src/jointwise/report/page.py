"""Self-contained HTML pages: a template, sections, and a content security policy that allows only their own scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from string import Template

from jointwise.atomic import atomic_write, make_directory, output_set
from jointwise.errors import MissingExtraError
from jointwise.report.markup import Html, element, join

Section = tuple[str, str, Html]
"""Identifier, title and body of a section of a page."""

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'"
)
"""Content security policy. Nothing is loaded from a network, and only scripts with the listed hashes run. Styles cannot
be listed by hash: Plotly sets style attributes and inserts style rules while it draws."""


def compose(title: str, kind: str, heading: str, origin: str, sections: Sequence[Section], library: str) -> str:
    """Return a page of sections under a heading.

    Args:
        title: Title of the document (browser tab).
        kind: Kind of report, shown above the heading.
        heading: Heading of the page.
        origin: Line below the heading: date, version, seed.
        sections: Sections in order.
        library: Source code of plotly.js.

    """
    first = sections[0]
    scripts = [_inline(source) for source in (library, page_script())]
    return Template(_asset("page.html")).substitute(
        policy=POLICY.format(scripts=" ".join(map(_hash, scripts))),
        title=element("title", title),
        style=_asset("style.css"),
        skip=element("a", f"Skip to: {first[1]}", class_="skip", href=f"#{first[0]}"),
        kind=element("p", kind, class_="kind"),
        heading=element("h1", heading),
        origin=element("p", origin, class_="origin"),
        contents=join(element("a", name, href=f"#{id_}") for id_, name, _ in sections),
        sections=join(_section(*section) for section in sections),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def write_page(page: str, path: Path) -> Path:
    """Write a complete page atomically, create its directory if necessary, and return its path."""
    with output_set():
        make_directory(path.parent)
        with atomic_write(path) as file:
            file.write(page)
    return path


def page_path(path: str | Path, name: str) -> Path:
    """Return `path` itself if it names a page (.html, .htm), otherwise the page `name` in the directory `path`."""
    return Path(path) if Path(path).suffix.lower() in (".html", ".htm") else Path(path) / name


def plotly_script() -> str:
    """Return the source code of plotly.js from the plotly package."""
    try:
        offline = import_module("plotly.offline")
    except ImportError:
        raise MissingExtraError("plotly", "report", "a report") from None
    return str(offline.get_plotlyjs())


def page_script() -> str:
    """Return the scripts of the page: plots and tabs, and the animation of the arm."""
    return _asset("script.js") + _asset("motion.js")


def _inline(source: str) -> str:
    """Return a script that can stand in a script element, with line ends as the HTML parser normalises them."""
    return source.replace("</script", "<\\/script").replace("\r\n", "\n").replace("\r", "\n")


def _hash(script: str) -> str:
    """Return the source expression of an inline script for the content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}'"


def _section(name: str, title: str, body: Html) -> Html:
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, body, id=name, aria_labelledby=f"{name}-title")


def _asset(name: str) -> str:
    return (files("jointwise.report") / "assets" / name).read_text(encoding="utf-8")
