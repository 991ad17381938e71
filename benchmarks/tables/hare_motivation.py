"""Hare's figures 2, 3, 5 to 8 and 11, as far as they need no GPU: speeds, mixed GPUs, and what a switch costs.

Figures 2 and 11 are inputs here (hare.md, HR32); the others follow from them and from Table 3. Figures 2, 5 and 7
are pictures: the paper's column has what its text says of them. ResNet50 stands for ResNet152, which Table 2 lacks.

python benchmarks/tables/hare_motivation.py
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from copter_frontends.policies.hare import HareInstance, HareJob, HareScheduler
from copter_frontends.policies.hare.models import MODELS
from copter_frontends.policies.hare.switching import SCHEMES, Scheme
from copter_frontends.policies.hare.task_rates import round_s
from copter_papers.hare.executor import execute

Row = tuple[str, str, str, float]  # figure, what, the paper's figure, ours

ROUNDS = 200
COMBINATIONS = ({"k80": 4}, {"k80": 2, "t4": 2}, {"k80": 2, "v100": 2}, {"t4": 4}, {"v100": 4})
ONE_IN_TURN = 4  # rounds of each of two jobs on one GPU


def gang_s(model: str, gpus: dict[str, int]) -> float:
    """Seconds of a round with a task on every GPU: the slowest sets the pace (HR31)."""
    known = MODELS[model]
    return max(known.train_s(kind) for kind in gpus) + known.sync_s()


def busy(model: str, kind: str, round_seconds: float) -> float:
    """Share of the time that a GPU trains, with one task a round."""
    return MODELS[model].train_s(kind) / round_seconds


def speeds() -> list[Row]:
    """Figures 2 and 3."""
    resnet, sage = MODELS["resnet50"].speed, MODELS["graphsage"].speed
    return [
        ("2", "ResNet50, T4 over K80 (input)", "2", resnet["t4"] / resnet["k80"]),
        ("2", "ResNet50, V100 over K80 (input)", "7", resnet["v100"] / resnet["k80"]),
        ("2", "GraphSAGE, V100 over K80 (input)", "about 2", sage["v100"] / sage["k80"]),
        ("3", "GraphSAGE, busy share of a V100 as fast as ResNet50's", "below 0.30", sage["v100"] / resnet["v100"]),
    ]


def mixed_gpus() -> list[Row]:
    """Figures 5 and 6: an epoch on four GPUs, over that on four K80s; and how busy the GPUs are."""
    model, slowest = "resnet50", gang_s("resnet50", {"k80": 4})
    rows: list[Row] = []
    for gpus in COMBINATIONS[1:]:
        name = ", ".join(f"{count} {kind}" for kind, count in gpus.items())
        said = "1 (no faster)" if "k80" in gpus else "faster"
        rows.append(("5", f"a task on every GPU: {name}", said, gang_s(model, gpus) / slowest))
    for gpus in COMBINATIONS[1:3]:
        name = ", ".join(f"{count} {kind}" for kind, count in gpus.items())
        rows.append(("5", f"the same tasks in turns (HR24): {name}", "-", round_s(model, 4, gpus) / slowest))
    mixed = gang_s(model, {"k80": 2, "v100": 2})
    rows += [
        ("6", "busy share of the V100s among K80s", "rarely over 0.5", busy(model, "v100", mixed)),
        ("6", "busy share of the K80s", "always busy", busy(model, "k80", mixed)),
    ]
    return rows


def alternating(scheme: Scheme) -> tuple[float, float]:
    """(a switch over a batch of each, busy share) of one V100 on which GraphSAGE and ResNet50 take turns."""
    jobs = [
        HareJob(name, ROUNDS, 1, {"v100": MODELS[name].train_s("v100")}, {"v100": 1e-9}, 1.0, model=name)
        for name in ("graphsage", "resnet50")
    ]
    planned = HareScheduler(max_tasks=2 * ONE_IN_TURN).schedule(HareInstance.of(jobs, {"v100": 1})).schedule
    done = execute(planned, scheme)
    per_switch = done.switch_s.sum() / done.switches.sum()  # each of two batches begins with one
    training = sum(job.train_s["v100"] for job in jobs)
    return per_switch / training, training / (training + 2.0 * per_switch)


def switches() -> list[Row]:
    """Figures 7 and 8: two jobs' batches in turns on a V100."""
    rows: list[Row] = []
    for scheme in SCHEMES:
        ratio, used = alternating(scheme)
        seven, eight = ("about 9", "at most 0.5") if scheme == "default" else ("-", "-")
        rows += [
            ("7", f"switching over training, {scheme}", seven, ratio),
            ("8", f"busy share in turns, {scheme}", eight, used),
        ]
    shares = [MODELS[name].default_share for name in ("graphsage", "resnet50")]
    implied = float(np.mean([share / (1.0 - share) for share in shares]))
    rows.append(("7", "the same by Table 3's own shares, default", "about 9", implied))
    rows.append(("8", "busy share of ResNet50 alone", "almost 1", 1.0))
    return rows


def steadiness(seeds: int) -> list[Row]:
    """Figure 11: rounds of a carried-out schedule on 8 V100s are all alike, as the formulation assumes."""
    spread = 0.0
    for name in ("resnet50", "bert_base"):
        for tasks in range(1, 1 + min(seeds, 8)):
            known = MODELS[name]
            job = HareJob(name, ROUNDS, tasks, {"v100": known.v100_s}, {"v100": known.sync_s()}, 1.0, model=name)
            plan = HareScheduler(max_tasks=ROUNDS * tasks).schedule(HareInstance.of([job], {"v100": 8})).schedule
            ends = np.array([plan.synced_s[plan.chunk == chunk].max() for chunk in range(int(plan.chunk.max()) + 1)])
            length = np.diff(ends)
            spread = max(spread, float(length.std() / length.mean()))
    return [("11", "spread of a round's length over its mean (input)", "stable", spread)]


def main() -> None:
    """Parse, run, print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--seeds", type=int, default=3, help="numbers of tasks that figure 11 is looked at with")
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = command.parse_args()
    if arguments.seeds < 1:
        command.error("seeds must be >= 1")
    rows = [*speeds(), *mixed_gpus(), *switches(), *steadiness(arguments.seeds)]
    print(f"{'figure':>6}  {'':<58} {'paper':>16} {'here':>8}")
    for figure, what, paper, here in rows:
        print(f"{figure:>6}  {what:<58} {paper:>16} {here:8.3g}")
    if arguments.json:
        print(json.dumps([dict(zip(("figure", "what", "paper", "here"), row, strict=True)) for row in rows]))


if __name__ == "__main__":
    main()
