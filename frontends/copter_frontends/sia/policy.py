"""Sia as a scheduling policy: edits in, one LP solve, a shim, and nodes for every job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from copter import Settings, Solution, Status
from copter.errors import SettingsError
from copter_frontends.goodput import ALL_APPLICATIONS, Application, GoodputModel
from copter_frontends.goodput.job_facts import check_facts
from copter_frontends.goodput.profiled import ProfiledApplication, fitted_profiles
from copter_frontends.placement import PlacementError, Placer
from copter_frontends.policy_kit import EditClock, plan_changes, relative_gap, status_of
from copter_frontends.semantics import DEFAULT, Semantics
from copter_frontends.sia.estimator import HintedGoodput
from copter_frontends.sia.exact import exact_assignment
from copter_frontends.sia.formulation import SiaFormulation
from copter_frontends.sia.job_book import IDLE
from copter_frontends.sia.objective import SiaObjective, objective_of
from copter_frontends.sia.relaxed_solution import RelaxedSolution
from copter_frontends.sia.reservations import Reservations
from copter_frontends.sia.shim import Assignment, as_plan, fill, integer_assignment
from copter_frontends.sia.time_sharing import Service, TimeSharing
from copter_frontends.vocabulary import (
    Allocation,
    CapacityInUseError,
    Cluster,
    Configuration,
    InvalidClusterError,
    Job,
    Plan,
    configurations_of,
)

CAPPED_GPUS = 64  # most GPUs of a job in capped mode, as in the public simulator
SOLVE_SHARE = 0.8  # of a round's deadline that the LP may use; the shim and the placer need the rest


class SiaPolicy:
    """The Sia scheduler on the differential model (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    Parameters
    ----------
    cluster : Cluster
        Copied: tell the policy of changes with add_resources and remove_resources.
    goodput : GoodputModel, optional
        Its applications are used; by default the project's own representative jobs.
    mode : {"full", "capped"}
        Every whole-node size up to the cluster (as the thesis's scale experiments), or at most 64 GPUs per job (as the
        public simulator).
    objective : SiaObjective, optional
        Fairness power and queue-occupancy incentive.
    round_s : float
        Length of a round in seconds.
    settings : copter.Settings, optional
        Of the LP solver.
    semantics : Semantics
        What the policy knows of its jobs and what they may have; its rounding and clipping hold for the objective that
        is not given.
    profiles : mapping of str to ProfiledApplication, optional
        Batch limits and one-GPU rates by which jobs' hints are read; by default as the fitted constants have them.
    time_sharing : TimeSharing, optional
        The penalty that lets jobs take turns in times of congestion; without one, none.

    Attributes
    ----------
    observers : list of callable
        Called in every round once the LP is solved and before anything changes; their time is not counted.
    last_solution, last_lp_s
        The last round's LP solution, and the seconds of its edits and solve.
    """

    def __init__(
        self,
        cluster: Cluster,
        goodput: GoodputModel | None = None,
        *,
        mode: Literal["full", "capped"] = "full",
        objective: SiaObjective | None = None,
        round_s: float = 60.0,
        settings: Settings | None = None,
        semantics: Semantics = DEFAULT,
        profiles: Mapping[str, ProfiledApplication] | None = None,
        time_sharing: TimeSharing | None = None,
    ) -> None:
        if mode not in ("full", "capped"):
            raise SettingsError(f"mode is {mode!r}, must be 'full' or 'capped'")
        if cluster.gpus == 0:
            raise InvalidClusterError("the cluster has no GPUs: give at least one type a node")
        self.mode, self.round_s = mode, round_s
        self.cluster = cluster.copy()
        self.placer = Placer(self.cluster)
        self.semantics, self.profiles = semantics, profiles
        self.objective = objective or objective_of(semantics)
        self.settings = settings or Settings()
        self.applications: Mapping[str, Application] = goodput.applications if goodput else ALL_APPLICATIONS
        self.time_sharing = time_sharing
        self.service: dict[str, Service] = {}
        self.skipped: dict[str, str] = {}
        self.previous: dict[str, Allocation] = {}
        self.pinned: dict[str, Allocation] = {}
        self.last_solution: Solution | None = None
        self.last_lp_s = 0.0
        self.observers: list[Callable[[], object]] = []
        self.edit_clock = EditClock()
        self._build()

    def __getstate__(self) -> dict[str, Any]:
        """All but the observers and the last solution, which belong to the process."""
        return {**self.__dict__, "observers": [], "last_solution": None}

    @property
    def variables(self) -> int:
        """Columns of the LP as it stands."""
        return self.formulation.model.n_columns

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> None:
        """Start to consider a job. DuplicateJobError if its id is known, InvalidJobError if it fits nowhere."""
        with self.edit_clock:
            if job.reservation is not None:
                self.reservations.check(job, job.reservation)
            self.formulation.add_job(job)
            if job.reservation is not None or not job.preemptible:
                self.reservations.jobs[job.id] = job.reservation

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Take in ``progress`` (fraction of training done), ``restarts`` (count), ``hints`` (TrainingHints)."""
        with self.edit_clock:
            self.formulation.state(job_id)
            check_facts(job_id, what_changed)
            self.formulation.update_job(job_id, **what_changed)

    def remove_job(self, job_id: str) -> None:
        """Forget a job; UnknownJobError."""
        with self.edit_clock:
            self.formulation.remove_job(job_id)
            self.previous.pop(job_id, None)
            self.pinned.pop(job_id, None)
            self.reservations.jobs.pop(job_id, None)
            self.service.pop(job_id, None)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Keep a job on exactly this allocation until unpinned with None."""
        with self.edit_clock:
            if allocation is None:
                if job_id not in self.reservations.jobs or self.formulation.state(job_id).column == IDLE:
                    self.formulation.pin(job_id, IDLE)
                self.pinned.pop(job_id, None)
                return
            self.formulation.state(job_id)
            self.formulation.pin(job_id, self._column(job_id, allocation))
            self.pinned[job_id] = allocation
            self.previous[job_id] = allocation
            self.formulation.place(job_id, self._column(job_id, allocation))

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes; `nodes` are ids for them (made up when not given).

        In full mode a type that grows beyond its first size gets new configurations, and the LP starts afresh.
        """
        with self.edit_clock:
            added = self.cluster.add_whole_nodes(gpu_type, count, nodes)
            if any(c not in self.formulation.column_of for c in self._sizes(gpu_type)):
                self._build()
            elif added:
                self.formulation.add_gpus(gpu_type, count)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Take `count` GPUs of a type away as whole nodes (the newest, unless named); jobs on them are re-planned.

        Raises
        ------
        CapacityInUseError
            If a pinned job is on one of the nodes, or fewer GPUs exist.
        """
        with self.edit_clock:
            doomed = self.cluster.choose_whole_nodes(gpu_type, count, nodes)
            for job_id, allocation in self.pinned.items():
                hit = [node for node, _ in allocation.nodes if node in doomed]
                if hit:
                    raise CapacityInUseError(
                        f"cannot remove node {hit[0]!r} of type {gpu_type!r}: "
                        f"job {job_id!r} is pinned to it; unpin it first"
                    )
            for job_id in self.reservations.jobs.keys() - self.pinned.keys():  # fixed again in the next round
                self.formulation.pin(job_id, IDLE)
            self.cluster.remove_nodes(doomed)
            self.formulation.remove_gpus(gpu_type, count)
            for job_id, allocation in list(self.previous.items()):
                if any(node in doomed for node, _ in allocation.nodes):
                    del self.previous[job_id]
                    self.formulation.place(job_id, IDLE)

    # The round ----------------------------------------------------------------------------------------------------

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Decide the round that starts at `now_s`: solve the LP, round it, place it on nodes."""
        started = time.perf_counter()
        self.reservations.fix()
        self._take_turns(now_s)
        self.formulation.refresh_costs(now_s)
        edited = time.perf_counter()
        solution = self._solve(SOLVE_SHARE * deadline_s)
        solved = time.perf_counter()
        self.last_solution = solution if isinstance(solution, Solution) else None
        self.last_lp_s = self.edit_clock.seconds + solved - started
        for observe in self.observers:
            observe()
        observed = time.perf_counter()
        if self.semantics.exact_integer:
            assignment, fractional = exact_assignment(self.formulation, solution, deadline_s)
        else:
            assignment, fractional = integer_assignment(self.formulation, solution)
        rounded = time.perf_counter()
        allocations = self._place(assignment)
        placed = time.perf_counter()
        timings = {
            "edit": self.edit_clock.seconds + edited - started,
            "solve": solved - edited,
            "observe": observed - solved,
            "shim": rounded - observed,
            "place": placed - rounded,
        }
        plan = self._plan(assignment, solution, allocations, fractional, timings)
        self._adopt(assignment, allocations)
        for job_id, service in self.service.items():
            service.note(now_s, job_id in allocations)
        return plan

    def _solve(self, deadline_s: float) -> RelaxedSolution:
        return self.formulation.solve(deadline_s)

    def _place(self, assignment: Assignment) -> dict[str, Allocation]:
        """Nodes for every job. Where pinned jobs leave no room for one, it gets the next best that they allow."""
        while True:
            try:
                pinned = self.reservations.in_place(assignment.column, self.previous, self.pinned)
                return self.placer.place(as_plan(assignment), self.previous, pinned)[0]
            except PlacementError as error:
                if error.job_id is None or error.job_id in pinned:
                    raise
                assignment.refuse(error.job_id)
                fill(assignment)
                assignment.evaluate()

    def _plan(
        self,
        assignment: Assignment,
        solution: RelaxedSolution,
        allocations: dict[str, Allocation],
        fractional: int,
        timings: dict[str, float],
    ) -> Plan:
        changes, objective = plan_changes(self.previous, allocations), assignment.objective
        gap = relative_gap(objective, solution.bound)
        return Plan(
            allocations=allocations,
            start=changes.start,
            stop=changes.stop,
            move=changes.move,
            objective=objective,
            bound=solution.bound,
            gap=gap,
            prices={name: solution.price(name) for name in self.formulation.types},
            fractional_jobs=fractional,
            skipped=dict(self.skipped),
            status=status_of(gap, solution.status is Status.OPTIMAL),
            timings=timings,
        )

    def _adopt(self, assignment: Assignment, allocations: dict[str, Allocation]) -> None:
        """Make the plan the one that the next round starts from."""
        for job_id in self.formulation.jobs:
            self.formulation.place(job_id, assignment.column.get(job_id, IDLE))
        self.previous = allocations
        self.edit_clock.reset()

    def _take_turns(self, now_s: float) -> None:
        """Say what each job's service lately makes it worth on top (S10)."""
        if self.time_sharing is None:
            return
        bonuses = {}
        for job_id in self.formulation.jobs:
            service = self.service.setdefault(job_id, Service())
            service.note(now_s, job_id in self.previous and service.since_s is not None)
            bonuses[job_id] = service.bonus(now_s, self.time_sharing)
        self.formulation.share_time(bonuses)

    # Inside -------------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        """Make the formulation again for the cluster as it is, with the jobs that are known."""
        old = getattr(self, "formulation", None)
        configurations = configurations_of(self.cluster, None if self.mode == "full" else CAPPED_GPUS)
        capacity = {name: self.cluster.capacity(name) for name in self.cluster.types}
        goodput, estimator = GoodputModel(configurations, self.applications), self._estimator(configurations)
        self.formulation = SiaFormulation(
            configurations, capacity, goodput, self.objective, self.settings, self.semantics, estimator
        )
        if old is None:
            self.reservations = Reservations(self.cluster, self.formulation)
        self.reservations.formulation = self.formulation
        for job_id, state in (old.jobs if old else {}).items():
            self.formulation.add_job(state.job)
            self.formulation.update_job(job_id, state.progress, state.restarts, state.hints)
            if job_id in self.previous:
                self.formulation.place(job_id, self._column(job_id, self.previous[job_id]))
            if job_id in self.pinned:
                self.formulation.pin(job_id, self._column(job_id, self.pinned[job_id]))

    def _estimator(self, configurations: Sequence[Configuration]) -> HintedGoodput | None:
        if self.semantics.training == "exact":
            return None
        if self.profiles is None:
            self.profiles = fitted_profiles(self.applications)
        per_node = {name: kind.gpus_per_node for name, kind in self.cluster.types.items()}
        return HintedGoodput(configurations, per_node, self.profiles, self.semantics)

    def _sizes(self, gpu_type: str) -> list[tuple[str, int]]:
        most = None if self.mode == "full" else CAPPED_GPUS
        return [(c.gpu_type, c.gpus) for c in configurations_of(self.cluster, most) if c.gpu_type == gpu_type]

    def _column(self, job_id: str, allocation: Allocation) -> int:
        """Column of an allocation; InvalidClusterError where it is no configuration of the cluster."""
        column = self.formulation.column_of.get((allocation.gpu_type, allocation.gpus))
        if column is None:
            self.cluster.type_of(allocation.gpu_type)
            raise InvalidClusterError(
                f"job {job_id!r}: {allocation.gpus} GPUs of {allocation.gpu_type!r} is no configuration of the cluster"
            )
        return column
