"""What the views say of random clusters, judged by a scheduler that tries everything.

``python -m tests.adversary.view_run [--documents 20000] [--first 0] [--only slurm]
[--processes 2] [--page docs/results/views.md]``

Of each cluster's documents the view names jobs that could start, with their nodes, and a bound. The judge knows the
cluster, not the documents: every named start must happen beside the others, no job may be left out that one node would
hold, and no set of jobs may come to more than the bound.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from copter import Settings
from copter_serve.shadow.start_model import StartModel
from copter_serve.views.view import ClusterView
from tests.adversary.view_kueue import kueue
from tests.adversary.view_pods import PART, kai, volcano
from tests.adversary.view_slurm import slurm
from tests.adversary.view_truth import Claim, Truth, false_start, missed_start, most_units

DRAWN: dict[str, Callable[[int], tuple[ClusterView, Truth]]] = {
    "slurm": slurm,
    "volcano": volcano,
    "kai": kai,
    "kueue": kueue,
}
HEAD = """# What the views say of random clusters

`python -m tests.adversary.view_run --page docs/results/views.md` wrote this page. Each document is a random cluster of
one to four nodes with its queues, jobs and states, in the schema of its scheduler. The judge knows the cluster, not the
document, and tries every job on every node. "Largest sum" counts the clusters of which it tried all sets of jobs.

"""
EACH = 500  # documents of each view after which the page is written
COLUMNS = {
    "documents": "documents", "waiting": "jobs waiting", "named": "named as able to start", "false": "false starts",
    "missed": "missed where one node would do", "known": "largest sum", "above": "above the bound",
    "reached": "equal to the bound", "refused": "plans that the check refused",
}  # fmt: skip


def judged(kind: str, seed: int, counts: Counter[str]) -> str:
    """Return what is wrong with what a view says of one cluster; empty if nothing is. Adds to the counts."""
    view, truth = DRAWN[kind](seed)
    plan = StartModel(view.tree, Settings(threads=1)).plan_of(view)
    scale = PART if kind in ("volcano", "kai") else 1
    later: dict[str, list[str]] = {}
    for name in truth.jobs:
        later.setdefault(name.partition("+")[0], []).append(name)
    claims: list[Claim] = []
    for start in plan.starts:
        name = start.job
        if name not in truth.jobs:
            # a pod of a group beyond those that must start together: any of them
            group = name.rpartition("-")[0]
            taken = {each for each, _, _ in claims}
            name = next((each for each in later.get(group, []) if "+" in each and each not in taken), name)
        use = {
            (start.way.queue, flavor, resource): round(amount) for (flavor, resource), amount in start.amounts.items()
        }
        claims.append((name, [list(each) for each in start.places], use if kind == "kueue" else {}))
    counts["documents"] += 1
    counts["waiting"] += len(truth.jobs)
    counts["named"] += len(claims)
    counts["refused"] += len(plan.refused)
    wrong = []
    if view.skipped:
        wrong.append(f"not read: {view.skipped[0]}")
    why = false_start(truth, claims)
    if why:
        counts["false"] += 1
        wrong.append(f"false start: {why}")
    else:
        why = missed_start(truth, claims)
        if why:
            counts["missed"] += 1
            wrong.append(f"missed: {why}")
    most = most_units(truth)
    if most is not None:
        counts["known"] += 1
        counts["reached"] += abs(most / scale - plan.bound) < 1e-6
        if most / scale > plan.bound + 1e-6:
            counts["above"] += 1
            wrong.append(f"{most / scale:g} units can start, and the bound is {plan.bound:g}")
    if plan.refused:
        wrong.append(plan.refused[0])
    return "; ".join(wrong)


def _table(counts: dict[str, Counter[str]]) -> str:
    head = "| | " + " | ".join(COLUMNS.values()) + " |\n|" + "---|" * (len(COLUMNS) + 1)
    rows = [f"| {kind} | " + " | ".join(f"{each[name]:,}" for name in COLUMNS) + " |" for kind, each in counts.items()]
    return "\n".join([head, *rows]) + "\n"


def _part(which: tuple[list[str], int, int]) -> tuple[dict[str, Counter[str]], list[str]]:
    """Judge some seeds; return the counts and what is wrong."""
    kinds, first, end = which
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    wrong = [
        f"{kind}, seed {seed}: {fault}"
        for seed in range(first, end)
        for kind in kinds
        if (fault := judged(kind, seed, counts[kind]))
    ]
    return counts, wrong


def main() -> int:
    """Judge the documents; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000, help="of each view")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=sorted(DRAWN), action="append")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=Path, help="write the counts here")
    arguments = parser.parse_args()
    kinds = arguments.only or list(DRAWN)
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    bad, end = 0, arguments.first + arguments.documents
    parts = [(kinds, first, min(first + EACH, end)) for first in range(arguments.first, end, EACH)]
    with ProcessPoolExecutor(arguments.processes) as pool:
        for found, wrong in pool.map(_part, parts):
            bad += len(wrong)
            print(*wrong, sep="\n", end="\n" if wrong else "", flush=True)
            for kind, each in found.items():
                counts[kind].update(each)
            table = _table(counts)
            if arguments.page is not None:
                arguments.page.write_text(HEAD + table, encoding="utf-8")
    print(table)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
