"""Configuration of the documentation: Sphinx with MyST and furo; `make docs` builds it without network access."""

from __future__ import annotations

import sys
from pathlib import Path

import jointwise

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "Jointwise"
author = "The Jointwise developers"
copyright = "2026, The Jointwise developers"  # noqa: A001 - Sphinx reads this name
release = version = jointwise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "api_reference",
    "cli_reference",
    "mathml",
]
exclude_patterns = ["_build", "_extensions"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"Array": "Array", "Mounting": "Mounting"}
napoleon_numpy_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = "Jointwise"
html_static_path = ["_static"]
html_css_files = ["jointwise.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
