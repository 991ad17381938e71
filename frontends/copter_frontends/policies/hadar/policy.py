"""Hadar as a scheduling policy: edits, an LP solve or the online algorithm, a shim, and servers for every job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from copter import Model, Settings, Solution, Status
from copter.runtime.collector import uncollected
from copter.runtime.errors import InternalError, SettingsError
from copter_frontends.goodput.job_facts import check_facts, checked_progress
from copter_frontends.policies.hadar.estimator import ThroughputEstimator
from copter_frontends.policies.hadar.formulation import HadarFormulation, Shares
from copter_frontends.policies.hadar.holdings import Holdings
from copter_frontends.policies.hadar.horizon import Horizon, HorizonFormulation
from copter_frontends.policies.hadar.job_book import Floats, JobBook
from copter_frontends.policies.hadar.online import OnlinePlan, OnlineRule
from copter_frontends.policies.hadar.placing import place
from copter_frontends.policies.hadar.round_values import RoundTerms
from copter_frontends.policies.hadar.servers import Servers
from copter_frontends.policies.hadar.shim import Draft, HadarShim
from copter_frontends.policies.hadar.stragglers import Stragglers
from copter_frontends.policies.hadar.utility import AverageJct, Utility, positive
from copter_frontends.policy_kit import (
    EditClock,
    HeldBack,
    LpPolicy,
    StageClock,
    Throughputs,
    by_deadline,
    kept_between,
    plan_between,
    representative_throughputs,
    require_gpus,
    status_of,
)
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError, Job, Plan

SOLVE_SHARE = 0.8  # share of a round's deadline that the LP may use; the shim and placement need the rest
OWN_FACTS = frozenset({"rates", "observed"})
PROGRESS, STARTED = frozenset({"progress"}), frozenset({"progress", "restarts"})
RestartS = float | Mapping[str, float] | Callable[[Job], float]
Mode = Literal["lp", "online", "lp_posted", "horizon"]


class HadarPolicy(LpPolicy):
    """The Hadar scheduler (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`); it edits one LP round by round.

    In every round each job gets all of its requested GPUs or none, of one or several types; it runs at the speed of the
    slowest. docs/papers/hadar.md derives the program from the paper and lists the paper's corrected errors.

    Parameters
    ----------
    cluster : Cluster
        The cluster, which is copied; report changes by add_resources and remove_resources.
    throughputs : Throughputs, optional
        Work and rates of jobs by type; NaN is a rate to be measured. By default those of the project's representative
        jobs. If its attribute `learns` is true, the simulator reports observed rates.
    utility : Utility, optional
        Worth of a completion time; by default that of the average completion time.
    mode : {"lp", "online", "lp_posted", "horizon"}
        "lp": the LP with its shim. "online": the paper's online algorithm. "lp_posted": the LP with the paper's posted
        prices as costs. "horizon": a program over several rounds, of which the coming one is carried out.
    round_s : float
        Length of a round in seconds.
    restart_s : float, mapping of application to float, or callable
        Seconds of a round that a job loses when its GPUs change: for all jobs, by application, or as a function of the
        job.
    spread_cost : float
        Share of its worth that a job loses if its tasks are on more servers than necessary.
    estimator : ThroughputEstimator, optional
    shim : HadarShim, optional
    rule : OnlineRule, optional
        Parameters of the online algorithm, whose prices are also the posted ones.
    horizon : Horizon, optional
        Horizon of the mode "horizon".
    compare_prices : bool
        Whether to also run the online algorithm in every round, on the same jobs, for :attr:`last_online`.
    settings : copter.Settings, optional
        Settings of the LP solver.

    Raises
    ------
    SettingsError
        If `mode` is unknown, `round_s` not positive, `restart_s` negative or infinite, or `spread_cost` not in [0, 1).
    InvalidClusterError
        If the cluster has no GPUs.

    Attributes
    ----------
    holdings : Holdings
        Current allocations and pins.
    last_online : OnlinePlan or None
        The online algorithm's plan of the last round, if it ran.
    """

    follows = True  # the worth of a job's next round depends on its progress

    def __init__(
        self,
        cluster: Cluster,
        throughputs: Throughputs | None = None,
        *,
        utility: Utility | None = None,
        mode: Mode = "lp",
        round_s: float = 360.0,
        restart_s: RestartS = 10.0,
        spread_cost: float = 0.05,
        estimator: ThroughputEstimator | None = None,
        shim: HadarShim | None = None,
        rule: OnlineRule | None = None,
        horizon: Horizon | None = None,
        compare_prices: bool = False,
        settings: Settings | None = None,
    ) -> None:
        if mode not in get_args(Mode):
            raise SettingsError(f"mode is {mode!r}, must be 'lp', 'online', 'lp_posted' or 'horizon'")
        seconds = () if callable(restart_s) else restart_s.values() if isinstance(restart_s, Mapping) else (restart_s,)
        if not 0 <= spread_cost < 1 or not all(0 <= each < np.inf for each in seconds):
            raise SettingsError(
                f"spread_cost is {spread_cost}, restart_s {restart_s}: 0 <= spread_cost < 1, restart_s >= 0"
            )
        require_gpus(cluster)
        super().__init__()
        self.round_s = positive("round_s", round_s)
        self.mode, self.restart_s, self.spread_cost = mode, restart_s, spread_cost
        self.throughputs = throughputs or representative_throughputs(cluster)
        self.estimator = estimator or ThroughputEstimator()
        self.shim, self.rule, self.compare_prices = shim or HadarShim(), rule or OnlineRule(), compare_prices
        self.servers = Servers(cluster)
        self.formulation = HadarFormulation(
            self.servers.types, self.servers.capacity(), utility or AverageJct(), settings or Settings()
        )
        self.ahead = HorizonFormulation(
            self.servers.types, self.servers.capacity(), horizon or Horizon(), settings or Settings()
        )
        self.holdings = Holdings(self.servers, self.formulation)
        self.stragglers = Stragglers(self.holdings)
        self.last_online: OnlinePlan | None = None
        self.edit_clock = EditClock()
        self._planned: dict[str, Allocation] = {}

    @property
    def model(self) -> Model:
        """The LP's model."""
        return self.ahead.model if self.mode == "horizon" else self.formulation.model

    @property
    def book(self) -> JobBook:
        """The data of each job."""
        return self.formulation.book

    @property
    def learns(self) -> bool:
        """Whether ``observed`` rates are used."""
        return bool(getattr(self.throughputs, "learns", False))

    @property
    def held(self) -> dict[str, Allocation]:
        """The jobs' current allocations."""
        return self.holdings.held

    @property
    def pins(self) -> dict[str, Allocation]:
        """The pinned jobs' allocations."""
        return self.holdings.pins

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Add a job.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If the id is already known; if the job requests more GPUs than exist of its types, or has no throughput on
            any; if its application has no restart time.
        """
        self.add_jobs([job])

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Do :meth:`add_job` for each job; on an error none is added."""
        with HeldBack(), self.edit_clock:
            restarts_s = [self._restart_of(job) for job in jobs]  # NaN: the round's
            self.formulation.add_jobs(jobs, self.throughputs, restarts_s)

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Update a job's data.

        Accepted are ``progress`` (fraction done), ``rates`` ({type: measured units per second of the whole job}) and
        ``observed`` (units per second on its current GPUs, which is its rate on the slowest of their types). A rate
        well below the known one, on servers of one type, is first attributed to these servers (H21).

        Raises
        ------
        UnknownJobError, InvalidDataError, TypeError
        InvalidJobError
            For a rate that is negative or not finite, or of an unknown type; for an observed rate of a job without
            GPUs.
        """
        with self.edit_clock:
            row = self.book.row(job_id)
            check_facts(job_id, what_changed, OWN_FACTS)
            rates = dict(what_changed.get("rates") or {})
            if what_changed.get("observed") is not None:
                rates |= self._seen(job_id, row, float(what_changed["observed"]))
            if rates:  # most updates contain progress only
                self.book.check_told(job_id, rates)
                self.stragglers.note(job_id, rates)
            self.formulation.update_job(job_id, what_changed.get("progress"), rates or None)

    def update_jobs(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Do :meth:`update_job` for each job; jobs with only new progress are updated together."""
        with self.edit_clock:
            alone = {
                job_id: facts["progress"]
                for job_id, facts in told.items()
                if (len(facts) == 1 and type(facts.get("progress")) is float) or _of_progress(facts)
            }
            self.book.note_progress(alone)
            if len(alone) < len(told):
                for job_id, facts in told.items():
                    if job_id not in alone:
                        self.update_job(job_id, **facts)

    def update_progress(self, progress: Mapping[str, float]) -> None:
        """Set the progress of many jobs; on an error none is taken in."""
        with self.edit_clock:
            checked_progress(progress)
            self.book.note_progress(progress)

    def remove_job(self, job_id: str) -> None:
        """Delete a job; raises UnknownJobError if its id is unknown."""
        self.remove_jobs([job_id])

    def remove_jobs(self, job_ids: Sequence[str]) -> None:
        """Do :meth:`remove_job` for each job; if one is unknown, none is removed."""
        with HeldBack(), self.edit_clock:
            self.formulation.remove_jobs(job_ids)
            self.holdings.remove_jobs(job_ids)
            self.stragglers.forget(job_ids)
            for job_id in filter(self._planned.__contains__, job_ids):
                del self._planned[job_id]

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes; `nodes` are their ids (generated by default)."""
        with self.edit_clock:
            self.servers.nodes.add(gpu_type, count, nodes)
            self.formulation.change_capacity(gpu_type, count)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove `count` GPUs of a type as whole nodes: those named, or the emptiest; jobs on them are re-planned.

        Raises CapacityInUseError if a pinned job is on one of the nodes, or fewer GPUs exist.
        """
        with self.edit_clock:
            self.holdings.remove_nodes(gpu_type, count, nodes)
            self.formulation.change_capacity(gpu_type, -count)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Pin a job to exactly this allocation; jobs in its way lose their GPUs. None ends the pin.

        Raises CapacityInUseError if pinned jobs use the GPUs, InvalidClusterError if they do not exist.
        """
        with self.edit_clock:
            self.book.row(job_id)
            self.holdings.pin(job_id, allocation)

    # The round ----------------------------------------------------------------------------------------------------

    def terms(self, now_s: float) -> RoundTerms:
        """Return the terms common to all jobs in the round that starts at `now_s`."""
        common = 0.0 if callable(self.restart_s) or isinstance(self.restart_s, Mapping) else self.restart_s
        return RoundTerms(now_s, self.round_s, common, self.spread_cost, self.formulation.capacity)

    @by_deadline
    @uncollected()
    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Plan the round that starts at `now_s`: value the jobs, solve the LP, round, find servers."""
        clock, edit_s = StageClock(), self.edit_clock.seconds
        self.edit_clock.reset()
        self.estimator.complete(self.book)
        terms = self.terms(now_s)
        self.stragglers.release(terms)
        if self.mode == "horizon":
            return self._plan_ahead(terms, deadline_s, clock, edit_s)
        with_lp = self.mode != "online" or bool(self.observers)  # the online algorithm needs no LP
        values = self.formulation.refresh(terms) if with_lp else self.formulation.value(terms)
        online = None
        if self.mode != "lp" or self.compare_prices:
            online = self.rule.plan(values, terms, self.holdings, self.stragglers.avoided())
        self.last_online = online
        solution, edit = None, "edit"
        if with_lp:
            self.formulation.post_prices(online.posted if online and self.mode == "lp_posted" else None)
            clock.end("edit")
            edit = "solve"
            solution = self.formulation.solve(deadline_s=SOLVE_SHARE * deadline_s)
        clock.end(edit)
        self.show(solution, edit_s + clock.total_s)
        clock.end("observe")
        prices, bound = self._prices_and_bound(solution, online)
        chosen = online if self.mode == "online" else None
        if chosen is not None:
            draft, fractional = Draft.of(self.formulation, prices, chosen.bundles), 0
        else:
            shares = self.formulation.shares(required(solution))
            draft, fractional = self.shim(self.formulation, shares, prices, bound, (1 - SOLVE_SHARE) * deadline_s)
        clock.end("shim")
        wanted = None if chosen is None else chosen.allocations
        whole = solution is not None and solution.status is Status.OPTIMAL
        return self._carry_out(draft, wanted, (prices, bound, fractional, whole), clock, edit_s)

    def kept_plan(self, now_s: float) -> Plan:
        """Return the last plan without the jobs that have gone, which takes no time."""
        before, self._planned = self._planned, dict(self.held)
        edit_s = self.edit_clock.seconds
        self.edit_clock.reset()
        return kept_between(before, self._planned, timings={"edit": edit_s})

    def _plan_ahead(self, terms: RoundTerms, deadline_s: float, clock: StageClock, edit_s: float) -> Plan:
        """Plan the round by the multi-round program: its shares and duals go to the usual shim."""
        formulation, ahead = self.formulation, self.ahead
        values = formulation.value(terms)
        ahead.refresh(self.book, formulation.utility, terms)
        clock.end("edit")
        solution = ahead.solve(deadline_s=SOLVE_SHARE * deadline_s)
        clock.end("solve")
        self.show(solution, edit_s + clock.total_s)
        clock.end("observe")
        now = ahead.ahead(solution, self.book)
        formulation.values = ahead.shadow_values(values, self.book, formulation.utility, terms, now)
        bound = formulation.least_dual_value(now.prices)
        shares = Shares(now.shares, np.zeros(len(self.book)))
        draft, fractional = self.shim(formulation, shares, now.prices, bound, (1 - SOLVE_SHARE) * deadline_s)
        clock.end("shim")
        whole = solution.status is Status.OPTIMAL
        return self._carry_out(draft, None, (now.prices, bound, fractional, whole), clock, edit_s)

    def _carry_out(
        self,
        draft: Draft,
        wanted: Mapping[int, Allocation] | None,
        relaxed: tuple[Floats, float, int, bool],
        clock: StageClock,
        edit_s: float,
    ) -> Plan:
        """Return the plan of a draft; `relaxed` holds prices, bound, split jobs and whether the LP was solved."""
        prices, bound, fractional, whole = relaxed
        now, objective, kept, changed = place(
            draft, self.servers, self.held, self.spread_cost, wanted, self.stragglers.avoided()
        )
        self.holdings.adopt(now, changed)
        clock.end("place")
        before, self._planned = self._planned, dict(now)
        among, self.holdings.replaced = self.holdings.replaced | changed, set()
        plan = plan_between(before, now, objective, bound, self.formulation.scale, among)
        return replace(
            plan,
            prices=dict(zip(self.servers.types, prices.tolist(), strict=True)),
            fractional_jobs=fractional,
            skipped={self.book.ids[row]: reason for row, reason in draft.values.faults.items()},
            status=status_of(plan.gap, whole, kept),
            timings={"solve": 0.0, **clock.seconds, "edit": edit_s + clock.seconds["edit"]},
        )

    def _restart_of(self, job: Job) -> float:
        """Return the job's own restart time in seconds; NaN if all jobs have the same."""
        if not callable(self.restart_s) and not isinstance(self.restart_s, Mapping):
            return float("nan")
        given = self.restart_s(job) if callable(self.restart_s) else self.restart_s.get(job.application)
        if given is None or not 0 <= given < np.inf:
            raise InvalidJobError(
                f"job {job.id!r}: the restart time of {job.application!r} is {given}, must be finite and >= 0"
            )
        return float(given)

    def _seen(self, job_id: str, row: int, observed: float) -> dict[str, float]:
        """Return the type's rate implied by an observed one, corrected for spread tasks."""
        held = self.held.get(job_id)
        if held is None:
            raise InvalidJobError(f"job {job_id!r}: a rate of {observed} is observed, but it has no GPUs")
        return {held.gpu_type: observed / (1.0 - self.spread_cost) if self.book.spread[row] else observed}

    def _prices_and_bound(self, solution: Solution | None, online: OnlinePlan | None) -> tuple[Floats, float]:
        """Return the LP's prices and certified bound; without an LP, the posted prices and the best bound near them."""
        if solution is not None:
            return self.formulation.prices(solution), self.formulation.bound_of(solution)
        if online is None:
            raise InternalError("a round without an LP needs the online algorithm's prices")
        posted = np.array([online.prices[name] for name in self.servers.types])
        return posted, self.formulation.least_dual_value(posted)


def _of_progress(facts: Mapping[str, Any]) -> bool:
    """Whether an update contains progress only."""
    if facts.keys() == PROGRESS:
        return facts["progress"] is not None
    started = facts.keys() == STARTED and facts["progress"] is not None and facts["restarts"] is not None
    return started and bool(facts["restarts"] >= 0)


def required(solution: Solution | None) -> Solution:
    """Return the LP's solution; raises InternalError if there is none."""
    if solution is None:
        raise InternalError("the LP's shim was called in a round without an LP")
    return solution
