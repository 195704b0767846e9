"""The directive `cli-reference`: what every command does, its options from its settings, and examples."""

from __future__ import annotations

from collections.abc import Iterable

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from jointwise.cli import COMMANDS, every_command
from jointwise.cli.command import GENERAL, Command
from jointwise.settings import Setting, settings_of


class CliReference(Directive):
    """Sections with a table of options, in the order of `jointwise --help`; options of all commands come first."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        commands = list(every_command())
        general = [each for each in settings_of(commands[0][1].settings) if each.option.group == GENERAL]
        found: list[nodes.Node] = [_section("Options of every command", table(general))]
        for name in COMMANDS:
            inner = [_command(words, command) for words, command in commands if words[0] == name and len(words) > 1]
            own = [_command(words, command) for words, command in commands if words == (name,)]
            found += [_section(f"jointwise {name}", *inner)] if not own else [own[0], *inner]
        return found


def _section(title: str, *content: nodes.Node) -> nodes.section:
    section = nodes.section(ids=[title.lower().replace(" ", "-")], names=[title])
    section += nodes.title(text=title)
    section += content
    return section


def _command(words: tuple[str, ...], command: Command) -> nodes.section:
    """Return what a command does, its options, and the end of its help."""
    own = [each for each in settings_of(command.settings) if each.option.group != GENERAL]
    examples = nodes.literal_block(command.examples, command.examples, language="text")
    about = nodes.paragraph(text=" ".join(command.about.split()))
    return _section(" ".join(("jointwise", *words)), about, *([table(own)] if own else []), examples)


def table(settings: Iterable[Setting]) -> nodes.table:
    """Return a table of options: spelling, name in a file of options, values, default, what it is."""
    rows = [("option", "in a file", "value", "default", "")]
    rows += [
        (
            ", ".join([*each.spellings, *([each.option.off[0]] if each.option.off else [])]),
            each.name,
            each.values,
            each.standard,
            each.option.help,
        )
        for each in settings
    ]
    group = nodes.tgroup(cols=len(rows[0]))
    group += [nodes.colspec(colwidth=width) for width in (20, 15, 20, 15, 40)]
    head, body = nodes.thead(), nodes.tbody()
    head += _row(rows[0], literal=False)
    body += [_row(row, literal=True) for row in rows[1:]]
    group += [head, body]
    return nodes.table("", group)


def _row(cells: tuple[str, ...], *, literal: bool) -> nodes.row:
    row = nodes.row()
    for k, text in enumerate(cells):
        content = nodes.literal(text, text) if literal and k < 2 else nodes.Text(text)
        row += nodes.entry("", nodes.paragraph("", "", content))
    return row


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("cli-reference", CliReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
