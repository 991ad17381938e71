"""Processor seconds of Hops' plans, and of the paper's program by HiGHS with and without a gap (Figures 14, 15)."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from figure_command import seeds_of, spread
from hops_curves import head, row, run
from hops_formulations import highs

from copter import LinearProgram
from copter_frontends.policies.hops import HopsPolicy
from copter_frontends.simulator.round_record import RoundRecord
from copter_frontends.vocabulary import Cluster
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hops.exact import placed_program

GAP = 0.01
SAMPLED = 5  # one whole plan in so many is solved by HiGHS too, as the paper samples its rounds


def timed(program: LinearProgram, gap: float, limit_s: float) -> dict[str, Any]:
    """What HiGHS finds, its ``seconds`` those of the processor; it may take `limit_s` of the clock's."""
    begun = time.process_time()
    found = highs(program, gap, limit_s)
    return {**found, "clock_s": found["seconds"], "seconds": time.process_time() - begun}


class Sampler:
    """Solves the paper's program (11)-(13) of some whole plans by HiGHS, with a gap and without."""

    def __init__(self, most: int, limit_s: float) -> None:
        self.most, self.limit_s = most, limit_s
        self.rows: list[dict[str, float]] = []
        self._wholes = 0

    def __call__(self, record: RoundRecord, policy: HopsPolicy, plan_s: float) -> None:
        """Take in a round; those in which nobody waits, and those between whole plans, are passed over."""
        wishes = policy.formulation.wishes
        whole = policy._full_s == record.now_s and len(wishes) > 0
        self._wholes += whole
        if not whole or self._wholes % SAMPLED or len(self.rows) >= self.most:
            return
        groups = policy.groups
        free = groups.size.copy()
        for pin in policy.pins.values():
            for node, gpus in pin.nodes:
                free[groups.index[node]] -= gpus
        program, _ = placed_program(wishes, groups, free, slowdown=lambda *_: 1.0)
        close, full = (timed(program, gap, self.limit_s) for gap in (GAP, 0.0))
        if close["value"] is None or full["value"] is None:
            return
        self.rows.append(
            {
                "plan_s": plan_s,
                "plan_gap": record.gap,
                "gap_s": close["seconds"],
                "true_gap": max(0.0, full["value"] - close["value"]) / max(abs(full["value"]), 1e-12),
                "full_s": full["seconds"],
                "ended": float(full["clock_s"] < self.limit_s),
            }
        )


def figure_14(asked: argparse.Namespace) -> Any:
    """Seconds and gap of Hops' plans, all of them; then the paper's program of one whole plan in five by HiGHS."""
    cluster = named_cluster(asked.cluster)
    samplers = [Sampler(asked.samples, asked.limit) for _ in seeds_of(asked)]
    curves = [run("hops", cluster, asked, asked.seed + at, on_plan=each) for at, each in enumerate(samplers)]
    head(f"Figure 14, {asked.cluster}, {asked.jobs} jobs: all plans")
    row("processor s of a plan", [curve.plan_s for curve in curves])
    row("certified gap, %", [[100.0 * gap for gap in curve.gap] for curve in curves])
    sampled = [sampler.rows for sampler in samplers if sampler.rows]
    if sampled:
        head(f"Figure 14, whole plans, one in {SAMPLED} ({sum(map(len, sampled))} plans)")
        titles = {"copter, seconds": "plan_s", "paper's, gap 0.01, s": "gap_s", "paper's, no gap, s": "full_s"}
        for title, key in titles.items():
            row(title, [[each[key] for each in rows] for rows in sampled])
        row("true gap at 0.01, %", [[100.0 * each["true_gap"] for each in rows] for rows in sampled])
        ended = [100.0 * float(np.mean([each["ended"] for each in rows])) for rows in sampled]
        print(f"  no gap: {spread(ended)}% of the searches ended within {asked.limit:g} s")
    return {"plans": [[curve.plan_s, curve.gap] for curve in curves], "sampled": sampled}


def figure_15(asked: argparse.Namespace) -> Any:
    """Seconds of a plan against jobs, and against GPUs with as many jobs for each."""
    small, found = named_cluster("hops-64"), {}
    head(f"Figure 15, processor seconds of a plan, the first {asked.hours:g} hours")
    for count in (asked.jobs // 2, asked.jobs, 2 * asked.jobs, 4 * asked.jobs):
        mine = argparse.Namespace(**{**vars(asked), "jobs": count})
        curves = [run("hops", small, mine, seed, hours=asked.hours) for seed in seeds_of(asked)]
        found[f"{count} jobs"] = [curve.plan_s for curve in curves]
        row(f"64 GPUs, {count} jobs", found[f"{count} jobs"])
    for times in asked.times:
        sizes = {kind: (times * len(small.nodes_of(kind)), small.type_of(kind).gpus_per_node) for kind in small.types}
        more = {"jobs": times * asked.jobs, "jobs_per_hour": times * asked.jobs_per_hour}
        mine = argparse.Namespace(**{**vars(asked), **more})
        curves = [run("hops", Cluster.of(sizes), mine, seed, hours=asked.hours) for seed in seeds_of(asked)]
        found[f"{64 * times} GPUs"] = [curve.plan_s for curve in curves]
        row(f"{64 * times} GPUs, {mine.jobs} jobs", found[f"{64 * times} GPUs"])
    return found
