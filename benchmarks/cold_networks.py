"""Cold solves of traffic networks through a plain Model and Session, beside HiGHS's best way.

    COPTER_DATA=path/to/data python benchmarks/cold_networks.py --topologies GtsCe,UsCarrier --scales 64 --peers highs
    COPTER_DATA=path/to/data python benchmarks/cold_networks.py --models uniform --scales 16,64,128 --json
    COPTER_DATA=path/to/data python benchmarks/cold_networks.py --scales 1,64 --peers highs --page docs/results/cold.md

Each program is solved once from nothing, with the default settings, as `Session(model).solve()` does. HiGHS has the
same program in a process of its own, on one thread: its interior-point method with crossover and its dual simplex
method, each with a time limit; the better one counts. All times are the processor's. The optimum is compared with the
published one.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import shlex
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
    found = []
    for one in instances("total"):
        key = one.topology, one.model, one.scale
        wanted = one.topology in asked.topologies.split(",") and one.model in asked.models.split(",")
        if wanted and (scales is None or one.scale in scales) and counts.get(key, 0) < asked.most:
            counts[key] = counts.get(key, 0) + 1
            found.append(one)
    return found


def by_highs(lp: copter.LinearProgram, way: str, limit_s: float, answers: Any) -> None:
    """In a process of its own: (seconds of processor time, objective or None where the time did not do)."""
    import highspy

    from copter.problem.highs_lp import highs_lp

    solver = highspy.Highs()
    solver.silent()
    for name, value in (("solver", way), ("threads", 1), ("time_limit", limit_s)):
        solver.setOptionValue(name, value)
    solver.passModel(highs_lp(lp))
    began = time.process_time()
    solver.run()
    took = time.process_time() - began
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    answers.put((took, solver.getInfo().objective_function_value if optimal else None))


def highs_s(lp: copter.LinearProgram, way: str, limit_s: float) -> float | None:
    """Seconds of HiGHS, or None where the time did not do or it crashed."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=by_highs, args=(lp, way, limit_s, answers))
    process.start()
    try:
        took, value = answers.get(timeout=3.0 * limit_s + 60.0)
    except Exception:  # it died
        process.kill()
        return None
    finally:
        process.join(5.0)
    return took if value is not None else None


def measured(one: Instance, asked: argparse.Namespace) -> dict[str, Any]:
    """One instance: ours, and HiGHS's ways."""
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
        lp = form.model.to_linear_program()
        for way in WAYS:
            row[f"highs_{way}_s"] = highs_s(lp, way, asked.peer_time_limit)
        times = [row[f"highs_{way}_s"] for way in WAYS if row[f"highs_{way}_s"] is not None]
        row["highs_best_s"] = min(times, default=None)
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
    parser.add_argument("--peer-time-limit", type=float, default=60.0)
    parser.add_argument("--cache", help="folder that path sets are kept in")
    parser.add_argument("--page", type=Path, help="page to write the rows to")
    parser.add_argument("--json", action="store_true", help="one object, the last line")
    asked = parser.parse_args()
    console, rows = Console(width=140), []
    for one in chosen(asked):
        row = measured(one, asked)
        rows.append(row)
        best = row.get("highs_best_s")
        ratio = "" if best is None else f", HiGHS {best:.2f} s, {best / row['copter_s']:.1f} times"
        console.print(
            f"{row['instance']}: {row['copter_s']:.2f} s by {row['method']}, {row['status']}, "
            f"{row['difference']:+.1e}{ratio}",
            highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip
        if asked.page is not None:
            asked.page.write_text("\n".join(page(rows, asked.peer_time_limit)) + "\n")
    console.print(summary := summary_of(rows))
    if asked.json:
        print(json.dumps({"rows": rows, **summary}))


def summary_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts, and how many times copter's seconds HiGHS's best way took."""
    ratios = [row["highs_best_s"] / row["copter_s"] for row in rows if row.get("highs_best_s")]
    return {
        "instances": len(rows), "optimal": sum(row["status"] == "optimal" for row in rows), "compared": len(ratios),
        "geometric_mean_ratio": float(np.exp(np.mean(np.log(ratios)))) if ratios else None,
        "least_ratio": min(ratios, default=None), "slower_than_highs": sum(ratio < 1.0 for ratio in ratios),
        "copter_s_max": max((row["copter_s"] for row in rows), default=None),
    }  # fmt: skip


def page(rows: list[dict[str, Any]], limit_s: float) -> list[str]:
    """The lines of the page of cold solves."""
    told = summary_of(rows)
    command = shlex.join(["python", "benchmarks/cold_networks.py", *sys.argv[1:]])
    ratio = told["geometric_mean_ratio"]
    lines = [
        "# Cold solves of networks",
        "",
        f"Made by `{command}`, commit {described()}, {datetime.date.today().isoformat()}. Each program is solved",
        "once from nothing by `Session(model).solve()` with the default settings, and by HiGHS on one thread: interior",
        f"point with crossover and dual simplex, {limit_s:g} s each; the faster counts. Seconds of processor time;",
        "**times** is HiGHS's over copter's, **off** the objective's relative distance from the published optimum.",
        "",
        f"{told['instances']} instances, {told['optimal']} optimal; HiGHS ended {told['compared']}. Times in the",
        f"geometric mean: {ratio:.2f}; slower than HiGHS: {told['slower_than_highs']}." if ratio else "",
        "",
        "| instance | columns | copter (s) | method | off | interior point (s) | dual simplex (s) | times |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ways = ["" if row.get(f"highs_{way}_s") is None else f"{row[f'highs_{way}_s']:.3g}" for way in WAYS]
        best = row.get("highs_best_s")
        cells = [row["instance"], f"{row['columns']:,}", f"{row['copter_s']:.3g}", row["method"]]
        cells += [f"{row['difference']:+.0e}", *ways, "" if best is None else f"{best / row['copter_s']:.3g}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
