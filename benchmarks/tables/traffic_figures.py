"""Thesis Figures 5.5 (Poisson) and 5.6 (bimodal): flow, time and gap of every scheme on rounds of changing demands.

    COPTER_DATA=path/to/data python benchmarks/tables/traffic_figures.py --figure 5.5
    COPTER_DATA=path/to/data python benchmarks/tables/traffic_figures.py --figure 5.6 --network Kdl --scale 16

Every demand changes by up to 10% a round; the thesis has 20 rounds less 5 on Kdl and an AS-level network. The
default is Cogentco, which a small machine solves in seconds. The thesis's text has claims, not the figures'
values. POP's time is that of its parts on 64 workers; a scheme is stopped after the round that reaches the budget.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

from budget import within
from rich.console import Console
from rich.table import Table

from copter_frontends.traffic import make_scheme, simulate_traffic
from copter_frontends.traffic.workload import TrafficOptions, TrafficWorkload, make_workload

MODELS = {"5.5": "poisson-high-intra", "5.6": "bimodal"}
SCHEMES = "copter,lp-all,lp-top,pinning,pop-16,dede,greedy"
CLAIMS = {
    "5.5": (
        "Kdl: LP-Top as much as LP-All, 100 times quicker; POP-64 above 99% of the optimum; copter above 99.9%, within "
        "a minute",
        "ASN: LP-Top 90% of copter's flow; copter the most flow",
    ),
    "5.6": (
        "Kdl: LP-Top below 90% of the optimum; LP-All beyond 5 minutes; POP compares well",
        "ASN: LP-All beyond 24 hours, POP beyond 20 minutes; copter under a minute, 30 times faster, 1.5% more flow",
    ),
}


def measured(asked: argparse.Namespace, workload: TrafficWorkload, name: str) -> dict[str, Any]:
    """One scheme's figures."""
    started = time.perf_counter()
    scheme = make_scheme(name, workload.paths, workload.first)
    build_s = time.perf_counter() - started
    result = simulate_traffic(name, scheme, within(workload.rounds(), asked.budget), warmup=asked.warmup)
    first = result.rounds[0]
    return {"build_s": build_s, "cold_s": first.round_s, "flows": [each.flow for each in result.rounds],
            **result.summary()}  # fmt: skip


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", choices=list(MODELS), default="5.5")
    parser.add_argument("--network", default="Cogentco", help="a published topology, asn-N, or a file")
    parser.add_argument("--scale", type=float, default=64.0)
    parser.add_argument("--matrix-seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--schemes", default=SCHEMES)
    parser.add_argument("--budget", type=float, default=240.0, help="seconds of one scheme")
    parser.add_argument("--cache", help="folder that path sets are kept in")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    options = TrafficOptions(
        asked.network, model=MODELS[asked.figure], scale=asked.scale, matrix_seed=asked.matrix_seed,
        rounds=asked.rounds, cache=asked.cache,
    )  # fmt: skip
    workload = make_workload(options)
    rows = [measured(asked, workload, name) for name in asked.schemes.split(",")]
    best = next((row for row in rows if row["scheme"] == "lp-all"), rows[0])["flows"]
    for row in rows:  # against the best flow of the same rounds
        same = [own / most for own, most in zip(row["flows"], best, strict=False)]
        row["share"] = sum(same) / len(same)
    if asked.json:
        print(json.dumps({"figure": asked.figure, "claims": CLAIMS[asked.figure], "rows": rows}))
        return
    title = f"Thesis, Figure {asked.figure}: {MODELS[asked.figure]}, {asked.network} x{asked.scale:g}"
    table = Table(title=f"{title}, {workload.paths.n_pairs:,} pairs, {workload.paths.n_paths:,} paths")
    for name in ("scheme", "rounds", "flow", "of the best", "gap", "build", "first round", "round p50", "round max"):
        table.add_column(name, justify="left" if name == "scheme" else "right")
    for row in rows:
        gap = "none" if row["gap"] is None else f"{row['gap']['max']:.1e}"
        table.add_row(
            row["scheme"], str(row["rounds"]), f"{row['mean_flow']:,.1f}", f"{row['share']:.3%}", gap,
            f"{row['build_s']:.1f} s", f"{row['cold_s']:.2f} s", f"{row['round_s']['p50']:.3f} s",
            f"{row['round_s']['max']:.3f} s",
        )  # fmt: skip
    console = Console(width=130)
    console.print(table)
    for claim in CLAIMS[asked.figure]:
        console.print(f"thesis: {claim}")


if __name__ == "__main__":
    main()
