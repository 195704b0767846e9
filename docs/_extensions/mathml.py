"""Render equations as MathML at build time: browsers draw it natively, so no page loads a script or a font."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _visit_display(translator: Any, node: nodes.math_block) -> None:
    latex = (
        node.astext().strip().replace("{aligned}", "{align*}")
    )  # latex2mathml has the second, editors like the first
    translator.body.append(f'<div class="math">{convert(latex, display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name `mathml`."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
