"""Self-contained HTML pages: a template, sections, and the titles and units of robots and joints in them.

A content security policy allows only their own scripts.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from string import Template

from jointwise.atomic import atomic_write, make_directory, output_set
from jointwise.description.robot import Joint, Robot
from jointwise.errors import MissingExtraError

VOID = ("br", "col", "hr")


class Html(str):
    """Markup, as opposed to text; created only by the functions of this module."""

    __slots__ = ()


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
be listed by hash: Plotly sets style attributes and inserts style rules while it draws."""


def compose(kind: str, heading: str, origin: str, sections: Sequence[Section]) -> str:
    """Return a page of sections under a heading. It is self-contained and needs no network.

    Args:
        kind: Kind of report, shown above the heading.
        heading: Heading of the page.
        origin: Line below the heading: date, version, seed.
        sections: Sections in order.

    Raises:
        MissingExtraError: If plotly is not installed.

    """
    first = sections[0]
    scripts = [_inline(source) for source in (plotly_script(), page_script())]
    return Template(_asset("page.html")).substitute(
        policy=POLICY.format(scripts=" ".join(map(_hash, scripts))),
        title=element("title", f"{heading} · {kind}"),
        style=_asset("style.css"),
        skip=element("a", f"Skip to: {first[1]}", class_="skip", href=f"#{first[0]}"),
        kind=element("p", kind, class_="kind"),
        heading=element("h1", heading),
        origin=element("p", origin, class_="origin"),
        contents=join(element("a", name, href=f"#{id_}") for id_, name, _ in sections),
        sections=join(_section(*section) for section in sections),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


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
