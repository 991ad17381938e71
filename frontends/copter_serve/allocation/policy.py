"""The allocation policy: requests are jobs, columns are possible allocations, resources are GPUs by type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite
from typing import Any

from copter import Model, Session, Settings, Status, Template
from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.goodput.job_facts import check_facts
from copter_frontends.placement import Placer
from copter_frontends.policy_kit import (
    EditClock,
    LpPolicy,
    StageClock,
    by_deadline,
    check_nodes,
    check_round_s,
    jobs_on,
    kept_between,
    plan_between,
    relative_gap,
    require_free,
    require_gpus,
    status_of,
    that_fit,
)
from copter_frontends.vocabulary import (
    Allocation,
    CapacityInUseError,
    Cluster,
    DuplicateJobError,
    InvalidJobError,
    Job,
    Plan,
    UnknownJobError,
)
from copter_serve.allocation.job_entry import JobEntry
from copter_serve.allocation.placing import placed, that_stay
from copter_serve.allocation.rates import Option, Rates, checked_rates, default_rates, options_of

FITS_NOWHERE = "the cluster has too few GPUs for every size that it can run on"
FACTS = frozenset({"rates", "weight"})


class AllocationPolicy(LpPolicy):
    """Maximises the jobs' weighted speed-ups (a :class:`~copter_frontends.vocabulary.SchedulingPolicy`).

    A job's options are the types and numbers of GPUs with a known speed. An option's worth is the job's weight times
    its speed relative to the job's slowest option. A job gets at most one option, within the GPUs of each type.

    Parameters
    ----------
    cluster : Cluster
        The cluster, which is copied; report changes by add_resources and remove_resources.
    round_s : float
        Seconds between plans.
    restart_penalty : float
        Cost of a start: an option loses this share of its worth (0 to below 1) unless the job already has it. So a
        waiting job replaces a running one only if its worth is larger by more than that.
    settings : copter.Settings, optional

    Attributes
    ----------
    held, pins : dict of job id to Allocation
        Current allocations, and allocations of pinned jobs.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        round_s: float = 60.0,
        restart_penalty: float = 0.1,
        settings: Settings | None = None,
    ) -> None:
        require_gpus(cluster)
        check_round_s(round_s)
        if not 0 <= restart_penalty < 1:
            raise SettingsError(f"restart_penalty is {restart_penalty}, must be from 0 to below 1")
        super().__init__()
        self.round_s, self.restart_penalty = round_s, restart_penalty
        self.cluster = cluster.copy()
        self.placer = Placer(self.cluster)
        self.held: dict[str, Allocation] = {}
        self.pins: dict[str, Allocation] = {}
        self.edit_clock = EditClock()
        self._model = Model(sense="max")
        self._capacity = {kind: self.cluster.capacity(kind) for kind in self.cluster.types}
        for kind, gpus in self._capacity.items():
            self._model.add_resource(kind, gpus)
        self.session = Session(self._model, settings)
        self.entries: dict[str, JobEntry] = {}
        self._templates: dict[tuple[Option, ...], tuple[Template, int]] = {}  # each with the number of jobs that use it
        self._stale: set[str] = set()  # jobs whose worths must be updated before the next solve
        self._fixed: set[str] = set()

    @property
    def model(self) -> Model:
        """The LP's model."""
        return self._model

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job, rates: Rates | None = None, weight: float = 1.0) -> None:
        """Add a job.

        Parameters
        ----------
        job : Job
        rates : mapping of GPU type to {GPUs: units per second}, optional
            By default, the requested number of GPUs is equally fast on every type.
        weight : float
            Above zero.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If its id is already known; if it cannot run anywhere.
        """
        with self.edit_clock:
            if job.id in self.entries:
                raise DuplicateJobError(f"job {job.id!r} is there already; remove it first")
            if job.reservation is not None:
                raise InvalidJobError(f"job {job.id!r}: this policy takes no reservations; pin the job instead")
            self._add(job, rates if rates is not None else default_rates(job, self.cluster.types), weight)

    def update_job(self, job_id: str, **what_changed: Any) -> None:
        """Update a job's measured ``rates`` and ``weight``; progress, restarts and hints are ignored."""
        with self.edit_clock:
            entry = self._entry(job_id)
            check_facts(job_id, what_changed, FACTS)
            rates, weight = what_changed.get("rates"), what_changed.get("weight")
            if rates is not None:
                self._replace(entry, rates, entry.weight if weight is None else weight)
            elif weight is not None:
                entry.weight = self._weight(job_id, weight)
                self._stale.add(job_id)

    def remove_job(self, job_id: str) -> None:
        """Delete a job; raises UnknownJobError if its id is unknown."""
        with self.edit_clock:
            self._drop(self._entry(job_id))
            self.held.pop(job_id, None)
            self.pins.pop(job_id, None)

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Add `count` GPUs of a known type as whole nodes; `nodes` are their ids (generated by default)."""
        with self.edit_clock:
            if self.cluster.add_whole_nodes(gpu_type, count, nodes):
                self._recount(gpu_type)

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        """Remove `count` GPUs of a type as whole nodes (the newest, unless named); jobs on them are re-planned.

        Raises CapacityInUseError if a pinned job is on one of them, or fewer GPUs exist.
        """
        with self.edit_clock:
            doomed = self.cluster.choose_whole_nodes(gpu_type, count, nodes)
            for job_id in jobs_on(doomed, self.pins):
                raise CapacityInUseError(
                    f"cannot remove nodes of type {gpu_type!r}: job {job_id!r} is pinned to one; unpin it first"
                )
            for job_id in jobs_on(doomed, self.held):
                del self.held[job_id]
                self._stale.add(job_id)
            self.cluster.remove_nodes(doomed)
            self._recount(gpu_type)

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        """Pin a job to exactly this allocation; None ends the pin.

        Raises InvalidClusterError or InvalidJobError if its nodes do not exist or it is not one of the job's options,
        and CapacityInUseError if pinned jobs use the nodes.
        """
        with self.edit_clock:
            entry = self._entry(job_id)
            self._stale.add(job_id)
            if allocation is None:
                self.pins.pop(job_id, None)
                return
            kind = self.cluster.type_of(allocation.gpu_type)
            check_nodes(job_id, allocation, {node.id for node in self.cluster.nodes_of(kind.name)})
            if (allocation.gpu_type, allocation.gpus) not in entry.options:
                raise InvalidJobError(
                    f"cannot pin job {job_id!r}: {allocation.gpus} {allocation.gpu_type!r} GPUs are none of its options"
                )
            used: dict[str, int] = {}
            for other, pin in self.pins.items():
                for node, gpus in pin.nodes if other != job_id else ():
                    used[node] = used.get(node, 0) + gpus
            require_free(job_id, allocation, kind.gpus_per_node, used)
            self.pins[job_id] = self.held[job_id] = allocation

    def hold(self, job_id: str, allocation: Allocation | None) -> None:
        """Set a job's current allocation if it differs from the last plan; the next plan may change it."""
        with self.edit_clock:
            self._entry(job_id)
            if self.held.get(job_id) != allocation:
                self._stale.add(job_id)
            if allocation is None:
                self.held.pop(job_id, None)
            else:
                self.held[job_id] = allocation

    # The round ----------------------------------------------------------------------------------------------------

    @by_deadline
    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Plan the round that starts at `now_s`: solve the LP, round to an integer plan, assign nodes."""
        clock, edit_s = StageClock(), self.edit_clock.seconds
        self.edit_clock.reset()
        kept = {job_id: held for job_id, held in self.held.items() if self._stays(job_id, held)}
        fixed = that_stay(self.cluster, self.pins, kept)
        self._fix(fixed)
        self._refresh()
        clock.end("edit")
        chosen = self.session.solve_integer(deadline_s=deadline_s)
        solution = self.session.last_solution
        clock.end("solve")
        self.show(solution, edit_s + clock.total_s)
        clock.end("observe")
        wanted: dict[str, Option] = {}
        for job_id, entry in self.entries.items():
            column = chosen.column(job_id) if chosen else None
            if column is not None:
                wanted[job_id] = entry.options[column]
        if not chosen:
            wanted = {job_id: (held.gpu_type, held.gpus) for job_id, held in {**self.held, **fixed}.items()}
        clock.end("shim")
        now = placed(self.placer, wanted, self.held, fixed)
        clock.end("place")
        objective = sum(self._worth_of(job_id, held) for job_id, held in now.items())
        before, self.held = self.held, now
        self._stale.update(j for j in {*before, *now} if before.get(j) != now.get(j) and j in self.entries)
        # The gap is that of the bound that prices prove; a search's bound, if better, counts for the status only.
        plan = plan_between(before, now, objective, max(solution.bound if solution else chosen.bound, objective))
        optimal = solution is not None and solution.status is Status.OPTIMAL
        return replace(
            plan,
            prices={kind: solution.price(kind) for kind in self._capacity} if solution is not None else {},
            fractional_jobs=chosen.fractional_requests,
            skipped={j: FITS_NOWHERE for j, e in self.entries.items() if not self._fits(e)},
            status=status_of(relative_gap(objective, max(chosen.bound, objective)), optimal),
            timings={**clock.seconds, "edit": edit_s + clock.seconds["edit"]},
        )

    def kept_plan(self, now_s: float) -> Plan:
        """Return the last plan without the jobs that have gone, which takes no time."""
        before, self.held = self.held, that_fit(self.cluster, self.held, self.pins)
        self._stale.update(job_id for job_id in before.keys() - self.held.keys() if job_id in self.entries)
        edit_s = self.edit_clock.seconds
        self.edit_clock.reset()
        return kept_between(before, self.held, timings={"edit": edit_s})

    # Inside -------------------------------------------------------------------------------------------------------

    def _entry(self, job_id: str) -> JobEntry:
        try:
            return self.entries[job_id]
        except KeyError:
            raise UnknownJobError(f"job {job_id!r} is not known: never added, or removed already") from None

    @staticmethod
    def _weight(job_id: str, weight: float) -> float:
        if not (isfinite(weight) and weight > 0):
            raise InvalidDataError(f"job {job_id!r}: weight is {weight}, must be finite and > 0")
        return float(weight)

    def _checked(self, job: Job, rates: Rates, weight: float) -> JobEntry:
        options = {
            option: rate
            for option, rate in options_of(job, checked_rates(job.id, rates)).items()
            if option[0] in self._capacity
        }
        if not options:
            raise InvalidJobError(
                f"job {job.id!r}: no throughput above zero on a GPU type of the cluster "
                f"({', '.join(self._capacity)}) within its range of GPUs; give one"
            )
        return JobEntry.of(job, self._weight(job.id, weight), options)

    def _add(self, job: Job, rates: Rates, weight: float) -> None:
        self._hang(self._checked(job, rates, weight))

    def _hang(self, entry: JobEntry) -> None:
        """Add a job's columns to the model."""
        template, users = self._templates.get(entry.options, (None, 0))
        if template is None:
            usage = {
                kind: [float(gpus) if name == kind else 0.0 for name, gpus in entry.options]
                for kind in dict.fromkeys(name for name, _ in entry.options)
            }
            template = self._model.add_template(usage)
        self._templates[entry.options] = (template, users + 1)
        job_id = entry.job.id
        worth = entry.worth(self._capacity, self._held_option(job_id), self.restart_penalty)
        self._model.add_request(job_id, worth, template=template, integer=True)
        self.entries[job_id] = entry

    def _drop(self, entry: JobEntry) -> None:
        """Remove a job's columns from the model."""
        self._model.remove_request(entry.job.id)
        template, users = self._templates[entry.options]
        if users > 1:
            self._templates[entry.options] = (template, users - 1)
        else:
            del self._templates[entry.options]
            self._model.drop_template(template)
        del self.entries[entry.job.id]
        self._stale.discard(entry.job.id)
        self._fixed.discard(entry.job.id)

    def _replace(self, before: JobEntry, rates: Rates, weight: float) -> None:
        """Set a job's rates: new costs if its options stay the same, otherwise new columns."""
        entry = self._checked(before.job, rates, weight)
        job_id = entry.job.id
        pin = self.pins.get(job_id)
        if pin is not None and (pin.gpu_type, pin.gpus) not in entry.options:
            raise InvalidJobError(
                f"job {job_id!r} is pinned to {pin.gpus} {pin.gpu_type!r} GPUs, on which it would have no throughput; "
                "unpin it first"
            )
        if entry.options == before.options:
            self.entries[job_id] = entry
            self._stale.add(job_id)
        else:
            place = list(self.entries)
            self._drop(before)
            self._hang(entry)
            if place[-1] != job_id:  # plans list jobs in the order of arrival
                self.entries = {each: self.entries[each] for each in place}

    def _held_option(self, job_id: str) -> Option | None:
        held = self.held.get(job_id)
        return None if held is None else (held.gpu_type, held.gpus)

    def _recount(self, gpu_type: str) -> None:
        """Update the LP after a change of one type's nodes."""
        before, now = self._capacity[gpu_type], self.cluster.capacity(gpu_type)
        self._capacity[gpu_type] = now
        self._model.set_count(gpu_type, now)
        low, high = sorted((before, now))
        for job_id, entry in self.entries.items():
            if any(kind == gpu_type and low < gpus <= high for kind, gpus in entry.options):
                self._stale.add(job_id)

    def _fix(self, wanted: dict[str, Allocation]) -> None:
        """Fix these jobs' columns in the model, and free all others."""
        for job_id in self._fixed - wanted.keys():
            self._model.unfix(job_id)
        self._fixed &= wanted.keys()
        for job_id, held in wanted.items():
            column = self.entries[job_id].options.index((held.gpu_type, held.gpus))
            if self._model.fixed(job_id) != column:
                self._model.fix(job_id, column)
            self._fixed.add(job_id)

    def _refresh(self) -> None:
        """Update the worths that have changed since the last solve."""
        ids = sorted(self._stale)
        if ids:
            entries = [self.entries[job_id] for job_id in ids]
            worths = [
                entry.worth(self._capacity, self._held_option(entry.job.id), self.restart_penalty) for entry in entries
            ]
            self._model.update_costs(ids, worths)
        self._stale.clear()

    def _worth_of(self, job_id: str, held: Allocation) -> float:
        entry = self.entries[job_id]
        return float(self._model.cost(job_id)[entry.options.index((held.gpu_type, held.gpus))])

    def _stays(self, job_id: str, held: Allocation) -> bool:
        """Whether a job must keep its allocation: it is not preemptible, and it can run there as far as rates are
        known.
        """
        entry = self.entries[job_id]
        return not entry.job.preemptible and (held.gpu_type, held.gpus) in entry.options

    def _fits(self, entry: JobEntry) -> bool:
        return any(gpus <= self._capacity[kind] for kind, gpus in entry.options)
