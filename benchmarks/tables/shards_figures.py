"""Thesis Figures 5.2 and 5.3: shards, servers; movements, imbalance and time of every scheme, two sequences of loads.

    python benchmarks/tables/shards_figures.py --figure 5.2                     # 1,024 shards, 128 servers
    python benchmarks/tables/shards_figures.py --figure 5.3 --rounds 100
    python benchmarks/tables/shards_figures.py --figure 5.2 --schemes copter,lp-relaxed,greedy,pop-8,exact --json

The thesis's text has claims, not the figures' values: they stand beside what was measured. 100 rounds less 20 are the
thesis's; by default fewer run. POP's time is its longest part's. A scheme whose rounds would take more than the budget
is stopped after the round that reaches it, and the table says how many rounds it did.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

from budget import within
from rich.console import Console
from rich.table import Table

from copter_frontends.shards import ShardCluster, load_rounds, make_scheme, simulate_shards

SIZES = {"5.2": (1024, 128), "5.3": (2048, 256)}
SCHEMES = {
    "5.2": "copter,copter-idle,lp-relaxed,dede,local-search,greedy,pop-8",
    "5.3": "copter,copter-idle,lp-relaxed,dede,local-search,greedy,pop-16",
}
CLAIMS = {
    "5.2": (
        "greedy: quick, many movements, leaves the 10% band",
        "POP-8: about a second, fewer movements than greedy, leaves the band",
        "Exact: within the band, almost the fewest movements; LP-relaxed: 2 to 3 times faster, within the band",
        "copter: fewest movements, least imbalance; LP-relaxed and copter move less than Exact",
    ),
    "5.3": (
        "Exact: hours a round, left out; POP-16: quick, leaves the band",
        "LP-relaxed, copter: within the band; copter 2.8 times faster than LP-relaxed, fewest movements",
    ),
}


def measured(asked: argparse.Namespace, name: str, loads: str) -> dict[str, Any]:
    """One scheme's figures for one sequence."""
    shards, servers = SIZES[asked.figure]
    scheme = make_scheme(name, ShardCluster.round_robin(shards, servers), time_limit_s=asked.time_limit)
    rounds = within(load_rounds(shards, asked.rounds, loads), asked.budget)
    result = simulate_shards(name, scheme, rounds, round(0.2 * asked.rounds))
    return {"loads": loads, **result.summary()}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", choices=list(SIZES), default="5.2")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--schemes", help="by default all but exact, with the figure's POP")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds of one program of HiGHS")
    parser.add_argument("--budget", type=float, default=240.0, help="seconds of one scheme on one sequence")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    names = (asked.schemes or SCHEMES[asked.figure]).split(",")
    rows = []
    for loads in ("stateless", "stateful"):
        for name in names:
            row = measured(asked, name, loads)
            rows.append(row)
            said = f"{row['movements']:.2f} movements, {row['imbalance']:.1%}, p50 {row['round_s']['p50']:.3f} s"
            print(f"{loads} {name}: {row['rounds']} rounds, {said}", file=sys.stderr, flush=True)
    if asked.json:
        print(json.dumps({"figure": asked.figure, "claims": CLAIMS[asked.figure], "rows": rows}))
        return
    shards, servers = SIZES[asked.figure]
    table = Table(title=f"Thesis, Figure {asked.figure}: {shards:,} shards, {servers:,} servers", title_justify="left")
    for name in ("loads", "scheme", "rounds", "movements", "imbalance", "largest", "out of band", "round p50", "max"):
        table.add_column(name, justify="left" if name in ("loads", "scheme") else "right")
    for row in rows:
        table.add_row(
            row["loads"], row["scheme"], str(row["rounds"]), f"{row['movements']:.2f}", f"{row['imbalance']:.1%}",
            f"{row['imbalance_max']:.1%}", str(row["out_of_band_rounds"]), f"{row['round_s']['p50']:.3f} s",
            f"{row['round_s']['max']:.3f} s",
        )  # fmt: skip
    console = Console(width=120)
    console.print(table)
    for claim in CLAIMS[asked.figure]:
        console.print(f"thesis: {claim}")


if __name__ == "__main__":
    main()
