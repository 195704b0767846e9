"""The directive `cli-reference`: one section with the help text of every command."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from importlib import import_module
from unittest import mock

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from jointwise.cli import COMMANDS, main

WIDTH = 96


def help_text(*words: str) -> str:
    """Return what `jointwise WORDS --help` prints."""
    output = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}), contextlib.redirect_stdout(output):
        code = main([*words, "--help"])
    if code != 0:
        raise RuntimeError(f"jointwise {' '.join(words)} --help: exit code {code}")
    return output.getvalue()


def subcommands_of(name: str) -> tuple[str, ...]:
    """Return the names of the subcommands of a command."""
    parser = argparse.ArgumentParser()
    import_module(COMMANDS[name][0]).add_arguments(parser)
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return tuple(choice for action in actions for choice in action.choices)


class CliReference(Directive):
    """Sections of literal blocks, in the order of `jointwise --help`."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return [self._section((name,), subcommands_of(name)) for name in COMMANDS]

    def _section(self, words: tuple[str, ...], subcommands: tuple[str, ...] = ()) -> nodes.section:
        title = " ".join(("jointwise", *words))
        section = nodes.section(ids=[title.replace(" ", "-")], names=[title])
        section += nodes.title(text=title)
        text = help_text(*words)
        section += nodes.literal_block(text, text, language="text")
        for name in subcommands:
            section += self._section((*words, name))
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("cli-reference", CliReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
