"""Replicas of language models on mixed GPUs, planned anew every minute: a MILP that is kept, in 80 lines.

Run it: python frontends/examples/llm_serving.py [folder of AzureLLMInferenceTrace_*.csv.gz]
Traffic is real (two services, an hour) where the folder is there, and drawn otherwise. Prices, speeds and what a token
is worth are made up: put your own in the tables below.
"""

from __future__ import annotations

import gzip
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np

import copter

GPUS = {"h100": 56, "a100": 56, "l4": 64}
PRICE = np.array([4.0, 2.0, 0.6]) / 60.0  # of a GPU and minute
NEEDS = np.array([[1, 1, 1], [1, 1, 2], [1, 2, 4], [2, 4, 8]])  # GPUs of a replica, by size of model and GPU type
SPEED = np.array([[9e3, 4e3, 9e2], [6e3, 3e3, 8e2], [4e3, 2.5e3, 6e2], [3e3, 2e3, 5e2]])  # tokens/s of a replica
BUSY = np.array([[0.7, 0.6, 0.0], [0.9, 0.9, 0.8]])  # most utilisation that keeps the latency: interactive, relaxed
WORTH, LOADING = 5e-6, 0.1  # of a token served in time; of a replica that must be loaded
MINUTES, TENANTS, SCALE = 58, 4, 6.0
MIXES = np.array([mix for mix in product(range(7), range(7), range(9)) if 0 < np.count_nonzero(mix) <= 2])  # (n, 3)


def traffic(folder: Path) -> dict[tuple[int, int, int], np.ndarray]:
    """Tokens a minute, (MINUTES,), of each (size of model, latency class, tenant)."""
    lines = [line for name in ("code", "conv") for line in read(folder / f"AzureLLMInferenceTrace_{name}.csv.gz")]
    if not lines:
        draw = np.random.default_rng(0)
        minutes, context = draw.uniform(0, MINUTES, 28_000), draw.lognormal(7.0, 1.0, 28_000)
        lines = list(zip(minutes, context, draw.lognormal(4.5, 1.2, 28_000), strict=True))
    minute, context, generated = np.array(lines).T
    size = np.searchsorted(np.quantile(context, [0.25, 0.5, 0.75]), context)  # long contexts go to large models
    relaxed = generated > np.median(generated)  # people wait for short answers
    tenant, at = np.arange(len(minute)) % TENANTS, minute.astype(int)
    load = np.zeros((4, 2, TENANTS, MINUTES))
    kept = at < MINUTES
    np.add.at(
        load, (size[kept], relaxed[kept].astype(int), tenant[kept], at[kept]), SCALE * (context + generated)[kept]
    )
    return {tuple(map(int, group)): load[tuple(group)] for group in np.ndindex(4, 2, TENANTS)}


def read(path: Path) -> list[tuple[float, float, float]]:
    """(minute, tokens in, tokens out) of each line of a trace; nothing where there is no file."""
    if not path.exists():
        return []
    with gzip.open(path, "rt") as file:
        text = file.read()
    rows = [line.split(",") for line in text.splitlines()[1:]]
    clock = np.array([row[0].replace(" ", "T")[:23] for row in rows], dtype="datetime64[ms]")
    minutes = (clock - clock.min()) / np.timedelta64(1, "m")
    return [(float(at), float(row[1]), float(row[2])) for at, row in zip(minutes, rows, strict=True)]


def worths(group: tuple[int, int, int], load: float, runs: np.ndarray) -> np.ndarray:
    """What each mix of replicas is worth this minute: tokens served in time less GPUs and loading, (n,)."""
    size, relaxed, _ = group
    served = np.minimum(load, MIXES @ (60.0 * SPEED[size] * BUSY[relaxed]))
    return WORTH * served - MIXES @ (NEEDS[size] * PRICE) - LOADING * np.maximum(MIXES - runs, 0).sum(axis=1)


class Fleet:
    """The kept program: a request for each group, a column for each mix, the GPUs as resources."""

    def __init__(self, groups: list[tuple[int, int, int]]) -> None:
        self.groups, self.runs = groups, {group: np.zeros(3, dtype=int) for group in groups}
        self.model = copter.Model(sense="max")
        for kind, count in GPUS.items():
            self.model.add_resource(kind, count)
        for group in groups:
            usage = dict(zip(GPUS, (MIXES * NEEDS[group[0]]).T, strict=True))
            self.model.add_request(group, np.zeros(len(MIXES)), usage, integer=True)
        self.session = copter.Session(self.model)

    def plan(self, costs: np.ndarray, deadline_s: float | None) -> copter.IntegerPlan:
        """Plan a minute: new worths in place, then the same session again."""
        self.model.update_costs(self.groups, costs)
        plan = self.session.solve_integer(deadline_s=deadline_s)
        for group in self.groups if plan else ():
            column = plan.column(group)
            self.runs[group] = MIXES[column] if column is not None else np.zeros(3, dtype=int)
        return plan


def main() -> None:
    """Play the hour and print every tenth minute."""
    loads = traffic(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/azure_llm"))
    fleet = Fleet(list(loads))
    for minute in range(MINUTES):
        costs = np.array([worths(group, loads[group][minute], fleet.runs[group]) for group in fleet.groups])
        began = time.perf_counter()
        plan = fleet.plan(costs, deadline_s=0.02 if minute else None)
        took = 1e3 * (time.perf_counter() - began)
        if minute % 10 == 0:
            prices = ", ".join(f"{kind} {max(fleet.session.solution.price(kind), 0.0):.3f}" for kind in GPUS)
            print(
                f"minute {minute:2}: worth {plan.objective:6.1f}, gap {plan.gap:.2%}, {took:4.1f} ms; "
                f"one more: {prices}"
            )


if __name__ == "__main__":
    main()
