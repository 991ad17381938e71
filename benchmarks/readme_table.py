"""README's table of results, from the generated page.

python benchmarks/readme_table.py      # fills it in again
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "docs/measured.md"
LEAST = 20  # rounds of both that a ratio needs
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
ROWS = {
    **{
        f"{name.lower()}-10000-{load}": f"{name}, 10,000 GPUs, load {load}"
        for name in ("Sia", "Hadar", "Hops", "Chronus", "Hare")
        for load in ("1.0", "1.6")
    },
    "traffic-gtsce-perturbed": "traffic on GtsCe",
}
"""Tapes that README shows, with their names there; of two loads the higher one that the page has."""


def rows_of(page: str) -> dict[str, list[str]]:
    """The page's rows at a glance: the cells by the tape's name."""
    part = page.partition("## At a glance")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:2] == "| "]
    return {own[0]: own for own in cells if own[0] != "tape"}


def warm_of(page: str, tape: str) -> tuple[str, str, str] | None:
    """The rival that keeps its basis and has the least ratio of medians in a tape's section: name, median, ratio."""
    part = page.partition(f"\n## {tape}\n")[2].partition("\n## ")[0]
    found = []
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 10 and cells[0].endswith("_warm") and cells[8] != "-" and int(cells[10]) >= LEAST:
            found.append((float(cells[8].replace(",", "")), cells[0], cells[3], cells[8]))
    return min(found)[1:] if found else None


def named(way: str) -> str:
    """A way of a solver in words."""
    words = {"highs": "HiGHS", "glop": "GLOP", "pdlp": "PDLP", "soplex": "SoPlex", "ipm": "interior point"}
    words |= {"columns": "column generation", "warm": "", "cold": "", "no": "", "crossover": "", "1e-6": ""}
    return " ".join(told for word in way.split("_") if (told := words.get(word, word)))


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
        "| recorded rounds of | copter, median | p99 | counted | best rival, median | ratio |",
        "|---|---|---|---|---|---|",
    ]
    found = rows_of(page)
    clock = ", processor time, one thread" if "processor time on one thread, commit" in page else ""
    for name, cells in found.items():
        if name in ROWS and not (name.endswith("-1.0") and f"{name[:-4]}-1.6" in found):
            _, _, own, rival, theirs, times, _, both, start, most, counted = cells
            rounds = counted if both == counted or not times else f"{both} of {counted}"
            other = f"{theirs} ms, {named(rival)}" if theirs else rival
            told = f"{times} ({start})" if times else "none"
            if start == "scratch" and (warm := warm_of(page, name)):  # like with like first
                rival, theirs, ratio = warm
                other, told = f"{theirs} ms, {named(rival)}", f"{ratio} (warm), {told}"
            lines.append(f"| {ROWS[name]} | {own} ms | {most} ms | {rounds} | {other} | {told} |")
    text = "\n".join(
        [
            *lines,
            "",
            f"Edits and LP{clock} ({date.group(1) if date else 'undated'}); first solves excluded. "
            "Ratio of medians: above 1 copter is faster. Scratch: the rival keeps no basis. No "
            f"commercial solver was run. [All rows]({PAGE}), [sizes](docs/results/sizes.md).",
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
