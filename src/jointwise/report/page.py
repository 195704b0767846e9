"""Self-contained HTML pages: a template, sections, and the titles and units of robots and joints in them.

A content security policy allows only their own scripts.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import math
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from jointwise.atomic import atomic_write, make_directory, output_set
from jointwise.description.robot import Joint, Robot
from jointwise.errors import MissingExtraError
from jointwise.formatting import fixed, number, percent, r2_text
from jointwise.result.verdict import GRADE_TEXT

if TYPE_CHECKING:
    from jinja2 import Environment

VOID = ("br", "col", "hr")


class Html(str):
    """Markup, as opposed to text; created only by the functions of this module."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the markup itself: templates do not escape it."""
        return self


def markup(child: object) -> Html:
    """Return a child as markup: `Html` as it is, anything else as escaped text."""
    return child if isinstance(child, Html) else Html(escape(str(child)))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """Return an element of a page.

    Args:
        tag: Its tag.
        *children: Its content.
        **attributes: Its attributes; `class_` stands for class and `_` for `-`. None and False are omitted.

    """
    parts = [_attribute(name, value) for name, value in attributes.items() if value is not None and value is not False]
    opening = f"<{tag}{''.join(parts)}>"
    if tag in VOID:
        return Html(opening)
    return Html(f"{opening}{join(children)}</{tag}>")


def join(children: Iterable[object]) -> Html:
    """Return the children one after another."""
    return Html("".join(markup(child) for child in children))


def paragraph(*children: object, class_: str | None = None) -> Html:
    """Return a paragraph."""
    return element("p", *children, class_=class_)


def badge(word: str, tone: str) -> Html:
    """Return a word on a coloured background with a mark; tones: good, fair, poor, plain."""
    marks = {"good": "✓", "fair": "!", "poor": "✕", "plain": "·"}
    sign = element("span", marks[tone], class_="mark", aria_hidden="true")
    return element("span", sign, " ", word, class_=f"badge {tone}")


def items(entries: Iterable[object], class_: str | None = None) -> Html:
    """Return a bulleted list."""
    return element("ul", *(element("li", entry) for entry in entries), class_=class_)


def facts(pairs: Sequence[tuple[object, object]]) -> Html:
    """Return a list of names and values."""
    rows = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", *rows, class_="facts")


def table(
    caption: object, head: Sequence[object], rows: Iterable[Sequence[object]], text_columns: Sequence[int] = (0,)
) -> Html:
    """Return a table that scrolls inside its box; the first column holds row headings, `text_columns` align left."""
    title = element("caption", element("span", caption))
    names = (element("th", name, scope="col", class_=_kind(k, text_columns)) for k, name in enumerate(head))
    body = (element("tr", *_cells(row, text_columns)) for row in rows)
    content = element("table", title, element("thead", element("tr", *names)), element("tbody", *body))
    return element(
        "div", content, class_="scroll", tabindex="0", role="group", aria_label="table, scrolls horizontally"
    )


def tabs(name: str, panels: Sequence[tuple[str, Html]], first: int = 0) -> Html:
    """Return panels of which one is visible at a time, initially `first`; all in print and without scripts."""
    if len(panels) == 1:
        return panels[0][1]
    boxes = (
        element("div", element("h4", title, class_="panel-title"), body, class_="panel", data_title=title)
        for title, body in panels
    )
    return element("div", *boxes, class_="tabs", data_name=name, data_first=first or None)


def details(summary: object, *children: object) -> Html:
    """Return a collapsible block."""
    return element("details", element("summary", summary), *children)


def _cells(row: Sequence[object], text_columns: Sequence[int]) -> Iterable[Html]:
    first = element("th", row[0], scope="row", class_=_kind(0, text_columns))
    return (first, *(element("td", cell, class_=_kind(k, text_columns)) for k, cell in enumerate(row[1:], start=1)))


def _kind(column: int, text_columns: Sequence[int]) -> str | None:
    return "text" if column in text_columns else None


