"""Whole rounds of the five schedulers, as ``copter simulate`` plans them; writes docs/results/rounds.md row by row.

    python benchmarks/whole_rounds.py                                     # every row
    python benchmarks/whole_rounds.py --only sia --gpus 10000 --load 1.6  # this row; the page keeps the others

A row is a simulated day after a day of warm-up (others than Hadar and Chronus: six busy hours after nine), in
processor time on one thread, so that other work on the machine does not count.
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

from copter.problem.figures import short

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "rounds.md"
ROUND_S = {"sia": 60, "hadar": 360, "hops": 60, "chronus": 300, "chronus paper": 300, "hare": 300}
DAY, BUSY = (24, 48), (9, 15)  # hours that count
HOURS = {**dict.fromkeys(ROUND_S, DAY), "sia": BUSY, "hops": BUSY, "hare": BUSY, "chronus paper": BUSY}
LOADS = (1.0, 1.6)
GOALS = {  # milliseconds at load 1.6: p50, p99
    ("sia", 10_000): (15, 30),
    ("hadar", 10_000): (15, 35),
    ("hops", 10_000): (18, 60),
    ("chronus", 10_000): (100, 300),
    ("hare", 10_000): (60, 150),
}
SIZES = (10_000,)
KEYS = [(name, gpus, load) for gpus in SIZES for load in LOADS for name in ROUND_S]
STAGES = ("round_s", "edit_s", "solve_s", "shim_s", "place_s")
BY_PROCESSOR = "import time; time.perf_counter = time.process_time; from copter_frontends.cli import main; main()"
ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1"}  # others spin between calls, which counts as processor time
Key = tuple[str, int, float]
HEAD = """# Whole rounds

Made by `python benchmarks/whole_rounds.py`, row by row; the last column is the commit, the date, and the work beside
it. Each row is the simulated *hours* of it that count, after those before them to warm up: `copter simulate SCHEDULER
--gpus N --hours H --warmup-rounds R --window-hours 48 --seed 77 --load L --threads 1`, R the rounds before
(`--window-hours 24` where the hours end before): milliseconds of a round, p50 / p99, and of its stages, in processor
time.

- **Load** is what the command prints ([simulator.md](../reference/simulator.md)): the GPU time that jobs can hold in
  the counted hours over what there is. **Waiting**: jobs without GPUs, in the median round / the most. **Held**: the
  share of all GPU hours that jobs held.
- Where Sia's jobs compete, they run on fewer GPUs instead of waiting.
- **LPs**: rounds that solved a linear program; rounds whose plan was proven without one to be as good as one could
  tell; rounds in which none was due. Chronus plans at the start of a lease, every fourth round, and proves a plan that
  is within the tolerance of its program (0.5%, or half of one job's reward) of a certified bound. Hare's program orders
  jobs; on this many GPUs its order wins in no round, so that none is due (`hare-relaxed` solves it). In Hops's rounds
  between two plans of all GPUs none is needed where no GPU is idle or no job waits. `chronus paper`, with
  `--admission paper`, promises a deadline to each job that fits.
- **Goal** is what the project aims at.

How a row here differs from a tape and from the study of the engine: [sizes.md](sizes.md).

| scheduler | GPUs | load | hours | rounds | waiting | held | LPs | columns | round | goal | edits | \
LP | shim | placement | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def measured(scheduler: str, gpus: int, load: float) -> dict[str, Any]:
    """Return the command's own figures."""
    policy, _, own = scheduler.partition(" ")
    begin, end = HOURS[scheduler]
    warmup = begin * 3600 // ROUND_S[scheduler]
    options = ["--gpus", str(gpus), "--hours", str(end - begin), "--warmup-rounds", str(warmup)]
    options += ["--window-hours", str(max(24, end)), "--seed", "77", "--load", str(load), "--threads", "1", "--json"]
    options += ["--admission", own] if own else []
    command = [sys.executable, "-c", BY_PROCESSOR, "simulate", policy, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **ONE_BLAS_THREAD})
    if done.returncode:
        reason = (done.stderr.splitlines() or ["it said nothing"])[-1]
        raise SystemExit(f"{scheduler} at {gpus:,} GPUs, load {load}: {reason}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def described() -> str:
    """Return the commit's short name, with "-dirty" after it if files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def waiting(found: dict[str, Any]) -> str:
    """Return in words how many jobs had no GPUs."""
    jobs = found["jobs_without_gpus"]
    return f"{jobs['p50']:,.0f} / {jobs['max']:,.0f}" if jobs["max"] else "no job in any round"


def programs(found: dict[str, Any]) -> str:
    """Return in words how many rounds solved a linear program, needed none, and were to have none."""
    solved, needless, rounds = (found[each] for each in ("rounds_with_lp", "rounds_proven_without_lp", "rounds"))
    parts = {"solved": solved, "proven without": needless, "not due": rounds - solved - needless}
    return ", ".join(f"{count:,} {name}" for name, count in parts.items() if count)


def row(scheduler: str, gpus: int, load: float) -> str:
    """Measure a scheduler and return its row."""
    beside = os.getloadavg()[0]
    found = measured(scheduler, gpus, load)
    columns = float((found["variables"] or {}).get("p50", 0.0))
    stages = [" / ".join(short(1e3 * found[stage][share]) for share in ("p50", "p99")) for stage in STAGES]
    goal = " / ".join(str(each) for each in GOALS.get((scheduler, gpus), ())) if load == max(LOADS) else ""
    cells = (
        scheduler,
        f"{gpus:,}",
        f"{found['load']['all']:.2f}",
        f"{HOURS[scheduler][0]}-{HOURS[scheduler][1]}",
        found["rounds"],
        waiting(found),
        f"{found['utilisation']:.0%}",
        programs(found),
        f"{columns:,.0f}",
        stages[0],
        goal,
        *stages[1:],
        f"{described()}, {datetime.date.today().isoformat()}, {beside:.1f}",
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def rows_of(page: Path) -> dict[Key, str]:
    """Return the rows that a page has, each by the load of the list that its own is nearest to."""
    found: dict[Key, str] = {}
    for line in page.read_text().splitlines() if page.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 3 and cells[0] in ROUND_S:
            load = min(LOADS, key=lambda each: abs(each - float(cells[2])))
            found[cells[0], int(cells[1].replace(",", "")), load] = line
    return found


def main() -> None:
    """Measure what is asked for, and write the page after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(ROUND_S), help="schedulers, separated by commas")
    parser.add_argument("--gpus", default=",".join(map(str, SIZES)), help="sizes, separated by commas")
    parser.add_argument("--load", default=",".join(map(str, LOADS)), help="loads, separated by commas")
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    loads = [float(each) for each in asked.load.split(",")]
    sizes = [int(each) for each in asked.gpus.split(",")]
    wanted = {(name, gpus, load) for name in asked.only.split(",") for gpus in sizes for load in loads}
    unknown = wanted - set(KEYS)
    if unknown:
        raise SystemExit(f"no row for {unknown}: schedulers are {', '.join(ROUND_S)}, sizes {SIZES}, loads {LOADS}")
    rows = rows_of(asked.page)
    for key in KEYS:
        if key in wanted:
            rows[key] = row(*key)
            lines = [HEAD, *(rows[each] for each in KEYS if each in rows)]
            asked.page.write_text("\n".join(lines) + "\n")
            print(rows[key], flush=True)


if __name__ == "__main__":
    main()
