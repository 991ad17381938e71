"""What two jobs on one GPU could gain at most: Hadar's round LP with columns for pairs, and without (papers/hadar.md).

python benchmarks/tables/hadar_packing.py --jobs 120 --scale 0.25 --seeds 3

Rates of pairs are Gavel's, of the five models at the batch sizes of the other tables. Rounds are those of the LP as it
is, shares carried out as they are: no restarts, no servers, and a pair may be split over a round as it likes, all of
which favours pairs. Every round is solved in both ways from the same state, by what it is worth and by the progress it
makes; and the whole workload is run in both ways.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence

import loads
import numpy as np
import scipy.sparse as sp
from figure_command import spread
from hadar_runs import ROUND_S, finish, options, say
from runs import data_directory
from scipy.optimize import linprog

from copter_frontends.vocabulary import Cluster, Job
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import STEPS_PER_S, hadar_jobs, table_source

PAIRS = "profiles/gavel/simulation_throughputs.json.gz"
NAMES = {
    "resnet50": "ResNet-50 (batch size 64)",
    "resnet18": "ResNet-18 (batch size 128)",
    "lstm": "LM (batch size 80)",
    "cyclegan": "CycleGAN",
    "transformer": "Transformer (batch size 64)",
}
MODELS = tuple(NAMES)


def pair_factors(types: Sequence[str]) -> np.ndarray:  # type: ignore[type-arg]
    """Speed of a model beside another on one GPU over its speed alone, (models, models, types); 0: they do not fit."""
    table = json.loads(gzip.decompress((data_directory() / PAIRS).read_bytes()))
    result = np.zeros((len(MODELS), len(MODELS), len(types)))
    for q, kind in enumerate(types):
        rows = table[kind]
        for a, mine in enumerate(MODELS):
            own = rows[str((NAMES[mine], 1))]
            for b, other in enumerate(MODELS):
                result[a, b, q] = own[str((NAMES[other], 1))][0] / own["null"]
    return result


class Rounds:
    """The LP of a round over jobs of some models and sizes, with pairs (`factors`) or without."""

    def __init__(self, cluster: Cluster, jobs: Sequence[Job], factors: np.ndarray | None) -> None:  # type: ignore[type-arg]
        self.types, self.factors = tuple(cluster.types), factors
        self.capacity = np.array([cluster.capacity(kind) for kind in self.types], dtype=float)
        self.gpus = np.array([job.requested_gpus for job in jobs], dtype=float)
        self.model = np.array([MODELS.index(job.application) for job in jobs])
        self.alone = self.gpus[:, None] * np.array(
            [[STEPS_PER_S[job.application][kind] for kind in self.types] for job in jobs]
        )
        paired = 0 if factors is None else len(MODELS)
        self.rate = np.repeat(self.alone[:, None, :], 1 + paired, axis=1)  # (jobs, alone or partner's model, types)
        self.share = np.ones(1 + paired)  # of its GPUs
        if factors is not None:
            self.rate[:, 1:, :] *= factors[self.model]
            self.share[1:] = 0.5

    def worth(self, left: np.ndarray, rows: np.ndarray, what: str) -> np.ndarray:  # type: ignore[type-arg]
        """Of a round, (jobs, alone or partner, types): 1/T for the completion time, or GPUs' worth of progress."""
        rate = self.rate[rows]
        if what == "progress":
            return np.asarray(rate / self.alone[rows].max(axis=1)[:, None, None] * self.gpus[rows, None, None])
        with np.errstate(divide="ignore"):
            rounds = np.maximum(np.ceil(left[rows, None, None] / (rate * ROUND_S) - 1e-9), 1.0)
        return np.where(rate > 0, 1.0 / rounds, 0.0)

    def solve(self, left: np.ndarray, rows: np.ndarray, what: str = "jct") -> tuple[float, np.ndarray]:  # type: ignore[type-arg]
        """Value of the LP, and what the jobs get done in the round, (jobs,)."""
        worth = self.worth(left, rows, what)
        n, ways, kinds = worth.shape
        index = np.arange(worth.size).reshape(worth.shape)
        use = (self.gpus[rows][:, None] * self.share)[:, :, None] + np.zeros(kinds)
        at = np.concatenate([np.repeat(np.arange(n), ways * kinds), n + np.tile(np.arange(kinds), n * ways)])
        matrix = sp.csr_array(
            (np.concatenate([np.ones(worth.size), use.ravel()]), (at, np.tile(index.ravel(), 2))),
            shape=(n + kinds, worth.size),
        )
        equal = self._equal(rows, index) if ways > 1 else None
        upper = np.where(self.rate[rows] > 0, 1.0, 0.0).ravel()
        if ways > 1:
            upper[self._lonely(rows, index)] = 0.0
        found = linprog(
            -worth.ravel(),
            A_ub=matrix,
            b_ub=np.concatenate([np.ones(n), self.capacity]),
            A_eq=equal,
            b_eq=None if equal is None else np.zeros(equal.shape[0]),
            bounds=np.column_stack([np.zeros(worth.size), upper]),
            method="highs",
        )
        x = found.x.reshape(worth.shape)
        return -float(found.fun), np.asarray((x * self.rate[rows]).sum(axis=(1, 2)) * ROUND_S)

    def _groups(self, rows: np.ndarray) -> list[list[np.ndarray]]:  # type: ignore[type-arg]
        """Positions of the jobs of each model, for each number of GPUs: only equal numbers share."""
        return [
            [np.flatnonzero((self.gpus[rows] == size) & (self.model[rows] == m)) for m in range(len(MODELS))]
            for size in np.unique(self.gpus[rows])
        ]

    def _equal(self, rows: np.ndarray, index: np.ndarray) -> sp.csr_array | None:  # type: ignore[type-arg]
        """As much of a model beside another as of the other beside it, on each type."""
        at, column, value, count = [], [], [], 0
        for group in self._groups(rows):
            for a in range(len(MODELS)):
                for b in range(a):
                    for q in range(len(self.types)):
                        mine, other = index[group[a], 1 + b, q], index[group[b], 1 + a, q]
                        at += [count] * (len(mine) + len(other))
                        column += [*mine.tolist(), *other.tolist()]
                        value += [1.0] * len(mine) + [-1.0] * len(other)
                        count += 1
        return sp.csr_array((value, (at, column)), shape=(count, index.size))

    def _lonely(self, rows: np.ndarray, index: np.ndarray) -> list[int]:  # type: ignore[type-arg]
        """Columns of a model beside its own where there is no second job of it."""
        alone = [(group[m], m) for group in self._groups(rows) for m in range(len(MODELS)) if len(group[m]) == 1]
        return [int(i) for mine, m in alone for i in index[mine, 1 + m].ravel()]