def _attribute(name: str, value: object) -> str:
    key = name.rstrip("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{escape(str(value))}"'


Section = tuple[str, str, Html]
"""Identifier, title and body of a section of a page."""

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'"
)
"""Content security policy. Nothing is loaded from a network, and only scripts with the listed hashes run. Styles cannot
be listed by hash: Plotly sets style attributes and inserts style rules while it draws. The library is packed; the page
inserts the script that it unpacks, which runs because its hash is listed."""


def compose(kind: str, heading: str, origin: str, sections: Sequence[Section]) -> str:
    """Return a page of sections under a heading. It is self-contained and needs no network.

    Args:
        kind: Kind of report, shown above the heading.
        heading: Heading of the page.
        origin: Line below the heading: date, version, seed.
        sections: Sections in order.

    Raises:
        MissingExtraError: If jinja2 is not installed.

    """
    return render("sections.html", kind=kind, heading=heading, origin=origin, sections=sections)


def render(template: str, **values: object) -> str:
    """Return a complete page of a template. It is self-contained and needs no network.

    Args:
        template: A template that extends `page.html`.
        **values: What it shows; `kind`, `heading` and `origin` are those of `compose`.

    Raises:
        MissingExtraError: If jinja2 is not installed.

    """
    library, script = _asset("plotly.min.js.gz"), (_asset("script.js") + _asset("motion.js")).decode()
    return (
        environment()
        .get_template(template)
        .render(
            **values,
            contents=[],
            policy=POLICY.format(scripts=" ".join(map(_hash, (gzip.decompress(library), script.encode())))),
            style=Html(_asset("style.css").decode()),
            library=base64.b64encode(library).decode("ascii"),
            script=Html(script),
        )
    )


def fragment(template: str, **values: object) -> Html:
    """Return a part of a page."""
    return Html(environment().get_template(template).render(**values, contents=[]))


@cache
def environment() -> Environment:
    """Return the templates with the macros and filters that they use."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report", "a report") from None
    templates = Environment(
        loader=PackageLoader("jointwise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    for function in (number, fixed, percent, r2_text):
        templates.filters[function.__name__] = function
    templates.globals["grade_text"] = GRADE_TEXT
    templates.filters["norm"] = lambda vector: math.hypot(*vector)
    templates.filters["scaled"] = lambda values, factor: [None if x is None else factor * x for x in values]
    return templates


def write_page(page: str, path: str | Path, name: str) -> Path:
    """Write a complete page atomically, create its directory if necessary, and return its path.

    That is `path` itself if it names a page (.html, .htm), otherwise the page `name` in the directory `path`.
    """
    target = Path(path) if Path(path).suffix.lower() in (".html", ".htm") else Path(path) / name
    with output_set():
        make_directory(target.parent)
        with atomic_write(target) as file:
            file.write(page)
    return target


def _hash(script: bytes) -> str:
    """Return the source expression of a script for the content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode('ascii')}'"


def _asset(name: str) -> bytes:
    return (files("jointwise.report") / "assets" / name).read_bytes()


def joint_title(robot: Robot, j: int) -> str:
    """Return `Joint 2 · shoulder_lift`, or `Joint 2` if the name only repeats the number; `j` counts from 0."""
    name = robot.joints[j].name
    plain = name.lower().strip("_ ").replace("_", "").replace(" ", "") in (f"j{j + 1}", f"joint{j + 1}", str(j + 1))
    return f"Joint {j + 1}" if plain or not name else f"Joint {j + 1} · {name}"


def robot_title(robot: Robot) -> str:
    """Return the title of a robot, or its name if it has no title."""
    return robot.title or robot.name


def length_unit(joint: Joint) -> str:
    """Return rad for a revolute joint and m for a prismatic one."""
    return "rad" if joint.kind == "revolute" else "m"


def length_units(robot: Robot) -> str:
    """Return the units of the joint positions of a robot: rad, m, or `rad or m`."""
    return " or ".join(sorted({length_unit(joint) for joint in robot.joints}, reverse=True))


def effort_unit(joint: Joint) -> str:
    """Return Nm for a revolute joint and N for a prismatic one."""
    return "Nm" if joint.kind == "revolute" else "N"
