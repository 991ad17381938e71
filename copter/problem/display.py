"""How models, solutions and plans show themselves: one line in a terminal, a small table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite

MOST_ROWS = 12  # rows of a table in a notebook


def figure(value: float) -> str:
    """A number as people write it: six digits, thousands apart."""
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}" if abs(value) < 1e15 else f"{value:g}"


def percent(value: float) -> str:
    """A gap in percent; "unknown" for NaN and infinity."""
    return (
        "unknown"
        if not isfinite(value)
        else "0%"
        if value == 0
        else f"{100 * value:.2g}%"
        if value >= 1e-6
        else "< 0.0001%"
    )


def seconds(value: float) -> str:
    """A duration in the unit that leaves one to three digits before the point."""
    if value >= 1.0:
        return f"{value:.3g} s"
    return f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.3g} us"


def counted(number: int, what: str) -> str:
    """A number of things, in the singular for one."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def page(
    title: str,
    facts: Sequence[tuple[str, str]],
    head: Sequence[str] = (),
    rows: Iterable[Sequence[str]] = (),
    left: int = 0,
) -> str:
    """A title, facts by name, and a table of which `left` rows are not shown, in HTML for a notebook."""
    lines = [f"<div><b>{escape(title)}</b><table><tbody>"]
    lines += [
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in facts
    ]
    lines.append("</tbody></table>")
    body = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    if body:
        lines.append(
            "<table><thead><tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr></thead><tbody>"
        )
        lines += [f"<tr>{cells}</tr>" for cells in body]
        lines.append("</tbody></table>")
    if left > 0:
        lines.append(f"<small>and {left:,} more</small>")
    return "\n".join([*lines, "</div>"])
