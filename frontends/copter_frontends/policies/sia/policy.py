"""Sia as a scheduling policy: edits, one LP solve, a shim, and nodes for every job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from copter import Model, Settings, Solution, Status
from copter.runtime.collector import uncollected
from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.job_facts import check_facts, checked_progress
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.placement import Placer
from copter_frontends.policies.sia.building import FormulationBuilder
from copter_frontends.policies.sia.exact import exact_assignment
from copter_frontends.policies.sia.formulation import PRIORITY_FACTOR, SiaFormulation
from copter_frontends.policies.sia.job_book import IDLE
from copter_frontends.policies.sia.objective import SiaObjective, objective_of
from copter_frontends.policies.sia.placing import place
from copter_frontends.policies.sia.relaxed_solution import RelaxedSolution
from copter_frontends.policies.sia.reservations import Reservations
from copter_frontends.policies.sia.shared_rows import check_quotas
from copter_frontends.policies.sia.shim import integer_assignment, round_solution
from copter_frontends.policies.sia.time_sharing import TimeSharing, Turns
from copter_frontends.policy_kit import (
    EditClock,
    HeldBack,
    LpPolicy,
    StageClock,
    by_deadline,
    check_nodes,
    check_round_s,
    jobs_on,
    kept_between,
    plan_between,
    require_free,
    require_gpus,
    status_of,
    that_fit,
)
from copter_frontends.simulator.goodput_source import GoodputSource
from copter_frontends.vocabulary import Allocation, CapacityInUseError, Cluster, InvalidClusterError, Job, Plan
from copter_frontends.vocabulary.semantics import DEFAULT, Semantics

SOLVE_SHARE = 0.8  # share of a round's deadline that the LP may use; the shim and placement need the rest

STRANDED = "no GPU type that is there now can run it"


class SiaPolicy(LpPolicy):
    """The Sia scheduler on the differential model (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    Parameters
    ----------
    cluster : Cluster
        The cluster, which is copied; report changes by add_resources and remove_resources.
    goodput : GoodputSource, optional
        Any goodput model; the policy converts it to its own configurations. By default a
        :class:`~copter_frontends.goodput.GoodputModel` of the project's representative jobs.
    mode : {"full", "capped"}
        "full": all whole-node sizes up to the cluster's, as in the thesis's scale experiments. "capped": at most 64
        GPUs per job, as in the public simulator.
    objective : SiaObjective, optional
        Fairness power and queue-occupancy incentive.
    round_s : float
        Length of a round in seconds.
    settings : copter.Settings, optional
        Settings of the LP solver.
    semantics : Semantics
        The policy's knowledge of its jobs and the allocations they may have. Its rounding and clipping apply to the
        default objective.
    profiles : mapping of str to ProfiledApplication, optional
        Batch limits and one-GPU rates used with jobs' hints; by default from the fitted constants.
    time_sharing : TimeSharing, optional
        Bonus that lets jobs take turns in times of congestion; none by default.
    quotas : mapping of str to int, optional
        Most GPUs, of all types together, of each tenant's jobs; other tenants have no limit.
    priority_factor : float
        Worth of a job relative to an equal job of the priority class below.

    Attributes
    ----------
    held, pins : dict of job id to Allocation
        Current allocations, and allocations of pinned jobs.
    """

    def __init__(
        self,
        cluster: Cluster,
        goodput: GoodputSource | None = None,
        *,
        mode: Literal["full", "capped"] = "full",
        objective: SiaObjective | None = None,
        round_s: float = 60.0,
        settings: Settings | None = None,
        semantics: Semantics = DEFAULT,
        profiles: Mapping[str, ProfiledApplication] | None = None,
        time_sharing: TimeSharing | None = None,
        quotas: Mapping[str, int] | None = None,
        priority_factor: float = PRIORITY_FACTOR,
    ) -> None:
        if mode not in ("full", "capped"):
            raise SettingsError(f"mode is {mode!r}, must be 'full' or 'capped'")
        check_round_s(round_s)
        require_gpus(cluster)
        super().__init__()
        self.round_s = round_s
        self.cluster = cluster.copy()
        self.placer = Placer(self.cluster)
        self.semantics = semantics
        objective = objective or objective_of(semantics)
        self.builder = FormulationBuilder(
            mode,
            goodput or GoodputModel(()),
            objective,
            settings or Settings(),
            semantics,
            profiles,
            quotas,
            priority_factor,
        )
        self.formulation: SiaFormulation = self.builder.build(self.cluster)
        self.reservations = Reservations(self.cluster, self.formulation)
        self.turns = Turns(time_sharing, objective.incentive)
        self.held: dict[str, Allocation] = {}
        self.pins: dict[str, Allocation] = {}
        self._pinned_gpus: dict[str, int] = {}  # GPUs of pinned jobs by node
        self._replaced: set[str] = set()  # jobs that no longer hold what the last plan gave them
        self.edit_clock = EditClock()

    @property
    def model(self) -> Model:
        """The LP's model."""
        return self.formulation.model

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Add a job. Raises DuplicateJobError for a known id, InvalidJobError if it fits nowhere."""
        self.add_jobs((job,))

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Do :meth:`add_job` for each job; on an error none is added."""
        with HeldBack(), self.edit_clock:
            form, added, arrivals = self.formulation, list[str](), self.formulation.arrivals
            together = all(job.reservation is None for job in jobs)  # a reservation is checked beside those before it
            try:
                for some in [jobs] if together else [(job,) for job in jobs]:
                    if not together:
                        self.reservations.check(some[0])
                    form.add_jobs(some)
                    for job in some:
                        self.reservations.add(job)
                        added.append(job.id)
            except Exception:
                self.remove_jobs(added)
                form.arrivals = arrivals
                raise

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Update ``progress`` (fraction of training done), ``restarts`` (count) and ``hints`` (TrainingHints) of a
        job.
        """
        with self.edit_clock:
            self.formulation.state(job_id)
            check_facts(job_id, what_changed)
            self.formulation.update_job(job_id, **what_changed)

    def update_jobs(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Do :meth:`update_job` for each job."""
        with self.edit_clock:
            alone, jobs = dict[str, float](), self.formulation.jobs  # told of their progress alone, as most are
            for job_id, facts in told.items():
                progress = facts.get("progress")
                if len(facts) == 1 and type(progress) is float and 0.0 <= progress <= 1.0 and job_id in jobs:
                    alone[job_id] = progress
                else:
                    check_facts(job_id, facts)
                    self.formulation.update_job(job_id, **facts)
            self.formulation.note_progress(alone)

    def update_progress(self, progress: Mapping[str, float]) -> None:
        """Set the progress of many jobs; on an error none is taken in."""
        with self.edit_clock:
            checked_progress(progress)
            self.formulation.note_progress(progress)

    def remove_job(self, job_id: str) -> None:
        """Delete a job; raises UnknownJobError if its id is unknown."""
        self.remove_jobs((job_id,))

    def remove_jobs(self, job_ids: Sequence[str]) -> None:
        """Do :meth:`remove_job` for each job; if one is unknown, none is removed."""
        with HeldBack(), self.edit_clock:
            self.formulation.remove_jobs(job_ids)
            self._replaced.update(job_ids)
            for job_id in job_ids:
                self.held.pop(job_id, None)
                if job_id in self.pins:
                    self._set_pin(job_id, None)
                self.reservations.remove(job_id)
                self.turns.remove(job_id)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes; `nodes` are their ids (generated by default).

        If a type grows beyond its first size in full mode, it gets new configurations and the LP is built anew.
        """
        with self.edit_clock:
            added = self.cluster.add_whole_nodes(gpu_type, count, nodes)
            if self.builder.outgrown(self.formulation, self.cluster, gpu_type):
                self.formulation = self.builder.rebuild(self.formulation, self.cluster, self.held, self.pins)
                self.reservations.formulation = self.formulation
            elif added:
                self.formulation.add_gpus(gpu_type, count)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove `count` GPUs of a type as whole nodes (the newest, unless named); jobs on them are re-planned.

        Raises
        ------
        CapacityInUseError
            If a pinned job is on one of the nodes, or fewer GPUs exist.
        """
        with self.edit_clock:
            doomed = self.cluster.choose_whole_nodes(gpu_type, count, nodes)
            for job_id, allocation in self.pins.items():
                hit = [node for node, _ in allocation.nodes if node in doomed]
                if hit:
                    raise CapacityInUseError(
                        f"cannot remove node {hit[0]!r} of type {gpu_type!r}: "
                        f"job {job_id!r} is pinned to it; unpin it first"
                    )
            self.reservations.let_go(self.pins.keys())
            self.cluster.remove_nodes(doomed)
            self.formulation.remove_gpus(gpu_type, count)
            for job_id in jobs_on(doomed, self.held):
                del self.held[job_id]
                self._replaced.add(job_id)
                self.formulation.place(job_id, IDLE)

    def set_quota(self, tenant: str, gpus: int) -> None:
        """Change a tenant's quota; jobs beyond it lose GPUs in the next plan.

        Raises
        ------
        SettingsError
            If the tenant has no quota, or the new one is not a whole number >= 0.
        CapacityInUseError
            If pinned jobs of the tenant have more; nothing is changed.
        """
        with self.edit_clock:
            check_quotas({tenant: gpus})
            pinned = sum(
                held.gpus for job, held in self.pins.items() if self.formulation.state(job).job.tenant == tenant
            )
            if pinned > gpus:
                raise CapacityInUseError(f"tenant {tenant!r}: pinned jobs have {pinned} GPUs, more than {gpus}")
            self.reservations.let_go(self.pins.keys())
            self.formulation.set_quota(tenant, gpus)
            self.builder.quotas[tenant] = gpus

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Pin a job to exactly this allocation; None ends the pin.

        Raises InvalidClusterError or InvalidJobError if it is not a configuration or its nodes do not exist, and
        CapacityInUseError if pinned jobs use them.
        """
        self.pin_jobs({job_id: allocation})

    def pin_jobs(self, pins: Mapping[str, Allocation | None]) -> None:
        """Do :meth:`pin` for one job after the other; on an error none is pinned or let go."""
        with HeldBack(), self.edit_clock:
            standing = self.formulation.standing(pins)
            self._replaced.update(pins)
            before = {job_id: (self.pins.get(job_id), self.held.get(job_id)) for job_id in pins}
            try:
                for job_id, allocation in pins.items():
                    if allocation is None:
                        self.reservations.unpin(job_id)
                        self._set_pin(job_id, None)
                        continue
                    if allocation is not self.held.get(job_id) or not self._may_stay(job_id, allocation):
                        self._check_pin(job_id, allocation)
                    column = self.formulation.column_for(job_id, allocation)
                    self.formulation.pin(job_id, column)
                    self.formulation.place(job_id, column)
                    self._set_pin(job_id, allocation)
                    self.held[job_id] = allocation
            except Exception:
                self.formulation.put_back(standing)
                for job_id, (pin, held) in before.items():
                    self._set_pin(job_id, pin)
                    self.held.pop(job_id, None)
                    if held is not None:
                        self.held[job_id] = held
                raise

    # The round ----------------------------------------------------------------------------------------------------

    @by_deadline
    @uncollected()
    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Plan the round that starts at `now_s`: solve the LP, round to an integer plan, assign nodes."""
        clock, edit_s = StageClock(), self.edit_clock.seconds
        self.edit_clock.reset()
        self.reservations.fix()
        self.formulation.share_time(self.turns.bonuses(now_s, self.formulation.jobs, self.held))
        self.formulation.refresh_costs(now_s)
        clock.end("edit")
        solution = self.solve(SOLVE_SHARE * deadline_s)
        clock.end("solve")
        self.show(solution if isinstance(solution, Solution) else None, edit_s + clock.total_s)
        clock.end("observe")
        if self.semantics.shim == "exact":
            assignment, fractional = exact_assignment(self.formulation, solution, deadline_s - clock.total_s)
        elif self.semantics.shim == "rounded":
            assignment, fractional = round_solution(self.formulation, solution)
            assignment.evaluate()
        else:
            assignment, fractional = integer_assignment(self.formulation, solution)
        clock.end("shim")
        now, touched = place(assignment, self.placer, self.reservations, self.held, self.pins, self._replaced)
        clock.end("place")
        before, self.held = self.held, now
        self._replaced = set()
        self.formulation.place_all(assignment.changed())
        self.turns.note(now_s, now)
        plan = plan_between(before, now, assignment.objective, solution.bound, among=touched)
        return replace(
            plan,
            prices={name: solution.price(name) for name in self.formulation.types},
            fractional_jobs=fractional,
            skipped=dict.fromkeys(sorted(self.formulation.stranded), STRANDED),
            status=status_of(plan.gap, solution.status is Status.OPTIMAL),
            timings={**clock.seconds, "edit": edit_s + clock.seconds["edit"]},
        )

    def kept_plan(self, now_s: float) -> Plan:
        """Return the last plan without the jobs that have gone, which takes no time."""
        before, self.held = self.held, that_fit(self.cluster, self.held, self.pins)
        for job_id in before.keys() - self.held.keys():
            self.formulation.place(job_id, IDLE)
        self.turns.note(now_s, self.held)
        edit_s = self.edit_clock.seconds
        self.edit_clock.reset()
        return kept_between(before, self.held, timings={"edit": edit_s})

    def solve(self, deadline_s: float) -> RelaxedSolution:
        """Solve the round's LP; subclasses may use another solver."""
        return self.formulation.solve(deadline_s)

    # Inside -------------------------------------------------------------------------------------------------------

    def _may_stay(self, job_id: str, allocation: Allocation) -> bool:
        """Whether no job is pinned to a node of these GPUs, which an unpinned job has."""
        return job_id not in self.pins and not any(node in self._pinned_gpus for node, _ in allocation.nodes)

    def _check_pin(self, job_id: str, allocation: Allocation) -> None:
        """Raise if a pin names missing nodes or GPUs of other pins, or is spread over more nodes than it needs."""
        self.formulation.state(job_id)
        nodes, kind = self.cluster.nodes, self.cluster.type_of(allocation.gpu_type)
        size = kind.gpus_per_node
        if len(allocation.nodes) > 1 and any(gpus != size for _, gpus in allocation.nodes):
            raise InvalidClusterError(
                f"cannot pin job {job_id!r} to {allocation.nodes}: "
                f"a job runs on one node of {size} GPUs or on whole nodes"
            )
        there = {node for node, _ in allocation.nodes if node in nodes and nodes[node].gpu_type == kind.name}
        check_nodes(job_id, allocation, there)
        own = dict(self.pins[job_id].nodes) if job_id in self.pins else {}
        used = {node: self._pinned_gpus.get(node, 0) - own.get(node, 0) for node in there}
        require_free(job_id, allocation, kind.gpus_per_node, used)

    def _set_pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Record a pin or its end."""
        before = self.pins.pop(job_id, None)
        for node, gpus in before.nodes if before is not None else ():
            self._pinned_gpus[node] -= gpus
            if not self._pinned_gpus[node]:
                del self._pinned_gpus[node]
        if allocation is not None:
            self.pins[job_id] = allocation
            for node, gpus in allocation.nodes:
                self._pinned_gpus[node] = self._pinned_gpus.get(node, 0) + gpus
