"""Hadar as a scheduling policy: edits in, one LP solve (or the online algorithm), a shim, and servers for every job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np

from copter import Settings, Solution, Status
from copter.errors import SettingsError
from copter_frontends.goodput.job_facts import check_facts
from copter_frontends.hadar.estimator import ThroughputEstimator
from copter_frontends.hadar.formulation import HadarFormulation
from copter_frontends.hadar.job_book import Floats
from copter_frontends.hadar.online import OnlinePlan, OnlineRule
from copter_frontends.hadar.placing import Placement
from copter_frontends.hadar.round_values import RoundTerms
from copter_frontends.hadar.servers import Servers
from copter_frontends.hadar.shim import Draft, HadarShim
from copter_frontends.hadar.utility import AverageJct, Utility, positive
from copter_frontends.policy_kit import (
    EditClock,
    Throughputs,
    jobs_on,
    jobs_to_stop,
    plan_changes,
    relative_gap,
    representative_throughputs,
    requested_gpus,
    status_of,
)
from copter_frontends.vocabulary import (
    Allocation,
    Cluster,
    InvalidClusterError,
    InvalidJobError,
    Job,
    Plan,
)

SOLVE_SHARE = 0.8  # of a round's deadline that the LP may use; the shim and the servers need the rest
OWN_FACTS = frozenset({"rates"})
Mode = Literal["lp", "online", "lp_posted"]


class HadarPolicy:
    """The Hadar scheduler on the differential model (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    Every round each job gets all the GPUs that it asks for or none, of one type or several; it runs at the pace of the
    slowest. docs/hadar.md derives the program from the paper and lists what had to be mended.

    Parameters
    ----------
    cluster : Cluster
        Copied: tell the policy of changes with add_resources and remove_resources.
    throughputs : Throughputs, optional
        Work and rates of jobs, by type; NaN is a rate that is to be measured. By default those of the project's own
        representative jobs.
    utility : Utility, optional
        What finishing at a time is worth; by default the average completion time.
    mode : {"lp", "online", "lp_posted"}
        The LP with its shim; the paper's online algorithm; or the LP with the paper's posted prices as costs.
    round_s, restart_s : float
        Length of a round, and what a job loses of it when its GPUs change, in seconds.
    spread_cost : float
        Share of its worth that a job loses when its tasks are on more servers than they need be.
    estimator : ThroughputEstimator, optional
    shim : HadarShim, optional
    rule : OnlineRule, optional
        Knobs of the online algorithm; its prices are the posted ones.
    compare_prices : bool
        Also run the online algorithm in every round, on the same jobs, for :attr:`last_online`.
    settings : copter.Settings, optional
        Of the LP solver.

    Attributes
    ----------
    observers : list of callable
        Called in every round once the LP is solved and before anything changes; their time is not counted.
    last_solution, last_lp_s, last_online
        The last round's LP solution, the seconds of its edits and solve, and the online algorithm's answer.
    """

    def __init__(
        self,
        cluster: Cluster,
        throughputs: Throughputs | None = None,
        *,
        utility: Utility | None = None,
        mode: Mode = "lp",
        round_s: float = 360.0,
        restart_s: float = 10.0,
        spread_cost: float = 0.05,
        estimator: ThroughputEstimator | None = None,
        shim: HadarShim | None = None,
        rule: OnlineRule | None = None,
        compare_prices: bool = False,
        settings: Settings | None = None,
    ) -> None:
        if mode not in ("lp", "online", "lp_posted"):
            raise SettingsError(f"mode is {mode!r}, must be 'lp', 'online' or 'lp_posted'")
        if not 0 <= spread_cost < 1 or not 0 <= restart_s < np.inf:
            raise SettingsError(
                f"spread_cost is {spread_cost}, restart_s {restart_s}: 0 <= spread_cost < 1, restart_s >= 0"
            )
        if cluster.gpus == 0:
            raise InvalidClusterError("the cluster has no GPUs: give at least one type a node")
        self.round_s = positive("round_s", round_s)
        self.mode, self.restart_s, self.spread_cost = mode, restart_s, spread_cost
        self.throughputs = throughputs or representative_throughputs(cluster)
        self.estimator = estimator or ThroughputEstimator()
        self.shim, self.rule, self.compare_prices = shim or HadarShim(), rule or OnlineRule(), compare_prices
        self.servers = Servers(cluster)
        self.formulation = HadarFormulation(
            self.servers.types, self.servers.capacity(), utility or AverageJct(), settings or Settings()
        )
        self.book = self.formulation.book
        self.held: dict[str, Allocation] = {}
        self.pins: dict[str, Allocation] = {}
        self._planned: dict[str, Allocation] = {}
        self.observers: list[Callable[[], object]] = []
        self.last_solution: Solution | None = None
        self.last_online: OnlinePlan | None = None
        self.last_lp_s = 0.0
        self.edit_clock = EditClock()

    @property
    def variables(self) -> int:
        """Columns of the LP as it stands."""
        return self.formulation.model.n_columns

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Start to consider a job.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If its id is known; if it asks for more GPUs than there are of the types that it runs on, or has no
            throughput on any.
        """
        with self.edit_clock:
            self._add(job)

    def _add(self, job: Job) -> None:
        gpus = requested_gpus(job)
        work = self.throughputs.work(job)
        if not 0 < work < np.inf:
            raise InvalidJobError(f"job {job.id!r}: its work is {work}, must be finite and > 0")
        rates = np.array([self.throughputs.rate(job, name, gpus) for name in self.servers.types])
        may_run = np.isnan(rates) | (rates > 0)
        there = int(self.formulation.capacity[may_run].sum())
        if job.id not in self.book.index and may_run.any() and gpus > there:
            raise InvalidJobError(
                f"job {job.id!r} fits nowhere: it asks for {gpus} GPUs; there are {there} of the types it runs on"
            )
        self.book.add(job, gpus, work, rates)

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Take in ``progress`` (fraction done) and ``rates`` ({type: measured units per second of the whole job})."""
        with self.edit_clock:
            row = self.book.row(job_id)
            check_facts(job_id, what_changed, OWN_FACTS)
            progress = what_changed.get("progress")
            if "rates" in what_changed:
                self.book.set_rates(job_id, dict(what_changed["rates"]))
            if progress is not None:
                self.book.progress[row] = progress

    def remove_job(self, job_id: str) -> None:
        """Forget a job; UnknownJobError."""
        with self.edit_clock:
            self.book.row(job_id)
            self._release(job_id)
            self.pins.pop(job_id, None)
            self._planned.pop(job_id, None)
            self.formulation.remove_job(job_id)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Keep a job on exactly this allocation until unpinned with None; jobs in its way lose their GPUs.

        CapacityInUseError if pinned jobs use the GPUs, InvalidClusterError if they are not there.
        """
        with self.edit_clock:
            self.book.row(job_id)
            if allocation is None:
                self.pins.pop(job_id, None)
                self.formulation.pin(job_id, False)
                return
            if self.held.get(job_id) != allocation:
                self._move_onto(job_id, allocation)
            self.pins[job_id] = allocation
            self.formulation.pin(job_id, True)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes; `nodes` are ids for them (made up when not given)."""
        with self.edit_clock:
            self.servers.nodes.add(gpu_type, count, nodes)
            self.formulation.change_capacity(gpu_type, count)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Take `count` GPUs of a type away as whole nodes: those named, or the emptiest; jobs on them are re-planned.

        CapacityInUseError if a pinned job is on one of the nodes, or fewer GPUs exist.
        """
        with self.edit_clock:
            pinned = {node for allocation in self.pins.values() for node, _ in allocation.nodes}
            gone = self.servers.nodes.choose(gpu_type, count, nodes, pinned)
            for job_id in jobs_on(set(gone), self.held):
                self._release(job_id)
            self.servers.nodes.drop(gpu_type, gone)
            self.formulation.change_capacity(gpu_type, -count)

    # The round ----------------------------------------------------------------------------------------------------

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Decide the round that starts at `now_s`."""
        started = time.perf_counter()
        self.estimator.complete(self.book)
        terms = self._terms(now_s)
        values = self.formulation.refresh(terms)
        online = None
        if self.mode != "lp" or self.compare_prices:
            online = self.rule.plan(self.book, values, terms, self.servers, self.pins)
        self.formulation.post_prices(online.posted if online and self.mode == "lp_posted" else None)
        edited = time.perf_counter()
        solution = self.formulation.solve(deadline_s=SOLVE_SHARE * deadline_s)
        solved = time.perf_counter()
        self.last_solution, self.last_online = solution, online
        self.last_lp_s = self.edit_clock.seconds + solved - started
        for observe in self.observers:
            observe()
        observed = time.perf_counter()
        prices = self.formulation.prices(solution)
        bound = self.formulation.bound_of(solution)
        draft, fractional = self._choose(solution, prices, bound, online, deadline_s)
        rounded = time.perf_counter()
        objective, kept = self._place(draft, online)
        placed = time.perf_counter()
        timings = {
            "edit": self.edit_clock.seconds + edited - started,
            "solve": solved - edited,
            "observe": observed - solved,
            "shim": rounded - observed,
            "place": placed - rounded,
        }
        self.edit_clock.reset()
        return self._plan(solution, bound, objective, kept, fractional, values.faults, timings)

    def _terms(self, now_s: float) -> RoundTerms:
        return RoundTerms(now_s, self.round_s, self.restart_s, self.spread_cost, self.formulation.capacity)

    def _choose(
        self, solution: Solution, prices: Floats, bound: float, online: OnlinePlan | None, deadline_s: float
    ) -> tuple[Draft, int]:
        if self.mode == "online":
            assert online is not None
            draft = Draft(self.formulation, prices)
            for row, bundle in online.bundles.items():
                draft.take(row, bundle)
            return draft, 0
        shares = self.formulation.shares(solution)
        return self.shim(self.formulation, shares, prices, bound, (1 - SOLVE_SHARE) * deadline_s)

    def _place(self, draft: Draft, online: OnlinePlan | None) -> tuple[float, bool]:
        """Give the draft's jobs servers; keep everything as it is where that is worth more."""
        wanted = online.allocations if online is not None and self.mode == "online" else None
        placement = Placement(self.servers, self.formulation, self.held)
        objective = placement.carry_out(draft, self.spread_cost, wanted)
        kept = False
        if wanted is None:
            stay = Draft(self.formulation, draft.prices)
            stay.keep()
            kept = stay.value() > objective
            if kept:
                placement.undo()
                objective = placement.carry_out(stay, self.spread_cost)
        before, self.held = self.held, placement.now
        for job_id in before.keys() | self.held.keys():
            if before.get(job_id) is not self.held.get(job_id):
                self._hold(job_id, self.held.get(job_id))
        return objective, kept

    def _plan(
        self,
        solution: Solution,
        bound: float,
        objective: float,
        kept: bool,
        fractional: int,
        faults: dict[int, str],
        timings: dict[str, float],
    ) -> Plan:
        before, self._planned = self._planned, dict(self.held)
        changes = plan_changes(before, self._planned)
        scale = self.formulation.scale
        gap = relative_gap(scale * objective, scale * bound)
        return Plan(
            allocations=dict(self._planned),
            start=changes.start,
            stop=changes.stop,
            move=changes.move,
            objective=objective,
            bound=bound,
            gap=gap,
            prices=dict(zip(self.servers.types, self.formulation.prices(solution).tolist(), strict=True)),
            fractional_jobs=fractional,
            skipped={self.book.jobs[row].id: reason for row, reason in faults.items()},
            status=status_of(gap, solution.status is Status.OPTIMAL, kept),
            timings=timings,
        )

    # Inside -------------------------------------------------------------------------------------------------------

    def _hold(self, job_id: str, allocation: Allocation | None) -> None:
        """Tell the formulation what a job has."""
        row = self.book.row(job_id)
        if allocation is None:
            if self.book.held[row].any():
                self.formulation.hold(job_id, np.zeros(len(self.servers.types), dtype=np.int64))
            return
        self.formulation.hold(job_id, self.servers.bundle(allocation), self.servers.is_spread(allocation))

    def _release(self, job_id: str) -> None:
        """Take a job's GPUs back, if it has any."""
        allocation = self.held.pop(job_id, None)
        if allocation is not None:
            self.servers.give(allocation)
            self._hold(job_id, None)

    def _move_onto(self, job_id: str, allocation: Allocation) -> None:
        """Put a job on an allocation, whoever else is there but pinned jobs."""
        parts, nodes = self.servers.checked_parts(job_id, allocation), self.servers.nodes
        others = jobs_to_stop(nodes, job_id, parts, self.held, self.pins, self.servers.parts)
        self._release(job_id)
        for other in others:
            if any(nodes.short_of(part) for part in parts):
                self._release(other)
        self.servers.take(allocation)
        self.held[job_id] = allocation
        self._hold(job_id, allocation)
