"""Published optima and times of traffic engineering beside ours, instance after instance.

    COPTER_DATA=path/to/data python benchmarks/tables/traffic_published.py                     # 12 instances, minutes
    COPTER_DATA=path/to/data python benchmarks/tables/traffic_published.py --topologies GtsCe,UsCarrier --scales 16,64
    COPTER_DATA=path/to/data python benchmarks/tables/traffic_published.py --objective concurrent --most 1

Published: POP's repository (Gurobi, default method and threads on 28 cores or more, solver time only; POP-16 as 28
workers would take it; NCFlow). Ours: cold, one session for each instance, the solve and the shim; building the model is
apart. Beside the time on the clock stands the processor's. Flows are feasible exactly, so the difference is that of the
flow that is handed out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.table import Table

from copter_frontends.traffic import MODELS, TrafficFormulation, make_paths
from copter_frontends.traffic.published import Instance, instances

VERIFIED = 1e-5  # relative difference up to which an optimum is the published one


def chosen(asked: argparse.Namespace) -> list[Instance]:
    """The instances asked for, at most so many of each topology, model and scale."""
    scales = {float(scale) for scale in asked.scales.split(",")}
    counts: dict[tuple[str, str, float], int] = {}
    found = []
    for one in instances(asked.objective):
        key = one.topology, one.model, one.scale
        wanted = one.topology in asked.topologies.split(",") and one.model in asked.models.split(",")
        if wanted and one.scale in scales and counts.get(key, 0) < asked.most:
            counts[key] = counts.get(key, 0) + 1
            found.append(one)
    return found


def measured(one: Instance, cache: str | None) -> dict[str, Any]:
    """Our optimum of an instance."""
    matrix = one.demands()
    times = [time.perf_counter()]
    paths = make_paths(one.network(), np.argwhere(matrix > 0.0), folder=cache)
    times.append(time.perf_counter())
    form = TrafficFormulation(paths, paths.demands_of(matrix), one.objective)
    times.append(time.perf_counter())
    own = time.process_time()
    plan = form.plan()
    own = time.process_time() - own
    times.append(time.perf_counter())
    optimum = one.optimum or float("nan")
    return {
        "instance": one.name, "pairs": paths.n_pairs, "columns": paths.n_paths, "published": optimum,
        "gurobi_s": one.gurobi_s, "ours": plan.objective, "difference": plan.objective / optimum - 1.0,
        "bound": plan.bound, "status": plan.status, "paths_s": times[1] - times[0], "build_s": times[2] - times[1],
        "plan_s": times[3] - times[2], "plan_processor_s": own,
        "pop16": None if one.pop16 is None else one.pop16 / optimum,
        "ncflow": None if one.ncflow is None else one.ncflow / optimum,
    }  # fmt: skip


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objective", choices=["total", "concurrent"], default="total")
    parser.add_argument("--topologies", default="GtsCe,UsCarrier,Cogentco")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--scales", default="16")
    parser.add_argument("--most", type=int, default=1, help="instances of one topology, model and scale")
    parser.add_argument("--cache", help="folder that path sets are kept in")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    console, rows = Console(width=130), []
    for one in chosen(asked):
        rows.append(measured(one, asked.cache))
        if not asked.json:
            row = rows[-1]
            console.print(
                f"{row['instance']}: {row['difference']:+.1e}, {row['plan_s']:.2f} s, "
                f"{row['plan_processor_s']:.2f} s of processor time",
                highlight=False,
            )
    if asked.json:
        print(json.dumps({"objective": asked.objective, "rows": rows}))
        return
    table = Table(title=f"Published optima beside ours, {asked.objective}")
    for name in ("instance", "columns", "published", "ours", "difference", "Gurobi", "ours, cold", "processor", "build",
                 "POP-16", "NCFlow"):  # fmt: skip
        table.add_column(name, justify="left" if name == "instance" else "right")
    for row in rows:
        shares = ["" if row[name] is None else f"{row[name]:.4f}" for name in ("pop16", "ncflow")]
        table.add_row(
            row["instance"], f"{row['columns']:,}", f"{row['published']:.8g}", f"{row['ours']:.8g}",
            f"{row['difference']:+.1e}", f"{row['gurobi_s']:.2f} s", f"{row['plan_s']:.2f} s",
            f"{row['plan_processor_s']:.2f} s", f"{row['build_s']:.1f} s", *shares,
        )  # fmt: skip
    console.print(table)
    right = sum(abs(row["difference"]) <= VERIFIED for row in rows)
    console.print(f"{right} of {len(rows)} optima are the published ones to {VERIFIED:g}")


if __name__ == "__main__":
    main()
