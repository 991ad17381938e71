"""Pollux on a cluster with several GPU types, as in the comparison of Sia's paper (docs/papers/baselines.md,
B29-B32).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import SettingsError
from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.policy_kit import Choice, RoundPolicy
from copter_frontends.vocabulary import Allocation, Cluster, Job
from copter_papers.opponents.pollux.learned_speedups import LearnedSpeedups
from copter_papers.opponents.pollux.pareto_search import ParetoSearch, TypeBlindProblem, warm_up
from copter_papers.opponents.pollux.policy import with_limits
from copter_papers.opponents.pollux.virtual_nodes import VirtualNode, VirtualNodes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEADLINE_SHARE = 0.8  # share of a plan's deadline that the search may use; placement needs the rest
DELAY_S = 30.0  # seconds of a restart in the restart factor


class TypeBlindPollux(RoundPolicy):
    """Pollux on equal virtual nodes, ignoring GPU types; jobs on several types are repaired afterwards.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    speedups : LearnedSpeedups
        Speedups from the ``hints`` that jobs report.
    power : float
        Exponent of the power mean of speedups: -1 gives the harmonic mean. Not 0.
    search : ParetoSearch, optional
    most_gpus : int, optional
        Most GPUs of a job; by default the GPUs of the smallest type, as in the public simulator.
    mixing : bool
        Whether the search may put a job on several types, so that only the plan is repaired. False: each individual is
        repaired.
    restart_factor : float, optional
        Factor on a job's speedup after a change; by default it grows with the job's age and falls with its restarts.
    round_s : float
    seed : int

    Raises
    ------
    SettingsError
        If the power is 0 or not finite, or the restart factor not within 0 and 1.
    """

    def __init__(
        self,
        cluster: Cluster,
        speedups: LearnedSpeedups,
        power: float = -1.0,
        search: ParetoSearch | None = None,
        most_gpus: int | None = None,
        mixing: bool = True,
        restart_factor: float | None = None,
        round_s: float = 60.0,
        seed: int = 0,
    ) -> None:
        super().__init__(cluster, round_s, speedups.runs)
        if not np.isfinite(power) or power == 0:
            raise SettingsError(f"power is {power}, must be finite and not 0")
        if restart_factor is not None and not 0 <= restart_factor <= 1:
            raise SettingsError(f"restart_factor is {restart_factor}, must be 0 to 1, or None for one by age")
        self.speedups, self.power, self.search = speedups, power, search or ParetoSearch()
        self.most_gpus, self.mixing, self.restart_factor, self.seed = most_gpus, mixing, restart_factor, seed
        self._plans = 0
        warm_up()
        self._hints: dict[str, TrainingHints] = {}
        self._restarts: dict[str, int] = {}
        self._had: dict[str, dict[VirtualNode, int]] = {}
        self._front: list[dict[str, dict[VirtualNode, int]]] = []
        self._chosen: dict[str, Allocation] = {}

    def sizes(self, job: Job) -> Iterable[int]:
        """Return the job's minimum, from which it may grow."""
        return (job.min_gpus,)

    def add_job(self, job: Job) -> None:
        """See :meth:`.RoundPolicy.add_job`."""
        super().add_job(with_limits(job))

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Update a job's ``progress``, ``hints`` and ``restarts``; :func:`.check_facts` checks other changes."""
        super().update_job(job_id, **what_changed)
        if what_changed.get("hints") is not None:
            self._hints[job_id] = what_changed["hints"]
        if "restarts" in what_changed:
            self._restarts[job_id] = int(what_changed["restarts"])

    def remove_job(self, job_id: str) -> None:
        """Forget a job with its hints and restarts, and free its GPUs; raises UnknownJobError for an unknown id."""
        super().remove_job(job_id)
        for known in (self._hints, self._restarts, self._had):
            known.pop(job_id, None)

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Search from the last front, take the best mean, and reduce every job to one type."""
        rng = np.random.default_rng((self.seed, self._plans))
        self._plans += 1
        waiting = [job_id for job_id in self.queue() if job_id not in self.pins]
        ids = sorted(waiting, key=lambda job_id: self.service[job_id].gpu_s)
        nodes = VirtualNodes(self.nodes)
        self._chosen = {}
        if not ids or not len(nodes):
            self._front = []
            return Choice({}, objective=0.0)
        problem = self._problem(ids, nodes, now_s)
        first = self._first(ids, nodes, problem.base)
        states, _ = self.search.run(problem, first, rng, DEADLINE_SHARE * deadline_s)
        self._front = [{job_id: nodes.named(row) for job_id, row in zip(ids, state, strict=True)} for state in states]
        plan = problem.one_type(states[0])
        for job_id, row in zip(ids, plan, strict=True):
            allocation = nodes.allocation(row)
            self._had[job_id] = nodes.named(row)
            if allocation is not None:
                self._chosen[job_id] = allocation
        wanted = {job_id: (given.gpu_type, given.gpus) for job_id, given in self._chosen.items()}
        return Choice(wanted, objective=problem.values(plan)[0])

    def settle(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """Assign the nodes that the search chose; jobs neither wanted nor pinned lose their GPUs."""
        self.settle_as(self._chosen)

    def _problem(self, ids: list[str], nodes: VirtualNodes, now_s: float) -> TypeBlindProblem:
        jobs = [self.jobs[job_id] for job_id in ids]
        room = np.full(len(nodes), nodes.size, dtype=np.int64)
        for job_id, pin in self.pins.items():
            room -= nodes.row(pin, self._had.get(job_id, {}))
        capacity = [self.nodes.capacity(kind) for kind in self.nodes.types]
        cap = min(count for count in capacity if count) if self.most_gpus is None else self.most_gpus
        most = [self._most(job, min(cap, max(capacity))) for job in jobs]
        base = math.ceil(sum(capacity) / len(jobs))
        tables = [self.speedups.table(job, self._hints.get(job.id), max(most), base) for job in jobs]
        return TypeBlindProblem(
            room=room,
            size=nodes.size,
            kind=nodes.kind,
            rank=nodes.rank,
            runs=np.array([[self.speedups.runs(job, kind) for kind in self.nodes.types] for job in jobs]),
            speedup=np.array(tables),
            least=np.array([job.min_gpus for job in jobs], dtype=np.int64),
            most=np.array(most, dtype=np.int64),
            base=np.array([self._row(job_id, nodes) for job_id in ids]),
            factor=np.array([self._factor(job, now_s) for job in jobs]),
            power=self.power,
            mixing=self.mixing,
        )

    def _row(self, job_id: str, nodes: VirtualNodes) -> Ints:
        held = self.held.get(job_id)
        if held is None:
            return np.zeros(len(nodes), dtype=np.int64)
        return nodes.row(held, self._had.get(job_id, {}))

    def _most(self, job: Job, cap: int) -> int:
        grown = max(self.speedups.most(job, self._hints.get(job.id)), job.min_gpus)
        return min(grown, job.max_gpus or grown, max(cap, job.min_gpus))

    def _factor(self, job: Job, now_s: float) -> float:
        if self.restart_factor is not None:
            return self.restart_factor
        age_s = max(now_s - job.submit_s, 0.0)
        return max(age_s - DELAY_S * self._restarts.get(job.id, 0), 0.0) / (age_s + DELAY_S)

    def _first(self, ids: list[str], nodes: VirtualNodes, base: Ints) -> Ints:
        """Return the last front without departed jobs and nodes; in the first round, the current GPUs."""
        if not self._front:
            return base[None].copy()
        column = {name: c for c, name in enumerate(nodes.names)}
        result = np.zeros((len(self._front), *base.shape), dtype=np.int64)
        for i, individual in enumerate(self._front):
            for j, job_id in enumerate(ids):
                for name, gpus in individual.get(job_id, {}).items():
                    if name in column:
                        result[i, j, column[name]] = gpus
        return result
