"""Configuration of the documentation site: `make docs` builds it with warnings as errors."""

from __future__ import annotations

import logging
import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "frontends")]
os.environ.setdefault("MPLBACKEND", "Agg")
logging.getLogger("copter").setLevel(logging.WARNING)  # Sphinx listens to all loggers

project = "copter"
author = "the authors of copter"
release = version = installed_version("copter-lp")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
exclude_patterns = ["_build", "gallery", "README.md"]  # index.md includes README.md
nitpicky = False

myst_enable_extensions = ["dollarmath", "amsmath", "fieldlist"]
myst_heading_anchors = 4

autodoc_typehints = "none"  # numpydoc's sections say them
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Every example runs at each build; one that fails ends it.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "image_scrapers": (),
}

html_theme = "furo"
html_title = "copter"
html_copy_source = False


def escape_bars(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Absolute values in docstrings are no substitutions of reStructuredText."""
    for at, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[at] = "``".join(parts)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars)
