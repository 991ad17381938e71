"""Whole rounds of the five schedulers, as ``copter simulate`` plans them; writes docs/results/rounds.md row by row.

    python benchmarks/whole_rounds.py                                     # every row
    python benchmarks/whole_rounds.py --only sia --gpus 10000 --load 1.6  # this row; the page keeps the others

A row has the stages of a round, and how long this machine takes to read the costs of all columns once: no round that
looks at every column can be faster.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from floor import stream_bytes_per_s

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "rounds.md"
ROUNDS = {"sia": 30, "hadar": 30, "hops": 30, "chronus": 12, "hare": 12}  # that are measured, after a warm-up
LOADS = (1.0, 1.6)
GOALS = {  # milliseconds at load 1.6: p50, p99
    ("sia", 10_000): (15, 30),
    ("hadar", 10_000): (15, 35),
    ("hops", 10_000): (18, 60),
    ("chronus", 10_000): (100, 300),
    ("hare", 10_000): (60, 150),
}
SIZES = (10_000, 25_000)
KEYS = [(name, gpus, load) for gpus in SIZES for load in LOADS for name in ROUNDS]
STAGES = ("round_s", "edit_s", "solve_s", "shim_s", "place_s")
COST_BYTES = 8  # of a column
Key = tuple[str, int, float]
LATER = "\n## "  # what follows the table is kept as it is
HEAD = """# Whole rounds

Made by `python benchmarks/whole_rounds.py`, row by row; the last column is the commit, the date, and the work beside
it. Each row is `copter simulate SCHEDULER --gpus N --rounds R --seed 77 --load L`: milliseconds of a round, p50 / p99,
and of its stages. **Load** is what the command prints ([simulator.md](../reference/simulator.md)): the work that can
run in the counted rounds over what the GPUs do in them. **Waiting**: jobs without GPUs, in the median round. **LPs**:
the share of the counted rounds with a linear program; a plan that is proven best without one needs none. **Goal** is
what the project aims at. **Floor** is the time in which the machine reads the cost of every column once ({rate:.1f}
GB/s). How a row here differs from a tape and from the study of the engine: [sizes.md](sizes.md).

| scheduler | GPUs | load | rounds | waiting | LPs | columns | round | goal | edits | \
LP | shim | placement | floor | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def measured(scheduler: str, gpus: int, load: float) -> dict[str, Any]:
    """Return the command's own figures."""
    options = ["--gpus", str(gpus), "--rounds", str(ROUNDS[scheduler]), "--seed", "77"]
    options += ["--load", str(load), "--json"]
    command = [sys.executable, "-m", "copter_frontends.cli", "simulate", scheduler, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.splitlines() or ["it said nothing"])[-1]
        raise SystemExit(f"{scheduler} at {gpus:,} GPUs, load {load}: {reason}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def described() -> str:
    """Return the commit's short name, with "-dirty" after it if files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def row(scheduler: str, gpus: int, load: float, rate: float) -> str:
    """Measure a scheduler and return its row."""
    beside = os.getloadavg()[0]
    found = measured(scheduler, gpus, load)
    columns = float((found["variables"] or {}).get("p50", 0.0))
    stages = [" / ".join(f"{1e3 * found[stage][share]:.3g}" for share in ("p50", "p99")) for stage in STAGES]
    goal = " / ".join(str(each) for each in GOALS.get((scheduler, gpus), ())) if load == max(LOADS) else ""
    rounds_with = found["rounds_with_lp"]
    cells = (
        scheduler,
        f"{gpus:,}",
        f"{found['load']['all']:.2f}",
        ROUNDS[scheduler],
        f"{found['jobs_without_gpus']['p50'] or 0:,.0f}",
        f"{rounds_with / max(found['rounds'], 1):.0%}",
        f"{columns:,.0f}",
        stages[0],
        goal,
        *stages[1:],
        f"{1e3 * COST_BYTES * columns / rate:.2g}",
        f"{described()}, {datetime.date.today().isoformat()}, {beside:.1f}",
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def rows_of(page: Path) -> dict[Key, str]:
    """Return the rows that a page has, each by the load of the list that its own is nearest to."""
    found: dict[Key, str] = {}
    for line in page.read_text().partition(LATER)[0].splitlines() if page.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 3 and cells[0] in ROUNDS:
            load = min(LOADS, key=lambda each: abs(each - float(cells[2])))
            found[cells[0], int(cells[1].replace(",", "")), load] = line
    return found


def main() -> None:
    """Measure what is asked for, and write the page after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(ROUNDS), help="schedulers, separated by commas")
    parser.add_argument("--gpus", default=",".join(map(str, SIZES)), help="sizes, separated by commas")
    parser.add_argument("--load", default=",".join(map(str, LOADS)), help="loads, separated by commas")
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    loads = [float(each) for each in asked.load.split(",")]
    sizes = [int(each) for each in asked.gpus.split(",")]
    wanted = {(name, gpus, load) for name in asked.only.split(",") for gpus in sizes for load in loads}
    unknown = wanted - set(KEYS)
    if unknown:
        raise SystemExit(f"no row for {unknown}: schedulers are {', '.join(ROUNDS)}, sizes {SIZES}, loads {LOADS}")
    rows, rate = rows_of(asked.page), stream_bytes_per_s()
    _, mark, later = asked.page.read_text().partition(LATER) if asked.page.exists() else ("", "", "")
    for key in KEYS:
        if key in wanted:
            rows[key] = row(*key, rate)
            lines = [HEAD.format(rate=rate / 1e9), *(rows[each] for each in KEYS if each in rows)]
            asked.page.write_text("\n".join(lines) + "\n" + mark + later)
            print(rows[key], flush=True)


if __name__ == "__main__":
    main()
