"""Chronus as a scheduling policy: leases for SLO jobs by an LP, shortest remaining time for the rest."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from copter.errors import SettingsError
from copter_frontends.chronus.job_book import Mode, Notice, SloRecord
from copter_frontends.chronus.job_modes import JobModes
from copter_frontends.chronus.lease_grid import LeaseGrid
from copter_frontends.chronus.local_search import LocalSearch, SpreadCosts
from copter_frontends.chronus.options import Ints
from copter_frontends.chronus.packing import Parcel
from copter_frontends.chronus.placing import LeasePlacer
from copter_frontends.chronus.profiler import Profiler
from copter_frontends.chronus.selector import Cycle, FirstLease, Selector
from copter_frontends.deadlines import Rewards, StepReward, reward_for
from copter_frontends.policy_kit import (
    Choice,
    RoundPolicy,
    RunsWith,
    Throughputs,
    representative_throughputs,
    requested_gpus,
)
from copter_frontends.vocabulary import Cluster, InvalidJobError, Job, Plan


class ChronusPolicy(RoundPolicy):
    """The Chronus scheduler (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    Jobs with a reward are SLO jobs: they are promised a deadline, or told that none can be met. The others, and those
    without a promise, run in what is left, the shortest remaining first.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs, optional
        Work and rates of jobs. By default those of the project's own representative jobs.
    rewards : mapping of job id to StepReward, or callable (Job), optional
        Rewards of the SLO jobs; asked for when a job is added. :meth:`set_reward` gives more.
    lease_s, round_s : float
        Length of an SLO lease and of a best-effort lease, seconds; the first is a whole multiple of the second.
    restart_s : float
        What a job may lose of each lease to a restart, seconds.
    round_up : bool
        Whether guaranteed jobs are counted with their GPUs rounded up, so that all of them consolidate (section 3.4.1).
    placement : LocalSearch, optional
        How small best-effort jobs are placed; by default Algorithm 1 with no job sensitive to it.
    elastic : bool
        Whether guaranteed jobs may get any number of GPUs from their `min_gpus` to their `max_gpus`, by size.
    profiler : Profiler, optional
        Where jobs run first; by default nowhere, as speeds are known. It is on the cluster's first GPU type.
    first_lease : {"adaptive", "now", "late"}
        See :class:`~copter_frontends.chronus.selector.Selector`.
    selector : Selector, optional
        With knobs of its own, in place of `lease_s`, `restart_s` and `first_lease`.

    Attributes
    ----------
    selector : Selector
    last_cycle : Cycle or None
        What the last round's plan of leases came to.
    """

    def __init__(
        self,
        cluster: Cluster,
        throughputs: Throughputs | None = None,
        rewards: Rewards | None = None,
        *,
        lease_s: float = 1200.0,
        round_s: float = 300.0,
        restart_s: float = 30.0,
        round_up: bool = True,
        placement: LocalSearch | None = None,
        profiler: Profiler | None = None,
        elastic: bool = False,
        first_lease: FirstLease = "adaptive",
        selector: Selector | None = None,
    ) -> None:
        self.throughputs = throughputs or representative_throughputs(cluster)
        self.selector = selector or Selector(LeaseGrid(lease_s, restart_s), first_lease=first_lease)
        self.grid, self.book = self.selector.grid, self.selector.book
        super().__init__(cluster, round_s, RunsWith(self.throughputs))
        if first_lease not in ("adaptive", "now", "late"):
            raise SettingsError(f"first_lease is {first_lease!r}, must be 'adaptive', 'now' or 'late'")
        self.rewards: dict[str, StepReward] = dict(rewards) if isinstance(rewards, Mapping) else {}
        self._drawn = rewards if callable(rewards) else None
        self.modes = JobModes(self.nodes, self.throughputs, round_up, elastic)
        self.profiler = profiler
        self.placer = LeasePlacer(self.nodes, placement or LocalSearch(SpreadCosts({})))
        self.last_cycle: Cycle | None = None
        self._now_s = 0.0
        self._cycled = -1  # the last lease at whose beginning all was planned again
        self._changed = False  # GPUs have come or gone since the last plan
        self._guaranteed: dict[str, SloRecord] = {}  # jobs that have the present lease
        self._heard: set[str] = set()  # jobs whose progress was told since the lease began

    @property
    def round_s(self) -> float:
        """Length of a best-effort lease, seconds; SettingsError for one that the SLO lease is no multiple of."""
        return self._round_s

    @round_s.setter
    def round_s(self, round_s: float) -> None:
        ratio = self.grid.lease_s / round_s if round_s > 0 else 0.0
        if abs(ratio - round(ratio)) > 1e-9 or ratio < 1:
            raise SettingsError(
                f"lease_s is {self.grid.lease_s:g} and round_s {round_s:g}: the SLO lease must be a whole multiple of "
                "the best-effort lease"
            )
        self._round_s = round_s

    @property
    def notices(self) -> list[Notice]:
        """What the users were told, oldest first."""
        return self.selector.notices

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Start to consider a job; an SLO job if it has a reward.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If its id is known; if it fits nowhere, has no work, or its last deadline is over.
        """
        work = self.throughputs.work(job)
        if not 0 < work < float("inf"):
            raise InvalidJobError(f"job {job.id!r}: its work is {work} iterations, must be finite and > 0")
        reward = self.rewards.get(job.id)
        drawn = reward is None and self._drawn is not None
        if drawn and self._drawn is not None:
            reward = reward_for(self._drawn, job)
        if reward is not None:
            self._require_ahead(job, reward)
        super().add_job(job)
        if drawn and reward is not None:
            self.rewards[job.id] = reward
        if self.profiler is not None:
            most = 2 * self.nodes.node_gpus(self.nodes.types[0])
            self.profiler.submit(job.id, min(requested_gpus(job), most), job.submit_s)
        elif reward is not None:
            self._consider(job, reward)

    def set_reward(self, job_id: str, reward: StepReward) -> None:
        """Make a job an SLO job; before :meth:`add_job`, or after it for one that has no promise."""
        if job_id in self.book.records:
            raise InvalidJobError(f"job {job_id!r} has a reward already; remove the job to give it another")
        if job_id in self.jobs:
            self._require_ahead(self.jobs[job_id], reward)
        if job_id in self.jobs and (self.profiler is None or job_id not in self.profiler):
            self._consider(self.jobs[job_id], reward)
        self.rewards[job_id] = reward

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """As :meth:`.RoundPolicy.update_job`; progress counts towards what a promise still needs."""
        super().update_job(job_id, **what_changed)
        if job_id in self.book.records:
            self.book.records[job_id].progress = self.service[job_id].progress
            self._heard.update([job_id] if "progress" in what_changed else ())

    def remove_job(self, job_id: str) -> None:
        """Forget a job, finished or cancelled, and free its leases; promises to others stand."""
        super().remove_job(job_id)
        self.book.remove(job_id)
        if self.profiler is not None:
            self.profiler.withdraw(job_id)
        self._guaranteed.pop(job_id, None)
        self._heard.discard(job_id)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """As :meth:`.RoundPolicy.add_resources`."""
        super().add_resources(gpu_type, count, nodes)
        self._changed = True

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """As :meth:`.RoundPolicy.remove_resources`; jobs on the nodes lose the present lease.

        The next plan finds them others, or demotes what cannot be kept any more, with a notice.
        """
        super().remove_resources(gpu_type, count, nodes)
        self._changed = True
        for job_id in [job_id for job_id in self._guaranteed if job_id not in self.held]:
            record = self._guaranteed.pop(job_id)
            self.book.lose(record, self._cycled)

    # The round ----------------------------------------------------------------------------------------------------

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Decide the best-effort lease that starts at `now_s`, and at the start of an SLO lease that one too."""
        self._now_s = max(now_s, self._now_s)
        return super().plan(now_s, deadline_s)

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Leases first, then the shortest remaining time in what is left."""
        self._profile(now_s)
        lease = self.grid.lease_at(now_s)
        begins = lease > self._cycled
        if begins:
            self._count_unheard()
        fresh = begins or self._changed
        first = lease if begins and (self.grid.begins(now_s) or self._cycled >= 0) else lease + 1
        running = set(self.held)
        queue = any(job_id not in self.book.records and job_id not in running for job_id in self.jobs)
        fixed = self._fixed() if first == lease else np.zeros(len(self.nodes.types), dtype=np.int64)
        cycle = self.selector.cycle(now_s, first, self.gpus(), fixed, running, queue, begins, fresh)
        self._cycled, self._changed, self.last_cycle = max(self._cycled, lease), False, cycle
        begun = time.perf_counter()
        self._guaranteed = {r.job.id: r for r in self.book.holders(lease)}
        wanted, left = self._guaranteed_jobs()
        wanted.update(self._profiled_jobs(left))
        wanted.update(self._spot_jobs(left, wanted))
        spent = time.perf_counter() - begun
        return Choice(
            wanted,
            objective=cycle.reward,
            bound=cycle.bound,
            prices=self._prices(cycle),
            timings={"solve": cycle.solve_s, "shim": cycle.shim_s, "select": spent},
        )

    def settle(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """Nodes: guaranteed jobs consolidated first, then the others where they are, then the rest."""
        before = {job_id: held for job_id, held in self.held.items() if job_id not in self.pins}
        for job_id in before:
            self.release(job_id)
        parcels = []
        for job_id, record in self._guaranteed.items():
            if job_id in wanted:
                mode = record.modes[record.mode]
                parcels.append(Parcel(job_id, self.nodes.types[mode.kind], mode.gpus, mode.taken, before.get(job_id)))
        self.held.update(self.placer.place(parcels, wanted, before, self.jobs))

    def modes_of(self, job: Job) -> tuple[Mode, ...]:
        """Ways to run a job (:class:`.JobModes`)."""
        return self.modes.modes_of(job)

    def gpus(self) -> Ints:
        """GPUs of each type that leases can have; jobs that may not be stopped keep theirs."""
        total = np.array([self.nodes.capacity(kind) for kind in self.nodes.types], dtype=np.int64)
        if self.profiler is not None:
            total[0] = max(total[0] - self.profiler.gpus, 0)
        for job_id, held in self.held.items():
            if not self.jobs[job_id].preemptible and job_id not in self._guaranteed:
                total[self.nodes.types.index(held.gpu_type)] -= held.gpus
        return total

    # Inside -------------------------------------------------------------------------------------------------------

    def _guaranteed_jobs(self) -> tuple[dict[str, tuple[str, int]], dict[str, int]]:
        """What jobs with the present lease run on, and GPUs of each type that are left."""
        left = self.room()
        wanted: dict[str, tuple[str, int]] = {}
        for job_id, record in self._guaranteed.items():
            mode = record.modes[record.mode]
            kind = self.nodes.types[mode.kind]
            if job_id not in self.pins and mode.gpus <= left[kind]:
                wanted[job_id] = (kind, mode.gpus)
                left[kind] -= mode.gpus
        return wanted, left

    def _profile(self, now_s: float) -> None:
        """A round of the profiler; what it has done is considered from now on."""
        if self.profiler is None:
            return
        kind = self.nodes.types[0]
        promised: Counter[int] = Counter()
        for record in self.book.records.values():
            if record.mode >= 0 and record.modes[record.mode].kind == 0:
                promised.update(dict.fromkeys(record.leases.tolist(), record.modes[record.mode].taken))
        size, most = self.nodes.node_gpus(kind), self.nodes.capacity(kind)
        lease = self.grid.lease_at(now_s)
        peak = max((gpus for at, gpus in promised.items() if at >= lease), default=0)
        for job_id in self.profiler.step(now_s, size, (most - peak) // size * size):
            reward = self.rewards.get(job_id)
            if reward is not None and self.jobs[job_id].submit_s + reward.last_s > now_s:
                self._consider(self.jobs[job_id], reward)

    def _profiled_jobs(self, left: dict[str, int]) -> dict[str, tuple[str, int]]:
        """Jobs in the profiling cluster, whose idle GPUs are held back."""
        if self.profiler is None:
            return {}
        kind, chosen = self.nodes.types[0], {}
        for job_id, (probe, _) in self.profiler.running.items():
            if job_id not in self.pins and probe.gpus <= left[kind]:
                chosen[job_id] = (kind, probe.gpus)
                left[kind] -= probe.gpus
        idle = self.profiler.gpus - sum(probe.gpus for probe, _ in self.profiler.running.values())
        left[kind] = max(left[kind] - max(idle, 0), 0)
        return chosen

    def _spot_jobs(self, left: dict[str, int], wanted: Mapping[str, object]) -> dict[str, tuple[str, int]]:
        """The spot cluster: best effort by remaining time, then guaranteed jobs that wait for their leases."""
        if not any(left.values()):
            return {}
        probed = self.profiler or ()
        waiting = [j for j in self.queue() if j not in wanted and j not in self.pins and j not in probed]
        left_s = {j: self.modes.remaining_s(self.jobs[j], self.service[j].progress) for j in waiting}
        promised = {r.job.id for r in self.book.records.values() if r.promised >= 0}
        chosen: dict[str, tuple[str, int]] = {}
        for job_id in sorted(waiting, key=lambda j: (j in promised, left_s[j])):
            job, held = self.jobs[job_id], self.held.get(job_id)
            gpus = requested_gpus(job)
            kinds = [k for k in left if gpus <= left[k] and self.can_run(job, k, gpus)]
            if kinds:
                rate = {k: self.throughputs.rate(job, k, gpus) for k in kinds}
                best = max(kinds, key=lambda k: (rate[k], held is not None and held.gpu_type == k))
                chosen[job_id] = (best, gpus)
                left[best] -= gpus
        return chosen

    def _require_ahead(self, job: Job, reward: StepReward) -> None:
        ends_s = job.submit_s + reward.last_s
        if ends_s <= self._now_s:
            raise InvalidJobError(
                f"job {job.id!r}: its last deadline, at {ends_s:g} s, is over at {self._now_s:g} s; give a later one, "
                "or no reward"
            )

    def _consider(self, job: Job, reward: StepReward) -> None:
        modes = self.modes_of(job)
        self.book.records[job.id] = SloRecord(job, reward, modes, self.service[job.id].progress)

    def _count_unheard(self) -> None:
        """A lease is over: jobs that had it, and that reported nothing, have got on by it, less a restart (C3)."""
        for job_id, record in self._guaranteed.items():
            if job_id in self.held and job_id not in self._heard:
                done = (self.grid.lease_s - self.grid.restart_s) / record.modes[record.mode].total_s
                record.progress = min(record.progress + done, 1.0 - 1e-9)
        self._heard.clear()

    def _fixed(self) -> Ints:
        """GPUs of each type that pinned jobs have in the lease that begins."""
        total = np.zeros(len(self.nodes.types), dtype=np.int64)
        for job_id, pin in self.pins.items():
            if self.jobs[job_id].preemptible:
                total[self.nodes.types.index(pin.gpu_type)] += pin.gpus
        return total

    def _prices(self, cycle: Cycle) -> dict[str, float]:
        """Price of a GPU of each type for the first lease, where an LP was solved."""
        if cycle.solution is None:
            return {}
        return dict(zip(self.nodes.types, cycle.solution.prices.price[:, 0].tolist(), strict=True))
