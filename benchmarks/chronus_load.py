"""Chronus under load: gaps, promises, and the selector's latency (the paper's figure 7(d)), on a page.

    python benchmarks/chronus_load.py                       # every row of docs/results/chronus_load.md
    python benchmarks/chronus_load.py --only 112,960        # rows of these sizes; the page keeps the others
    python benchmarks/chronus_load.py --only 112 --load 1.6 # rows of these loads
    python benchmarks/chronus_load.py --whole 3             # the section on whole plans, 3 of each run

A row is a run of ``copter simulate chronus`` of some hours, cycle by cycle. A row is written as soon as it is measured.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.cli.summary import load_of
from copter_frontends.policies.chronus import ChronusPolicy, selector
from copter_frontends.policies.chronus.compact import compact_form
from copter_frontends.policies.chronus.draft import Draft
from copter_frontends.policies.chronus.exact_plan import FAR
from copter_frontends.policies.chronus.free_tail import FreeTail
from copter_frontends.policies.chronus.options import Ints, Options
from copter_frontends.policy_kit.deadlines import deadline_summary
from copter_frontends.simulator import Simulation

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "chronus_load.md"
HEAD = """# Chronus under load

Made by `python benchmarks/chronus_load.py`, row by row; the last column is the commit, the date, and the load of the
machine before the row. A row is `copter simulate chronus` on GPUs of seven types (960: the paper's cluster of one type)
for some *hours* of a sampled day (seed 0): a small cluster's day from its first hour on, a large one's busy hours after
a warm-up in which nothing counts. Larger clusters are not run: a row takes minutes.

- **Load**: the GPU time that the jobs can hold in these hours, as a share of what there is
  ([simulator.md](../reference/simulator.md)); work that lies beyond the hours does not count. *Jobs* are all jobs, per
  GPU and day.
- **As drawn**: the load of the jobs that the seed gave. **Waiting**: jobs without GPUs, in the median round.
- **C6**: whether promises are selective (the command line's default) or given to every job that fits, as in the paper.
- **Gap**: how far plans of a lease are below the certified bound, median and largest, over the *plans* in which a job
  waits for a promise or a lease; *programs* of them solved a linear program.
- **Promises**: jobs of the whole run that were promised a deadline, were late, lost the promise; no GPU fails.
- **Cycle**: milliseconds of the selector's cycle (admission of waiting jobs, linear program, whole plan) at the start
  of a lease, median and largest: the paper's figure 7(d), whose largest is below 10,000. **Admission**: of one job that
  arrives within a lease, p50 and p99. **Round**: of whole rounds and what the simulator does in
  them, p50 and p99. All in processor time.

| GPUs | hours | load | as drawn | jobs | waiting | C6 | plans | programs | gap, % | promises | cycle | admission | \
round | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""
WHOLE = """
## How good whole plans are without C6

Made by `python benchmarks/chronus_load.py --whole N`. Without C6, plans of few jobs that are nearly all promised can be
far below the LP's bound, because a whole plan cannot have parts of two deadlines. Of the plans furthest below it, N are
given to HiGHS as integer programs (C8 without the late leases of C15), a minute each.

- **LP**: how far the plan is below the LP's bound, in per cent; **exact**: below the integer program's bound.
- **Best**: whether HiGHS found a better plan, and by how much in per cent.

| GPUs | hours | load | jobs | plan at | jobs in it | LP, % | exact, % | better, % |
|---|---|---|---|---|---|---|---|---|"""
WHOLE_CASES = ("112 0.8", "112 1.2", "112 1.6", "2500 1.6")
ROUNDS_H = 12.0  # rounds in an hour
HIGHS_S = 60.0  # time limit of HiGHS on a plan
Key = tuple[int, str, bool]


@dataclass(frozen=True, slots=True)
class Case:
    """A row: GPUs, the hours that count, load, and whether promises are selective."""

    gpus: int
    hours: tuple[float, float]
    load: float
    selective: bool = True

    @property
    def key(self) -> Key:
        """What tells the row from others."""
        return self.gpus, f"{self.load:.1f}", self.selective

    @property
    def warmup(self) -> int:
        """Rounds before those that count."""
        return round(ROUNDS_H * self.hours[0])

    @property
    def rounds(self) -> int:
        """Rounds that count."""
        return round(ROUNDS_H * (self.hours[1] - self.hours[0]))


LOADS = (0.8, 1.0, 1.2, 1.6)
DAY, BUSY_12, BUSY_10 = (0.0, 24.0), (9.0, 21.0), (9.0, 19.0)
CASES = [
    *(Case(112, DAY, load, selective=each) for load in LOADS for each in (True, False)),
    *(Case(960, DAY, load, selective=each) for load in LOADS for each in (True, False)),
    *(Case(2_500, BUSY_12, load, selective=each) for load in (1.0, 1.6) for each in (True, False)),
    *(Case(10_000, BUSY_10, load) for load in LOADS),
]


@dataclass(slots=True)
class Seen:
    """What a run showed."""

    gaps: list[float] = field(default_factory=list)
    programs: int = 0
    cycle_ms: list[float] = field(default_factory=list)
    admission_ms: list[float] = field(default_factory=list)
    round_ms: list[float] = field(default_factory=list)


def prepared(case: Case) -> Run:
    """Make the run."""
    where = ["--cluster", "chronus-120x8"] if case.gpus == 960 else ["--gpus", str(case.gpus)]
    hours = str(case.hours[1] - case.hours[0])
    options = ["--hours", hours, "--warmup-rounds", str(case.warmup), "--load", str(case.load)]
    options += ["--seed", "0", "--threads", "1"]
    asked = SimulateOptions.of(**simulate.make_context("simulate", ["chronus", *where, *options]).params)
    return Run.read(asked)


def watched(policy: ChronusPolicy, seen: Seen) -> None:
    """Take the time of every cycle and of every admission."""
    cycle, admit = policy.selector.cycle, policy.selector.admit

    def timed_cycle(*given: object, **named: object) -> object:
        begun = time.process_time()
        found = cycle(*given, **named)  # type: ignore[arg-type]
        if given[6]:  # a lease begins
            seen.cycle_ms.append(1e3 * (time.process_time() - begun))
            if found.bound > 0:
                seen.gaps.append((found.bound - found.reward) / found.bound)
                seen.programs += found.solution is not None
        return found

    def timed_admit(*given: object, **named: object) -> object:
        begun = time.process_time()
        found = admit(*given, **named)  # type: ignore[arg-type]
        seen.admission_ms.append(1e3 * (time.process_time() - begun))
        return found

    policy.selector.cycle = timed_cycle  # type: ignore[method-assign, assignment]
    policy.selector.admit = timed_admit  # type: ignore[method-assign, assignment]


def hours_of(case: Case) -> str:
    """Return the hours that count, as the page has them."""
    return f"{case.hours[0]:g}-{case.hours[1]:g}"


def warm_up(simulation: Simulation, rounds: int, *seen: Seen) -> None:
    """Simulate rounds that do not count, and forget what they showed."""
    for _ in range(rounds):
        simulation.step(warmup=True)
    for each in seen:
        for noted in (each.gaps, each.cycle_ms, each.admission_ms, each.round_ms):
            noted.clear()
        each.programs = 0


def cells(case: Case) -> Iterator[str]:
    """Run a case, and yield the cells of its row."""
    load = os.getloadavg()[0]
    seen = Seen()
    run = prepared(case)
    simulation, workload = run.simulation, run.workload
    policy = cast("ChronusPolicy", simulation.policy)
    if not case.selective:
        policy.selector.demand = None
    watched(policy, seen)
    warm_up(simulation, case.warmup, seen)
    for _ in range(case.rounds):
        simulation.tell_policy()
        begun = time.process_time()
        simulation.step()
        seen.round_ms.append(1e3 * (time.process_time() - begun))
    result = simulation.result()
    found = deadline_summary(result, workload.jobs, policy._source, policy)["deadlines"]
    offered, waiting = load_of(run, result), result.summary()["jobs_without_gpus"]
    commit = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    told = subprocess.run(commit, capture_output=True, text=True, check=False).stdout.strip()
    yield from (f"{case.gpus:,}", hours_of(case), case.key[1], f"{offered['all'] if offered else 0.0:.2f}")
    yield from (f"{len(workload.jobs) / case.gpus:.3g}", f"{waiting['p50']:,.0f}")
    yield from ("yes" if case.selective else "no", str(len(seen.gaps)), str(seen.programs))
    yield f"{100 * np.median(seen.gaps):.2f}, {100 * max(seen.gaps):.2f}" if seen.gaps else "-"
    yield f"{found['promised']:,}, {found['late']}, {found['demoted']}"
    yield f"{np.median(seen.cycle_ms):.3g}, {max(seen.cycle_ms):.4g}"
    for times in (seen.admission_ms, seen.round_ms):
        yield f"{np.median(times):.3g}, {np.quantile(times, 0.99):.3g}"
    yield f"{told}, {datetime.date.today().isoformat()}, {load:.1f}"


def whole_rows(case: Case, most: int) -> Iterator[str]:
    """Run a case without C6 and without exact programs, and yield a row for each of the plans furthest below the LP."""
    plans: list[tuple[float, float, Options, Ints, float, float]] = []
    run = prepared(case)
    simulation, jobs = run.simulation, len(run.workload.jobs)
    policy = cast("ChronusPolicy", simulation.policy)
    policy.selector.demand = None

    def noted(options: Options, capacity: Ints, known: Draft, bound: float, _: float) -> tuple[Draft, float]:
        gap = (bound - known.reward) / bound if bound > 0 else 0.0
        plans.append((gap, simulation.now_s, options, capacity, known.reward, bound))
        return known, bound

    before, selector.exact_plan = selector.exact_plan, noted
    try:
        warm_up(simulation, case.warmup)
        plans.clear()
        for _ in range(case.rounds):
            simulation.step()
    finally:
        selector.exact_plan = before
    far = sorted((each for each in plans if each[0] > FAR), key=lambda each: -each[0])
    for gap, now_s, options, capacity, reward, bound in far[:: max(len(far) // most, 1)][:most]:
        tail = FreeTail.of(options, capacity)
        program = compact_form(tail.reduced, tail.early(capacity))
        found = milp(
            -program.c,
            integrality=program.integrality,
            constraints=LinearConstraint(program.A, program.row_lower, program.row_upper),
            bounds=Bounds(program.col_lower, program.col_upper),
            options={"time_limit": HIGHS_S},
        )
        exact = bound if found.mip_dual_bound is None else min(bound, -found.mip_dual_bound)
        best = reward if found.x is None else max(reward, -found.fun)
        cells = (f"{case.gpus:,}", hours_of(case), case.key[1], f"{jobs / case.gpus:.3g}")
        figures = (f"{100 * each:.2f}" for each in (gap, (exact - reward) / exact, (best - reward) / best))
        yield f"| {' | '.join((*cells, f'{now_s / 3600:.1f} h', str(options.jobs), *figures))} |"


def write_whole(page: Path, most: int, sizes: set[int] | None) -> None:
    """Write the section on whole plans at the end of the page, of runs of these sizes."""
    head = page.read_text().split("\n## ")[0].rstrip()
    rows: list[str] = []
    for case in CASES:
        if not case.selective and case.gpus in (sizes or {case.gpus}) and f"{case.gpus} {case.key[1]}" in WHOLE_CASES:
            for row in whole_rows(case, most):
                rows.append(row)
                page.write_text("\n".join((head, WHOLE, *rows)) + "\n")
                print(row, flush=True)


def key_of(row: str) -> Key:
    """Return what tells a row of the page from others."""
    each = [cell.strip() for cell in row.strip("|").split("|")]
    return int(each[0].replace(",", "")), each[2], each[6] == "yes"


def main() -> None:
    """Measure what is asked for, and write the page after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="sizes, separated by commas  [default: all]")
    parser.add_argument("--load", default=",".join(map(str, LOADS)), help="loads, separated by commas")
    parser.add_argument("--whole", type=int, help="measure this many whole plans of each run without C6 instead")
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    sizes = None if asked.only is None else {int(each) for each in asked.only.split(",")}
    if asked.whole is not None:
        write_whole(asked.page, asked.whole, sizes)
        return
    table, _, whole = asked.page.read_text().partition("\n## ") if asked.page.exists() else ("", "", "")
    lines = table.splitlines()
    rows = {key_of(line): line for line in lines if line[:2] == "| " and line[2].isdigit()}
    loads = {float(each) for each in asked.load.split(",")}
    for case in CASES:
        if (sizes is None or case.gpus in sizes) and case.load in loads:
            rows[case.key] = f"| {' | '.join(cells(case))} |"
            body = [HEAD, *(rows[each.key] for each in CASES if each.key in rows)]
            asked.page.write_text("\n".join(body) + "\n" + (f"\n## {whole}" if whole else ""))
            print(rows[case.key], flush=True)


if __name__ == "__main__":
    main()
