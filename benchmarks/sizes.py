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
| begins | after warm rounds | with nothing; the first solve is apart | nine simulated hours in |

Why they differ, and which way:

- **Study to tape.** A made program has a fixed number of jobs of every size, of which 1% change a round; a scheduler's
  jobs come in bursts, and the values of running ones change, so that more of the program is new. A tape counts what
  the scheduler solves: its columns, its edits.
- **Tape to whole round.** The round adds what surrounds the program: values of jobs that have changed, the shim that
  makes whole allocations of the answer, their place on nodes. The stages stand in rounds.md.
- **Filling to steady.** A tape of a cluster that fills in minutes (sia-1000000) has thousands of new jobs in each
  round; the study's million GPUs are full and nearly still.
- **Load.** Tapes say their load in their names, and rounds.md in a column; it is what
  [simulator.md](../reference/simulator.md) defines.

Milliseconds, medians. *Factor*: of the figure over the one to its left. A dash: not measured in this size.

| thing | study, edits and LP | tape | factor | whole round | factor |
|---|---|---|---|---|---|"""
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
    Thing("Sia, 25,000 GPUs, load 1.6", "sia 25,000 GPUs", "sia-25000-1.6", ("sia", "25,000", 1.6)),
    Thing("Sia, 1,000,000 GPUs", "sia 1,000,000 GPUs, capped", "sia-1000000"),
    *(
        Thing(f"{name.title()}, 10,000 GPUs, load 1.6", "", f"{name}-10000-1.6", (name, "10,000", 1.6))
        for name in ("hadar", "hops", "chronus", "hare")
    ),
)


def cells_of(text: str) -> list[list[str]]:
    """Return the cells of the first table whose rows are measured."""
    lines = text.partition("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]


def figures(thing: Thing, engine: str, measured: str, rounds: str) -> list[float | None]:
    """Return the figures of a thing in the three sizes, milliseconds."""
    studied = [float(cells[5]) for cells in cells_of(engine) if thing.study and cells[0] == thing.study]
    taped = [float(cells[2]) for name, cells in tapes_of(measured).items() if name == thing.tape]
    whole: list[float] = []
    if thing.whole is not None:
        scheduler, gpus, load = thing.whole
        rows = [cells for cells in cells_of(rounds) if cells[:2] == [scheduler, gpus]]
        whole = [float(cells[7].split("/")[0]) for cells in rows if abs(float(cells[2]) - load) < 0.2]
    return [found[0] if found else None for found in (studied, taped, whole)]


def page(engine: str, measured: str, rounds: str) -> str:
    """Return the page, from the texts of the three that it copies."""
    lines = [HEAD]
    for thing in THINGS:
        found = figures(thing, engine, measured, rounds)
        if any(each is not None for each in found):
            told = [f"{each:g}" if each is not None else "-" for each in found]
            factors = ["-" if not old or new is None else f"{new / old:.3g}" for old, new in pairwise(found)]
            lines.append(f"| {thing.name} | {told[0]} | {told[1]} | {factors[0]} | {told[2]} | {factors[1]} |")
    return "\n".join([*lines, TAIL]) + "\n"


def main() -> int:
    """Write the page; 0."""
    texts = [(PAGE.parent / each).read_text() for each in ("engine.md", "../measured.md", "rounds.md")]
    PAGE.write_text(page(*texts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
