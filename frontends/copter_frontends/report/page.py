"""A self-contained HTML page with plots: a template, a common style, embedded images."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from copter.problem.figures import percent, seconds, times
from copter_frontends.report.charts import Chart
from copter_frontends.report.figures import image_of
from copter_frontends.report.table import number
from copter_frontends.report.theme import DARK, LIGHT

PAGE = "report.html"
STYLE = "page.css"


def write_page(template: str, charts: Sequence[Chart], directory: str | Path, **values: Any) -> Path:
    """Write the page, and a PNG for each plot.

    Parameters
    ----------
    template : str
        File name of the template in this package.
    charts : sequence of Chart
    directory : path
        Folder; made if it does not exist.
    **values
        Values that the template needs besides `charts`.

    Returns
    -------
    Path
        Path of the page.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for chart in charts:
        (folder / f"{chart.name}.png").write_bytes(image_of(chart, LIGHT, "png"))
    target = folder / PAGE
    target.write_text(page_of(template, charts, **values), encoding="utf-8")
    return target


def page_of(template: str, charts: Sequence[Chart], **values: Any) -> str:
    """Return a page with its plots embedded, each in a light and a dark form."""
    from jinja2 import Environment, FunctionLoader  # of the optional extra `report`
    from markupsafe import Markup

    drawn = []
    for chart in charts:
        images = {theme.name: inline(image_of(chart, theme, "svg")) for theme in (LIGHT, DARK)}
        drawn.append({"name": chart.name, "title": chart.title, "caption": chart.caption, **images})
    environment = Environment(loader=FunctionLoader(text_of), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"seconds": seconds, "percent": percent, "times": times}
    environment.filters["figure"] = number
    page = environment.get_template(template)
    return page.render(charts=drawn, style=Markup(text_of(STYLE)), **values)


def text_of(name: str) -> str:
    """Return a text file of this package."""
    return files("copter_frontends.report").joinpath(name).read_text(encoding="utf-8")


def inline(image: bytes) -> str:
    """Return an SVG as a data address for an image."""
    return "data:image/svg+xml;base64," + base64.b64encode(image).decode("ascii")
