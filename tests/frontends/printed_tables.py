"""Figures of the tables that benchmarks/tables print, so that tests look at numbers and not at words."""

from __future__ import annotations

import re

CELL = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?%?|nan|-"


RANGE = re.compile(rf" \((?:{CELL}) to (?:{CELL})\)")


def tables_of(out: str) -> dict[str, dict[str, list[float]]]:
    """Rows of numbers by their label, table by table; a table's title is the last unindented line that is no row.

    A cell that is ``-`` is left out; ``nan`` stays, so that a test can refuse it. Ranges in brackets after a mean,
    ``3.1 (2.0 to 4.5)``, are left out.
    """
    tables: dict[str, dict[str, list[float]]] = {}
    title = ""
    for whole in out.splitlines():
        line = RANGE.sub("", whole)
        row = re.fullmatch(rf"\s*(\S.*?)\s+((?:{CELL})(?:\s+(?:{CELL}))+)", line)
        if row is not None:
            cells = [float(word.rstrip("%")) for word in row[2].split() if word != "-"]
            tables.setdefault(title, {})[row[1]] = cells
        elif line and not line.startswith(" "):
            title = line
    return tables
