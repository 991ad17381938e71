"""Cold solves of traffic networks through a plain Model and Session, beside HiGHS's best way.

    COPTER_DATA=path/to/data python benchmarks/cold_networks.py --topologies GtsCe,UsCarrier --scales 64 --peers highs
    COPTER_DATA=path/to/data python benchmarks/cold_networks.py --models uniform --scales 16,64,128 --json
    COPTER_DATA=path/to/data python benchmarks/cold_networks.py --scales 1,64 --peers highs --page docs/results/cold.md
    COPTER_DATA=path/to/data python benchmarks/cold_networks.py --scales all --most 3 --peers highs --keep cold.jsonl

Each program is solved once from nothing, with the default settings, as `Session(model).solve()` does. HiGHS has the
same program in a process of its own, on one thread: its interior-point method with crossover and its dual simplex
method, each with a time limit of some seconds and some times copter's own; the better one counts, and one that is cut
counts with the time it had. All times are the processor's. The optimum is compared with the published one. A row is a
line of the file of `--keep` as soon as it is there, and not measured again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import resource
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from whole_rounds import described

import copter
from copter_frontends.traffic import MODELS, TrafficFormulation, make_paths
from copter_frontends.traffic.published import Instance, instances

WAYS = ("ipm", "simplex")


def chosen(asked: argparse.Namespace) -> list[Instance]:
    """The instances asked for, at most so many of each topology, model and scale."""
    scales = None if asked.scales == "all" else {float(scale) for scale in asked.scales.split(",")}
    counts: dict[tuple[str, str, float], int] = {}
    found: list[Instance] = []
    for one in instances("total"):
        key = one.topology, one.model, one.scale
        wanted = one.topology in asked.topologies.split(",") and one.model in asked.models.split(",")
        if wanted and (scales is None or one.scale in scales) and counts.get(key, 0) < asked.most:
            counts[key] = counts.get(key, 0) + 1
            found.append(one)
    return found


def by_highs(lp: copter.LinearProgram, way: str, limit_s: int, answers: Any) -> None:
    """In a process of its own: (seconds of processor time, whether the optimum is there)."""
    import highspy

    from copter.highs.lp import highs_lp

    solver = highspy.Highs()
    solver.silent()
    for name, value in (("solver", way), ("threads", 1)):
        solver.setOptionValue(name, value)
    solver.passModel(highs_lp(lp))
    began = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(began) + 1 + limit_s, resource.RLIM_INFINITY))
    solver.run()
    answers.put((time.process_time() - began, solver.getModelStatus() == highspy.HighsModelStatus.kOptimal))


def highs_s(lp: copter.LinearProgram, way: str, limit_s: int) -> tuple[float, bool] | None:
    """Seconds of HiGHS and whether it ended within its time, or None where it crashed."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=by_highs, args=(lp, way, limit_s, answers))
    process.start()
    process.join()
    if process.exitcode == -signal.SIGXCPU:
        return float(limit_s), False
    return None if answers.empty() else answers.get()


