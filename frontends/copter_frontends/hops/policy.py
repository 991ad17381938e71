"""Hops as a scheduling policy: the queue, the window, one LP, a shim, and plans for what is left in the round."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from copter import Settings, Solution, Status
from copter.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.hops.draft import Draft
from copter_frontends.hops.drafting import Drafting
from copter_frontends.hops.estimator import ThroughputEstimator
from copter_frontends.hops.formulation import NONE, GroupFormulation
from copter_frontends.hops.job_book import JobBook
from copter_frontends.hops.latency_ratio import LatencyQueue, Priority, Standing, weights
from copter_frontends.hops.offers import OfferRules
from copter_frontends.hops.requirements import RequirementSet, requirements_of
from copter_frontends.hops.server_groups import ServerGroups, group_servers
from copter_frontends.hops.service_window import adjust_for_sensitivity, service_window
from copter_frontends.hops.shim import HopsShim, fill
from copter_frontends.hops.throughputs import ModelledThroughputs, PlacedThroughputs
from copter_frontends.policy_kit import OPTIMAL_GAP, Choice, RoundPolicy, Wanted, relative_gap, status_of
from copter_frontends.vocabulary import (
    Allocation,
    Cluster,
    InvalidClusterError,
    InvalidJobError,
    Job,
    Plan,
    configurations_of,
)

SOLVE_SHARE = 0.6  # of a plan's deadline that the LP may use


class HopsPolicy(RoundPolicy):
    """The Hops scheduler on the differential model (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    Every `full_round_s` all GPUs that no pin holds are planned again for the jobs of the service window; plans in
    between give only idle GPUs away, until the round ends for all. docs/hops.md derives the program from the paper.

    Parameters
    ----------
    cluster : Cluster
        Copied: tell the policy of changes with add_resources and remove_resources.
    throughputs : PlacedThroughputs, optional
        By default those of the project's own representative jobs; :class:`.ThroughputEstimator` learns.
    priority : {"lr", "las", "sjf", "srtf", "ftf"}
        What the queue goes by: the latency ratio, or what the paper compares it with.
    fairness : float
        lambda, the power of the priority weights.
    round_s, full_round_s : float
        Seconds between two plans, and between two plans of the whole cluster.
    stay_bonus : float
        Gain that a job's present GPUs are worth more than others; 0 is the paper's objective.
    rules : OfferRules, optional
    shim : HopsShim, optional
    speed_bin : float
        Relative width of the bins in which servers of a type count as alike.
    settings : copter.Settings, optional
        Of the LP solver.

    Attributes
    ----------
    last_solution : Solution or None
        Of the last whole plan's LP.
    skipped : dict of job id to str
        Jobs that could not be considered in the last plan, and why.
    """

    def __init__(
        self,
        cluster: Cluster,
        throughputs: PlacedThroughputs | None = None,
        *,
        priority: Priority = "lr",
        fairness: float = 1.0,
        round_s: float = 60.0,
        full_round_s: float = 300.0,
        stay_bonus: float = 0.1,
        rules: OfferRules | None = None,
        shim: HopsShim | None = None,
        speed_bin: float = 0.05,
        settings: Settings | None = None,
    ) -> None:
        for name, value in (("round_s", round_s), ("full_round_s", full_round_s), ("speed_bin", speed_bin)):
            if not (isfinite(value) and value > 0):
                raise SettingsError(f"{name} is {value}, must be finite and > 0")
        for name, value in (("fairness", fairness), ("stay_bonus", stay_bonus)):
            if not (isfinite(value) and value >= 0):
                raise SettingsError(f"{name} is {value}, must be finite and >= 0")
        if cluster.gpus == 0:
            raise InvalidClusterError("the cluster has no GPUs: give at least one type a node")
        super().__init__(cluster, round_s)
        self.book = JobBook(
            throughputs or ModelledThroughputs(cluster, GoodputModel(configurations_of(cluster))), rules or OfferRules()
        )
        self.latency = LatencyQueue(priority)
        self.fairness, self.full_round_s, self.stay_bonus = fairness, full_round_s, stay_bonus
        self.shim, self.speed_bin, self.settings = shim or HopsShim(), speed_bin, settings or Settings()
        self._grouped_at = self.book.throughputs.version
        self.groups = self._grouped()
        self.formulation, self.residual = self._formulations()
        self.observers: list[Callable[[], object]] = []
        self.last_solution: Solution | None = None
        self.last_lp_s = 0.0
        self.skipped: dict[str, str] = {}
        self._waits: dict[str, float] = {}
        self._done: dict[str, float] = {}
        self._looked_s = 0.0
        self._prices: dict[str, float] = dict.fromkeys(self.nodes.types, 0.0)
        self._chosen: dict[str, Allocation] = {}
        self._full_s: float | None = None
        self._stale = False

    @property
    def variables(self) -> int:
        """Columns of the LP as it stands."""
        return self.formulation.model.n_columns

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job, requirements: RequirementSet | Iterable[int] | None = None) -> None:
        """Queue a job, with its requirement set if the job itself does not say.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If its id is known; if its requirements are no proper set, or it fits nowhere.
        """
        if job.id not in self.jobs:
            wanted = requirements
            if wanted is not None and not isinstance(wanted, RequirementSet):
                wanted = RequirementSet.of(wanted)
            self._regroup()
            self.book.add(job, self.groups, wanted)
        super().add_job(job)

    def sizes(self, job: Job) -> Iterable[int]:
        """The requirement set."""
        known = self.book.requirements.get(job.id)
        return (known or requirements_of(job)).sizes

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Take in what changed.

        ``progress`` (fraction done), ``requirements`` (a set of GPU counts), ``learning_rates``
        (:class:`.LearningRates`), and ``observed`` (samples per second on the GPUs that it has now).
        """
        job = self.job(job_id)
        requirements, rates = what_changed.pop("requirements", None), what_changed.pop("learning_rates", None)
        observed = what_changed.pop("observed", None)
        super().update_job(job_id, **what_changed)
        if requirements is not None:
            wanted = requirements if isinstance(requirements, RequirementSet) else RequirementSet.of(requirements)
            self._regroup()
            self.book.add(job, self.groups, wanted)
        if rates is not None:
            self.book.learning[job_id] = rates
        if observed is not None:
            self._observe(job, float(observed))

    def remove_job(self, job_id: str) -> None:
        """Forget a job and free its GPUs; its latency ratio counts for the recent average."""
        super().remove_job(job_id)
        if job_id in self.book.age_s and self._last_plan_s is not None:
            self.latency.ended(self._last_plan_s, self._waits.pop(job_id, 0.0) / self.book.age_s[job_id])
        self.book.remove(job_id)
        self._done.pop(job_id, None)
        self._chosen.pop(job_id, None)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes, named or not."""
        super().add_resources(gpu_type, count, nodes)
        self._stale = True

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Take `count` GPUs of a type away as whole nodes; jobs on them go back to the queue."""
        super().remove_resources(gpu_type, count, nodes)
        self._stale = True

    def learning_rate(self, job_id: str) -> float | None:
        """Learning rate to be set on the GPUs that a job has; None without GPUs or a rule."""
        self.job(job_id)
        held, rule = self.held.get(job_id), self.book.learning.get(job_id)
        return None if held is None or rule is None else rule.at(held.gpus)

    # The round ----------------------------------------------------------------------------------------------------

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Decide what runs from `now_s` on: a new round if it is time, else the idle GPUs of this one."""
        plan = super().plan(now_s, deadline_s)
        return replace(plan, skipped=dict(self.skipped))

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Queue, window, relaxation, servers."""
        begun = time.perf_counter()
        changed = self._regroup()
        self.skipped = self.book.refresh(self.jobs, self.groups)
        self._look_at_queue(now_s)
        whole = changed or self._full_s is None or not 0 <= now_s - self._full_s < self.full_round_s - 1e-6
        order = [job for job in self.latency.order(self.jobs) if job in self.book.offers]
        drafting = self._drafting(order)
        draft = drafting.draft(self.pins if whole else self.held)
        waiting = [job for job in order if job not in draft.placed]
        if whole:
            self._full_s = now_s
            return self._whole_round(draft, waiting, drafting, deadline_s, begun)
        return self._idle_gpus(draft, waiting, drafting, deadline_s, begun)

    def settle(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """Carry out the servers that were chosen."""
        self.settle_as(self._chosen)

    # Inside -------------------------------------------------------------------------------------------------------

    def _whole_round(
        self, draft: Draft, waiting: list[str], drafting: Drafting, deadline_s: float, begun: float
    ) -> Choice:
        smallest = {job: self.book.requirements[job].smallest for job in waiting}
        pinned = draft.copy()
        window = service_window(waiting, smallest, draft.idle)
        draft.admit({job: drafting.wish(job) for job in window})
        self.formulation.set_free(np.array(draft.free, dtype=np.int64))
        self.formulation.set_wishes({job: draft.wishes[job] for job in window})
        edited = time.perf_counter()
        solution = self.formulation.solve(deadline_s=SOLVE_SHARE * deadline_s)
        solved = time.perf_counter()
        self.last_solution, self.last_lp_s = solution, solved - begun
        for observe in self.observers:
            observe()
        observed = time.perf_counter()
        bound = draft.value + solution.bound
        rest_s = (1 - SOLVE_SHARE) * deadline_s
        draft, fractional = self.shim(draft, self.formulation, solution, bound, self.residual, rest_s)
        bound += self._let_in(draft, [job for job in waiting if job not in draft.placed], drafting, solution)
        kept = drafting.better_kept(draft, pinned)
        shimmed = time.perf_counter()
        prices = self._type_prices(solution)
        timings = {
            "edit": edited - begun,
            "solve": solved - edited,
            "observe": observed - solved,
            "shim": shimmed - observed,
        }
        return self._choice(drafting, kept or draft, bound, fractional, prices, solution, kept is not None, timings)

    def _let_in(self, draft: Draft, waiting: list[str], drafting: Drafting, solution: Solution) -> float:
        """Plan again for the fragments, jobs behind the window among them; what these may add to the bound (HP18)."""
        idle = draft.idle
        if idle == 0 or not waiting:
            return 0.0
        window = self._fragment_window(waiting, idle)
        behind = {job: drafting.wish(job) for job in window if job not in draft.wishes}
        if not behind:
            return 0.0
        draft.admit(behind)
        fill(draft)
        prices = self.formulation.prices(solution)
        return sum(self.formulation.most_profit(each, prices) for each in behind.values())

    def _fragment_window(self, waiting: list[str], idle: int) -> list[str]:
        smallest = {job: self.book.requirements[job].smallest for job in waiting}
        sensitivity = {job: self.book.offers[job].sensitivity for job in waiting}
        window = service_window(waiting, smallest, idle)
        return adjust_for_sensitivity(waiting, window, smallest, sensitivity, idle)

    def _idle_gpus(
        self, draft: Draft, waiting: list[str], drafting: Drafting, deadline_s: float, begun: float
    ) -> Choice:
        """A smaller plan within the round: what is idle, for those waiting; its bound is of this choice (HP18)."""
        idle, bound, fractional = draft.idle, draft.value, 0
        solved = shimmed = edited = time.perf_counter()
        solution = None
        if idle and waiting:
            draft.admit({job: drafting.wish(job) for job in self._fragment_window(waiting, idle)})
            self.residual.set_free(np.array(draft.free, dtype=np.int64))
            self.residual.set_wishes({job: each for job, each in draft.wishes.items() if job not in draft.placed})
            edited = time.perf_counter()
            solution = self.residual.solve(deadline_s=SOLVE_SHARE * deadline_s)
            solved = time.perf_counter()
            bound += solution.bound
            rest_s = (1 - SOLVE_SHARE) * deadline_s
            draft, fractional = self.shim(draft, self.residual, solution, bound, self.residual, rest_s)
            shimmed = time.perf_counter()
        timings = {"edit": edited - begun, "solve": solved - edited, "shim": shimmed - solved}
        return self._choice(drafting, draft, bound, fractional, self._prices, solution, False, timings)

    def _choice(
        self,
        drafting: Drafting,
        draft: Draft,
        bound: float,
        fractional: int,
        prices: dict[str, float],
        solution: Solution | None,
        kept: bool,
        timings: dict[str, float],
    ) -> Choice:
        self._prices = prices
        self._chosen = {job: drafting.allocation(each.shares) for job, each in draft.placed.items()}
        wanted: Wanted = {job: (each.gpu_type, each.gpus) for job, each in self._chosen.items() if job not in self.pins}
        value = draft.value
        solved = solution is None or solution.status is Status.OPTIMAL
        gap = relative_gap(value, bound)
        close = solved and gap <= OPTIMAL_GAP  # then a bound below the value is rounding
        return Choice(
            wanted=wanted,
            objective=value,
            bound=max(bound, value) if close else bound,
            fractional_jobs=fractional,
            prices=prices,
            status=status_of(gap, solved, kept),
            timings=timings,
        )

    def _drafting(self, order: list[str] | None = None) -> Drafting:
        """What makes drafts now, with weights for the jobs in the queue's order."""
        weight = weights({job: self.latency.values[job] for job in order or ()}, self.fairness)
        return Drafting(self.groups, self.book, self.jobs, self.held, self.pins, weight, self.stay_bonus)

    def _look_at_queue(self, now_s: float) -> None:
        """Waits up to now, what running jobs have done as far as estimates say, and the queue's priorities."""
        elapsed_s, self._looked_s = max(now_s - self._looked_s, 0.0), now_s
        drafting = self._drafting()
        for job_id in self._chosen:
            held, offers = self.held.get(job_id), self.book.offers.get(job_id)
            column = NONE if offers is None else drafting.present_column(offers, held)
            if offers is not None and column != NONE:
                share = elapsed_s * offers.base * float(offers.gain[column]) / self.book.work[job_id]
                self._done[job_id] = min(self._done.get(job_id, 0.0) + share, 1.0)
        self._waits = {
            job_id: max(now_s - job.submit_s - self.service[job_id].executed_s, 0.0)
            for job_id, job in self.jobs.items()
        }

        def standing(job_id: str) -> Standing:
            had, age_s = self.service[job_id], self.book.age_s[job_id]
            left = 1.0 - max(had.progress, self._done.get(job_id, 0.0))
            return Standing(self._waits[job_id], age_s, age_s * left, had.gpu_s, len(self.jobs))

        known = {job_id: job for job_id, job in self.jobs.items() if job_id in self.book.age_s}
        self.latency.refresh(now_s, known, standing)

    def _observe(self, job: Job, rate: float) -> None:
        estimator, held = self.book.throughputs, self.held.get(job.id)
        if not isinstance(estimator, ThroughputEstimator):
            raise TypeError("observed rates need a policy whose throughputs are a ThroughputEstimator")
        if held is None:
            raise InvalidJobError(f"job {job.id!r}: a rate of {rate} is observed, but it has no GPUs")
        estimator.observe(job, held.gpu_type, dict(held.nodes), rate)

    def _type_prices(self, solution: Solution) -> dict[str, float]:
        """Worth of one more GPU of each type: the largest over its groups."""
        result = dict.fromkeys(self.nodes.types, 0.0)
        for row, price in zip(self.formulation.rows, self.formulation.prices(solution).tolist(), strict=True):
            kind = self.groups.groups[row[1]].gpu_type
            result[kind] = max(result[kind], price) if row[0] == "gpus" else result[kind]
        return result

    # Servers ------------------------------------------------------------------------------------------------------

    def _grouped(self) -> ServerGroups:
        servers = {kind: (self.nodes.node_gpus(kind), self.nodes.node_ids(kind)) for kind in self.nodes.types}
        return group_servers(servers, self.book.throughputs.server_speed, self.speed_bin)

    def _regroup(self) -> bool:
        """Group the servers again if some have come or gone or are known better; whether the groups are others now."""
        version = self.book.throughputs.version
        if not self._stale and version == self._grouped_at:
            return False
        groups = self._grouped()
        self._stale, self._grouped_at = False, version
        if groups.key == self.groups.key:
            return False
        self.groups = groups
        self.formulation, self.residual = self._formulations()
        return True

    def _formulations(self) -> tuple[GroupFormulation, GroupFormulation]:
        bonus = self.stay_bonus
        return (
            GroupFormulation(self.groups, self.settings, stay_bonus=bonus),
            GroupFormulation(self.groups, self.settings, all_slots=True, stay_bonus=bonus),
        )
