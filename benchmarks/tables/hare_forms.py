"""The relaxation in several forms: how long each takes, cold and after 1% of the jobs have changed.

structured: jobs' rows eliminated (copter_frontends.hare.solver). general: one LP through copter.solve. engine: a copter
Model with one request a job, whose parallelism and lateness rows are resources, in a Session.

python benchmarks/tables/hare_forms.py --gpus 100,250
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from copter import Model, Session, Settings, solve
from copter_frontends.hare import Relaxation, RelaxationSolver

sys.path.insert(0, str(Path(__file__).parents[1]))
from families.hare import HareRounds
from peers.highs import IPM, SIMPLEX, Mirror, Way

Result = tuple[str, float, float]  # status, objective, seconds
REWARD = 2.0  # of a whole job, over its weight times the horizon: no job is worth leaving out


class Engine:
    """The program as a model of requests: min becomes max of rewards for work done less the weighted lateness."""

    def __init__(self, tolerance: float, limit_s: float) -> None:
        self.model, self.limit_s = Model(sense="max"), limit_s
        self.session = Session(self.model, Settings(tolerance=tolerance, absolute_tolerance=1.0, purify=False))
        self.known: dict[str, float] = {}

    def round(self, rounds: HareRounds, relaxation: Relaxation) -> Result:
        """Edit the model to the round's jobs, and solve."""
        started = time.perf_counter()
        horizon = float(rounds.grid.edges[-1])
        if not self.known:
            for at, count in np.ndenumerate(relaxation.capacity / horizon):
                self.model.add_resources(at, float(count))
        ids = [job.id for job in rounds.instance.jobs]
        for job in [job for job in self.known if job not in set(ids)]:
            self._remove(job, relaxation.shape[1])
        for n, job in enumerate(ids):
            if job not in self.known:
                self._add(n, job, relaxation, horizon)
        found = self.session.solve(deadline_s=self.limit_s)
        reward = sum(self.known.values())
        value = relaxation.constant + (reward - found.objective) * horizon
        return found.status.value, value, time.perf_counter() - started

    def _remove(self, job: str, intervals: int) -> None:
        self.model.remove_requests([job, ("late", job)])
        for row in [("late-row", job), *((job, i) for i in range(intervals))]:
            if row in set(self.model.resources):
                self.model.drop_resource(row)
        del self.known[job]

    def _add(self, n: int, job: str, data: Relaxation, horizon: float) -> None:
        live = range(int(data.first[n]), data.shape[1])
        kinds = np.flatnonzero(data.alpha[n])
        at = [(i, int(g)) for i in live for g in kinds]
        seconds = np.array([1.0 / (data.alpha[n, g] * horizon) for _, g in at])
        starts = np.array([data.start[n, i] / horizon for i, _ in at])
        for i in live:
            self.model.add_resources((job, i), float(data.parallel[n, i]) / horizon)
        self.model.add_resources(("late-row", job), -float(data.excess[n]) / horizon)
        rows = [*at, *((job, i) for i in live), ("late-row", job)]
        place = {row: k for k, row in enumerate(rows)}
        column = np.arange(len(at))
        index = [[place[a] for a in at], [place[(job, i)] for i, _ in at], [place[("late-row", job)]] * len(at)]
        usage = sp.csc_array(
            (np.concatenate((seconds, seconds, starts)), (np.concatenate(index), np.tile(column, 3))),
            shape=(len(rows), len(at)),
        )
        weight = float(data.weight[n])
        self.known[job] = REWARD * weight
        self.model.add_request(job, np.full(len(at), REWARD * weight), usage, resources=rows)
        late = {("late-row", job): [-1.0]}
        self.model.add_request(("late", job), [-weight], late, limit=np.inf, upper=np.inf)


def forms(tolerance: float, limit_s: float) -> dict[str, Callable[[HareRounds, Relaxation], Result]]:
    """The forms by name, each with whatever it keeps."""
    own, engine = RelaxationSolver(tolerance), Engine(tolerance, limit_s)
    peers = {
        "highs ipm": Mirror("ipm", Way(IPM | {"run_crossover": "off"})),
        "highs simplex": Mirror("simplex", Way(SIMPLEX, warm=True)),
    }

    def structured(rounds: HareRounds, _: Relaxation) -> Result:
        started = time.perf_counter()
        found = own.solve(rounds.instance, rounds.grid, limit_s)
        return found.status.value, found.objective, time.perf_counter() - started

    def general(_: HareRounds, relaxation: Relaxation) -> Result:
        started = time.perf_counter()
        settings = dataclasses.replace(Settings(), tolerance=tolerance, absolute_tolerance=1.0, time_limit_s=limit_s)
        found = solve(relaxation.program(), settings)
        return found.status.value, found.objective, time.perf_counter() - started

    def highs(name: str) -> Callable[[HareRounds, Relaxation], Result]:
        def run(rounds: HareRounds, _: Relaxation) -> Result:
            answer = peers[name].solve(limit_s, peers[name].update(rounds.program()))
            return answer.status.lower(), answer.objective, answer.total_s

        return run

    return {"structured": structured, "general": general, "engine": engine.round, **{k: highs(k) for k in peers}}


def main() -> None:
    """Parse, run, print."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--gpus", default="100,250")
    command.add_argument("--mode", choices=["capped", "full"], default="capped")
    command.add_argument("--tolerance", type=float, default=1e-4)
    command.add_argument("--time-limit", type=float, default=60.0)
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = command.parse_args()
    found = []
    for gpus in map(int, arguments.gpus.split(",")):
        rounds = HareRounds(gpus, arguments.mode, "churn", 0.01, 0)
        ways = forms(arguments.tolerance, arguments.time_limit)
        for label in ("cold", "1% changed"):
            relaxation = Relaxation.of(rounds.instance, rounds.grid)
            for name, way in ways.items():
                status, value, seconds = way(rounds, relaxation)
                found.append([gpus, relaxation.variables, label, name, status, value, seconds])
                print(f"{gpus:>7} GPUs {relaxation.variables:>9,} variables {label:>11} {name:>14} "
                      f"{seconds:8.2f} s  {value:.6e}  {status}", flush=True)  # fmt: skip
            rounds.prepare()
            rounds.edit()
    if arguments.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
