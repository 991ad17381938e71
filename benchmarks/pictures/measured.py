"""Time of a round against its columns, copter and the fastest other solver: drawn from docs/measured.md itself."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from readme_table import rows_of

from copter_frontends.report.theme import Theme
from pictures.drawing import drawn

Point = tuple[str, int, float, float | None]

NAME = "measured.svg"
ALT = "Median time of a round's edits and LP against its columns, copter and the fastest other solver of each tape"

FLOOR = "memory floor: every cost read once"
"""The legend's word for the least time of a round that prices all columns."""
COST_BYTES = 8
"""Bytes of a column's cost, float64. Usage is not counted: requests of one shape share it, so it is far smaller."""

NEAR = 0.2
"""Decades of columns: the names of tapes that are nearer to each other stand on different sides."""
PLACES = {
    (False, False): ((0, 6), "center", "bottom"),
    (False, True): ((-6, 0), "right", "center"),
    (True, False): ((6, 0), "left", "center"),
    (True, True): ((0, -6), "center", "top"),
}
"""Where a tape's name stands, by whether others are near to the left and right: its offset in points, its alignment."""


def line() -> str:
    """The page's line that shows the picture beside it."""
    return f"![{ALT}]({NAME})"


def points_of(page: str) -> list[Point]:
    """(tape, columns, copter's median, the fastest other's) by columns; times in ms, None where no other has one.

    Parameters
    ----------
    page : str
        The text of docs/measured.md.
    """
    found = []
    for tape, cells in rows_of(page).items():
        _, columns, own, _, theirs, *_ = (each.replace(",", "") for each in cells)
        found.append((tape, int(columns), float(own), float(theirs) if theirs else None))
    return sorted(found, key=lambda point: point[1])


def memory_of(page: str) -> float | None:
    """Bytes a second at which the page's machine reads memory; None if the page does not say."""
    found = re.search(r"^\| memory \| read at ([\d.]+) GB/s \|$", page, flags=re.MULTILINE)
    return float(found[1]) * 1e9 if found else None


def picture(page: str) -> str:
    """The SVG of the page's rows at a glance; ValueError if it has none."""
    points = [point for point in points_of(page) if point[2] > 0]
    if not points:
        raise ValueError("the page has no row at a glance: `make suite` writes it")
    rate = memory_of(page)
    svg = drawn(lambda figure, theme: _draw(figure, theme, points, rate), (7.2, 3.8))
    return svg.replace("<style>", f"<desc>{escape(said(points, rate))}</desc>\n<style>", 1)


def floor_ms(columns: int, rate: float) -> float:
    """Milliseconds to read the costs of all columns once, at `rate` bytes a second."""
    return COST_BYTES * columns / rate * 1e3


def said(points: Sequence[Point], rate: float | None = None) -> str:
    """What the picture shows, in words: a line for each tape, with the memory floor if `rate` (bytes/s) is known."""
    lines = []
    for tape, columns, own, other in points:
        theirs = "no other" if other is None else f"the other {other:g} ms"
        floor = "" if rate is None else f", memory floor {floor_ms(columns, rate):.3g} ms"
        lines.append(f"{tape}: {columns:,} columns, copter {own:g} ms, {theirs}{floor}")
    return "\n".join(lines)


def _draw(figure: Figure, theme: Theme, points: list[Point], rate: float | None) -> None:
    axes: Any = figure.add_subplot()
    own, peer = theme.series[0], theme.series[3]
    if rate is not None:
        ends = [points[0][1], points[-1][1]]
        axes.plot(ends, [floor_ms(each, rate) for each in ends], "--", color=theme.muted, linewidth=1, label=FLOOR)
    for tape, columns, ours, theirs in points:
        if theirs is not None:
            axes.plot([columns, columns], [ours, theirs], color=theme.grid, linewidth=2.5, zorder=1)
        beside = [math.log10(other[1] / columns) for other in points if other[0] != tape]
        left, right = (any(0 <= sign * each < NEAR for each in beside) for sign in (-1, 1))
        at, across, along = PLACES[left, right]
        y = min(ours, theirs or ours) if left and right else max(ours, theirs or ours)
        axes.annotate(
            tape, (columns, y), at, textcoords="offset points", ha=across, va=along, fontsize=7, color=theme.muted
        )
    axes.plot([p[1] for p in points], [p[2] for p in points], "o", color=own, label="copter", zorder=3)
    timed = [(p[1], p[3]) for p in points if p[3] is not None]
    if timed:
        label = "fastest other solver of the tape"
        axes.plot(*zip(*timed, strict=True), "s", color=peer, markersize=5, label=label, zorder=2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.minorticks_off()
    axes.set_xlabel("columns of the linear program")
    axes.set_ylabel("median round (ms)")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, columnspacing=1.0, fontsize=8, borderaxespad=0.2)


def write(page: Path) -> Path:
    """Draw the picture of a page beside it; its path."""
    target = page.with_name(NAME)
    target.write_text(picture(page.read_text()))
    return target
