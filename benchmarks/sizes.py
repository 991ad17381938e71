"""One thing in three sizes: the study of the engine, the tape and the whole round, from the pages that measure them.

    python benchmarks/sizes.py      # writes docs/results/sizes.md

Every figure is copied from the one page that has it, so that the page can only be wrong where that one is.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from readme_table import rows_of as tapes_of

from copter.problem.figures import figure, short

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "sizes.md"
HEAD = """# Three sizes of a thing

A round of a scheduler is measured in three sizes. A figure says little without its size, so each has one place and one
command, and no figure of one size stands beside one of another without saying so.

| | study | tape | whole round |
|---|---|---|---|
| page | [engine.md](engine.md) | [measured.md](../measured.md) | [rounds.md](rounds.md) |
| command | `python benchmarks/engine_rounds.py` | `make suite` | `python benchmarks/whole_rounds.py` |
| programs | made for it; 1% of the jobs change a round | recorded from the scheduler, load as said | the same |
| counted | edits and linear program, also alone | edits and linear program of the counted rounds | all of a round |
| rivals | on small programs | all installed solvers | none |
| begins | after warm rounds | with nothing, nine simulated hours in; the first solve is apart | after a simulated day |

Why they differ, and which way:

- **Study to tape.** A made program has a fixed number of jobs of every size, of which 1% change a round and the others
  not at all, and has no load; a scheduler's jobs come in bursts, and the values of running ones change, so that more
  of the program is new.
- **Tape to whole round.** The round adds what surrounds the program: values of jobs that have changed, the shim that
  makes whole allocations of the answer, their place on nodes. *Stages* has the shares of the round that edits, LP,
  shim and placement have, by the medians of rounds.md; what is left of it is the choice of jobs. The tape's hours are
  other ones than the counted day's.
- **Filling to steady.** A tape of a cluster that fills in minutes (sia-1000000) has thousands of new jobs in each
  round; the study's million GPUs are full and nearly still.
- **Load.** Tapes say their load in their names, and rounds.md in a column; it is what
  [simulator.md](../reference/simulator.md) defines.

Milliseconds of edits and linear program, of the whole round, medians; columns of each size. *Factor*: of the
milliseconds over those of the size before. A dash: not measured in this size.

| thing | study | its columns | tape | its columns | factor to study | round | its columns | factor to tape | stages |
|---|---|---|---|---|---|---|---|---|---|"""
STAGES = ("edits", "LP", "shim", "placement")
TAIL = """
No commercial solver was run: the project has no licence. Those who have one run the same tapes by
`copter replay TAPE --peers gurobi` (or `cplex`, `copt`), or `python benchmarks/tapes.py suite --peers gurobi`; the code
is tested against stubs of their interfaces."""


@dataclass(frozen=True)
class Thing:
    """A row: its name, its row of the study, its tape, and its row of whole rounds by scheduler, GPUs and load."""

    name: str
    study: str = ""
    tape: str = ""
    whole: tuple[str, str, float] | None = None


THINGS = (
    Thing("Sia, 10,000 GPUs, load 1.6", "sia 10,000 GPUs", "sia-10000-1.6", ("sia", "10,000", 1.6)),
    Thing("Sia, 1,000,000 GPUs", "sia 1,000,000 GPUs, capped", "sia-1000000"),
    *(
        Thing(f"{name.title()}, 10,000 GPUs, load 1.6", "", f"{name}-10000-1.6", (name, "10,000", 1.6))
        for name in ("hadar", "hops", "chronus", "hare")
    ),
)


@dataclass(frozen=True)
class Figure:
    """A figure of one size: milliseconds, columns, and in whole rounds the shares of the stages."""

    ms: float
    columns: str
    stages: str = ""


def rows_of(text: str) -> list[dict[str, str]]:
    """Return the first table whose rows are measured: cells by the names of columns."""
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    names, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(names, cells, strict=True)) for cells in rows]


def number(cell: str) -> float:
    """Return the number of a cell, thousands apart or not."""
    return float(cell.replace(",", ""))


def half(cell: str) -> float:
    """Return the p50 of a cell that has a p99 too."""
    return number(cell.split("/")[0])


def figures(thing: Thing, engine: str, measured: str, rounds: str) -> list[Figure | None]:
    """Return the figures of a thing in the three sizes."""
    studied = [
        Figure(number(row["edits and LP"]), row["columns"])
        for row in (rows_of(engine) if thing.study else [])
        if row["row"] == thing.study
    ]
    taped = [Figure(number(cells[2]), cells[1]) for name, cells in tapes_of(measured).items() if name == thing.tape]
    whole: list[Figure] = []
    if thing.whole is not None:
        scheduler, gpus, load = thing.whole
        rows = [row for row in rows_of(rounds) if (row["scheduler"], row["GPUs"]) == (scheduler, gpus)]
        for row in rows:
            if abs(float(row["load"]) - load) < 0.2:
                total = half(row["round"])
                stages = ", ".join(f"{half(row[each]) / total:.0%}" for each in STAGES)
                whole.append(Figure(total, row["columns"], stages))
    return [found[0] if found else None for found in (studied, taped, whole)]


def page(engine: str, measured: str, rounds: str) -> str:
    """Return the page, from the texts of the three that it copies."""
    lines = [HEAD]
    for thing in THINGS:
        found = figures(thing, engine, measured, rounds)
        if any(each is not None for each in found):
            told = ["- | -" if each is None else f"{figure(each.ms)} | {each.columns}" for each in found]
            factors = ["-" if old is None or new is None else short(new.ms / old.ms) for old, new in pairwise(found)]
            stages = found[2].stages if found[2] is not None else "-"
            cells = (thing.name, told[0], told[1], factors[0], told[2], factors[1], stages)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, TAIL]) + "\n"


def main() -> int:
    """Write the page; 0."""
    texts = [(PAGE.parent / each).read_text() for each in ("engine.md", "../measured.md", "rounds.md")]
    PAGE.write_text(page(*texts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
