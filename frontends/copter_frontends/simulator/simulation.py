"""The round clock: informs the policy, checks its plan, and carries it out."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from time import perf_counter
from typing import Any, NoReturn, get_args

import numpy as np

from copter_frontends.goodput.profiled import ProfiledApplication, fitted_profiles
from copter_frontends.simulator.activity import Activity
from copter_frontends.simulator.agent_training import AgentTraining
from copter_frontends.simulator.arrivals import Arrivals
from copter_frontends.simulator.cluster_events import ClusterEvent, in_order
from copter_frontends.simulator.errors import SimulationError
from copter_frontends.simulator.goodput_source import GoodputSource
from copter_frontends.simulator.job_table import Ints, JobTable
from copter_frontends.simulator.metrics import job_columns, peak_rss_mb
from copter_frontends.simulator.occupancy import Changes, Occupancy
from copter_frontends.simulator.rates import RateTable
from copter_frontends.simulator.result import SimulationResult, SkippedJob
from copter_frontends.simulator.round_record import Program, RoundRecord
from copter_frontends.simulator.training import ExactTraining, Training, drop_observed, observed_facts, rows_with_news
from copter_frontends.simulator.usable_jobs import usable_jobs
from copter_frontends.vocabulary import (
    Allocation,
    Cluster,
    FrontendError,
    InvalidClusterError,
    Job,
    Node,
    Plan,
    SchedulingPolicy,
    at_once,
    progress_at_once,
    tell_jobs,
    with_defaults,
)
from copter_frontends.vocabulary.semantics import DEFAULT, Charge, Semantics

STALL_ROUNDS = 100
"""A run to the last job ends after this many rounds in which nothing runs and nothing arrives."""


class Simulation:
    """A discrete-time simulation of a policy on a cluster.

    In each round the policy is informed of arrivals, ends, phases and restarts and asked for a plan, which is checked
    and carried out for `round_s` seconds. Training is exact within the round (see :func:`.execution.advance`); a job
    holds its GPUs until the round's end. A start, and a charged change, first takes the application's `restart_s`. Jobs
    that are still restarting when a round begins are pinned (unless the semantics lack `pin_restoring`).

    Parameters
    ----------
    cluster : Cluster
        The cluster, which is copied; the policy must have been made for the same one.
    jobs : iterable of Job
        Jobs in any order. Those that cannot be simulated are skipped and reported in the result.
    policy : SchedulingPolicy
        If its attribute `learns` is true, it gets the observed speed of running jobs before each plan:
        ``update_job(job_id, observed=samples_per_s)``. With `learns_loading` it also gets some data loads (``loads``,
        ``waits``), if the goodput model's applications can draw them. If its attribute `follows` is true, it gets the
        progress of all running jobs in each round, not only when one enters another phase.
    goodput_model : GoodputSource
        The true speed of jobs; the policy may use another model.
    round_s : float
        Seconds from one plan to the next.
    seed : int
        Kept with the result. The simulator uses it only to draw observed data loads.
    charge : {"allocation", "type_and_count", "type_and_shape"}, optional
        Changes that restart a job: any change of the allocation, a change of type or number, or a change of type or of
        the numbers of GPUs per node. By default that of the semantics.
    deadline_s : float, optional
        Wall-clock limit of a plan, in seconds; `round_s` by default.
    semantics : Semantics
        Rules of how jobs train and of what the policy is told.
    profiles : mapping of str to ProfiledApplication, optional
        True training speeds of applications with an agent; by default from fitted constants.
    events : sequence of ClusterEvent
        Failures, repairs and changes of capacity.
    plan_latency : float
        Jobs that start or change wait, with idle GPUs, this many times the wall-clock seconds of the policy's edits and
        plan: 1 charges plans as measured on this machine, 0 (the default) charges nothing, so that a run is the same on
        every machine.

    Attributes
    ----------
    note : object
        The caller's own data, saved with the run.

    Raises
    ------
    InvalidClusterError, ValueError
        For a round or deadline that is not positive, or an unknown `charge`.
    """

    _gpus_there: dict[str, int] | None = None  # GPUs by type; None until they are counted again

    def __init__(
        self,
        cluster: Cluster,
        jobs: Iterable[Job],
        policy: SchedulingPolicy,
        goodput_model: GoodputSource,
        round_s: float = 60.0,
        seed: int = 0,
        charge: Charge | None = None,
        deadline_s: float | None = None,
        semantics: Semantics = DEFAULT,
        profiles: Mapping[str, ProfiledApplication] | None = None,
        events: Sequence[ClusterEvent] = (),
        plan_latency: float = 0.0,
    ) -> None:
        self.deadline_s = round_s if deadline_s is None else deadline_s
        if not (0 < round_s < math.inf and self.deadline_s > 0):
            raise ValueError(f"round_s is {round_s} and deadline_s {self.deadline_s}; both must be positive")
        if not 0 <= plan_latency < math.inf:
            raise ValueError(f"plan_latency is {plan_latency}, must be finite and >= 0")
        self.plan_latency = plan_latency
        self._late_s = 0.0  # seconds after the round's start at which its plan is ready
        charge = semantics.charge if charge is None else charge
        if charge not in get_args(Charge):
            raise ValueError(f"charge is {charge!r}, must be one of {', '.join(map(repr, get_args(Charge)))}")
        self.cluster = copy.deepcopy(cluster)
        self.policy = policy = with_defaults(policy)
        self.round_s = float(round_s)
        self.seed = seed
        self.charge: Charge = charge
        self.now_s = 0.0
        self.records: list[RoundRecord] = []
        self.semantics = semantics
        usable, self.skipped = usable_jobs(jobs, goodput_model, semantics)
        names = sorted({job.application for job in usable})
        facts = goodput_model.applications
        self._table = JobTable(
            usable, names, [job.work_samples or facts[job.application].work_samples for job in usable]
        )
        self._restart_s = np.array([float(facts[name].restart_s) for name in names])
        self._training: Training
        if semantics.training == "agent":
            self._training = AgentTraining(self._table, profiles or fitted_profiles(facts), semantics)
        else:
            rates = goodput_model.rate_table(names) if hasattr(goodput_model, "rate_table") else None
            self._training = ExactTraining(self._table, rates or RateTable(goodput_model, names), facts)
        self._occupancy = Occupancy(self.cluster)
        self._arrivals = Arrivals(self._table, semantics, self._capacity(), self.round_s)
        self._dropped: set[int] = set()  # rows of jobs that the policy refused
        self._active: dict[str, int] = {}
        self._rows: Ints = np.empty(0, dtype=np.int64)  # rows of the active jobs, in order of arrival
        self._pinned: dict[str, Allocation] = {}
        self._restoring: set[str] = set()
        self._news: dict[str, dict[str, Any]] = {}
        self._progress: dict[str, float] = {}  # of jobs that trained; news come first where both are there
        self._leaving: list[str] = []
        self._edit_s = 0.0
        self._idle_rounds = 0
        self._solved, self._needless = policy.programs_solved or 0, policy.programs_needless
        self._events = in_order(events)
        self._activity = Activity()
        self.note: object = None

    def step(self, warmup: bool = False) -> RoundRecord:
        """Simulate one round.

        Raises
        ------
        SimulationError
            If the policy's plan cannot be carried out.
        """
        begun = perf_counter()
        self.tell_policy()
        planning = perf_counter()
        plan = self.policy.plan(self.now_s, self.deadline_s)
        plan_s = perf_counter() - planning
        edit_s, self._edit_s = self._edit_s, 0.0
        self._late_s = self.plan_latency * (edit_s + plan_s - plan.timings.get("observe", 0.0))
        try:
            running, changes = self._carry_out(plan)
            span = (self.now_s, self.now_s + self.round_s)
            observed = observed_facts(self.policy, self._training, self._table, running, span, self.seed)
            changed, completed = self._training.advance(running, self.now_s, self.now_s + self.round_s)
        except SimulationError as error:
            raise SimulationError(f"round {len(self.records)} (at {self.now_s:g} s): {error}") from None
        self._account(running)
        self._note_news(rows_with_news(self.policy, self._table, running, changed))
        for row, facts in observed:
            if np.isnan(self._table.completion_s[row]):
                self._news.setdefault(self._table.jobs[row].id, {}).update(facts)
        ids = tuple(self._table.jobs[row].id for row in completed.tolist())
        wall = (begun, plan_s, edit_s)
        record = self._record(plan, len(running), changes, ids, warmup, wall)
        self._retire(ids, completed)
        for probe in self._arrivals.end_round(self._occupancy.allocations):
            self._occupancy.release(probe)
            self._leaving.append(probe)
        self.records.append(record)
        self.now_s += self.round_s
        return record

    def run(
        self,
        rounds: int | None = None,
        hours: float | None = None,
        on_round: Callable[[RoundRecord], object] | None = None,
        warmup_rounds: int = 0,
        must_stop: Callable[[], bool] | None = None,
    ) -> SimulationResult:
        """Simulate a number of rounds, or of hours, or until the last job ends.

        Parameters
        ----------
        rounds : int, optional
        hours : float, optional
            Simulated hours, rounded up to whole rounds. If `rounds` is also given, the earlier end counts.
        on_round : callable, optional
            Called after each round, before the policy is informed of the outcome, so that its model is still the solved
            one.
        warmup_rounds : int
            Additional first rounds, which are left out of the statistics over rounds.
        must_stop : callable, optional
            Called before each round; True ends the run.
        """
        limits = [float(rounds)] if rounds is not None else []
        limits += [math.ceil(hours * 3600 / self.round_s - 1e-9)] if hours is not None else []
        last = min(limits) + warmup_rounds if limits else math.inf
        done = 0
        while done < last and (limits or not self.finished):
            if must_stop is not None and must_stop():
                break
            record = self.step(warmup=done < warmup_rounds)
            done += 1
            if on_round is not None:
                on_round(record)
            if not limits:
                self._give_up_if_stalled(record)
        return self.result()

    @property
    def finished(self) -> bool:
        """Whether all jobs have arrived and ended."""
        return not self._active and not self._arrivals.left

    @property
    def active(self) -> list[Job]:
        """Jobs that have arrived and not ended, in order of arrival."""
        return [self._table.jobs[row] for row in self._active.values()]

    @property
    def jobs_left(self) -> int:
        """Number of jobs that have not ended, including future arrivals."""
        return len(self._active) + self._arrivals.left

    def result(self) -> SimulationResult:
        """Return the result of the rounds so far."""
        kept = np.array([row for row in range(len(self._table)) if row not in self._dropped], dtype=np.int64)
        return SimulationResult(
            gpus=self.cluster.gpus,
            round_s=self.round_s,
            seed=self.seed,
            rounds=tuple(self.records),
            jobs=job_columns(self._table, kept),
            skipped=tuple(self.skipped),
            spans=self._activity.until(self.now_s),
        )

    def add_nodes(self, gpu_type: str, count: int) -> list[Node]:
        """Add whole nodes of an existing type and inform the policy."""
        added, self._gpus_there = self.cluster.add_nodes(gpu_type, count), None
        if added:
            gpus = sum(node.gpus for node in added)
            self._edit(lambda: self.policy.add_resources(gpu_type, gpus, [node.id for node in added]))
        return added

    def remove_nodes(self, ids: Iterable[str]) -> list[str]:
        """Remove nodes; jobs on them lose all their GPUs and pay a restart later.

        Returns
        -------
        list of str
            Ids of the jobs that lost their GPUs; profiling that lost its GPU waits for another.
        """
        names = list(dict.fromkeys(ids))
        missing = [name for name in names if name not in self.cluster.nodes]
        if missing:
            raise InvalidClusterError(f"cannot remove nodes that the cluster does not have: {', '.join(missing)}")
        self._edit(self._remove_ended)
        probes, lost = [], self._occupancy.jobs_on(set(names))
        for job in lost:
            if job not in self._active:
                probes.append(job)
                self._occupancy.release(job)
                self._edit(lambda job=job: self.policy.pin(job, None))  # type: ignore[misc]
                continue
            drop_observed(self._news.get(job, {}))  # the policy could not relate observations to GPUs
            self._occupancy.release(job)
            self._halt(_rows_of([job], self._active))
            held = not self._table.jobs[self._active[job]].preemptible
            if self._pinned.pop(job, None) is not None or held:
                self._edit(lambda job=job: self.policy.pin(job, None))  # type: ignore[misc]
        by_type: dict[str, list[Node]] = {}
        self._gpus_there = None
        for node in self.cluster.remove_nodes(names):
            by_type.setdefault(node.gpu_type, []).append(node)
        for kind, nodes in by_type.items():
            gpus, gone = sum(node.gpus for node in nodes), [node.id for node in nodes]
            self._edit(lambda k=kind, g=gpus, n=gone: self.policy.remove_resources(k, g, n))  # type: ignore[misc]
        return [job for job in lost if job not in probes]

    def _apply_event(self, event: ClusterEvent) -> None:
        """Apply a cluster event; nodes already removed or already present are ignored."""
        if event.what in ("fail", "remove"):
            lost = self.remove_nodes([node for node in event.nodes if node in self.cluster.nodes])
            if event.what == "fail":
                for job in lost:
                    row = self._active[job]
                    self._training.fall_back(row)
                    self._news.setdefault(job, {}).update(self._training.news(row))
            return
        names = [node for node in event.nodes if node not in self.cluster.nodes]
        per_node = self.cluster.type_of(event.gpu_type).gpus_per_node
        if not event.nodes:
            self.add_nodes(event.gpu_type, event.count)
        elif names:
            gpus = per_node * len(names)
            self.cluster.add_whole_nodes(event.gpu_type, gpus, names)
            self._gpus_there = None
            self._edit(lambda: self.policy.add_resources(event.gpu_type, gpus, names))

    def tell_policy(self) -> None:
        """Tell the policy, in order: cluster events, ends, arrivals, changes, pins. What :meth:`step` does first."""
        while self._events and self._events[0].time_s <= self.now_s:
            self._apply_event(self._events.pop(0))
        self._edit(self._remove_ended)
        self._arrive()
        self._send_updates()
        self._pin()

    def _edit(self, action: Callable[[], None]) -> None:
        begun = perf_counter()
        try:
            action()
        finally:
            self._edit_s += perf_counter() - begun

    def _remove_ended(self) -> None:
        leaving, self._leaving = self._leaving, []
        remove_jobs = at_once(self.policy, "remove_jobs", "remove_job")
        if remove_jobs is not None:
            remove_jobs(leaving)
            return
        for job in leaving:
            self.policy.remove_job(job)

    def _arrive(self) -> None:
        table, fresh = self._table, []

        def add(job: Job) -> None:
            self._edit(lambda: self.policy.add_job(job))

        joining = self._arrivals.joining(self.now_s, self._training, add)
        together = self._join([table.jobs[row] for row in joining])
        for row in joining:
            job = table.jobs[row]
            if not together:
                try:
                    add(job)
                except FrontendError as error:
                    self._skip(row, str(error))
                    continue
            self._active[job.id] = row
            told = self._training.arrive(row)
            if told:
                self._news.setdefault(job.id, {}).update(told)
            table.queue_s[row] = self.now_s - table.submit_s[row]
            fresh.append(row)
        if fresh:
            self._rows = np.concatenate([self._rows, np.array(fresh, dtype=np.int64)])

    def _join(self, jobs: list[Job]) -> bool:
        """Add jobs to the policy in one call; False if it has none, or refused one of them, and none was added."""
        add_jobs = at_once(self.policy, "add_jobs", "add_job")
        if add_jobs is None:
            return False
        try:
            self._edit(lambda: add_jobs(jobs))
        except FrontendError:
            return False
        return True

    def _note_news(self, rows: Ints) -> None:
        """Keep what the policy is told of these jobs before its next plan."""
        news, ids, progress = self._news, self._table.ids, self._training.progress_of(rows)
        if progress is not None:
            self._progress.update(zip(map(ids.__getitem__, rows.tolist()), progress, strict=True))
            return
        for row, facts in zip(rows.tolist(), self._training.news_of(rows), strict=True):
            had = news.setdefault(ids[row], facts)
            if had is not facts:
                had.update(facts)

    def _send_updates(self) -> None:
        told, progress, active = self._news, self._progress, self._active
        if not told.keys() <= active.keys():
            told = {job: facts for job, facts in told.items() if job in active}
        if not progress.keys() <= active.keys():
            progress = {job: share for job, share in progress.items() if job in active}
        update_progress = progress_at_once(self.policy)
        for job in progress.keys() & told.keys() if update_progress else list(progress):
            told.setdefault(job, {}).setdefault("progress", progress.pop(job))
        self._news, self._progress = {}, {}

        def tell() -> None:
            if update_progress is not None:
                update_progress(progress)
            tell_jobs(self.policy, told)

        self._edit(tell)

    def _pin(self) -> None:
        pins = dict[str, Allocation | None]()
        there = list(filter(self._active.__contains__, self._restoring))
        late = self._table.resume_s[_rows_of(there, self._active)] > self.now_s
        still = {job for job in compress(there, late.tolist()) if job in self._occupancy.allocations}
        for job in sorted(still | self._pinned.keys()):
            held, had = self._occupancy.allocations.get(job), self._pinned.get(job)
            if job in still and held is not None and held is not had and held != had:
                self._pinned[job] = pins[job] = held
            elif job not in still:
                del self._pinned[job]
                if job in self._active:
                    pins[job] = None
        self._restoring = still

        def tell() -> None:
            pin_jobs = at_once(self.policy, "pin_jobs", "pin")
            if pin_jobs is not None:
                pin_jobs(pins)
                return
            for job, held in pins.items():
                self.policy.pin(job, held)

        self._edit(tell)

    # Carrying out a plan.

    def _carry_out(self, plan: Plan) -> tuple[Ints, Changes]:
        named = self._arrivals.with_probes(self._active)
        changes = self._occupancy.apply(plan.allocations, named, self._pinned)
        changes = self._arrivals.without_probes(self._active, changes)
        given = [(job, plan.allocations[job], True) for job in changes.started]
        given += [(job, after, self._is_charged(before, after)) for job, before, after in changes.changed]
        self._start(given)
        self._halt(_rows_of(changes.stopped, self._active))
        return self._rows[self._table.gpus[self._rows] > 0], changes

    def _is_charged(self, before: Allocation, after: Allocation) -> bool:
        if self.charge == "allocation" or (before.gpu_type, before.gpus) != (after.gpu_type, after.gpus):
            return True
        shapes = ([gpus for _, gpus in each.nodes] for each in (before, after))
        return self.charge == "type_and_shape" and next(shapes) != next(shapes)

    def _start(self, given: Sequence[tuple[str, Allocation, bool]]) -> None:
        """Give jobs GPUs; those that are charged for it train once they have restarted."""
        table, rows = self._table, _rows_of([job for job, _, _ in given], self._active)
        allocations = [allocation for _, allocation, _ in given]
        gpus = np.array([allocation.gpus for allocation in allocations], dtype=np.int64)
        wrong = np.flatnonzero((gpus < table.least[rows]) | (gpus > table.most[rows]))
        if len(wrong):
            self._refuse(table.jobs[int(rows[wrong[0]])], int(gpus[wrong[0]]))
        self._training.begin_all(rows, allocations)
        self._activity.begin_all([job for job, _, _ in given], self.now_s, allocations)
        table.gpus[rows] = gpus
        charged = rows[np.array([each for _, _, each in given], dtype=np.bool_)]
        table.resume_s[charged] = self.now_s + self._late_s + self._restart_s[table.application[charged]]
        if self.semantics.pin_restoring:
            self._restoring.update([job for job, _, each in given if each])
        new = np.isnan(table.first_start_s[charged])
        table.first_start_s[charged[new]] = self.now_s
        again = charged[~new]
        table.restarts[again] += 1
        for row, restarts in zip(again.tolist(), table.restarts[again].tolist(), strict=True):
            self._news.setdefault(table.jobs[row].id, {})["restarts"] = restarts

    @staticmethod
    def _refuse(job: Job, gpus: int) -> NoReturn:
        """Raise SimulationError for a plan that gives a job a number of GPUs on which it does not run."""
        least, most = job.gpus or job.min_gpus, (None if job.gpus else job.max_gpus)
        runs = f"{least} to {most}" if most else f"{least} or more"
        raise SimulationError(f"the plan gives job {job.id!r} {gpus} GPUs; it runs on {runs}")

    def _halt(self, rows: Ints) -> None:
        table = self._table
        table.gpus[rows] = 0
        done_s = table.completion_s[rows]
        table.last_held_s[rows] = held_s = np.where(np.isnan(done_s), self.now_s, done_s)
        self._training.halt_all(rows)
        self._activity.end_all(map(table.ids.__getitem__, rows.tolist()), held_s.tolist())

    def _account(self, running: Ints) -> None:
        table = self._table
        table.gpu_seconds[running] += table.gpus[running] * self.round_s
        table.queue_s[self._rows[table.gpus[self._rows] == 0]] += self.round_s

    def _retire(self, ids: tuple[str, ...], completed: Ints) -> None:
        self._halt(completed)
        for job, row in zip(ids, completed.tolist(), strict=True):
            self._occupancy.release(job)
            self._training.leave(row)
            del self._active[job]
            self._pinned.pop(job, None)
        if ids:
            self._leaving.extend(ids)
            self._rows = self._rows[np.isnan(self._table.completion_s[self._rows])]

    def _record(
        self,
        plan: Plan,
        running: int,
        changes: Changes,
        completed: tuple[str, ...],
        warmup: bool,
        wall: tuple[float, float, float],
    ) -> RoundRecord:
        begun, plan_s, edit_s = wall
        used = self._occupancy.gpus_used
        return RoundRecord(
            index=len(self.records),
            now_s=self.now_s,
            warmup=warmup,
            active_jobs=len(self._active),
            running_jobs=running,
            queued_jobs=len(self._active) - running,
            started=len(changes.started),
            stopped=len(changes.stopped),
            moved=len(changes.changed),
            gpus_used={kind: used.get(kind, 0) for kind in self.cluster.types},
            gpus_capacity=self._capacity(),
            objective=plan.objective,
            bound=plan.bound,
            gap=plan.gap,
            fractional_jobs=plan.fractional_jobs,
            status=plan.status,
            prices=dict(plan.prices),
            timings={"edit": edit_s, **plan.timings},
            round_s=edit_s + plan_s - plan.timings.get("observe", 0.0),  # the time of a comparison is not the policy's
            overhead_s=max(0.0, perf_counter() - begun - plan_s - edit_s),
            variables=self.policy.variables,
            completed=completed,
            peak_rss_mb=peak_rss_mb(),
            program=self._program(),
        )

    def _program(self) -> Program:
        """Return whether the policy has solved a linear program since the last plan, or proven that it needs none."""
        policy = self.policy
        if policy.programs_solved is None:
            return "solved" if policy.variables else "none"
        solved, needless = policy.programs_solved - self._solved, policy.programs_needless - self._needless
        self._solved, self._needless = policy.programs_solved, policy.programs_needless
        return "solved" if solved else "needless" if needless else "none"

    # Jobs that cannot be simulated.

    def _skip(self, row: int, reason: str, waited_s: float | None = None) -> None:
        self._dropped.add(row)
        ran = not np.isnan(self._table.first_start_s[row])
        self.skipped.append(SkippedJob(self._table.jobs[row].id, reason, waited_s, bool(ran)))

    def _give_up_if_stalled(self, record: RoundRecord) -> None:
        stalled = record.running_jobs == 0 and record.active_jobs > 0 and not self._arrivals.left
        self._idle_rounds = self._idle_rounds + 1 if stalled else 0
        if self._idle_rounds < STALL_ROUNDS:
            return
        for job, row in self._active.items():
            had_s = np.fmax(self._table.submit_s[row], self._table.last_held_s[row])
            reason = f"the policy gave it no GPUs in {STALL_ROUNDS} rounds in which nothing else ran"
            self._skip(row, reason, float(self.now_s - had_s))
            self._leaving.append(job)
        self._active = {}
        self._rows = np.empty(0, dtype=np.int64)

    def _capacity(self) -> dict[str, int]:
        if self._gpus_there is None:
            self._gpus_there = dict.fromkeys(self.cluster.types, 0)
            for node in self.cluster.nodes.values():
                self._gpus_there[node.gpu_type] += node.gpus
        return self._gpus_there.copy()


def _rows_of(jobs: Sequence[str], active: Mapping[str, int]) -> Ints:
    """Return the rows of these jobs in the table."""
    return np.array([active[job] for job in jobs], dtype=np.int64)
