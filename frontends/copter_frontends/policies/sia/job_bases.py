"""The configurations on which each Sia job can run, with the base of its values (S1, S2); equal jobs share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.sia.estimator import HintedGoodput
from copter_frontends.policies.sia.job_book import JobState
from copter_frontends.policies.sia.objective import SiaObjective
from copter_frontends.simulator.goodput_source import GoodputSource, row_of
from copter_frontends.vocabulary import Configuration, Job, configurations_for
from copter_frontends.vocabulary.semantics import Semantics

Floats = NDArray[np.float64]


class Base(NamedTuple):
    """Base values of a job's configurations: sgn(p) (G_ic)^p, or ln G_ic if p = 0 (S2).

    Attributes
    ----------
    values : float64 array (configurations,)
        NaN where the job cannot run.
    smallest : float
        Smallest value of `values` that is not NaN.
    live : float64 array (n,)
        Values of the configurations for which the job has columns.
    holed : bool
        Whether `live` has NaN.
    """

    values: Floats
    smallest: float
    live: Floats
    holed: bool


class JobBases:
    """Bases of jobs' values over a cluster's configurations.

    Parameters
    ----------
    configurations : sequence of Configuration
    types : sequence of str
        The cluster's GPU types.
    goodput : GoodputSource
        Goodput model over the same configurations.
    objective : SiaObjective
    semantics : Semantics
        Limits of what a job may have.
    estimator : HintedGoodput or None
        Estimator, if jobs' goodput is known from hints only.
    quotas : mapping of tenant to int
        Present quotas: most GPUs of each tenant's jobs together; read at every call.

    Attributes
    ----------
    gpus, kind : arrays, (n,)
        GPUs of each configuration, and the number of its type.
    allowed, fits : bool arrays, (n,)
        Configurations that the semantics allow, and those of them within the present capacity.
    """

    def __init__(
        self,
        configurations: Sequence[Configuration],
        types: Sequence[str],
        goodput: GoodputSource,
        objective: SiaObjective,
        semantics: Semantics,
        estimator: HintedGoodput | None,
        quotas: Mapping[str | None, int],
    ) -> None:
        self.configurations, self.types, self.goodput = tuple(configurations), tuple(types), goodput
        self.objective, self.semantics, self.estimator, self.quotas = objective, semantics, estimator, quotas
        index = {name: k for k, name in enumerate(self.types)}
        self.gpus: NDArray[np.int64] = np.array([c.gpus for c in configurations], dtype=np.int64)
        self.kind: NDArray[np.int64] = np.array([index[c.gpu_type] for c in configurations], dtype=np.int64)
        nodes = np.array([c.nodes for c in configurations])
        most = np.array([semantics.max_nodes.get(c.gpu_type, np.inf) for c in configurations])
        self.allowed: NDArray[np.bool_] = (nodes <= most) & (self.gpus <= (semantics.max_gpus or np.inf))
        self.fits: NDArray[np.bool_] = self.allowed.copy()
        self._lives: dict[tuple[object, ...], tuple[int, NDArray[np.bool_]]] = {}
        self._bases: dict[tuple[object, ...], Base] = {}
        self._fresh: dict[tuple[object, ...], Floats] = {}

    def follow_capacity(self, capacity: NDArray[np.int64]) -> bool:
        """Set the current GPUs of each type; returns whether the set of valid configurations changed."""
        fits = self.allowed & (self.gpus <= capacity[self.kind])
        if np.array_equal(fits, self.fits):
            return False
        self.fits = fits
        self._bases.clear()
        self._fresh.clear()
        return True

    def of(self, state: JobState) -> Base:
        """Return a job's base; raises InvalidJobError where the job can run on nothing that is there now."""
        job = state.job
        if self.estimator is not None and job.own_goodput is None:
            return self._normalised(state, self._held(job, self.estimator.row(job, state.hints)))
        if job.own_goodput is not None:  # not cached, because no other job shares it
            return self._normalised(state, self._row(job, state.progress))
        key = self._alike(state)
        known = self._bases.get(key)
        if known is None:
            known = self._bases[key] = self._normalised(state, self._row(job, state.progress))
        return known

    @property
    def known(self) -> Mapping[tuple[object, ...], Base]:
        """Bases that jobs share, by limits, phase and most GPUs (0 if growth has no limit); empty with an estimator."""
        return self._bases

    def fresh(self, state: JobState) -> Floats:
        """Return the values of the columns of a job without GPUs and bonus, with weight 1; do not write to them."""
        if self.estimator is not None or state.job.own_goodput is not None:
            return self.objective.values(state.live_base, 1.0)
        key = self._alike(state)
        if key not in self._fresh:
            self._fresh[key] = self.objective.values(state.live_base, 1.0)
        return self._fresh[key]

    def _alike(self, state: JobState) -> tuple[int, int, int]:
        """Key that jobs with equal bases share."""
        return state.limits, state.phase, state.most_gpus if self.semantics.growth else 0

    def _normalised(self, state: JobState, row: Floats) -> Base:
        """S1 and S2 of a row of goodput."""
        job, most_gpus = state.job, state.most_gpus
        valid = self._valid(job)
        if self.estimator is None and self.semantics.growth is not None and job.gpus is None and job.preemptible:
            valid = valid & self._grown(job, valid & (row > 0), most_gpus)
        usable = np.flatnonzero(valid & (row > 0))
        least = self._replica(job, int(usable[np.argmin(row[usable])])) if len(usable) else 1
        base = self.objective.base(job.id, row, valid, least)
        live = base[state.columns]
        return Base(base, float(np.nanmin(base)), live, bool(np.isnan(live).any()))

    def _grown(self, job: Job, usable: NDArray[np.bool_], most_gpus: int) -> NDArray[np.bool_]:
        """Mark configurations within the growth limit: the smallest, the reserved, and a multiple of the most so
        far.
        """
        smallest = int(self.gpus[usable].min()) if usable.any() else 1
        reserved = job.reservation[1] if job.reservation is not None else 0
        return np.asarray(self.gpus <= max((self.semantics.growth or 1) * most_gpus, smallest, reserved))

    def _replica(self, job: Job, column: int) -> int:
        """Return N_i^min of S1: the least GPUs on which the job runs, on a configuration's type."""
        pipeline = getattr(self.goodput.applications[job.application], "pipeline", None)
        own = pipeline.stages.get(self.configurations[column].gpu_type, 1) if pipeline else 1
        return job.gpus or max(job.min_gpus, own)

    def _held(self, job: Job, row: Floats) -> Floats:
        """Return the row with only the entries that a job with fixed GPUs may use."""
        if job.gpus is None:
            return row
        result = np.zeros(len(row))
        held = configurations_for(self.configurations, job.gpus)
        result[held] = row[held]
        return result

    def _row(self, job: Job, progress: float) -> Floats:
        """Return the goodput model's row, with only the entries that a job with fixed GPUs may use."""
        return self._held(job, row_of(self.goodput, job, progress))

    def live(self, job: Job) -> NDArray[np.bool_]:
        """Mark the configurations on which the job can run, given its limits and batch sizes."""
        return self.numbered(job)[1]

    def numbered(self, job: Job) -> tuple[int, NDArray[np.bool_]]:
        """Return a number for the job's limits, and :meth:`live`.

        Equal limits have the same number, zero and above; a job with a goodput of its own has -1.
        """
        if job.own_goodput is not None:  # its base is shared with nobody
            return -1, self._find_live(job)
        key = self._limits(job)
        found = self._lives.get(key)
        if found is None:
            found = self._lives[key] = len(self._lives), self._find_live(job)
        return found

    def _find_live(self, job: Job) -> NDArray[np.bool_]:
        """Compute :meth:`live` without the cache."""
        within = self.allowed & (self.gpus >= job.min_gpus)
        if job.max_gpus is not None:
            within &= self.gpus <= job.max_gpus
        if self.estimator is None or job.own_goodput is not None:
            within &= self._row(job, 0.0) > 0
        return within if job.preemptible else self._requested(job, within)

    def _limits(self, job: Job) -> tuple[object, ...]:
        """Return a key for the configurations on which a job can run and its goodput there."""
        requested = None if job.preemptible else job.requested_gpus
        reserved = None if job.reservation is None else job.reservation[1]
        return (job.shape, job.min_gpus, job.max_gpus, requested, reserved, self.quotas.get(job.tenant))

    def _requested(self, job: Job, within: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mark each type's smallest configuration with at least the requested GPUs, or its largest one."""
        result = np.zeros(len(within), dtype=bool)
        for kind in range(len(self.types)):
            mine = np.flatnonzero(within & (self.kind == kind))
            if len(mine):
                enough = mine[self.gpus[mine] >= job.requested_gpus]
                result[enough[0] if len(enough) else mine[-1]] = True
        return result

    def _valid(self, job: Job) -> NDArray[np.bool_]:
        """Mark configurations within the cluster's capacity, the semantics' limits and the job's own."""
        valid = self.fits & (self.gpus >= job.min_gpus)
        quota = self.quotas.get(job.tenant)
        if quota is not None:
            valid &= self.gpus <= quota
        if job.max_gpus is not None:
            valid &= self.gpus <= job.max_gpus
        return valid if job.preemptible else valid & self.live(job)
