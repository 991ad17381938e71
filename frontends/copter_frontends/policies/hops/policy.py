"""Hops as a scheduling policy: edits of jobs and servers, and rounds of a queue, a window, an LP and a shim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from copter import Model, Settings
from copter.runtime.errors import SettingsError
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.job_facts import check_facts
from copter_frontends.policies.hops.drafting import Drafting
from copter_frontends.policies.hops.estimator import ThroughputEstimator
from copter_frontends.policies.hops.formulation import GroupFormulation, RoundPrograms
from copter_frontends.policies.hops.job_book import JobBook
from copter_frontends.policies.hops.latency_ratio import Priority, Weights
from copter_frontends.policies.hops.offers import OfferRules
from copter_frontends.policies.hops.presence import Presence
from copter_frontends.policies.hops.requirements import RequirementSet, requirements_of
from copter_frontends.policies.hops.round_planner import RoundPlanner
from copter_frontends.policies.hops.server_groups import ServerGroups
from copter_frontends.policies.hops.shim import HopsShim
from copter_frontends.policies.hops.standings import Standings
from copter_frontends.policies.hops.throughputs import ModelledThroughputs, PlacedThroughputs
from copter_frontends.policy_kit import Choice, HeldBack, LpPolicy, RoundPolicy, StageClock
from copter_frontends.vocabulary import Allocation, Cluster, Job, configurations_of

USUAL = frozenset(("progress", "restarts"))  # what the policy is told of most jobs
TOLD_BIN, LEARNED_BIN = 0.05, 0.1  # relative widths of speed bins, for given and for learned speeds


class HopsPolicy(LpPolicy, RoundPolicy):
    """The Hops scheduler on the differential model (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    Every `full_round_s` seconds all GPUs without pins are planned again for the jobs of the service window; plans in
    between only allocate idle GPUs. docs/papers/hops.md derives the program from the paper.

    Parameters
    ----------
    cluster : Cluster
        The cluster, which is copied; report changes by add_resources and remove_resources.
    throughputs : PlacedThroughputs, optional
        Speeds of jobs, by default those of the project's representative jobs; :class:`.ThroughputEstimator` learns
        them.
    priority : {"lr", "las", "sjf", "srtf", "ftf"}
        Order of the queue: the latency ratio, or one of the paper's alternatives.
    fairness : float
        lambda, the exponent of the priority weights.
    round_s, full_round_s : float
        Seconds between two plans, and between two plans of the whole cluster.
    stay_bonus : float
        Gain added to a job's present GPUs; 0 is the paper's objective.
    rules : OfferRules, optional
    shim : HopsShim, optional
    speed_bin : float, optional
        Relative width of the bins in which servers of a type count as equal: by default 5%, or 10% for learned speeds,
        which are not known better in the first hours.
    settings : copter.Settings, optional
        Settings of the LP solver.

    Attributes
    ----------
    programs : RoundPrograms
        The LPs; :attr:`formulation` is that of whole rounds.
    standings : Standings
        The queue.
    skipped : dict of job id to str
        Jobs that the last plan could not consider, and the reasons.
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
        speed_bin: float | None = None,
        settings: Settings | None = None,
    ) -> None:
        if speed_bin is None:
            speed_bin = LEARNED_BIN if isinstance(throughputs, ThroughputEstimator) else TOLD_BIN
        for name, value in (("round_s", round_s), ("full_round_s", full_round_s), ("speed_bin", speed_bin)):
            if not (isfinite(value) and value > 0):
                raise SettingsError(f"{name} is {value}, must be finite and > 0")
        for name, value in (("fairness", fairness), ("stay_bonus", stay_bonus)):
            if not (isfinite(value) and value >= 0):
                raise SettingsError(f"{name} is {value}, must be finite and >= 0")
        LpPolicy.__init__(self)
        RoundPolicy.__init__(self, cluster, round_s)
        known = throughputs or ModelledThroughputs(cluster, GoodputModel(configurations_of(cluster)))
        self.book = JobBook(known, rules or OfferRules())
        self.programs = RoundPrograms(self.nodes, known, settings or Settings(), speed_bin, stay_bonus)
        self.standings = Standings(self.book, priority)
        self._presence = Presence(self.book, stay_bonus)
        self.shim, self.fairness, self.full_round_s = shim or HopsShim(), fairness, full_round_s
        self.skipped: dict[str, str] = {}
        self._prices: dict[str, float] = dict.fromkeys(self.nodes.types, 0.0)
        self._chosen: dict[str, Allocation] = {}
        self._full_s: float | None = None  # time of the last plan of all GPUs

    waiting_bound = "none in hours; a job's priority grows with its wait"

    @property
    def seldom(self) -> str:
        """Why some rounds have no program of all GPUs."""
        return f"all GPUs are planned every {self.full_round_s:g} s, in the rounds between them only idle ones"

    @property
    def formulation(self) -> GroupFormulation:
        """The LP of whole rounds."""
        return self.programs.whole

    @property
    def model(self) -> Model:
        """The model of :attr:`formulation`, the LP that plans all GPUs; rounds that plan only idle GPUs use another."""
        return self.programs.whole.model

    @property
    def learns(self) -> bool:
        """Whether ``observed`` rates are used, because the throughputs are an estimator's."""
        return isinstance(self.book.throughputs, ThroughputEstimator)

    @property
    def learns_loading(self) -> bool:
        """Whether data ``loads`` are used too."""
        return self.learns

    @property
    def groups(self) -> ServerGroups:
        """Groups of equal servers."""
        return self.programs.groups

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job, requirements: RequirementSet | Iterable[int] | None = None) -> None:
        """Queue a job; its requirement set is computed unless given.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If the id is already known; if its requirements are invalid, or it fits nowhere.
        """
        if job.id not in self.jobs:
            self._regroup()
            self.book.add(job, self.groups, requirements)
        super().add_job(job)

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Do :meth:`add_job` for each job; on an error none is added."""
        self._regroup()
        groups, noted = self.groups, list[str]()
        with HeldBack():
            try:
                for job in jobs:
                    if job.id not in self.jobs and job.id not in self.book.offers:  # the queue refuses the others
                        self.book.add(job, groups)
                        noted.append(job.id)
                self.enqueue(jobs)
            except Exception:
                for job_id in noted:
                    self.book.remove(job_id)
                raise

    def require_room(self, jobs: Sequence[Job]) -> None:
        """Do nothing: the book has refused jobs for which the present servers have no room."""

    def sizes(self, job: Job) -> Iterable[int]:
        """Return the requirement set."""
        known = self.book.requirements.get(job.id)
        return (known or requirements_of(job)).sizes

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Update a job's data.

        Accepted are ``progress`` (fraction done), ``requirements`` (a set of GPU counts), ``learning_rates``
        (:class:`.LearningRates`), ``observed`` (samples per second on its current GPUs), and ``loads`` with ``waits``
        (seconds of some data loads there and, on several GPUs, of the waits for slower processes).
        """
        job = self.job(job_id)
        requirements, rates = what_changed.pop("requirements", None), what_changed.pop("learning_rates", None)
        observed, loads, waits = (what_changed.pop(name, None) for name in ("observed", "loads", "waits"))
        check_facts(job_id, what_changed)
        if observed is not None:
            self.book.check_observed(job, self.held.get(job_id), observed)
        if requirements is not None:
            self._regroup()
            self.book.add(job, self.groups, requirements)
        if observed is not None:
            self.book.observe(job, self.held.get(job_id), float(observed))
        if loads is not None:
            self.book.observe_loads(job, self.held.get(job_id), loads, waits)
        if rates is not None:
            self.book.learning[job_id] = rates
        super().update_job(job_id, **what_changed)

    def update_jobs(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Call :meth:`update_job` for each job; progress and restarts alone, the usual case, are only stored."""
        for job_id, facts in told.items():
            progress, restarts, had = facts.get("progress"), facts.get("restarts"), self.service.get(job_id)
            usual = progress is None or (type(progress) is float and 0.0 <= progress <= 1.0)
            usual = usual and (restarts is None or (type(restarts) is int and restarts >= 0))
            if had is None or not usual or not facts.keys() <= USUAL:
                self.update_job(job_id, **facts)
            elif progress is not None:
                had.progress = progress

    def update_progress(self, progress: Mapping[str, float]) -> None:
        """Store the progress of many jobs; on an error none is stored."""
        super().update_progress(progress)

    def remove_job(self, job_id: str) -> None:
        """Delete a job and free its GPUs; its latency ratio counts for the recent average."""
        job, service = self.job(job_id), self.service[job_id]
        super().remove_job(job_id)
        self.standings.remove(job, service, self._last_plan_s)
        self.book.remove(job_id)
        self._chosen.pop(job_id, None)

    def hold(self, job_id: str, allocation: Allocation) -> None:
        """Give a job GPUs that are free."""
        self._presence.forget((job_id,))
        super().hold(job_id, allocation)

    def release(self, job_id: str) -> None:
        """Take away a job's GPUs, if it has any."""
        self._presence.forget((job_id,))
        super().release(job_id)

    def hold_again(self, job_id: str, allocation: Allocation) -> None:
        """Give a job the GPUs that it has anew."""
        del self.held[job_id]
        self.held[job_id] = allocation
        self.nodes.touch(allocation)
        self._presence.renew(job_id)

    def hold_all(self, given: Mapping[str, Allocation]) -> None:
        """Give many jobs GPUs that are free."""
        self._presence.forget(given)
        super().hold_all(given)

    def release_all(self, job_ids: Sequence[str]) -> None:
        """Take away the GPUs of many jobs."""
        self._presence.forget(job_ids)
        super().release_all(job_ids)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes, named or not."""
        super().add_resources(gpu_type, count, nodes)
        self.programs.servers_changed()

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove `count` GPUs of a type as whole nodes; jobs on them go back to the queue."""
        super().remove_resources(gpu_type, count, nodes)
        self.programs.servers_changed()

    def learning_rate(self, job_id: str) -> float | None:
        """Return the learning rate for a job's current GPUs; None without GPUs or a rule."""
        self.job(job_id)
        held, rule = self.held.get(job_id), self.book.learning.get(job_id)
        return None if held is None or rule is None else rule.at(held.gpus)

    # The round ----------------------------------------------------------------------------------------------------

    def choose(self, now_s: float, deadline_s: float) -> Choice:
        """Run queue, window, relaxation and shim: for all GPUs if a new round is due, otherwise for idle GPUs."""
        clock = StageClock()
        self._regroup()
        self.skipped = self.book.refresh(self.jobs, self.groups)
        present = self._presence.of(self.held, self.jobs, self.groups)
        self.standings.update(now_s, self.jobs, self.service, self.services, self._chosen, present)
        due = self._full_s is None or not 0 <= now_s - self._full_s < self.full_round_s - 1e-6
        weight = Weights(self.standings.queue.values, self.fairness, self.standings.priorities())
        drafting = Drafting(
            self.groups, self.book, self.jobs, self.held, self.pins, present, weight, self.programs.stay_bonus
        )
        draft = drafting.draft(self.pins if due else self.held)
        waiting = []
        if due or draft.idle:
            waiting = self.standings.order(self.jobs.keys() - draft.placed.keys(), self.jobs)
        planner = RoundPlanner(self.programs, self.shim, drafting, deadline_s, clock)
        if due:
            result = planner.whole(draft, waiting, self.show)
            self._full_s = now_s
            if result.solution is not None:
                self._prices = self.programs.type_prices(result.solution)
        else:
            result = planner.idle(draft, waiting)
            self.programs_solved += result.solution is not None
            self.programs_needless += result.solution is None  # no GPU is idle, or no job waits
        self._chosen = result.allocations(drafting)
        return result.choice({}, self._prices, self.skipped, clock.seconds)

    def settle(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """Give the jobs the servers that the last plan chose; `wanted` is not used."""
        self.settle_as(self._chosen)

    # Inside -------------------------------------------------------------------------------------------------------

    def _regroup(self) -> None:
        """Group the current servers; if the groups change, the next plan covers all GPUs."""
        if self.programs.regroup():
            self._full_s = None
