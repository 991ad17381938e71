"""Sia's LP on the differential model: one request per job, one column per configuration, one resource per GPU type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from copter import Model, Session, Settings, Solution
from copter_frontends.goodput import GoodputModel, application_of
from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.semantics import DEFAULT, Semantics
from copter_frontends.sia.column_sets import ColumnSets
from copter_frontends.sia.estimator import HintedGoodput
from copter_frontends.sia.job_book import IDLE, JobBook, JobState
from copter_frontends.sia.objective import INVALID_VALUE, SiaObjective, restart_factor
from copter_frontends.vocabulary import (
    Allocation,
    Configuration,
    InvalidClusterError,
    InvalidJobError,
    Job,
    UnknownGpuTypeError,
)

Floats = NDArray[np.float64]

TIE_STEP = 1e-4  # value of one place in the preferred order of types: far below a rounded digit, far above 1e-6
STAY_STEPS = 5  # more than the places of types and sizes can make up for, which is 4
TIE_SPREAD, TIE_TURN = (
    0.25,
    25,
)  # steps fall by up to this share in order of arrival, over so many jobs
LEAST_FACTOR = 1e-3  # restart factors below this are sent as whole arrays, not as a scale


class SiaFormulation:
    """max sum v_ic x_ic; sum_c x_ic <= 1 for every job; sum_ic n_ck x_ic <= N_k for every GPU type (S5).

    Parameters
    ----------
    configurations : sequence of Configuration
        Of the cluster; a job has a column for each that its limits can ever let it run on.
    capacity : mapping of GPU type to int
    goodput : GoodputModel
        Over the same configurations.
    semantics : Semantics
        Limits of what a job may have.
    estimator : HintedGoodput, optional
        Where jobs' goodput is known from their hints only, over the same configurations.

    Attributes
    ----------
    stranded : set of str
        Jobs that can run on nothing that is there now; they wait for capacity to come back.
    """

    def __init__(
        self,
        configurations: Sequence[Configuration],
        capacity: dict[str, int],
        goodput: GoodputModel,
        objective: SiaObjective,
        settings: Settings,
        semantics: Semantics = DEFAULT,
        estimator: HintedGoodput | None = None,
    ) -> None:
        self.semantics, self.estimator = semantics, estimator
        self.configurations = tuple(configurations)
        self.goodput = goodput
        self.objective = objective
        self.types = tuple(capacity)
        self.gpus: NDArray[np.int64] = np.array([c.gpus for c in configurations], dtype=np.int64)
        index = {name: k for k, name in enumerate(self.types)}
        self.kind: NDArray[np.int64] = np.array([index[c.gpu_type] for c in configurations], dtype=np.int64)
        self.column_of = {(c.gpu_type, c.gpus): j for j, c in enumerate(configurations)}
        self.model = Model(sense="max")
        for name, count in capacity.items():
            self.model.add_resources(name, count)
        self.column_sets = ColumnSets(self.gpus, self.kind, self.types)
        self.session = Session(self.model, settings)
        self.jobs = JobBook()
        self.stranded: set[str] = set()
        self._arrivals = 0
        self._lives: dict[tuple[object, ...], NDArray[np.bool_]] = {}
        self._bases: dict[tuple[object, ...], tuple[Floats, float]] = {}

        nodes = np.array([c.nodes for c in configurations])
        most = np.array([semantics.max_nodes.get(c.gpu_type, np.inf) for c in configurations])
        self.allowed: NDArray[np.bool_] = (nodes <= most) & (self.gpus <= (semantics.max_gpus or np.inf))
        self.preference = self._preference()
        self.fits: NDArray[np.bool_] = self.allowed.copy()
        self._follow_capacity()

    # Edits --------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job, may_wait: bool = False) -> None:
        """Add a job's columns.

        Raises
        ------
        DuplicateJobError, InvalidJobError
            If its id is known; if it fits nowhere now, unless it `may_wait` for capacity to come back.
        """
        self.jobs.require_new(job.id)
        application = self.goodput.applications[application_of(job.application, self.goodput.applications).name]
        state = JobState(job, application.policy_restart_s, np.empty(0), 0.0)
        state.tie_scale += TIE_SPREAD * (1.0 - self._arrivals % TIE_TURN / TIE_TURN)
        self._arrivals += 1
        if may_wait:
            self._rebase(state)
        else:
            state.base, state.smallest = self._base(state)
        state.own_scale, state.own_offset = state.scale, state.offset = self.objective.scale_and_offset(1.0)
        result = self.column_sets.of(self._live(job), self.model)
        state.columns, state.local = result.columns, result.local
        self.model.add_request(job.id, self._whole(state, 1.0), template=result.template, integer=True)
        state.clamped = True
        self.jobs[job.id] = state

    def remove_job(self, job_id: str) -> None:
        """Take a job's columns out; UnknownJobError."""
        self.state(job_id)
        self.model.remove_request(job_id)
        del self.jobs[job_id]
        self.stranded.discard(job_id)

    def update_job(
        self,
        job_id: str,
        progress: float | None = None,
        restarts: int | None = None,
        hints: TrainingHints | None = None,
    ) -> None:
        """Take in how far a job is, how often it has restarted, and what it has seen of itself."""
        state = self.state(job_id)
        if restarts is not None:
            state.restarts = restarts
        outdated = hints is not None and self.estimator is not None
        if outdated:
            state.hints = hints
        if progress is not None:
            phase = self.goodput.phase(state.job.application, progress)
            outdated = outdated or (phase != state.phase and self.estimator is None)
            state.progress, state.phase = progress, phase
        if outdated:
            self._rebase(state)

    def pin(self, job_id: str, column: int) -> None:
        """Fix a job on a column; IDLE frees it."""
        state = self.state(job_id)
        if column != state.pinned:
            if column == IDLE:
                self.model.unfix(job_id)
            else:
                self.model.fix(job_id, self._column_of(job_id, state, column))
            state.pinned = column

    def place(self, job_id: str, column: int) -> None:
        """Say which configuration a job now has (IDLE: none)."""
        state = self.state(job_id)
        if column == state.column:
            return
        if column != IDLE:
            self._column_of(job_id, state, column)
        state.column, state.stale = column, True
        if column != IDLE and self.gpus[column] > state.most_gpus:
            state.most_gpus = int(self.gpus[column])
            if self.semantics.growth is not None and self.estimator is None:
                self._rebase(state)

    def place_all(self, column_of: Mapping[str, int]) -> None:
        """Say which configuration every job now has; jobs that are absent have none."""
        for job_id in self.jobs:
            self.place(job_id, column_of.get(job_id, IDLE))

    def add_gpus(self, gpu_type: str, count: int) -> None:
        """Add GPUs of a type (at most as many as its largest configuration foresees)."""
        self.model.add_resources(gpu_type, count)
        self._follow_capacity()

    def remove_gpus(self, gpu_type: str, count: int) -> None:
        """Take GPUs of a type away; a configuration larger than what is left is no option any more."""
        self.model.remove_resources(gpu_type, count)
        self._follow_capacity()

    def _follow_capacity(self) -> None:
        """Bring the jobs' bases up to date where capacity rules configurations in or out."""
        capacity = np.array([self.model.count(name) for name in self.types])
        fits = self.allowed & (self.gpus <= capacity[self.kind])
        if np.array_equal(fits, self.fits):
            return
        self.fits = fits
        self._bases.clear()
        for state in self.jobs.values():
            self._rebase(state)

    def state(self, job_id: str) -> JobState:
        """What is known of a job; UnknownJobError."""
        return self.jobs.state(job_id)

    def column_for(self, job_id: str, allocation: Allocation) -> int:
        """Number of an allocation's configuration.

        Raises
        ------
        UnknownGpuTypeError, InvalidClusterError
            If its type is not the cluster's; if it is no configuration.
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
        """Bring every job's values up to date: restart factors move with age, bases with training (S3-S4).

        A running job costs one scale and one exception (its present configuration); the whole array is sent only when
        its base changed or the least value cuts in.
        """
        changed: list[tuple[str, float, float, int, float]] = []
        for job_id, state in self.jobs.items():
            running = state.column != IDLE
            if not running and not state.stale:
                continue
            factor = (
                restart_factor(now_s - state.job.submit_s, state.restarts, state.restart_cost_s) if running else 1.0
            )
            if state.stale or factor != state.factor:
                changed.append(self._refresh(job_id, state, factor))
        if changed:
            jobs, scales, offsets, columns, values = (list(each) for each in zip(*changed, strict=True))
            self.model.rescale_costs(jobs, scales, offsets, columns, values)

    def _refresh(self, job_id: str, state: JobState, factor: float) -> tuple[str, float, float, int, float]:
        """Bring one job's values up to date; return its scale and offset, and its exception."""
        scale, offset = self.objective.scale_and_offset(factor)
        offset += state.bonus
        state.scale, state.offset = scale, offset
        state.own_scale, own_offset = self.objective.scale_and_offset(1.0)
        state.own_offset = own_offset + state.bonus
        floor = self.objective.least_value
        clamped = not self.objective.plain or factor < LEAST_FACTOR
        clamped = clamped or (floor is not None and scale * state.smallest + offset < floor)
        if clamped:
            self.model.update_cost(job_id, self._whole(state, factor))
            scale, offset = 1.0, 0.0
        elif state.stale or state.clamped:
            self.model.update_cost(job_id, self._filled(state.base, offset)[state.columns])
        state.factor, state.clamped, state.stale = factor, clamped, False
        running = state.column != IDLE
        if not running:
            return job_id, scale, offset, IDLE, 0.0
        return job_id, scale, offset, int(state.local[state.column]), self.value(job_id, state.column)

    def share_time(self, bonuses: Mapping[str, float]) -> None:
        """Take in each job's time-sharing bonus (S10)."""
        for job_id, bonus in bonuses.items():
            state = self.state(job_id)
            if bonus != state.bonus:
                state.bonus, state.stale = bonus, True

    def solve(self, deadline_s: float | None = None) -> Solution:
        """Solve the LP from where the last round left it."""
        return self.session.solve(deadline_s=deadline_s)

    def value(self, job_id: str, column: int) -> float:
        """v of a job in a configuration at this round's restart factor."""
        state = self.jobs[job_id]
        base = float(state.base[column])
        if base != base:  # NaN: the job cannot run there
            return INVALID_VALUE
        own = column == state.column
        term = (state.own_scale if own else state.scale) * base
        if not self.objective.plain:
            term = float(self.objective.finished(np.array([term]))[0])
        value = term + (state.own_offset if own else state.offset)
        if self.objective.least_value is not None:
            value = max(value, self.objective.least_value)
        if own and self.semantics.prefer_stay:
            value += STAY_STEPS * TIE_STEP * state.tie_scale
        return value + state.tie_scale * float(self.preference[column])

    def values(self, job_id: str) -> Floats:
        """v of a job in every configuration, (n,), a new array."""
        result = np.full(len(self.gpus), INVALID_VALUE)
        result[self.jobs[job_id].columns] = self.model.cost(job_id)
        return result

    # Inside -------------------------------------------------------------------------------------------------------

    def _filled(self, base: Floats, offset: float) -> Floats:
        """The base with invalid configurations so low that no restart factor in use gives them a positive value."""
        least_scale = min(1.0, LEAST_FACTOR ** max(self.objective.power, 0.0))
        return np.where(np.isnan(base), -(1.0 + abs(offset)) / least_scale, base)

    def _whole(self, state: JobState, factor: float) -> Floats:
        """Values of the job's columns at one restart factor, ties broken."""
        base = state.base[state.columns]
        values = self.objective.values(base, factor, state.bonus)
        return np.where(np.isnan(base), values, values + state.tie_scale * self.preference[state.columns])

    def _preference(self) -> Floats:
        """Far less than a rounded digit for each configuration, by its type's place in the preferred order."""
        order = list(self.semantics.prefer_types)
        rank = {name: len(order) - i for i, name in enumerate(order)}
        places = np.array([rank.get(self.types[kind], 0) for kind in self.kind.tolist()], dtype=np.float64)
        return TIE_STEP * (places - (self.gpus / self.gpus.max() if self.semantics.prefer_few else 0.0))

    def _rebase(self, state: JobState) -> None:
        """Bring a job's base up to date, as its phase, its hints, or what it may have changed."""
        try:
            state.base, state.smallest = self._base(state)
            self.stranded.discard(state.job.id)
        except InvalidJobError:
            state.base, state.smallest = np.full(len(self.gpus), np.nan), np.inf
            self.stranded.add(state.job.id)
        state.stale = True

    def _base(self, state: JobState) -> tuple[Floats, float]:
        """Base of a job's values and its smallest usable entry; shared by jobs alike where all is known of them."""
        job = state.job
        if self.estimator is not None:
            return self._normalised(job, self._held(job, self.estimator.row(job, state.hints)), state.most_gpus)
        phase = self.goodput.phase(job.application, state.progress)
        key = (job.shape, phase, job.min_gpus, job.max_gpus, state.most_gpus if self.semantics.growth else 0)
        if key not in self._bases:
            self._bases[key] = self._normalised(job, self.goodput.job_row(job, state.progress), state.most_gpus)
        return self._bases[key]

    def _normalised(self, job: Job, row: Floats, most_gpus: int) -> tuple[Floats, float]:
        """S1 and S2 of a row of goodput."""
        valid = self._valid(job)
        if self.estimator is None and self.semantics.growth is not None and job.gpus is None:
            valid = valid & self._grown(job, valid & (row > 0), most_gpus)
        usable = np.flatnonzero(valid & (row > 0))
        least = self._replica(job, int(usable[np.argmin(row[usable])])) if len(usable) else 1
        base = self.objective.base(job.id, row, valid, least)
        return base, float(np.nanmin(base))

    def _grown(self, job: Job, usable: NDArray[np.bool_], most_gpus: int) -> NDArray[np.bool_]:
        """Configurations within the growth limit: the smallest, and up to a multiple of the most so far."""
        smallest = self.gpus[usable].min(initial=1)
        return np.asarray(self.gpus <= max((self.semantics.growth or 1) * most_gpus, smallest, job.min_gpus))

    def _replica(self, job: Job, column: int) -> int:
        """N_i^min of S1: the GPUs below which the job does not run, on the type of a configuration."""
        pipeline = self.goodput.applications[job.application].pipeline
        own = pipeline.stages.get(self.configurations[column].gpu_type, 1) if pipeline else 1
        return job.gpus or max(job.min_gpus, own)

    def _held(self, job: Job, row: Floats) -> Floats:
        """Zero but for what a job of fixed GPUs is given."""
        return row if job.gpus is None else np.where(self.goodput.holds(job.gpus), row, 0.0)

    def _live(self, job: Job) -> NDArray[np.bool_]:
        """Configurations that the job's limits and its application's batch sizes can ever let it run on."""
        within = self.allowed & (self.gpus >= job.min_gpus)
        if job.max_gpus is not None:
            within &= self.gpus <= job.max_gpus
        if self.estimator is not None:
            return within
        key = (job.shape, job.min_gpus, job.max_gpus)
        if key not in self._lives:
            self._lives[key] = within & (self.goodput.job_row(job, 0.0) > 0)
        return self._lives[key]

    def _column_of(self, job_id: str, state: JobState, column: int) -> int:
        """The job's own column of a configuration; InvalidJobError where it has none."""
        result = int(state.local[column])
        if result < 0:
            place = self.configurations[column]
            raise InvalidJobError(f"job {job_id!r}: it cannot run on {place.gpus} GPUs of {place.gpu_type!r}")
        return result

    def _valid(self, job: Job) -> NDArray[np.bool_]:
        """Configurations within the cluster's capacity, the semantics' limits and the job's own."""
        valid = self.fits & (self.gpus >= job.min_gpus)
        return valid if job.max_gpus is None else valid & (self.gpus <= job.max_gpus)
