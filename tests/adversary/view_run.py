"""What the views say of random clusters, judged by a scheduler that tries everything.

``python -m tests.adversary.view_run [--documents 20000] [--first 0] [--only slurm] [--page docs/results/views.md]``

Of each cluster's documents the view names jobs that could start, with their nodes, and a bound. The judge knows the
cluster, not the documents: every named start must happen beside the others, no job may be left out that one node would
hold, and no set of jobs may come to more than the bound.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from copter import Settings
from copter_frontends.shadow.start_model import StartModel
from copter_frontends.views.view import ClusterView
from tests.adversary.view_kueue import kueue
from tests.adversary.view_pods import PART, kai, volcano
from tests.adversary.view_slurm import slurm
from tests.adversary.view_truth import Claim, Truth, false_start, missed_start, most_units

DRAWN: dict[str, Callable[[int], tuple[ClusterView, Truth]]] = {
    "slurm": slurm, "volcano": volcano, "kai": kai, "kueue": kueue,
}  # fmt: skip
HEAD = """# What the views say of random clusters

`python -m tests.adversary.view_run --page docs/results/views.md` wrote this page. Each document is a random cluster of
one to four nodes with its queues, jobs and states, in the schema of its scheduler; the judge knows the cluster and tries
every job on every node. "Largest sum known" counts the clusters that were small enough to try all sets of jobs.

| | documents | jobs waiting | named as able to start | false starts | missed where one node would do | largest sum known | above the bound | bound reached | plans refused by the check |
|---|---|---|---|---|---|---|---|---|---|
"""


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
        use = {(start.way.queue, flavor, resource): round(amount) for (flavor, resource), amount in start.amounts.items()}
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


def main() -> int:
    """Judge the documents; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000, help="of each view")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=sorted(DRAWN), action="append")
    parser.add_argument("--page", type=Path, help="write the counts here")
    arguments = parser.parse_args()
    rows, bad = [], 0
    for kind in arguments.only or DRAWN:
        counts: Counter[str] = Counter()
        began = time.process_time()
        for seed in range(arguments.first, arguments.first + arguments.documents):
            wrong = judged(kind, seed, counts)
            if wrong:
                bad += 1
                print(f"{kind}, seed {seed}: {wrong}", flush=True)
        columns = ("documents", "waiting", "named", "false", "missed", "known", "above", "reached", "refused")
        rows.append(f"| {kind} | " + " | ".join(f"{counts[name]:,}" for name in columns) + " |")
        print(rows[-1], f"{time.process_time() - began:.0f} s of processor time", flush=True)
    if arguments.page is not None:
        arguments.page.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