def run(rounds: Rounds, jobs: Sequence[Job], other: Rounds | None = None) -> tuple[float, list[list[float]]]:
    """Average JCT in hours of a run; and by round, with `other`, its worth and its progress over this one's."""
    left = np.array([float(job.work_samples or 0.0) for job in jobs])
    done_s, now_s, gains = np.zeros(len(left)), 0.0, []
    while (left > 0).any():
        rows = np.flatnonzero(left > 0)
        value, made = rounds.solve(left, rows)
        if other is not None and rounds.gpus[rows].sum() > rounds.capacity.sum():
            progress = [each.solve(left, rows, "progress")[0] for each in (rounds, other)]
            gains.append([other.solve(left, rows)[0] / value, progress[1] / progress[0]])
        ends = made >= left[rows] * (1 - 1e-9)
        part = np.minimum(left[rows] / np.maximum(made, 1e-300), 1.0)
        done_s[rows[ends]] = now_s + part[ends] * ROUND_S
        left[rows] = np.where(ends, 0.0, left[rows] - made)
        now_s += ROUND_S
    return float(done_s.mean()) / 3600.0, gains


def measured(asked: argparse.Namespace) -> dict[str, list[float]]:
    """Gains by seed: of a round's worth, of a round's progress, and average JCT alone over that with pairs."""
    cluster = named_cluster("hadar-60")
    factors = pair_factors(tuple(cluster.types))
    found: dict[str, list[float]] = {"worth": [], "progress": [], "jct": []}
    for seed in range(asked.seed, asked.seed + asked.seeds):
        jobs = hadar_jobs(asked.jobs, "static", seed=seed, scale=asked.scale, sizes=asked.sizes)
        loads.note(cluster, jobs, table_source(cluster))
        say(f"seed {seed} ...")
        alone, pairs = Rounds(cluster, jobs, None), Rounds(cluster, jobs, factors)
        jct_h, gains = run(alone, jobs, pairs)
        worth, progress = np.mean(gains, axis=0).tolist() if gains else (1.0, 1.0)
        with_pairs, _ = run(pairs, jobs)
        for name, value in (("worth", worth), ("progress", progress), ("jct", jct_h / with_pairs)):
            found[name].append(value)
    return found


def main() -> None:
    """Print what pairs gain."""
    command = options(__doc__, "", sizes=True)
    command.set_defaults(jobs=120, scale=0.25)
    asked = command.parse_args()
    found = measured(asked)
    print(f"\nTwo jobs on one GPU, {asked.jobs} jobs: the round LP with pairs over that without")
    print(f"  {'worth of a round in which GPUs are short':<48}{spread(found['worth'])}")
    print(f"  {'its progress, if that were the objective':<48}{spread(found['progress'])}")
    print(f"  {'average JCT without pairs over that with':<48}{spread(found['jct'])}")
    print("\nThe paper: no figure; (1d) and (1e) give a GPU to one job.")
    finish(asked, found)


if __name__ == "__main__":
    main()
