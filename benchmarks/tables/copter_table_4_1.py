"""Thesis Table 4.1: Sia's program by copter, by LP* (HiGHS, cold, with the same shim), by POP and exactly.

python benchmarks/tables/copter_table_4_1.py [--gpus 10000] [--hours 24] [--mode full|capped] [--keep FILE]
python benchmarks/tables/copter_table_4_1.py --gpus 10000 --hours 24 --keep day.jsonl --save-every 100

The same jobs run to their end under each policy. The thesis has 10,000 and 25,000 GPUs of seven types, 40,000 and
100,000 jobs submitted in 24 hours, each the whole run of a representative model, and 60-second rounds; by default this
runs a small cluster with as many jobs a GPU. The solve time is a round's edits, solve and shim; that of POP is its
slowest part's, as if the parts ran in parallel; that of HiGHS is its own, with the model handed over. `copter` chooses
how each round is solved; `copter-prices`, `copter-newton` and `copter-basis` solve every round by descent over prices,
proximal steps with Newton's method, or the dual simplex; `copter-rounded` has the shim of the thesis alone. `pop` has
its parts solved exactly by HiGHS, `pop-copter` by copter, which gives the same plans to its gap in a time that a small
machine has. LP* and the exact program grow out of reach long before 10,000 GPUs on a small machine: leave them out
there with --policies.

With --keep the figures of a run that ended are in FILE, with its date and commit, and the run is not made again; the
table says when each was made. With --save-every too a run that is stopped goes on from its last save: the unfinished
run is a file beside FILE, which goes when the run has ended.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parent))

import loads
import numpy as np
from make_tables import commit
from rich.console import Console
from rich.table import Table
from runs import RunStore

from copter import Settings
from copter.runtime.settings import NamedMethod
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.simulator import Simulation, load_run, save_run
from copter_frontends.simulator.round_record import RoundRecord
from copter_frontends.simulator.workload import make_workload
from copter_frontends.vocabulary import Cluster, Job, SchedulingPolicy, configurations_of
from copter_frontends.vocabulary.named_clusters import scaled_cluster
from copter_frontends.vocabulary.semantics import DEFAULT, Semantics
from copter_papers.opponents.pop import PopPolicy
from copter_papers.sia.cold_highs import ColdSiaPolicy

PAPER: dict[str, dict[str, tuple[float, float, float]]] = {
    "10k": {"lp-star": (0.35, 29.3, 233.4), "pop": (0.41, 31.0, 2.9), "copter": (0.36, 29.4, 6.5)},
    "25k": {"lp-star": (0.35, 29.3, 2277.0), "pop": (0.39, 30.9, 66.5), "copter": (0.36, 29.4, 40.3)},
}
"""Average JCT in hours, makespan in hours, 99th percentile of the solve time in seconds (thesis, Table 4.1)."""

DECILES = (10, 25, 50, 75, 90, 99, 100)
"""Percentiles of the solve time that are kept (Figure 4.5)."""

BARS = {"jct": 1.03, "makespan": 1.005}
"""copter over LP*, at most."""

LEARNED = Semantics(
    name="learned", training="agent", profiling="bootstrap", profiling_s=20.0, profiling_share=0.125, growth=2
)
"""As the thesis's jobs are: profiled on one GPU of each type, which is held for it, then at most doubled."""

METHODS: dict[str, NamedMethod] = {
    "copter": "auto",
    "copter-prices": "price_descent",
    "copter-newton": "proximal",
    "copter-basis": "basis",
    "copter-rounded": "auto",
}
"""How copter solves each round: by its own choice, or by one method throughout; `copter-rounded` has the thesis's shim
(4.4.1), which gives idle jobs none of the GPUs left."""

NAMES = (*METHODS, "lp-star", "pop", "pop-copter", "milp")
KEEP = (*METHODS, "pop-copter")  # what keeps its program from round to round


