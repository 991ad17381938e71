"""Data of the jobs of a Hops policy: offers, expected ages, learning rates."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Real

import numpy as np

from copter_frontends.policies.hops.errors import ThroughputError
from copter_frontends.policies.hops.estimator import ThroughputEstimator
from copter_frontends.policies.hops.latency_ratio import AgeTerm, age_s, age_terms
from copter_frontends.policies.hops.loading_records import LearnedLoading
from copter_frontends.policies.hops.offers import OfferRules, Offers
from copter_frontends.policies.hops.requirements import LearningRates, RequirementSet, requirements_of
from copter_frontends.policies.hops.server_groups import ServerGroups
from copter_frontends.policies.hops.throughputs import LearnedThroughputs, PlacedThroughputs
from copter_frontends.vocabulary import Allocation, InvalidJobError, Job

MOST_KEPT = 4096  # most cached offers and slowdowns; the oldest is dropped first
GROUP_MOVED = 5e-3  # offers are updated if a group's mean speed changes by more than this share

CacheKey = tuple[Hashable, tuple[int, ...]]


class JobBook:
    """Offers by job, made once for equal jobs, and again when servers or estimates change.

    Parameters
    ----------
    throughputs : PlacedThroughputs
    rules : OfferRules

    Attributes
    ----------
    requirements : dict of job id to RequirementSet
    smallest : dict of job id to int
        R_1 of each job.
    offers : dict of job id to Offers
        Offers of the jobs that can run on the present servers.
    age_s, work : dict of job id to float
        Expected seconds (9), and number of samples of the whole job.
    learning : dict of job id to LearningRates
    loading : LearnedLoading or None
        Refits data loading, if the throughputs are an estimator's.
    gpus : int
        GPUs of all present servers.
    """

    def __init__(self, throughputs: PlacedThroughputs, rules: OfferRules) -> None:
        self.throughputs, self.rules = throughputs, rules
        self.requirements: dict[str, RequirementSet] = {}
        self.smallest: dict[str, int] = {}
        self.offers: dict[str, Offers] = {}
        self.age_s: dict[str, float] = {}
        self.work: dict[str, float] = {}
        self.learning: dict[str, LearningRates] = {}
        self.loading = LearnedLoading(throughputs) if isinstance(throughputs, ThroughputEstimator) else None
        self.gpus = self.changes = 0
        self._made: OrderedDict[CacheKey, Offers | None] = OrderedDict()
        self._slowdowns: OrderedDict[tuple[Hashable, str, int, int], float] = OrderedDict()
        self._terms: dict[int, tuple[Offers, tuple[AgeTerm, ...]]] = {}  # by the offers' identity
        self._terms_groups: ServerGroups | None = None  # for which they hold
        self._groups: ServerGroups | None = None
        self._version = -1
        self._speeds = np.zeros(0)  # speeds of the groups with which offers were made
        self._stale: set[Hashable] | None = set()  # keys of jobs whose offers must be made again; None: all

    def add(self, job: Job, groups: ServerGroups, requirements: RequirementSet | Iterable[int] | None = None) -> None:
        """Add a job; raises InvalidJobError if its requirements fit nowhere or it cannot run anywhere."""
        self._current(groups)
        if requirements is None or isinstance(requirements, RequirementSet):
            wanted = requirements or requirements_of(job)
        else:
            wanted = RequirementSet.of(requirements)
        gpus = groups.gpus_by_type
        wanted.check_within(job.id, gpus)
        offers = self._offers(job, wanted, groups)
        if offers is None:
            raise InvalidJobError(
                f"job {job.id!r} fits nowhere: with {list(wanted.sizes)} GPUs it has no throughput on any GPU type "
                f"({', '.join(gpus)}); profile it on one, or give other sizes"
            )
        work = self.throughputs.work(job)
        if not 0 < work < np.inf:
            raise InvalidJobError(f"job {job.id!r}: its work is {work}, must be finite and > 0")
        if isinstance(self.throughputs, ThroughputEstimator):
            self.throughputs.began(job.id)
        self.requirements[job.id], self.smallest[job.id] = wanted, wanted.smallest
        self._write(job, offers, work, groups)

    def check_observed(self, job: Job, held: Allocation | None, rate: object) -> None:
        """Raise what :meth:`observe` would raise, without storing anything."""
        self._learning(job, held)
        if not isinstance(rate, Real) or not 0.0 < float(rate) < np.inf:
            raise ThroughputError(f"job {job.id!r}: observed {rate!r} samples per second, must be finite and > 0")

    def observe(self, job: Job, held: Allocation | None, rate: float) -> None:
        """Pass to the estimator the samples per second that a job achieved on its present GPUs.

        Raises
        ------
        TypeError, InvalidJobError
            If the throughputs cannot learn; if the job has no GPUs.
        """
        estimator, held = self._learning(job, held)
        estimator.observe(job, held.gpu_type, dict(held.nodes), rate)

    def observe_loads(
        self, job: Job, held: Allocation | None, loads: Sequence[float], waits: Sequence[float] | None
    ) -> None:
        """Record data loads on a job's current GPUs with the corresponding waits; see :meth:`observe`."""
        _, held = self._learning(job, held)
        assert self.loading is not None
        self.loading.observe(job, held.gpu_type, loads, waits)

    def _learning(self, job: Job, held: Allocation | None) -> tuple[ThroughputEstimator, Allocation]:
        if not isinstance(self.throughputs, ThroughputEstimator):
            raise TypeError("what is observed needs a policy whose throughputs are a ThroughputEstimator")
        if held is None:
            raise InvalidJobError(f"job {job.id!r}: what it does is observed, but it has no GPUs")
        return self.throughputs, held

    def remove(self, job_id: str) -> None:
        """Delete a job."""
        for known in (self.requirements, self.smallest, self.offers, self.age_s, self.work, self.learning):
            known.pop(job_id, None)
        if isinstance(self.throughputs, ThroughputEstimator):
            self.throughputs.ended(job_id)

    def refresh(self, jobs: Mapping[str, Job], groups: ServerGroups) -> dict[str, str]:
        """Update offers after changes of servers or estimates; returns {job: reason} of jobs that cannot run."""
        self._current(groups)
        stale, self._stale = self._stale, set()
        key = self.throughputs.key
        lacking = [job for job in jobs if job not in self.offers] if len(self.offers) < len(jobs) else []
        faults = dict.fromkeys(lacking, "no GPU type that is there now can run it")
        for job_id, job in jobs.items() if stale is None or stale else ():
            if stale is not None and key(job) not in stale:
                continue
            faults.pop(job_id, None)
            try:
                offers = self._offers(job, self.requirements[job_id], groups)
            except ValueError as error:
                offers, faults[job_id] = None, str(error)
            if offers is None:
                self.changes += self.offers.pop(job_id, None) is not None
                faults.setdefault(job_id, "no GPU type that is there now can run it")
            else:
                self._write(job, offers, self.throughputs.work(job), groups)
        return faults

    def slowdown(self, job: Job, groups: ServerGroups, group: int, gpus: int, nodes: int) -> float:
        """Return a spread job's speed relative to the fewest servers possible, at most 1."""
        least = max(2, -(-gpus // groups.groups[group].gpus))
        if nodes <= least:
            return 1.0
        kind, servers = groups.groups[group].gpu_type, groups.groups[group].servers
        key = (self.throughputs.key(job), kind, gpus, nodes)
        if key not in self._slowdowns:
            rate = self.throughputs.rate
            best = rate(job, kind, gpus, least, servers)
            here = rate(job, kind, gpus, nodes, servers)
            self._slowdowns[key] = min(1.0, here / best) if best > 0 else 0.0
            if len(self._slowdowns) > MOST_KEPT:
                self._slowdowns.popitem(last=False)
        return self._slowdowns[key]

    # Inside -------------------------------------------------------------------------------------------------------

    def _current(self, groups: ServerGroups) -> None:
        """Discard offers made for other servers or estimates; the next :meth:`refresh` makes them again."""
        known, version = self.throughputs, self.throughputs.version
        if self._groups is groups and self._version == version:
            return
        before, since = self._groups, self._version
        self._groups, self._version = groups, version
        self.changes += 1
        self.gpus = sum(group.gpus * len(group.servers) for group in groups.groups)
        self._slowdowns.clear()
        if not isinstance(known, LearnedThroughputs) or before is None or not groups.has_columns_of(before):
            self._made.clear()
            self._stale, self._speeds = None, groups.speeds
            return
        factor = groups.speeds / self._speeds
        other = np.abs(factor - 1.0) > GROUP_MOVED
        faster = [(groups.groups[g].gpu_type, s) for g in np.flatnonzero(other) for s in groups.groups[g].servers]
        changed = known.changed_since(since) | known.seen_on([*groups.moved_from(before), *faster])
        for key in [key for key in self._made if key[0] in changed]:
            del self._made[key]
        if self._stale is not None:
            self._stale |= changed
        if other.any():
            self._stale, self._speeds = None, np.where(other, groups.speeds, self._speeds)
            factor[~other] = 1.0
            self._made.update((key, made and made.scaled(factor)) for key, made in self._made.items())

    def _offers(self, job: Job, wanted: RequirementSet, groups: ServerGroups) -> Offers | None:
        key = (self.throughputs.key(job), wanted.sizes)
        if key not in self._made:
            known = self.throughputs
            rate = known.rates(job) if isinstance(known, ThroughputEstimator) else partial(known.rate, job)
            self._made[key] = self.rules.make(job, wanted, groups, rate)
            if len(self._made) > MOST_KEPT:
                self._made.popitem(last=False)
        return self._made[key]

    def _write(self, job: Job, offers: Offers, work: float, groups: ServerGroups) -> None:
        self.changes += job.id in self.offers
        self.offers[job.id], self.work[job.id] = offers, work
        self.age_s[job.id] = age_s(work, self._terms_of(offers, groups))

    def _terms_of(self, offers: Offers, groups: ServerGroups) -> tuple[AgeTerm, ...]:
        """Return the terms of the age, which jobs with the same offers share."""
        if self._terms_groups is not groups or len(self._terms) >= MOST_KEPT:
            self._terms, self._terms_groups = {}, groups
        known = self._terms.get(id(offers))
        if known is None or known[0] is not offers:
            which, first = np.unique(offers.group, return_index=True)
            each = (offers.base * offers.gain[first] / offers.gpus[first]).tolist()
            per_gpu = dict(zip(map(str, which.tolist()), each, strict=True))
            gpus = {str(g): groups.groups[g].gpus * len(groups.groups[g].servers) for g in which.tolist()}
            known = self._terms[id(offers)] = (offers, age_terms(per_gpu, gpus, offers.requirements.mean))
        return known[1]
