"""The table that models, solutions and plans show in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from copter.problem.figures import counted as counted
from copter.problem.figures import figure as figure
from copter.problem.figures import percent as percent
from copter.problem.figures import seconds as seconds

MOST_ROWS = 12  # rows of a table in a notebook


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