def makers(asked: argparse.Namespace) -> dict[str, Callable[[Cluster], SchedulingPolicy]]:
    """How each policy is made."""
    threads, semantics = asked.threads, LEARNED if asked.learned else DEFAULT

    def exact(cluster: Cluster) -> SchedulingPolicy:
        return ColdSiaPolicy(
            cluster,
            True,
            asked.relative_gap,
            asked.time_limit_s,
            threads,
            mode=asked.mode,
            round_s=60.0,
            semantics=semantics,
        )

    def copter(cluster: Cluster, name: str = "copter") -> SchedulingPolicy:
        settings = Settings(threads=threads, method=METHODS[name])
        shim = replace(semantics, shim="rounded") if name == "copter-rounded" else semantics
        return SiaPolicy(cluster, mode=asked.mode, settings=settings, semantics=shim)

    return {
        **{name: partial(copter, name=name) for name in METHODS},
        "lp-star": lambda cluster: ColdSiaPolicy(cluster, threads=threads, mode=asked.mode, semantics=semantics),
        "pop": lambda cluster: PopPolicy(cluster, exact, asked.parts, asked.seed),
        "pop-copter": lambda cluster: PopPolicy(cluster, copter, asked.parts, asked.seed),
        "milp": exact,
    }


def simulation_of(name: str, asked: argparse.Namespace, jobs: Sequence[Job], seed: int) -> Simulation:
    """One policy before its first round."""
    cluster = scaled_cluster(asked.gpus)
    return Simulation(
        cluster,
        jobs,
        makers(asked)[name](cluster),
        GoodputModel(configurations_of(cluster)),
        60.0,
        seed,
        deadline_s=math.inf,
        semantics=LEARNED if asked.learned else DEFAULT,
        plan_latency=asked.plan_latency,
    )


def unfinished(kept: str, asked: argparse.Namespace) -> Path | None:
    """The file of a run that has not ended, by the name under which its figures will be kept."""
    if not (asked.keep and asked.save_every):
        return None
    return Path(f"{asked.keep}.{zlib.crc32(kept.encode()):08x}.run")


def run(
    name: str, asked: argparse.Namespace, jobs: Sequence[Job], seed: int, saved: Path | None = None
) -> dict[str, Any]:
    """One policy from the first job to the last, or from where it was last saved."""
    checkout = commit()
    if saved is not None:
        saved.parent.mkdir(parents=True, exist_ok=True)
    if saved is not None and saved.is_file():
        simulation = load_run(saved)
        note: Any = simulation.note
        begun = time.perf_counter() - float(note)
        print(f"{name}: goes on after round {len(simulation.records)}", file=sys.stderr, flush=True)
    else:
        simulation, begun = simulation_of(name, asked, jobs, seed), time.perf_counter()

    def keep(record: RoundRecord) -> None:
        if saved is not None and len(simulation.records) % asked.save_every == 0:
            simulation.note = time.perf_counter() - begun
            save_run(simulation, saved)

    result = simulation.run(on_round=keep)
    if saved is not None:
        saved.unlink(missing_ok=True)
    summary = result.summary()
    solve_s = np.array([sum(r.timings.get(stage, 0.0) for stage in ("edit", "solve", "shim")) for r in result.rounds])
    active = sum(r.active_jobs for r in result.rounds)
    gaps = np.array([r.gap for r in result.rounds])
    return {
        "policy": name,
        "jobs_completed": summary["jobs_completed"],
        "avg_jct_h": summary["avg_jct_h"],
        "makespan_h": summary["makespan_h"],
        "solve_p50_s": float(np.percentile(solve_s, 50)),
        "solve_p99_s": float(np.percentile(solve_s, 99)),
        "solve_percentiles_s": np.percentile(solve_s, DECILES).tolist(),
        "solve_max_over_p90": float(solve_s.max() / max(np.percentile(solve_s, 90), 1e-12)),
        "variables_max": summary["variables"]["max"],
        "integral_jobs": 1.0 - sum(r.fractional_jobs for r in result.rounds) / max(active, 1),
        "gap_p50": float(np.percentile(gaps, 50)),
        "gap_p99": float(np.percentile(gaps, 99)),
        "gap_max": float(gaps.max()),
        "wall_s": time.perf_counter() - begun,
        "made": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, commit {checkout}",
    }


