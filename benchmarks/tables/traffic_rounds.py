"""Warm rounds of the frontend on a published network: some demands, all demands, a link out and back; by deadline too.

    COPTER_DATA=path/to/data python benchmarks/tables/traffic_rounds.py --network Cogentco --scale 64
    COPTER_DATA=path/to/data python benchmarks/tables/traffic_rounds.py --network Kdl --scale 16 --rounds 1 --cache DIR

Every row is one edit and the plan after it: model edits, solve, exact shim, certified bound; time on the clock and of
the processor. `link out, deadline` is cut short after so many seconds (``--deadline``), with the gap that is then
certified.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.table import Table

from copter_frontends.traffic import MODELS, FlowPlan, TrafficFormulation, make_paths
from copter_frontends.traffic.published import Instance, instances

Edit = tuple[str, Callable[[], None], float | None]


def instance_of(asked: argparse.Namespace) -> Instance:
    """The first published instance of the network, model and scale."""
    for one in instances():
        if (one.topology, one.model, one.scale) == (asked.network, asked.model, asked.scale):
            return one
    raise SystemExit(f"no published instance of {asked.network} {asked.model} x{asked.scale:g}")


def edits(form: TrafficFormulation, rng: np.random.Generator, rounds: int, deadline_s: float) -> Iterator[Edit]:
    """Rounds of edits: what it is, what does it, the deadline of the plan."""
    network, usual = form.paths.network, form.demands.copy()

    def moved(share: float) -> Callable[[], None]:
        chosen = rng.random(len(usual)) < share
        return lambda: form.set_demands(np.where(chosen, usual * rng.uniform(0.9, 1.1, len(usual)), form.demands))

    for _ in range(rounds):
        yield "1% of the demands by 10%", moved(0.01), None
        yield "all demands by 10%", moved(1.0), None
        for limit_s in (None, deadline_s):
            arc = int(rng.integers(network.n_arcs))
            ends = int(network.source[arc]), int(network.target[arc])
            yield "link out" + ("" if limit_s is None else ", deadline"), lambda e=ends: form.fail_link(*e), limit_s
            yield "link back", lambda e=ends: form.repair_link(*e), None


def measured(
    form: TrafficFormulation, edit: Callable[[], None], deadline_s: float | None
) -> tuple[FlowPlan, float, float]:
    """(the plan after an edit, seconds on the clock, of the processor)."""
    clock, processor = time.perf_counter(), time.process_time()
    edit()
    plan = form.plan(deadline_s)
    return plan, time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="Cogentco", help="a published topology")
    parser.add_argument("--model", choices=list(MODELS), default="gravity")
    parser.add_argument("--scale", type=float, default=64.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--deadline", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", help="folder that path sets are kept in")
    asked = parser.parse_args()
    one, console = instance_of(asked), Console(width=120)
    matrix = one.demands()
    paths = make_paths(one.network(), np.argwhere(matrix > 0.0), folder=asked.cache)
    form = TrafficFormulation(paths, paths.demands_of(matrix))
    table = Table(title=f"{one.name}: {paths.n_pairs:,} pairs, {paths.n_paths:,} paths", title_justify="left")
    for name in ("edit", "clock", "processor", "iterations", "gap", "status"):
        table.add_column(name, justify="left" if name in ("edit", "status") else "right")
    rng = np.random.default_rng(asked.seed)
    cold: Edit = ("cold", lambda: None, None)
    for name, edit, deadline_s in (cold, *edits(form, rng, asked.rounds, asked.deadline)):
        plan, clock, processor = measured(form, edit, deadline_s)
        row = (name, f"{clock:.2f} s", f"{processor:.2f} s", str(plan.iterations), f"{plan.gap:.1e}", plan.status)
        table.add_row(*row)
        print(", ".join(row), flush=True)
    console.print(table)


if __name__ == "__main__":
    main()
