"""How late plans with a deadline are, by the clock; writes docs/results/deadlines.md row by row.

    python benchmarks/deadlines.py                               # every scheduler at 25,000 GPUs, 1 ms
    python benchmarks/deadlines.py --only sia --deadline-ms 100  # this row; the page keeps the others

The cluster fills without a deadline, as in ``copter simulate SCHEDULER --gpus N``; then every plan has one. The
simulator carries each plan out, and raises an error for one that does not fit the cluster.
"""

from __future__ import annotations

import argparse
import datetime
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from whole_rounds import described

from copter.problem.figures import short
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.running import collected_now
from copter_frontends.cli.simulate import simulate

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "deadlines.md"
SCHEDULERS = ("sia", "hadar", "hops", "chronus", "hare")
QUANTILES = (0.5, 0.95, 0.99, 1.0)
HEAD = """# Deadlines

Made by `python benchmarks/deadlines.py`, row by row; the last column is the commit, the date, and the load of the
machine before the row. The cluster fills for nine simulated hours as in `copter simulate SCHEDULER --gpus N`; from then
on every plan has the deadline. **Late**: milliseconds by the clock from the deadline to the plan's return, negative if
it is early; in processor time the same without what else the machine did. **GPUs in use** is the median share of the
cluster. Every plan was carried out by the simulator, which refuses plans that do not fit. A policy that keeps its last
plan tries another one from time to time (every 250th of Sia's here), and such a plan is late.

| scheduler | GPUs | deadline (ms) | plans | late: p50 | p95 | p99 | most | processor: p99 | GPUs in use | measured |
|---|---|---|---|---|---|---|---|---|---|---|"""


def options(scheduler: str, gpus: int, seed: int) -> SimulateOptions:
    """Return the options of ``copter simulate`` for a scheduler on its default jobs."""
    words = [scheduler, "--gpus", str(gpus), "--seed", str(seed), "--rounds", "1", "--threads", "1"]
    given = simulate.make_context("simulate", words).params
    return SimulateOptions.of(**{name: given[name] for name in SimulateOptions.__slots__ if name in given})


def late(scheduler: str, gpus: int, deadline_s: float, plans: int, seeds: int) -> dict[str, Any]:
    """Return how late the plans were by the clock and in processor time, seconds, and the share of GPUs in use."""
    wall: list[float] = []
    processor: list[float] = []
    used: list[float] = []
    for seed in range(77, 77 + seeds):
        asked = options(scheduler, gpus, seed)
        run = Run.read(asked)
        simulation = run.simulation
        policy: Any = simulation.policy
        plan = policy.plan
        simulation.run(run.warmup)
        collected_now()
        simulation.deadline_s = deadline_s

        def timed(now_s: float, deadline_s: float, plan: Any = plan) -> Any:
            began, spent = time.perf_counter(), time.process_time()
            made = plan(now_s, deadline_s)
            wall.append(time.perf_counter() - began - deadline_s)
            processor.append(time.process_time() - spent - deadline_s)
            return made

        policy.plan = timed
        for _ in range(-(-plans // seeds)):
            if simulation.finished:
                break
            used.append(simulation.step().utilisation)
    return {"wall": np.array(wall), "processor": np.array(processor), "used": float(np.median(used))}


def row(scheduler: str, gpus: int, deadline_s: float, plans: int, seeds: int) -> str:
    """Measure a scheduler and return its row."""
    load = os.getloadavg()[0]
    found = late(scheduler, gpus, deadline_s, plans, seeds)
    parts = [short(1e3 * np.quantile(found["wall"], share)) for share in QUANTILES]
    cells = [scheduler, f"{gpus:,}", f"{1e3 * deadline_s:g}", f"{len(found['wall']):,}", *parts]
    cells += [short(1e3 * np.quantile(found["processor"], 0.99)), f"{found['used']:.0%}"]
    return f"| {' | '.join([*cells, f'{described()}, {datetime.date.today().isoformat()}, {load:.1f}'])} |"


def rows_of(page: Path) -> dict[tuple[str, str, str], str]:
    """Return the rows that a page has, by scheduler, GPUs and deadline."""
    found = {}
    for line in page.read_text().splitlines() if page.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 3 and cells[0] in SCHEDULERS:
            found[cells[0], cells[1], cells[2]] = line
    return found


def main() -> None:
    """Measure what is asked for, and write the page after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SCHEDULERS), help="schedulers, separated by commas")
    parser.add_argument("--gpus", type=int, default=25_000)
    parser.add_argument("--deadline-ms", type=float, default=1.0)
    parser.add_argument("--plans", type=int, default=1000, help="in all (1000)")
    parser.add_argument("--seeds", type=int, default=4, help="days that they are spread over (4)")
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    if unknown := set(asked.only.split(",")) - set(SCHEDULERS):
        parser.error(f"no scheduler {sorted(unknown)[0]!r}: there are {', '.join(SCHEDULERS)}")
    rows = rows_of(asked.page)
    for name in asked.only.split(","):
        made = row(name, asked.gpus, asked.deadline_ms / 1e3, asked.plans, asked.seeds)
        rows[name, f"{asked.gpus:,}", f"{asked.deadline_ms:g}"] = made
        order = sorted(rows, key=lambda key: (float(key[2]), int(key[1].replace(",", "")), SCHEDULERS.index(key[0])))
        asked.page.write_text("\n".join([HEAD, *(rows[key] for key in order)]) + "\n")
        print(made, flush=True)


if __name__ == "__main__":
    main()