def kept_name(name: str, asked: argparse.Namespace, seed: int, source: str) -> str:
    """The name under which a run is kept: everything that decides its figures, their times included."""
    said = {
        "GPUs": asked.gpus,
        "hours": asked.hours,
        "mode": asked.mode,
        "seed": seed,
        "jobs": source,
        "work": asked.work,
        "learned": asked.learned,
        "plan latency": asked.plan_latency,
        "threads": asked.threads,
        "gap": asked.relative_gap,
        "limit": asked.time_limit_s,
    }
    parts = f"-{asked.parts}" if name.startswith("pop") else ""
    return f"{name}{parts}, " + ", ".join(f"{what} {value}" for what, value in said.items())


def pooled(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One policy over seeds: the mean of each figure, and least and most of JCT and makespan."""
    row: dict[str, Any] = {
        key: value if isinstance(value, str) else np.mean([each[key] for each in found], axis=0).tolist()
        for key, value in found[0].items()
    }
    for key in ("avg_jct_h", "makespan_h"):
        row[f"{key}_range"] = (min(each[key] for each in found), max(each[key] for each in found))
    return row


def ratios(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Each policy's JCT and makespan over those of LP* (of copter, where LP* was left out), and p99 over copter's.

    LP*, POP's exact parts and the exact program begin every round with nothing: their p99 has no ratio to copter's.
    """
    by_name = {row["policy"]: row for row in rows}
    base = by_name.get("lp-star", by_name.get("copter", rows[0]))
    found: dict[str, Any] = {"over": base["policy"]}
    for name, row in by_name.items():
        found[name] = {
            "jct": row["avg_jct_h"] / base["avg_jct_h"],
            "makespan": row["makespan_h"] / base["makespan_h"],
            "p99": row["solve_p99_s"] / by_name["copter"]["solve_p99_s"]
            if "copter" in by_name and name in KEEP
            else None,
        }
    return found


def report(rows: Sequence[dict[str, Any]], asked: argparse.Namespace, source: str) -> None:
    """The table on the screen, with the paper's figures."""
    title = f"{asked.gpus:,} GPUs, {asked.hours:g} h of arrivals, {asked.mode} mode; {source}"
    title += "; learned goodput, growth" if asked.learned else ""
    title += f"; plans charged {asked.plan_latency:g} times" if asked.plan_latency else ""
    table = Table(title=title, title_justify="left")
    heads = ("", "JCT h", "makespan h", "p50 solve s", "p99 solve s", "max/p90", "integral jobs", "gap p50", "gap max")
    for head in (*heads, "paper 10k", "paper 25k"):
        table.add_column(head, justify="right" if head else "left")
    for row in rows:
        thesis = "copter" if row["policy"] in METHODS else row["policy"].removesuffix("-copter")
        paper = [PAPER[size].get(thesis) for size in ("10k", "25k")]
        cells = [
            *(f"{row[key]:.3g}" for key in ("avg_jct_h", "makespan_h", "solve_p50_s", "solve_p99_s")),
            f"{row['solve_max_over_p90']:.2g}",
            f"{row['integral_jobs']:.4%}",
            *(f"{row[key]:.1e}" for key in ("gap_p50", "gap_max")),
            *("–" if known is None else " / ".join(f"{value:g}" for value in known) for known in paper),
        ]
        table.add_row(row["policy"], *cells)
    console = Console(width=160)
    console.print(table)
    console.print(" paper: JCT h / makespan h / p99 solve s\n")
    if asked.keep:
        for row in rows:
            console.print(f" {row['policy']}: made {row['made']}")
        console.print()
    if asked.seeds > 1:
        console.print(f" Means of {asked.seeds} seeds. Least to most of JCT and makespan, h:")
        for row in rows:
            (low, high), (first, last) = row["avg_jct_h_range"], row["makespan_h_range"]
            console.print(f" {row['policy']}: {low:.3f} to {high:.3f}, {first:.3g} to {last:.3g}")
        console.print()
    found = ratios(rows)
    for name in (row["policy"] for row in rows):
        p99 = "" if found[name]["p99"] is None else f", p99 solve {found[name]['p99']:.2f} of copter's"
        console.print(
            f" {name} over {found['over']}: JCT {found[name]['jct']:.3f}, makespan {found[name]['makespan']:.4f}{p99}"
        )


def within(rows: Sequence[dict[str, Any]], charged: bool) -> bool | None:
    """Whether copter is as close to LP* as the paper has it.

    None where one of them did not run, or where plans are charged, so that the figures depend on the clock.
    """
    found = ratios(rows)
    if charged or found["over"] != "lp-star" or "copter" not in found:
        return None
    return all(found["copter"][key] <= most for key, most in BARS.items())


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--gpus", type=int, default=224, help="of the seven-type cluster")
    made.add_argument("--hours", type=float, default=2.0, help="in which jobs arrive")
    made.add_argument("--jobs", type=int, help="default: 4 a GPU and day, as in the thesis")
    made.add_argument("--trace", help="log to sample; without one the jobs are made up")
    made.add_argument(
        "--work", choices=("full", "trace"), default="full", help="of a job: its model's whole run, as there"
    )
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--seeds", type=int, default=1, help="so many from --seed on; figures are means, with the spread")
    made.add_argument(
        "--learned",
        action="store_true",
        help="goodput is learned from profiles that hold GPUs and from runs, and jobs start small and at most double",
    )
    made.add_argument("--mode", choices=("full", "capped"), default="full")
    made.add_argument("--policies", default="copter,lp-star,pop,milp", help="of " + ", ".join(NAMES))
    made.add_argument("--parts", type=int, default=16, help="of POP")
    made.add_argument("--relative-gap", type=float, default=1e-4, help="of the integer programs")
    made.add_argument("--time-limit-s", type=float, default=math.inf, help="of an integer program")
    made.add_argument("--threads", type=int, default=0, help="of each solver; 0: all")
    made.add_argument(
        "--plan-latency", type=float, default=0.0, help="jobs that start wait so many times the seconds of the plan (0)"
    )
    made.add_argument("--keep", metavar="FILE", help="keep the figures of each run here, and do not run it again")
    made.add_argument(
        "--save-every", type=int, metavar="ROUNDS", help="with --keep: save an unfinished run, to go on from there"
    )
    made.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Print the table; exit code 1 where copter falls behind LP* by more than the bar and no clock decides it."""
    options = parser()
    asked = options.parse_args(arguments)
    names = [name.strip() for name in asked.policies.split(",") if name.strip()]
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        options.error(f"unknown policies {', '.join(unknown) or '(none)'}; there are {', '.join(NAMES)}")
    if asked.seeds < 1:
        options.error("at least one seed")
    if asked.save_every is not None and asked.save_every < 1:
        options.error("--save-every must be 1 or more")
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    store, source, cluster = RunStore(asked.keep), "", scaled_cluster(asked.gpus)
    model = GoodputModel(configurations_of(cluster))
    for seed in range(asked.seed, asked.seed + asked.seeds):
        workload = make_workload(asked.trace, asked.jobs, asked.hours, asked.gpus, seed, asked.work)
        loads.note(cluster, workload.jobs, model)
        source = workload.source
        for name in names:
            kept = kept_name(name, asked, seed, source)
            made = partial(run, name, asked, workload.jobs, seed, unfinished(kept, asked))
            runs[name].append(store.figures(kept, made))
    rows = [pooled(found) for found in runs.values()]
    report(rows, asked, source)
    loads.say()
    reached = within(rows, asked.plan_latency > 0)
    if asked.json:
        print(json.dumps({"gpus": asked.gpus, "rows": rows, "ratios": ratios(rows), "within": reached}))
    return 1 if reached is False else 0


if __name__ == "__main__":
    sys.exit(main())
