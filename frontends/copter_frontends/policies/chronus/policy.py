"""Chronus as a scheduling policy: leases for SLO jobs by an LP, shortest remaining time for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, filterfalse
from operator import is_not
from time import perf_counter
from typing import Any

import numpy as np

from copter import Model
from copter.runtime.collector import uncollected
from copter.runtime.errors import SettingsError
from copter_frontends.policies.chronus.alike_jobs import AlikeJobs
from copter_frontends.policies.chronus.expected_demand import ExpectedDemand
from copter_frontends.policies.chronus.job_book import (
    Admission,
    Notice,
    Now,
    require_ahead,
)
from copter_frontends.policies.chronus.job_modes import Alike, JobModes
from copter_frontends.policies.chronus.lease_grid import LeaseGrid
from copter_frontends.policies.chronus.lease_model import LeaseModel
from copter_frontends.policies.chronus.local_search import LocalSearch, NodeSpeeds
from copter_frontends.policies.chronus.mode import Mode
from copter_frontends.policies.chronus.options import Ints
from copter_frontends.policies.chronus.placing import LeasePlacer
from copter_frontends.policies.chronus.present_lease import PresentLease
from copter_frontends.policies.chronus.profiler import Profiler
from copter_frontends.policies.chronus.profiling import Profiling
from copter_frontends.policies.chronus.quote import Quote, quote_for
from copter_frontends.policies.chronus.rounding import round_up
from copter_frontends.policies.chronus.selector import GPUS_LOST, Cycle, FirstLease, RestOfLease, Selector
from copter_frontends.policies.chronus.slo_record import SloRecord, Standing
from copter_frontends.policies.chronus.spot import SpotCluster
from copter_frontends.policies.chronus.spread_costs import SPREAD_COST
from copter_frontends.policy_kit import (
    Choice,
    EditLog,
    LpPolicy,
    RoundPolicy,
    Throughputs,
    Wanted,
    check_times,
    checked_rate,
    representative_throughputs,
    requested_gpus,
)
from copter_frontends.policy_kit.deadlines import NO_REWARDS, Rewards, StepReward, rewards_for
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError, Job, Plan

CONTRADICTS = 1.5  # the user is notified if declared and profiled time differ by at least this factor
LP_SHARE = 0.5  # share of a plan's time limit for the LP; rounding to whole leases and assigning nodes need the rest


class ChronusPolicy(LpPolicy, RoundPolicy):
    """The Chronus scheduler (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    Jobs with a reward are SLO jobs: they are promised a deadline, or notified that none can be met. All jobs without a
    promise share the remaining GPUs, shortest remaining time first.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    throughputs : Throughputs, optional
        Work and rates of jobs; by default, of the project's representative jobs.
    rewards : mapping of job id to StepReward, or callable (Job), optional
        Rewards of the SLO jobs, looked up when a job is added; :meth:`set_reward` adds more.
    lease_s, round_s : float
        Length of an SLO lease and of a best-effort lease in seconds; the former is a multiple of the latter.
    restart_s : float
        Seconds of each lease that a job may lose to a restart.
    round_up : bool
        Whether guaranteed jobs are counted with their GPUs rounded up, so that all of them consolidate (section 3.4.1).
    placement : LocalSearch, optional
        Placement of small best-effort jobs; by default Algorithm 1, in which the artifact's models are sensitive to
        placement.
    elastic : bool
        Whether guaranteed jobs may get any consolidated number of GPUs from their `min_gpus` to their `max_gpus`.
    profiler : Profiler, optional
        Profiles new jobs for a few minutes on a GPU type that their table allows, unless jobs like them were measured
        there (:class:`.Profiling`); by default none, as speeds are known.
    first_lease : {"adaptive", "now", "late"}
        See :class:`~copter_frontends.policies.chronus.selector.Selector`.
    selective : bool
        Whether a new job gets no promise if its leases would cost future jobs, expected as in the last hours, more
        reward than it earns (C6). By default each job is promised free leases, as in the paper.
    spare_nodes : int
        Nodes of each type that promises leave free, so that the promises survive the loss of as many nodes. To see the
        cost, compare :meth:`quote` with and without spare nodes.
    selector : Selector, optional
        A selector to use; it replaces `lease_s`, `restart_s` and `first_lease`.

    Attributes
    ----------
    selector : Selector
    rewards : dict of job id to StepReward
        Rewards of known SLO jobs, and of future jobs given to :meth:`set_reward`.
    last_cycle : Cycle or None
        Result of the last plan of leases.
    last_admission : Admission or None
        Answer to the last SLO job that arrived: its leases, and the moved leases of other jobs.
    """

    edit_log: EditLog
    lp_each_round = False
    waiting_bound = "the promised deadline of a job that was promised one; none for others"

    @property
    def follows(self) -> bool:
        """Return whether progress is needed after the current round.

        Progress is needed before a lease begins, because leases are planned for the remaining work, and while jobs are
        profiled.
        """
        return self.profiling.running or self.grid.lease_at(self._now_s + self.round_s) > self.lease.number

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
        selective: bool = False,
        spare_nodes: int = 0,
        selector: Selector | None = None,
    ) -> None:
        self.throughputs = throughputs or representative_throughputs(cluster)
        demand = ExpectedDemand(len(cluster.types), lease_s) if selective else None
        self.selector = selector or Selector(LeaseGrid(lease_s, restart_s), first_lease=first_lease, demand=demand)
        self.grid, self.book = self.selector.grid, self.selector.book
        LpPolicy.__init__(self)
        RoundPolicy.__init__(self, cluster, round_s)
        if first_lease not in ("adaptive", "now", "late"):
            raise SettingsError(f"first_lease is {first_lease!r}, must be 'adaptive', 'now' or 'late'")
        self.rewards: dict[str, StepReward] = {}
        self._source: Rewards = NO_REWARDS if rewards is None else rewards
        self.modes = JobModes(self.nodes, self.throughputs, round_up, elastic)
        self._can_run = self.modes
        if spare_nodes < 0:
            raise SettingsError(f"spare_nodes is {spare_nodes}, must be >= 0")
        self.spare_nodes = spare_nodes
        self._lasting: set[str] = set()  # non-preemptible jobs
        self.profiler, self.profiling = profiler, Profiling(profiler, self.modes)
        self.placer = LeasePlacer(self.nodes, placement or LocalSearch(NodeSpeeds(SPREAD_COST)))
        self.spot = SpotCluster(self.modes)
        self.lease = PresentLease(self.grid, self.book, list(self.nodes.types))
        self.last_cycle: Cycle | None = None
        self.last_admission: Admission | None = None
        self.edit_log = EditLog()
        self._now_s = 0.0
        self._changed = False  # whether GPUs were added or removed since the last plan

    @property
    def model(self) -> Model:
        """Model of the last lease program."""
        return self.selector.formulation.lease_model.model

    @property
    def round_s(self) -> float:
        """Length of a best-effort lease in seconds; must divide the SLO lease, otherwise SettingsError."""
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
        """Notices to users, oldest first."""
        return self.selector.notices

    @property
    def promises(self) -> dict[str, int]:
        """Return the number of the deadline last promised to each job, including ended and demoted jobs."""
        return {notice.job_id: notice.step for notice in self.notices if notice.step >= 0}

    @property
    def broken_promises(self) -> dict[str, bool]:
        """Return the demoted jobs, and for each whether GPUs were lost since the previous plan."""
        told = [notice for notice in self.notices if notice.standing is Standing.DEMOTED]
        return {notice.job_id: notice.reason == GPUS_LOST for notice in told}

    def quote(self, job: Job, gpus: Iterable[int] | None = None) -> list[Quote]:
        """Return the earliest deadlines that could be promised to a job now; nothing is reserved.

        Parameters
        ----------
        job : Job
            A known or new job; for a known job the remaining work counts.
        gpus : iterable of int, optional
            Numbers of GPUs to quote; by default the number that the job requests, half of it and twice of it.

        Returns
        -------
        list of Quote
            One quote for each GPU type and number of GPUs with which the job can run, earliest first.
        """
        asked = requested_gpus(job)
        counts = sorted({asked, max(asked // 2, 1), 2 * asked} if gpus is None else set(gpus))
        first = self.grid.lease_at(self._now_s) + int(self.lease.number >= 0)
        total = self.gpus() - self.aside()
        progress = self.service[job.id].progress if job.id in self.jobs else 0.0
        now, prices = self._lease_now(first), self.selector.prices(len(total), first, max(self.book.end - first, 1))
        found = []
        for kind, name in enumerate(self.nodes.types):
            for count in counts:
                rate = checked_rate(self.throughputs, job, name, count)
                if rate > 0:
                    taken = round_up(count, self.nodes.node_gpus(name)) if self.modes.round_up else count
                    whole_s = self.modes.seconds(job, name, count, rate)
                    mode = Mode(kind, count, taken, whole_s, self.modes.restart_s(job))
                    done = self.modes.time_done(job, name, count, progress)
                    found.append(quote_for(mode, name, done, self.book, total, first, self._now_s, prices, now))
        return sorted((each for each in found if each is not None), key=lambda each: (each.ends_s, each.gpu_leases))

    @property
    def figures(self) -> dict[str, float]:
        """Return the numbers of profiled jobs and of times kept, and the mean wait; nothing without a profiler."""
        if self.profiler is None:
            return {}
        waits = self.profiler.waits_s
        return {
            "jobs_profiled": len(waits),
            "mean_wait_for_the_profiler_s": sum(waits) / max(len(waits), 1),
            "times_measured": len(self.modes.seen),
        }

    def explained(self, job_id: str) -> dict[str, Any]:
        """Return the notices to a job, its leases, and a current quote for it."""
        job, record = self.job(job_id), self.book.records.get(job_id)
        told = [notice for notice in self.notices if notice.job_id == job_id]
        standing = record.standing if record is not None else told[-1].standing if told else None
        held = self.held.get(job_id)
        return {
            "job": job_id,
            "standing": standing.value if standing is not None else "best effort",
            "told": [f"at {notice.time_s:g} s: {notice.standing.value}, {notice.reason}" for notice in told],
            "promised_by_s": None
            if record is None or record.promised < 0
            else job.submit_s + record.reward.steps[record.promised][0],
            "leases": [] if record is None else record.leases.tolist(),
            "gpus": {} if held is None else held.by_type,
            "quotes": [
                f"{each.gpus} {each.gpu_type}: could end by {each.ends_s:,.0f} s, {each.gpu_leases} GPU-leases, "
                f"price {each.price:.3g}"
                for each in self.quote(job)
            ],
        }

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Add a job; one with a reward is an SLO job and is answered at once (:attr:`last_admission`).

        The job gets leases after the current one. For this, leases of other promised jobs may be moved within their
        deadlines. If that does not suffice, the job waits for the plan of the next lease.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If its id is known; if it fits nowhere, has no work, or its last deadline has passed.
        """
        self.add_jobs((job,))

    @uncollected()
    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Do :meth:`add_job` for each job, answered in turn in one pass; on an error none is added."""
        try:
            known = AlikeJobs(jobs, self.modes)
            rewards = self._checked_rewards(known)
            self.enqueue(jobs)
        except Exception:
            for job in jobs:
                if job.id not in self.jobs:
                    self.modes.forget(job.id)
            raise
        self.spot.add(known)
        self._lasting.update([job.id for job in jobs if not job.preemptible])
        asked = {at: reward for at, reward in enumerate(rewards) if reward is not None}
        self.rewards.update((jobs[at].id, reward) for at, reward in asked.items())
        self.spot.due({jobs[at].id: jobs[at].submit_s + reward.last_s for at, reward in asked.items()})
        if self.profiler is not None:
            profiled = {job.id for job in jobs if self.profiling.submit(job)}
            asked = {at: reward for at, reward in asked.items() if jobs[at].id not in profiled}
        alike = [known.alike[at] for at in asked], [known.work[at] for at in asked]
        self._consider([(jobs[at], reward) for at, reward in asked.items()], alike)

    def require_room(self, jobs: Sequence[Job]) -> None:
        """Raise InvalidJobError unless each job's GPUs fit on some type of an empty cluster that can run it."""
        of_jobs = self.modes.alike_of(jobs)
        small = {
            each for each in set(of_jobs) if not any(each.gpus <= self.nodes.capacity(kind) for kind in each.rates)
        }
        if small:
            self.refuse(next(job for job, each in zip(jobs, of_jobs, strict=True) if each in small))

    def _checked_rewards(self, known: AlikeJobs) -> list[StepReward | None]:
        """Return the rewards of jobs that come; raises InvalidJobError if one of them cannot be answered."""
        jobs, now_s = known.jobs, self._now_s
        rewards = rewards_for(self._source, jobs)
        for at, (job, work, reward) in enumerate(zip(jobs, known.work, rewards, strict=True)):
            if not 0 < work < float("inf"):
                raise InvalidJobError(f"job {job.id!r}: its work is {work} iterations, must be finite and > 0")
            if job.id in self.rewards:
                rewards[at] = reward = self.rewards[job.id]
            if reward is not None and job.submit_s + reward.last_s <= now_s:
                require_ahead(job, reward, now_s)
        restart_s = [each.restart_s for each in known.groups]
        if max(restart_s, default=0.0) >= self.grid.lease_s:
            for job, reward, group in zip(jobs, rewards, known.group.tolist(), strict=True):
                if reward is not None:
                    self.grid.require_longer(job.id, restart_s[group])
        return rewards

    def set_reward(self, job_id: str, reward: StepReward) -> None:
        """Make a job an SLO job: before :meth:`add_job`, or afterwards if it has no promise."""
        if job_id in self.book.records:
            raise InvalidJobError(f"job {job_id!r} has a reward already; remove the job to give it another")
        if job_id in self.jobs:
            require_ahead(self.jobs[job_id], reward, self._now_s)
            self.spot.due({job_id: self.jobs[job_id].submit_s + reward.last_s})
        if job_id in self.jobs and job_id not in self.profiling:
            self._consider([(self.jobs[job_id], reward)])
        self.rewards[job_id] = reward

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Update a job's ``progress``, which reduces the leases that a promise needs; other changes are checked."""
        super().update_job(job_id, **what_changed)
        if what_changed.get("progress") is not None:
            self.spot.progressed(job_id, self.service[job_id].progress)
        if job_id in self.book.records:
            record = self.book.records[job_id]
            self.book.progressed(record, record.times.done(self.service[job_id].progress))
            if "progress" in what_changed:
                self.lease.progress_told((job_id,))

    @uncollected()
    def update_jobs(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Do :meth:`update_job` for each job; on an error no job is changed."""
        self._take_progress(self.note_progress(told))

    @uncollected()
    def update_progress(self, progress: Mapping[str, float]) -> None:
        """Set the progress of many jobs; on an error none is taken in."""
        super().update_progress(progress)
        self._take_progress(progress)

    def _take_progress(self, progress: Mapping[str, float]) -> None:
        """Use the progress of jobs, which is stored already."""
        self.spot.progress_of(progress)
        self.book.progress_of(progress)
        self.lease.progress_told(progress)

    def remove_job(self, job_id: str) -> None:
        """Delete a finished or cancelled job and its reward, and free its leases; other promises are unaffected."""
        super().remove_job(job_id)
        self.spot.remove(job_id)
        self.rewards.pop(job_id, None)
        self.book.remove(job_id)
        self.modes.forget(job_id)
        self._lasting.discard(job_id)
        self.profiling.withdraw(job_id)
        self.lease.remove(job_id)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes; the next plan uses them."""
        super().add_resources(gpu_type, count, nodes)
        self._changed, self.placer.room = True, None

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove `count` GPUs of a type as whole nodes; jobs on the nodes lose the current lease.

        The next plan gives them other leases; jobs whose promises cannot be kept are demoted, with a notice.
        """
        super().remove_resources(gpu_type, count, nodes)
        self._changed, self.placer.room = True, None
        self.selector.gpus_lost = True
        self.lease.drop_without_gpus(self.held)

    # The round ----------------------------------------------------------------------------------------------------

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Plan the best-effort lease that starts at `now_s`, and the SLO lease if one starts then."""
        check_times(now_s, deadline_s)
        self._now_s = max(now_s, self._now_s)
        return super().plan(now_s, deadline_s)

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Assign leases first, then the remaining GPUs by shortest remaining time."""
        self._profile(now_s)
        lease, last = self.grid.lease_at(now_s), self.lease.number
        begins = lease > last
        if begins:
            self.lease.end(self.held)
        fresh = begins or self._changed
        first = lease if begins and (self.grid.begins(now_s) or last >= 0) else lease + 1
        running = set(self.held)
        queue = any(job_id not in self.book.records and job_id not in running for job_id in self.jobs)
        fixed = self.lease.pinned_gpus(self.pins if first == lease else {}, self.jobs)
        limit_s = LP_SHARE * deadline_s
        cycle = self.selector.cycle(
            now_s, first, self.gpus(), fixed, running, queue, begins, fresh, limit_s, self._solved, self.aside()
        )
        self._changed, self.last_cycle = False, cycle
        best = cycle.reward >= cycle.bound - 1e-9 * (1.0 + cycle.bound)
        self.programs_needless += cycle.solution is None and (fresh or best)  # within the tolerance of a program
        begun = perf_counter()
        self.lease.begin(lease)
        wanted = self._wanted()
        price = [] if cycle.solution is None else cycle.solution.prices.price[:, 0].tolist()
        return Choice(
            wanted,
            objective=cycle.reward,
            bound=cycle.bound,
            prices=dict(zip(self.nodes.types, price, strict=False)),  # empty if no LP was needed
            timings={"solve": cycle.solve_s, "shim": cycle.shim_s, "select": perf_counter() - begun},
        )

    def settle(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """Assign nodes: guaranteed jobs first, consolidated; then jobs that keep their nodes; then all others."""
        pinned = {job_id: held for job_id, held in self.held.items() if job_id in self.pins} if self.pins else {}
        before = {job_id: held for job_id, held in self.held.items() if job_id not in pinned} if pinned else self.held
        self.held = pinned
        self.nodes.give_all(before.values())
        placed: dict[str, Allocation] = {}
        try:
            placed = self.placer.place(self.lease.parcels(wanted, before), wanted, before, self.jobs)  # takes the nodes
        finally:  # most jobs stay: only what changes is noted
            self.held.update(placed)
            self.note_gpus(list(filterfalse(placed.__contains__, before)), 0)
            changed = list(compress(placed, map(is_not, map(before.get, placed), placed.values())))
            self.note_gpus(changed, [placed[job_id].gpus for job_id in changed])

    def modes_of(self, job: Job) -> tuple[Mode, ...]:
        """Return the ways to run a job (:class:`.JobModes`)."""
        return self.modes.modes_of(job)

    def gpus(self) -> Ints:
        """Return the GPUs of each type for leases, including reserves, but not those of non-preemptible jobs."""
        total = np.array([self.nodes.capacity(kind) for kind in self.nodes.types], dtype=np.int64)
        return self.lease.gpus_for_leases(total, self.held, self._lasting)

    def aside(self) -> Ints:
        """Return the GPUs of each type reserved for profiling and for node failures.

        Only leases already promised, and best-effort jobs, may use them.
        """
        spare = [self.spare_nodes * self.nodes.node_gpus(kind) for kind in self.nodes.types]
        return np.array(spare, dtype=np.int64) + self.profiling.aside()

    @property
    def seldom(self) -> str:
        """Return the reason why some rounds solve no program, for reports."""
        return "a choice of jobs whose value reaches its bound needs none"

    # Internal -----------------------------------------------------------------------------------------------------

    def _solved(self, leases: LeaseModel) -> None:
        """Report the cycle's linear program."""
        self.edit_log.note(leases.edits)
        self.show(leases.solution, leases.solution_s)

    def _consider(
        self, asked: Sequence[tuple[Job, StepReward]], alike: tuple[list[Alike], list[float]] | None = None
    ) -> None:
        """Answer jobs at once with leases after the current one; before the first plan, they wait for that plan.
        `alike` is what they share with jobs like them, and their work, if it is known.
        """
        if not asked:
            return
        ways = self.modes.ways_of([job for job, _ in asked], alike)
        known = [
            (job, reward, *own, self.service[job.id].progress) for (job, reward), own in zip(asked, ways, strict=True)
        ]
        records = SloRecord.of_many(known)
        if self.lease.number < 0:
            self.book.consider(records)
            self.last_admission = Admission(records[-1].job.id, Standing.WAITING)
            return
        first = self.grid.lease_at(self._now_s) + 1
        rest = RestOfLease(lambda: self._lease_now(first), self._join)
        self.last_admission = self.selector.admit(records, self._now_s, first, self.gpus(), self.aside(), rest)

    def _join(self, record: SloRecord) -> None:
        """Let a job have the rest of the current lease."""
        self.lease.join(record)
        mode = record.modes[record.mode]
        if self.placer.room is not None:
            self.placer.room.take(mode.kind, mode.taken)

    def _lease_now(self, first: int) -> Now | None:
        """Return the rest of the current lease for a new job; None if no further plan falls into it."""
        begins_s = self._now_s + self.round_s
        seconds = first * self.grid.lease_s - begins_s
        room = self.placer.room
        if room is None or self.lease.number != first - 1 or seconds <= self.grid.restart_s:
            return None
        held = self.lease.used + self.lease.pinned_gpus(self.pins, self.jobs) + self.aside()
        return Now(first - 1, begins_s, seconds, self.gpus() - held, room)

    def _profile(self, now_s: float) -> None:
        """Run a round of the profiler; jobs whose profile is done are considered from now on."""
        if self.profiler is None:
            return
        promised = self.book.most_in_one_lease(len(self.nodes.types), self.grid.lease_at(now_s))
        for job, ratio in self.profiling.step(now_s, promised, self.jobs, self.service):
            if ratio is not None and not 1.0 / CONTRADICTS <= ratio <= CONTRADICTS:
                text = f"its profile contradicts the declared rate: it takes {ratio:.2g} times as long"
                self.selector.notices.append(Notice(now_s, job.id, Standing.WAITING, -1, text))
            reward = self.rewards.get(job.id)
            if reward is not None and job.submit_s + reward.last_s > now_s:
                self._consider([(job, reward)])
            elif reward is not None:
                text = "its last deadline passed while it waited for its profile"
                self.selector.notices.append(Notice(now_s, job.id, Standing.UNGUARANTEED, -1, text))

    def _wanted(self) -> Wanted:
        """Return GPU type and GPUs of jobs with the current lease, profiled jobs, and best-effort jobs."""
        left = self.room()
        wanted = self.lease.wanted(left, self.pins)
        wanted.update(self.profiling.wanted(left, self.pins))
        taken = [*wanted, *self.pins, *self.profiling.jobs]
        over = {record.job.id for record in self.book.ending()}
        promised = [name for name in self.book.promised_jobs() if name not in wanted and name not in over]
        wanted.update(self.spot.wanted(taken, promised, left, self.held, self._now_s))
        return wanted