def measured(one: Instance, asked: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    """One instance: ours, and HiGHS's ways if they are not known."""
    matrix = one.demands()
    paths = make_paths(one.network(), np.argwhere(matrix > 0.0), folder=asked.cache)
    form = TrafficFormulation(paths, paths.demands_of(matrix), "total", settings=copter.Settings())
    session = copter.Session(form.model, copter.Settings(threads=asked.threads))
    own = time.process_time()
    solution = session.solve()
    own = time.process_time() - own
    optimum = one.optimum or float("nan")
    row: dict[str, Any] = {
        "instance": one.name, "columns": paths.n_paths, "copter_s": own, "status": solution.status.value,
        "method": getattr(solution, "method", ""), "difference": solution.objective / optimum - 1.0,
        "gap": solution.gap,
    }  # fmt: skip
    if "highs" in asked.peers.split(","):
        row["highs"] = known.get("highs", {})
        if not row["highs"]:
            lp, limit_s = form.model.to_linear_program(), round(asked.peer_time_limit + asked.peer_times * own)
            ways = {way: highs_s(lp, way, limit_s) for way in WAYS}
            row["highs"] = {way: took for way, took in ways.items() if took is not None}
        row["highs_best_s"], row["highs_ended"] = min(row["highs"].values(), default=(None, False))
    return row


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topologies", default="GtsCe,UsCarrier,Cogentco")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--scales", default="64")
    parser.add_argument("--most", type=int, default=1, help="instances of one topology, model and scale")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", default="", help="highs, or nothing")
    parser.add_argument("--peer-time-limit", type=float, default=60.0, help="seconds that each way of HiGHS has")
    parser.add_argument("--peer-times", type=float, default=0.0, help="and so many times copter's own beside")
    parser.add_argument("--cache", help="folder that path sets are kept in")
    parser.add_argument("--page", type=Path, help="page to write the rows to")
    parser.add_argument("--keep", type=Path, help="file of rows, a line each; what is there is not measured again")
    parser.add_argument("--json", action="store_true", help="one object, the last line")
    asked = parser.parse_args()
    console, rows = Console(width=140), []
    known = kept(asked.keep)
    for one in chosen(asked):
        known_row = known.get(one.name, {})
        row = known_row if "copter_s" in known_row else measured(one, asked, known_row)
        rows.append(row)
        if asked.keep is not None and row is not known_row:
            with asked.keep.open("a") as file:
                file.write(json.dumps(row) + "\n")
        best = row.get("highs_best_s")
        more = "" if row.get("highs_ended") else "more than "
        ratio = "" if best is None else f", HiGHS {more}{best:.2f} s, {best / row['copter_s']:.1f} times"
        console.print(
            f"{row['instance']}: {row['copter_s']:.2f} s by {row['method']}, {row['status']}, "
            f"{row['difference']:+.1e}{ratio}",
            highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip
        if asked.page is not None:
            asked.page.write_text("\n".join(page(rows, asked)) + "\n")
    console.print(summary := summary_of(rows))
    if asked.json:
        print(json.dumps({"rows": rows, **summary}))


def kept(file: Path | None) -> dict[str, dict[str, Any]]:
    """The rows that a file holds, by instance; of two the last."""
    lines = file.read_text().splitlines() if file is not None and file.exists() else []
    return {row["instance"]: row for row in map(json.loads, lines)}


def summary_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts, and how many times copter's seconds HiGHS's best way took."""
    told = [row for row in rows if row.get("highs_best_s")]
    ratios = [row["highs_best_s"] / row["copter_s"] for row in told]
    return {
        "instances": len(rows), "optimal": sum(row["status"] == "optimal" for row in rows), "compared": len(ratios),
        "highs_ended": sum(row["highs_ended"] for row in told),
        "geometric_mean_ratio": float(np.exp(np.mean(np.log(ratios)))) if ratios else None,
        "least_ratio": min(ratios, default=None), "slower_than_highs": sum(ratio < 1.0 for ratio in ratios),
        "copter_s_max": max((row["copter_s"] for row in rows), default=None),
    }  # fmt: skip


def page(rows: list[dict[str, Any]], asked: argparse.Namespace) -> list[str]:
    """The lines of the page of cold solves."""
    told = summary_of(rows)
    command = shlex.join(["python", "benchmarks/cold_networks.py", *sys.argv[1:]])
    ratio = told["geometric_mean_ratio"]
    times = f" and {asked.peer_times:g} times copter's own" if asked.peer_times else ""
    lines = [
        "# Cold solves of networks",
        "",
        f"Made by `{command}`, commit {described()}, {datetime.date.today().isoformat()}. Each program is solved",
        "once from nothing by `Session(model).solve()` with the default settings, and by HiGHS on one thread: interior",
        f"point with crossover and dual simplex, {asked.peer_time_limit:g} s{times} each; the faster counts. Seconds",
        "of processor time; **>** is before a run that was cut, with the time it had. **times** is HiGHS's time over",
        "copter's, both from nothing, **off** the objective's relative distance from the published optimum. No",
        "commercial solver was run.",
        "",
        f"{told['instances']} instances of {len(chosen(asked))} so far, {told['optimal']} optimal;"
        f" HiGHS ended {told['highs_ended']}. Times in the",
        f"geometric mean: {ratio:.2f}; slower than HiGHS: {told['slower_than_highs']}." if ratio else "",
        "",
        "| instance | columns | copter (s) | method | off | interior point (s) | dual simplex (s) | times |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ways, best = row.get("highs", {}), row.get("highs_best_s")
        cells = [row["instance"], f"{row['columns']:,}", f"{row['copter_s']:.3g}", row["method"]]
        cells += [f"{row['difference']:+.0e}", *(told_time(ways.get(way)) for way in WAYS)]
        more = "" if row.get("highs_ended") else "> "
        cells.append("" if best is None else f"{more}{best / row['copter_s']:.3g}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def told_time(took: list[Any] | tuple[float, bool] | None) -> str:
    """A way's seconds; with a sign before where it was cut, and nothing where it crashed."""
    return "" if took is None else f"{'' if took[1] else '> '}{took[0]:.3g}"


if __name__ == "__main__":
    main()
