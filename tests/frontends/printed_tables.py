"""Figures of the tables that benchmarks/tables print, so that tests look at numbers and not at words."""

from __future__ import annotations

import re

CELL = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?%?|nan|-"


def tables_of(out: str) -> dict[str, dict[str, list[float]]]:
    """Rows of numbers by their label, table by table; a table's title is the last unindented line that is no row.

    A cell that is ``-`` is left out; ``nan`` stays, so that a test can refuse it.
    """
    tables: dict[str, dict[str, list[float]]] = {}
    title = ""
    for line in out.splitlines():
        row = re.fullmatch(rf"\s*(\S.*?)\s+((?:{CELL})(?:\s+(?:{CELL}))+)", line)
        if row is not None:
            cells = [float(word.rstrip("%")) for word in row[2].split() if word != "-"]
            tables.setdefault(title, {})[row[1]] = cells
        elif line and not line.startswith(" "):
            title = line
    return tables
