"""Whole rounds of the five schedulers, as ``copter simulate`` plans them; writes docs/results/rounds.md row by row.

    python benchmarks/whole_rounds.py                          # every scheduler at 10,000 and 25,000 GPUs
    python benchmarks/whole_rounds.py --only sia --gpus 10000  # these rows; the page keeps the others

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
GOALS = {  # milliseconds: p50, p99
    ("sia", 10_000): (12, 25),
    ("hadar", 10_000): (15, 30),
    ("hops", 10_000): (40, 80),
    ("chronus", 10_000): (100, 300),
    ("hare", 10_000): (300, 600),
    ("sia", 25_000): (30, 60),
    ("hadar", 25_000): (40, 80),
    ("hops", 25_000): (100, 200),
    ("chronus", 25_000): (250, 600),
    ("hare", 25_000): (800, 1_500),
}
STAGES = ("round_s", "edit_s", "solve_s", "shim_s", "place_s")
COST_BYTES = 8  # of a column
HEAD = """# Whole rounds

Made by `python benchmarks/whole_rounds.py`, row by row; the last column is the commit, the date, and the load of the
machine before the row. Each row is `copter simulate SCHEDULER --gpus N --rounds R --seed 77` with its default jobs:
milliseconds of a round, p50 / p99, and of its stages. **Goal** is what the project aims at. **Floor** is the
time in which the machine reads the cost of every column once ({rate:.1f} GB/s).

| scheduler | GPUs | rounds | columns | round | goal | edits | LP | shim | placement | floor | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def measured(scheduler: str, gpus: int) -> dict[str, Any]:
    """Return the command's own figures."""
    options = ["--gpus", str(gpus), "--rounds", str(ROUNDS[scheduler]), "--seed", "77", "--json"]
    command = [sys.executable, "-m", "copter_frontends.cli", "simulate", scheduler, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{scheduler} at {gpus:,} GPUs: {(done.stderr.splitlines() or ['it said nothing'])[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def described() -> str:
    """Return the commit's short name, with "-dirty" after it if files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def row(scheduler: str, gpus: int, rate: float) -> str:
    """Measure a scheduler and return its row."""
    load = os.getloadavg()[0]
    found = measured(scheduler, gpus)
    columns = float((found["variables"] or {}).get("p50", 0.0))
    stages = [" / ".join(f"{1e3 * found[stage][share]:.3g}" for share in ("p50", "p99")) for stage in STAGES]
    goal = " / ".join(str(each) for each in GOALS[scheduler, gpus])
    cells = (
        scheduler,
        f"{gpus:,}",
        ROUNDS[scheduler],
        f"{columns:,.0f}",
        stages[0],
        goal,
        *stages[1:],
        f"{1e3 * COST_BYTES * columns / rate:.2g}",
        f"{described()}, {datetime.date.today().isoformat()}, {load:.1f}",
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def rows_of(page: Path) -> dict[tuple[str, int], str]:
    """Return the rows that a page has."""
    found = {}
    for line in page.read_text().splitlines() if page.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 2 and cells[0] in ROUNDS:
            found[cells[0], int(cells[1].replace(",", ""))] = line
    return found


def main() -> None:
    """Measure what is asked for, and write the page after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(ROUNDS), help="schedulers, separated by commas")
    parser.add_argument("--gpus", default="10000,25000", help="sizes, separated by commas")
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    wanted = {(name, int(gpus)) for name in asked.only.split(",") for gpus in asked.gpus.split(",")}
    unknown = wanted - GOALS.keys()
    if unknown:
        raise SystemExit(f"no row for {unknown}: schedulers are {', '.join(ROUNDS)}, sizes 10000 and 25000")
    rows, rate = rows_of(asked.page), stream_bytes_per_s()
    for key in GOALS:
        if key in wanted:
            rows[key] = row(*key, rate)
            lines = [HEAD.format(rate=rate / 1e9), *(rows[each] for each in GOALS if each in rows)]
            asked.page.write_text("\n".join(lines) + "\n")
            print(rows[key], flush=True)


if __name__ == "__main__":
    main()
