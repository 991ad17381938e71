"""README's table of results, from the generated page.

python benchmarks/readme_table.py      # fills it in again
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "docs/measured.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
ROWS = {
    "sia-1000": "Sia, 1,000 GPUs",
    "hadar-1000": "Hadar, 1,000 GPUs",
    "hops-1000": "Hops, 1,000 GPUs",
    "chronus-1000": "Chronus, 1,000 GPUs",
    "hare-1000": "Hare, 1,000 GPUs",
    "sia-10000": "Sia, 10,000 GPUs",
    "hadar-10000": "Hadar, 10,000 GPUs",
    "hops-10000": "Hops, 10,000 GPUs",
    "chronus-10000": "Chronus, 10,000 GPUs",
    "hare-10000": "Hare, 10,000 GPUs",
    "traffic-gtsce-perturbed": "traffic on GtsCe, all demands moved",
}
"""Tapes that README may show, with their names there; of a scheduler the largest one that the page has."""

MOST = 5
"""Rows of README's table."""


def rows_of(page: str) -> dict[str, list[str]]:
    """The page's rows at a glance: the cells by the tape's name."""
    part = page.partition("## At a glance")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:2] == "| "]
    return {own[0]: own for own in cells if own[0] != "tape"}


def number(text: str) -> str:
    """A number of the page, in thousands where it is one of a thousand or more."""
    value = float(text)
    return f"{value:,.0f}" if value >= 1000 else text


def named(way: str) -> str:
    """A way of a solver in words."""
    return way.replace("_", " ").replace("highs", "HiGHS").replace(" ipm", " interior point")


def inserted(readme: str, page: str) -> str:
    """README with the table as the page now has it.

    Raises
    ------
    ValueError
        If README has no place for it.
    """
    if readme.count(BEGIN) != 1 or readme.count(END) != 1:
        raise ValueError(f"README.md needs one {BEGIN!r} and one {END!r}")
    date = re.search(r"^\| date \| (\S+) \|", page, flags=re.MULTILINE)
    lines = [
        "| recorded rounds of | copter, median | fastest other, median | other's total / copter's |",
        "|---|---|---|---|",
    ]
    found = {name: cells for name, cells in rows_of(page).items() if cells[5]}  # those with a time to compare
    largest = [name for name in ROWS if name in found and f"{name}0" not in found]
    for name, says in ROWS.items():
        if name in largest[:MOST]:
            _, _, own, other, theirs, times, _ = found[name]
            rival = f"{number(theirs)} ms, {named(other)}" if theirs else other
            lines.append(f"| {says} | {own} ms | {rival} | {times} |")
    text = "\n".join(
        [
            *lines,
            "",
            f"Time to edit the program and solve its LP, on 2 busy cores ({date.group(1) if date else 'undated'}). "
            "Cold: from scratch; warm: from the last solution. The last column compares sums over the rounds that both "
            f"proved: copter is faster where it exceeds 1. [All rows, losses included]({PAGE}).",
        ]
    )
    begin, rest = readme.split(BEGIN)
    return f"{begin}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}"


def main() -> int:
    """Write README.md anew; 0."""
    path = ROOT / "README.md"
    path.write_text(inserted(path.read_text(), (ROOT / PAGE).read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
