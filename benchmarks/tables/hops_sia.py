"""Sia as the Hops paper ran it: its objective over the jobs' requirement sets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from copter import Model, Session, Settings
from copter.shims import IDLE, RoundingShim
from copter_frontends.policies.hops import RequirementSet
from copter_frontends.policy_kit import Choice, RoundPolicy, Throughputs
from copter_frontends.vocabulary import Allocation, Cluster, Job


class SiaOnSets(RoundPolicy):
    """Sia's objective (p = -0.5, lambda = 1.1) with a column for every requirement, as the Hops paper ran it.

    Types, not servers, in the program; a job within a server's size is placed on one server or waits.
    """

    def __init__(self, cluster: Cluster, throughputs: Throughputs, sets: Mapping[str, RequirementSet]) -> None:
        super().__init__(cluster, 60.0)
        self._throughputs, self._sets = throughputs, sets
        self._model = Model(sense="max")
        for kind in self.nodes.types:
            self._model.add_resource(kind, self.nodes.capacity(kind))
        self._session = Session(self._model, Settings())
        self._columns: dict[str, list[tuple[str, int]]] = {}
        self._gain: dict[str, np.ndarray] = {}  # type: ignore[type-arg]
        self._began: dict[str, float] = {}

    def add_job(self, job: Job) -> None:
        """Queue a job."""
        super().add_job(job)
        sizes = self._sets[job.id].sizes
        columns = [(kind, n) for kind in self.nodes.types for n in sizes if n <= self.nodes.capacity(kind)]
        rate = np.array([self._throughputs.rate(job, kind, n) for kind, n in columns])
        self._columns[job.id], self._gain[job.id] = columns, rate / rate.min() * sizes[0]
        usage = {kind: [float(n) if kind == own else 0.0 for own, n in columns] for kind in self.nodes.types}
        self._model.add_request(job.id, self._values(job.id, 0.0), usage, integer=True)

    def remove_job(self, job_id: str) -> None:
        """Forget a job."""
        super().remove_job(job_id)
        self._model.remove_request(job_id)
        del self._columns[job_id], self._gain[job_id]

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """One LP, rounded; pinned jobs keep what they have."""
        with self._model.batch():
            for job_id in self._columns:
                self._model.update_cost(job_id, self._values(job_id, now_s))
                held = self.pins.get(job_id)
                at = self._columns[job_id].index((held.gpu_type, held.gpus)) if held is not None else None
                if at is not None:
                    self._model.fix(job_id, at)
                elif self._model.fixed(job_id) is not None:
                    self._model.unfix(job_id)
        plan = self._session.solve_integer(RoundingShim())
        wanted = {
            job_id: columns[column]
            for job_id, columns in self._columns.items()
            if plan and job_id not in self.pins and (column := plan.column(job_id)) is not None and column != IDLE
        }
        return Choice(wanted, plan.objective, max(plan.bound, plan.objective), plan.fractional_requests)

    def settle(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """Servers for the wanted jobs, the larger first; those for which there is no room together wait."""
        for job_id, held in list(self.held.items()):
            if job_id not in self.pins and wanted.get(job_id) != (held.gpu_type, held.gpus):
                self.release(job_id)
        for job_id, (kind, gpus) in sorted(wanted.items(), key=lambda item: -item[1][1]):
            if job_id not in self.held:
                shares = self.nodes.find(kind, gpus)
                if shares is not None:
                    self.hold(job_id, Allocation(kind, gpus, shares))

    def _values(self, job_id: str, now_s: float) -> np.ndarray:  # type: ignore[type-arg]
        gain, held = self._gain[job_id], self.held.get(job_id)
        if held is None:
            return np.asarray(1.1 - gain**-0.5 + 1e-3)
        age_s = max(now_s - self.jobs[job_id].submit_s, 1.0)
        factor = np.full(len(gain), max(age_s - 30.0, 1.0) / (age_s + 30.0))
        factor[self._columns[job_id].index((held.gpu_type, held.gpus))] = 1.0
        return np.asarray(np.maximum(1.1 - (factor * gain) ** -0.5, 0.0) + 1e-3)
