"""One style for every picture: the report's, in one SVG that is light or dark as the reader's page is."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from copter_frontends.report.theme import DARK, LIGHT, Theme


def drawn(draw: Callable[[Figure, Theme], None], size_in: tuple[float, float]) -> str:
    """The SVG of what `draw` puts on a figure of so many inches; the same drawing gives the same text.

    Parameters
    ----------
    draw : callable (Figure, Theme) -> None
        Uses the theme's colours only: a dark page shows the dark theme's in their place.
    size_in : tuple of float
        Width and height in inches.
    """
    with mpl.rc_context(LIGHT.settings()):
        figure = Figure(figsize=size_in, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure, LIGHT)
        target = BytesIO()
        figure.savefig(target, format="svg", metadata={"Date": None})
    text = target.getvalue().decode()
    return with_dark(smaller(text))


def smaller(svg: str) -> str:
    """A SVG of matplotlib's in fewer bytes: no comments, coordinates to a tenth, the style of equal marks once."""
    text = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    text = re.sub(r'(?<= d=")[^"]*|(?<= [xy]=")[^"]*', lambda found: _tenths(found.group()), text)
    text = re.sub(r"\n\s*", "\n", text.strip())
    text = text.replace("xlink:href", "href").replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    return re.sub(
        r'(?:<use href="[^"]*" x="[^"]*" y="[^"]*" style="([^"]*)"/>\n)(?:<use [^>]* style="\1"/>\n)+',
        lambda run: f'<g style="{run.group(1)}">{run.group().replace(chr(32) + STYLE % run.group(1), "")}</g>\n',
        text,
    )


STYLE = 'style="%s"'


def _tenths(text: str) -> str:
    """A path or a number whose decimals end after the first one, without spaces around letters."""
    text = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found.group()):.1f}".removesuffix(".0"), text)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", text).strip()


def dark_rules(svg: str) -> str:
    """Rules of CSS that give what the light theme has coloured in an SVG the dark theme's colours."""
    light, dark = ([theme.paper, theme.ink, theme.muted, theme.grid, *theme.series] for theme in (LIGHT, DARK))
    return "".join(
        f'[style*="{what}: {one}"]{{{what}:{other}!important}}'
        for one, other in zip(light, dark, strict=True)
        for what in ("fill", "stroke")
        if f"{what}: {one}" in svg
    )


def with_dark(svg: str) -> str:
    """The SVG of the light theme with rules for dark pages: the light colours stay where rules are not understood."""
    end = svg.index(">", svg.index("<svg")) + 1
    rules = f"<style>@media (prefers-color-scheme:dark){{{dark_rules(svg)}}}</style>"
    return f"{svg[:end]}\n{rules}{svg[end:]}\n"


def panels(figure: Figure, titles: list[str], columns: int) -> list[Any]:
    """Axes side by side, titles above their legends."""
    rows = -(-len(titles) // columns)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel, title in zip(axes, titles, strict=False):
        panel.set_title(title, loc="left", pad=20, fontsize=10)
    for panel in axes[len(titles) :]:
        panel.set_axis_off()
    return axes[: len(titles)]
