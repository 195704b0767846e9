"""HTML that is safe by construction: everything that is not `Html` is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

VOID = ("br", "col", "hr")


class Html(str):
    """Markup, as opposed to text; created only by the functions of this module."""

    __slots__ = ()


def markup(child: object) -> Html:
    """Return a child as markup: `Html` as it is, anything else as escaped text."""
    return child if isinstance(child, Html) else Html(escape(str(child)))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """Return an element; `class_` stands for class, `_` for `-`; attributes that are None or False are omitted."""
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
