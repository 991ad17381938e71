"""Sia's LP on the differential model: one request per job, one column per configuration, one resource per GPU type."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter import Model, Session, Settings, Solution
from copter.runtime.errors import SettingsError
from copter_frontends.goodput import application_of
from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.policies.sia.column_sets import ColumnSet, ColumnSets
from copter_frontends.policies.sia.estimator import HintedGoodput
from copter_frontends.policies.sia.job_bases import Base, JobBases
from copter_frontends.policies.sia.job_book import IDLE, NUMBERS, JobBook, JobState
from copter_frontends.policies.sia.joining import Joining
from copter_frontends.policies.sia.objective import INVALID_VALUE, SiaObjective, restart_factors
from copter_frontends.policies.sia.shared_rows import SharedRow
from copter_frontends.simulator.goodput_source import GoodputSource
from copter_frontends.vocabulary import (
    Allocation,
    Configuration,
    InvalidClusterError,
    InvalidJobError,
    Job,
    UnknownGpuTypeError,
    UnknownJobError,
)
from copter_frontends.vocabulary.semantics import DEFAULT, Semantics

Floats = NDArray[np.float64]
Standing = tuple[list[JobState], list[tuple[int, int, int, Floats, Floats]], NDArray[Any], set[str], dict[str, int]]

TIE_STEP = 1e-4  # value of one position in the preferred order of types: far below a rounded digit, far above 1e-6
STAY_STEPS = 5  # steps for staying: more than all preferences of types and sizes together, which are 4
TIE_SPREAD, TIE_TURN = (
    0.25,
    25,
)  # steps decrease by up to this share in order of arrival, over this number of jobs
# factor between priority classes; for p < 0 it exceeds the ratio of any two values of one class (S9)
PRIORITY_FACTOR = 100.0
NO_VALUES, NO_COLUMNS = np.zeros(0), np.zeros(0, dtype=np.int32)
LIVE_BASE = attrgetter("live_base")
LEAST_FACTOR = 1e-3  # jobs with smaller restart factors are sent as whole arrays, not as a scale


class SiaFormulation:
    """The program max sum v_ic x_ic; sum_c x_ic <= 1 per job; sum_ic n_ck x_ic <= N_k per GPU type (S5).

    Parameters
    ----------
    configurations : sequence of Configuration
        Configurations of the cluster; a job has a column for each on which its limits may allow it to run.
    capacity : mapping of GPU type to int
    goodput : GoodputSource
        Goodput model over the same configurations.
    semantics : Semantics
        Limits of what a job may have.
    estimator : HintedGoodput, optional
        Estimator over the same configurations, if jobs' goodput is known from hints only.
    rows : sequence of SharedRow
        Capacity rows in addition to those of the GPU types.
    priority_factor : float
        Worth of a priority class relative to the class below.

    Attributes
    ----------
    stranded : set of str
        Jobs that cannot run on the present capacity and wait for more.
    arrivals : int
        Jobs added so far, on whose number the ties of the next ones depend.
    """

    def __init__(
        self,
        configurations: Sequence[Configuration],
        capacity: dict[str, int],
        goodput: GoodputSource,
        objective: SiaObjective,
        settings: Settings,
        semantics: Semantics = DEFAULT,
        estimator: HintedGoodput | None = None,
        rows: Sequence[SharedRow] = (),
        priority_factor: float = PRIORITY_FACTOR,
    ) -> None:
        self.semantics, self.estimator = semantics, estimator
        self.rows, self.priority_factor = tuple(rows), priority_factor
        self.configurations = tuple(configurations)
        self.goodput = goodput
        self.objective = objective
        self.types = tuple(capacity)
        self.quotas: dict[str | None, int] = {row.tenant: int(row.limit) for row in self.rows if row.tenant is not None}
        self.bases = JobBases(configurations, self.types, goodput, objective, semantics, estimator, self.quotas)
        self.gpus, self.kind = self.bases.gpus, self.bases.kind
        self.sizes = [(c.gpu_type, c.gpus) for c in configurations]
        self.column_of = {size: j for j, size in enumerate(self.sizes)}
        self._model = Model(sense="max")
        for name, count in capacity.items():
            self._model.add_resource(name, count)
        for row in self.rows:
            self._model.add_resource(row.key, row.limit)
        self.column_sets = ColumnSets(self.gpus, self.kind, self.types, self.rows)
        self._joining = Joining(self._model)
        self.session = Session(self._model, settings)
        self.jobs = JobBook()
        self.stranded: set[str] = set()
        self.arrivals = 0
        self._phases: dict[str, tuple[list[float], int]] = {}
        self.preference = self._preference()
        self.has_preference = bool(self.preference.any())
        self._follow_capacity()

    @property
    def model(self) -> Model:
        """The LP's model, with all current jobs."""
        self._joining.carry_out()
        return self._model

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job, may_wait: bool = False) -> None:
        """Add a job's columns.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If the id is already known; if the job fits nowhere at present, unless it `may_wait` for capacity.
        """
        self.add_jobs((job,), may_wait)

    def add_jobs(self, jobs: Sequence[Job], may_wait: bool = False) -> None:
        """Do :meth:`add_job` for each job; on an error none is added."""
        if not jobs:
            return
        self.jobs.require_new_all([job.id for job in jobs])
        states, bases, sets, stranded = list[JobState](), list[Base](), list[ColumnSet](), list[str]()
        of_limits = dict[tuple[int, tuple[int, ...]], ColumnSet]()  # -1, a goodput of a job's own, is not among them
        for job, row in zip(jobs, self.jobs.new_rows(len(jobs)), strict=True):
            application_of(job.application, self.goodput.applications)
            rows = tuple(at for at, each in enumerate(self.rows) if each.tenant in (None, job.tenant))
            limits, live = self.bases.numbered(job)
            own = of_limits.get((limits, rows))
            columns = np.flatnonzero(live) if own is None else own.columns
            state = JobState(job, row, NO_VALUES, columns, NO_VALUES, NO_COLUMNS, limits, rows)
            state.ends, state.phase = self._phases_of(job.application)
            base = self._base_of(state, may_wait)
            if base is None:
                base = self._nowhere(state)
                stranded.append(job.id)
            if own is None:
                own = self.column_sets.of(live, self._model, rows)
                if limits >= 0:
                    of_limits[limits, rows] = own
            state.base, state.live_base, state.columns, state.local = base.values, base.live, own.columns, own.local
            states.append(state)
            bases.append(base)
            sets.append(own)
        worths = [self._worth(job) for job in jobs]
        turns = np.arange(self.arrivals, self.arrivals + len(jobs)) % TIE_TURN
        tie_scales = 1.0 + TIE_SPREAD * (1.0 - turns / TIE_TURN)
        values = list(map(self._first_values, states, worths, tie_scales.tolist()))
        self._joining.add_all([job.id for job in jobs], [own.template for own in sets], values)
        numbers = np.zeros(len(jobs), dtype=NUMBERS)
        numbers["submit_s"], numbers["restart_cost_s"] = [job.submit_s for job in jobs], self._restarts_s(jobs)
        numbers["worth"], numbers["tie_scale"] = worths, tie_scales
        numbers["factor"], numbers["column"], numbers["own_local"], numbers["pinned"] = 1.0, IDLE, IDLE, IDLE
        numbers["scale"], numbers["offset"] = self.objective.scale_and_offset(1.0)
        numbers["smallest"], numbers["holed"] = [base.smallest for base in bases], [base.holed for base in bases]
        numbers["rebased"] = numbers["clamped"] = True
        self.jobs.keep_all(states, numbers)
        self.stranded.update(stranded)
        self.arrivals += len(jobs)

    def remove_job(self, job_id: str) -> None:
        """Remove a job's columns; raises UnknownJobError."""
        self.remove_jobs((job_id,))

    def remove_jobs(self, job_ids: Sequence[str]) -> None:
        """Do :meth:`remove_job` for each job; if one is unknown or named twice, none is removed."""
        self.jobs.states(job_ids)
        if len(set(job_ids)) < len(job_ids):
            raise UnknownJobError(f"of {len(job_ids)} jobs to be removed some are named twice")
        for job_id in job_ids:
            self._joining.remove(job_id)
            self.jobs.forget(job_id)
        self.stranded.difference_update(job_ids)

    def update_job(
        self,
        job_id: str,
        progress: float | None = None,
        restarts: int | None = None,
        hints: TrainingHints | None = None,
    ) -> None:
        """Set a job's progress, number of restarts, and hints."""
        state = self.state(job_id)
        if restarts is not None:
            self.jobs.restarted(state.row, restarts)
        outdated = hints is not None and self.estimator is not None
        if outdated:
            state.hints = hints
        if progress is not None:
            phase = bisect_right(state.ends, progress)
            known = self.estimator is None or state.job.own_goodput is not None
            outdated = outdated or (phase != state.phase and known)
            state.progress, state.phase = progress, phase
        if outdated:
            self._rebase(state)

    def note_progress(self, progress: Mapping[str, float]) -> None:
        """Call :meth:`update_job` for jobs of which only the progress changes; progress is from 0 to 1.

        Raises UnknownJobError, and nothing is changed, if an id is unknown.
        """
        known, growth = self.bases.known, self.semantics.growth
        states, stranded = self.jobs.states(progress), self.stranded
        rows, bases = list[int](), list[Base]()
        for state, done in zip(states, progress.values(), strict=True):
            state.progress, phase = done, bisect_right(state.ends, done)
            if phase != state.phase:
                state.phase = phase
                base = known.get((state.limits, phase, state.most_gpus if growth else 0))
                if base is not None and not stranded:  # as :meth:`_take`, some thousand times a round
                    state.base, _, state.live_base, _ = base
                    rows.append(state.row)
                    bases.append(base)
                elif base is not None:
                    self._take(state, base)
                elif self.estimator is None or state.job.own_goodput is not None:
                    self._rebase(state)
        if rows:
            self._take_all(rows, bases)

    def pin(self, job_id: str, column: int) -> None:
        """Fix a job to a column; IDLE frees it."""
        state = self.state(job_id)
        if column != state.pinned:
            self._joining.fix(job_id, IDLE if column == IDLE else self._column_of(job_id, state, column))
            state.pinned = self.jobs.numbers["pinned"][state.row] = column

    def standing(self, job_ids: Collection[str]) -> Standing:
        """Return where jobs stand, for :meth:`put_back`; raises UnknownJobError."""
        states = self.jobs.states(job_ids)
        each = [(s.column, s.pinned, s.most_gpus, s.base, s.live_base) for s in states]
        numbers = self.jobs.numbers_of(np.array([state.row for state in states], dtype=np.int64))
        return states, each, numbers, self.stranded.intersection(job_ids), self._joining.fixing

    def put_back(self, standing: Standing) -> None:
        """Undo :meth:`pin` and :meth:`place` of jobs since :meth:`standing`."""
        states, each, numbers, stranded, self._joining.fixing = standing
        for state, (column, pinned, most_gpus, base, live_base) in zip(states, each, strict=True):
            state.column, state.pinned, state.most_gpus = column, pinned, most_gpus
            state.base, state.live_base = base, live_base
        rows = self.jobs.rows_of([state.job.id for state in states])
        self.jobs.put(rows, numbers)
        self.stranded |= stranded

    def place(self, job_id: str, column: int) -> None:
        """Set a job's current configuration (IDLE: none)."""
        state = self.state(job_id)
        if column == state.column:
            return
        local = IDLE if column == IDLE else self._column_of(job_id, state, column)
        state.column, numbers = column, self.jobs.numbers[state.row]
        numbers["own_local"], numbers["column"], numbers["stale"] = local, column, True
        numbers["own_base"] = state.base[column] if column != IDLE else 0.0
        if column != IDLE and self.gpus[column] > state.most_gpus:
            state.most_gpus = int(self.gpus[column])
            if self.semantics.growth is not None and self.estimator is None:
                self._rebase(state)

    def place_all(self, column_of: Mapping[str, int]) -> None:
        """Do :meth:`place` for many jobs whose configuration changes."""
        numbers = self.jobs.numbers
        states = self.jobs.states(column_of)
        moved = [(state.job.id, state, column) for state, column in zip(states, column_of.values(), strict=True)]
        if self.semantics.growth is not None and self.estimator is None:  # the growth limit may change bases
            for job_id, _, column in moved:
                self.place(job_id, column)
            return
        rows, changes = [state.row for state in states], []
        for job_id, state, column in moved:
            if column == IDLE:
                changes.append((IDLE, IDLE, 0.0))
            else:
                changes.append((self._column_of(job_id, state, column), column, float(state.base[column])))
                state.most_gpus = max(state.most_gpus, int(self.gpus[column]))
            state.column = column
        if moved:
            for name, values in zip(("own_local", "column", "own_base"), zip(*changes, strict=True), strict=True):
                numbers[name][rows] = values
            numbers["stale"][rows] = True

    def add_gpus(self, gpu_type: str, count: int) -> None:
        """Add GPUs of a type, at most up to its largest configuration."""
        self.model.add_resource(gpu_type, count)
        for row, more in self._rows_of_nodes(gpu_type, count):
            self.model.add_resource(row.key, more)
        self._follow_capacity()

    def remove_gpus(self, gpu_type: str, count: int) -> None:
        """Remove GPUs of a type; configurations larger than the rest become invalid."""
        self.model.remove_units(gpu_type, count)
        for row, less in self._rows_of_nodes(gpu_type, count):
            self.model.remove_units(row.key, less)
        self._follow_capacity()

    def set_quota(self, tenant: str, gpus: int) -> None:
        """Change a tenant's quota; raises SettingsError for a tenant without one."""
        row = next((row for row in self.rows if row.tenant == tenant), None)
        if row is None:
            raise SettingsError(f"tenant {tenant!r} has no quota to change: give it one when the policy is made")
        more = gpus - int(self._model.count(row.key))
        if more > 0:
            self.model.add_resource(row.key, more)
        elif more < 0:
            self.model.remove_units(row.key, -more)
        self.quotas[tenant] = gpus
        for state in self.jobs.values():
            if state.job.tenant == tenant:
                state.limits = self.bases.numbered(state.job)[0]
                self._rebase(state)

    def _rows_of_nodes(self, gpu_type: str, gpus: int) -> list[tuple[SharedRow, int]]:
        """Return the shared rows that these GPUs, as whole nodes, contribute to, with the amounts."""
        return [(row, gpus // row.node_gpus * row.per_node) for row in self.rows if row.gpu_type == gpu_type]

    def _follow_capacity(self) -> None:
        """Update the jobs' bases after a change of capacity, which allows or excludes configurations."""
        if self.bases.follow_capacity(np.array([self._model.count(name) for name in self.types])):
            for state in self.jobs.values():
                self._rebase(state)

    def state(self, job_id: str) -> JobState:
        """Return a job's state; raises UnknownJobError."""
        return self.jobs.state(job_id)

    def column_for(self, job_id: str, allocation: Allocation) -> int:
        """Return the number of an allocation's configuration.

        Raises
        ------
        UnknownGpuTypeError, InvalidClusterError
            If the cluster lacks its type; if it is not a configuration.
        """
        column = self.column_of.get((allocation.gpu_type, allocation.gpus))
        if column is not None:
            return column
        if allocation.gpu_type not in self.types:
            known = ", ".join(sorted(self.types))
            raise UnknownGpuTypeError(f"unknown GPU type {allocation.gpu_type!r}; the cluster has: {known}")
        raise InvalidClusterError(
            f"job {job_id!r}: {allocation.gpus} GPUs of {allocation.gpu_type!r} is no configuration of the cluster"
        )

    # A round ------------------------------------------------------------------------------------------------------

    def refresh_costs(self, now_s: float) -> None:
        """Update every job's values: restart factors change with age, bases with training (S3-S4).

        A running job needs one scale, the least value and one exception (its present configuration). A new base is sent
        once for all jobs that have it. A whole array is sent if values are rounded or clipped, if the least value
        applies to a job with invalid configurations, or if the restart factor is nearly zero.
        """
        rows = self.jobs.rows()
        numbers = self.jobs.numbers_of(rows)
        running = numbers["column"] != IDLE
        factors = np.ones(len(rows))
        submit_s, restarts, cost_s = (numbers[name][running] for name in ("submit_s", "restarts", "restart_cost_s"))
        factors[running] = restart_factors(now_s - submit_s, restarts, cost_s)
        changed = numbers["stale"] | (running & (factors != numbers["factor"]))
        if not changed.any():
            return
        jobs = list(self.jobs)
        if not changed.all():  # where all jobs run, all change
            jobs = list(compress(jobs, changed.tolist()))
            rows, factors = rows[changed], factors[changed]
            numbers = self.jobs.numbers_of(rows)
        scale, offset = self.objective.scales_and_offsets(factors)
        offset += numbers["bonus"]
        floor, holed = self.objective.least_value, numbers["holed"]
        clamped = np.full(len(jobs), not self.objective.plain) | (factors < LEAST_FACTOR)
        if floor is not None:
            clamped |= holed & (scale * numbers["smallest"] + offset < floor)
        outdated = ~clamped & (numbers["clamped"] | numbers["rebased"])
        numbers["factor"], numbers["scale"], numbers["offset"], numbers["clamped"] = factors, scale, offset, clamped
        self._send_whole(jobs, numbers, np.flatnonzero(clamped))
        self._send_bases(jobs, rows, numbers, np.flatnonzero(outdated))
        numbers["own_value"] = own = self._own_values(numbers)
        numbers["stale"] = numbers["rebased"] = False
        self.jobs.put(rows, numbers)
        scales = np.where(clamped, 1.0, scale * numbers["worth"])
        offsets = np.where(clamped, 0.0, offset * numbers["worth"])
        worst = None if floor is None else np.where(clamped | holed, -np.inf, floor * numbers["worth"])
        self.model.rescale_costs(jobs, scales, offsets, numbers["own_local"], own, worst)

    def _send_bases(
        self, jobs: Sequence[str], rows: NDArray[np.int64], numbers: NDArray[Any], which: NDArray[np.int64]
    ) -> None:
        """Send the bases of some of the jobs, one array for those that are alike."""
        places, offset = which.tolist(), numbers["offset"]
        bases = list(map(LIVE_BASE, self.jobs.states_at(rows[which])))
        for at in np.flatnonzero(numbers["holed"][which]).tolist():
            place = places[at]
            bases[at] = self._filled(bases[at].copy(), offset[place : place + 1], [len(bases[at])])
        if bases:
            self.model.update_costs([jobs[place] for place in places], bases)

    def _send_whole(self, jobs: Sequence[str], numbers: NDArray[Any], which: NDArray[np.int64]) -> None:
        """Send the values of some jobs to the model."""
        if len(which) == 0:
            return
        sent, numbers = [self.jobs[jobs[at]] for at in which.tolist()], numbers[which]
        sizes = [len(state.columns) for state in sent]
        base = np.concatenate([state.live_base for state in sent])
        shift = np.repeat(numbers["offset"], sizes)
        flat = self.objective.finished(np.repeat(numbers["scale"], sizes) * base) + shift
        if self.objective.least_value is not None:
            flat = np.maximum(flat, self.objective.least_value)
        if self.has_preference:
            tied = np.repeat(numbers["tie_scale"], sizes)
            flat += tied * np.concatenate([self.preference[state.columns] for state in sent])
        flat *= np.repeat(numbers["worth"], sizes)
        flat[np.isnan(base)] = INVALID_VALUE
        self.model.update_costs([jobs[at] for at in which.tolist()], flat)

    def _own_values(self, numbers: NDArray[Any]) -> Floats:
        """Return the value of each job's current configuration; 0 for jobs without GPUs."""
        base, columns = numbers["own_base"], numbers["column"]
        value = self.objective.finished(base) + (self.objective.scale_and_offset(1.0)[1] + numbers["bonus"])
        if self.objective.least_value is not None:
            value = np.maximum(value, self.objective.least_value)
        steps = self.preference[columns] + (STAY_STEPS * TIE_STEP if self.semantics.prefer_stay else 0.0)
        value = np.where(np.isnan(base), INVALID_VALUE, numbers["worth"] * (value + numbers["tie_scale"] * steps))
        return np.where(columns == IDLE, 0.0, value)

    def share_time(self, bonuses: Mapping[str, float]) -> None:
        """Set each job's time-sharing bonus (S6)."""
        for job_id, bonus in bonuses.items():
            numbers = self.jobs.numbers[self.state(job_id).row]
            if bonus != numbers["bonus"]:
                numbers["bonus"], numbers["stale"], numbers["rebased"] = bonus, True, True

    def solve(self, deadline_s: float | None = None) -> Solution:
        """Solve the LP from the last round's state."""
        self._joining.carry_out()
        return self.session.solve(deadline_s=deadline_s)

    def value(self, job_id: str, column: int) -> float:
        """Return v of a job in a configuration at this round's restart factor."""
        state = self.jobs[job_id]
        numbers = self.jobs.numbers[state.row]
        if column == state.column:
            stale = bool(numbers["stale"])
            return float(self._own_values(self.jobs.numbers[[state.row]])[0] if stale else numbers["own_value"])
        base = float(state.base[column])
        if base != base:  # NaN: the job cannot run there
            return INVALID_VALUE
        term = float(numbers["scale"]) * base
        if not self.objective.plain:
            term = float(self.objective.finished(np.array([term]))[0])
        value = term + float(numbers["offset"])
        if self.objective.least_value is not None:
            value = max(value, self.objective.least_value)
        return float(numbers["worth"]) * (value + float(numbers["tie_scale"]) * float(self.preference[column]))

    def values_of(self, job_ids: Sequence[str], columns: NDArray[np.int64]) -> Floats:
        """Return :meth:`value` of many jobs, each in one configuration, (k,)."""
        states = [self.jobs[job_id] for job_id in job_ids]
        book = self.jobs.numbers
        numbers = book[np.array([state.row for state in states], dtype=np.int64)]
        pairs = zip(states, columns.tolist(), strict=True)
        base = np.array([state.base[column] for state, column in pairs], dtype=np.float64)
        value: Floats = self.objective.finished(numbers["scale"] * base) + numbers["offset"]
        if self.objective.least_value is not None:
            value = np.maximum(value, self.objective.least_value)
        value = numbers["worth"] * (value + numbers["tie_scale"] * self.preference[columns])
        value[np.isnan(base)] = INVALID_VALUE
        own = numbers["column"] == columns
        fresh, stale = own & ~numbers["stale"], own & numbers["stale"]
        value[fresh] = numbers["own_value"][fresh]
        if stale.any():
            value[stale] = self._own_values(numbers[stale])
        return value

    def values(self, job_id: str) -> Floats:
        """Return v of a job in every configuration, (n,), as a new array."""
        result = np.full(len(self.gpus), INVALID_VALUE)
        result[self.jobs[job_id].columns] = self.model.cost(job_id)
        return result

    # Inside -------------------------------------------------------------------------------------------------------

    def _worth(self, job: Job) -> float:
        """Return the factor on all of a job's values (S9); inf on overflow."""
        try:
            return job.weight * self.priority_factor**job.priority
        except OverflowError:
            return np.inf

    def _filled(self, base: Floats, offset: Floats, sizes: Sequence[int]) -> Floats:
        """Return bases in which invalid configurations are so low that no restart factor makes them positive."""
        invalid = np.flatnonzero(np.isnan(base))
        if len(invalid):
            least_scale = min(1.0, LEAST_FACTOR ** max(self.objective.power, 0.0))
            base[invalid] = -(1.0 + np.abs(np.repeat(offset, sizes)[invalid])) / least_scale
        return base

    def _preference(self) -> Floats:
        """Return a tie-breaking value for each configuration, by its type's position in the preferred order."""
        order = list(self.semantics.prefer_types)
        rank = {name: len(order) - i for i, name in enumerate(order)}
        places = np.array([rank.get(self.types[kind], 0) for kind in self.kind.tolist()], dtype=np.float64)
        return TIE_STEP * (places - (self.gpus / self.gpus.max() if self.semantics.prefer_few else 0.0))

    def _first_values(self, state: JobState, worth: float, tie_scale: float) -> Floats:
        """Return the values of the columns of a job without GPUs, with ties broken."""
        values = self.bases.fresh(state)
        if self.has_preference:
            values = values + tie_scale * self.preference[state.columns]
        elif worth == 1.0:
            return values
        return np.where(np.isnan(state.live_base), INVALID_VALUE, worth * values)

    def _base_of(self, state: JobState, may_wait: bool) -> Base | None:
        """Return a job's base; None, or InvalidJobError unless it may wait, if it cannot run anywhere."""
        try:
            return self.bases.of(state)
        except InvalidJobError:
            if not may_wait:
                raise
            return None

    def _nowhere(self, state: JobState) -> Base:
        """Return the base of a job that cannot run anywhere."""
        nowhere = np.full(len(self.gpus), np.nan)
        return Base(nowhere, np.inf, nowhere[state.columns], len(state.columns) > 0)

    def _rebase(self, state: JobState) -> None:
        """Update a job's base after a change of phase, hints or limits."""
        base = self._base_of(state, may_wait=True)
        self._take(state, self._nowhere(state) if base is None else base)
        if base is None:
            self.stranded.add(state.job.id)

    def _take(self, state: JobState, base: Base) -> None:
        """Use these base values for a job from now on; a job that could run nowhere (stranded) can run again."""
        values, smallest, state.live_base, holed = base
        state.base = values
        if self.stranded:
            self.stranded.discard(state.job.id)
        column = state.column
        self.jobs.rebase(state.row, smallest, values.item(column) if column != IDLE else 0.0, holed)

    def _take_all(self, rows: list[int], bases: list[Base]) -> None:
        """Note the bases that the jobs of these rows have from now on."""
        columns = self.jobs.numbers["column"][rows]
        values, smallest, _, holed = zip(*bases, strict=True)
        own = np.array([base.item(column) for base, column in zip(values, columns.tolist(), strict=True)])
        self.jobs.rebase_all(rows, smallest, np.where(columns == IDLE, 0.0, own), holed)

    def _phases_of(self, application: str) -> tuple[list[float], int]:
        """Return the ends of an application's phases without the last one's, a list that jobs share, and the first."""
        known = self._phases.get(application)
        if known is None:
            ends = list[float]()
            while (end := self.goodput.phase_end(application, len(ends))) < 1.0:
                ends.append(end)
            known = self._phases[application] = ends, self.goodput.phase(application, 0.0)
        return known

    def _restarts_s(self, jobs: Sequence[Job]) -> list[float]:
        """Return the seconds that each job's restart takes."""
        facts = self.goodput.applications
        known = {name: facts[name] for name in {job.application for job in jobs}}
        each = {name: float(getattr(own, "policy_restart_s", own.restart_s)) for name, own in known.items()}
        return [each[job.application] for job in jobs]

    def quota(self, tenant: str | None) -> int | None:
        """Return the most GPUs of a tenant's jobs together; None without a quota."""
        return self.quotas.get(tenant)

    def _column_of(self, job_id: str, state: JobState, column: int) -> int:
        """Return the job's own column of a configuration; raises InvalidJobError if it has none."""
        result = int(state.local[column])
        if result < 0:
            place = self.configurations[column]
            raise InvalidJobError(f"job {job_id!r}: it cannot run on {place.gpus} GPUs of {place.gpu_type!r}")
        return result
