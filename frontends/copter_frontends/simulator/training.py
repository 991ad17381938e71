"""Training of jobs between two plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from copter_frontends.simulator.execution import advance
from copter_frontends.simulator.job_table import Floats, Ints, JobTable
from copter_frontends.simulator.rates import RateTable
from copter_frontends.vocabulary import Allocation, SchedulingPolicy

TOLD_LOADS = 20  # data loads of each running job reported per round to a policy with `learns_loading`


class Training(Protocol):
    """Interface: trains jobs from one plan to the next; a job is a row of the simulation's table."""

    def arrive(self, row: int) -> Mapping[str, Any]:
        """Add a job; returns the facts for its policy (arguments of ``update_job``)."""

    def profiled_on(self, row: int) -> Sequence[str]:
        """Return the GPU types on which a job is profiled before it joins, if profiling takes GPUs."""

    def begin_all(self, rows: Ints, allocations: Sequence[Allocation]) -> None:
        """Note that jobs get GPUs or change them."""

    def halt_all(self, rows: Ints) -> None:
        """Note that jobs lose their GPUs."""

    def leave(self, row: int) -> None:
        """Note that a job has ended or was removed."""

    def fall_back(self, row: int) -> None:
        """Return a job to its last checkpoint, the start of its phase, after a node failure."""

    def advance(self, running: Ints, begin_s: float, end_s: float) -> tuple[Ints, Ints]:
        """Train the running jobs; returns the rows that changed without completing, and those that completed."""

    def news(self, row: int) -> Mapping[str, Any]:
        """Return facts for the policy about a changed job (fields of ``update_job``)."""

    def news_of(self, rows: Ints) -> list[dict[str, Any]]:
        """Return :meth:`news` of each of these jobs, in dictionaries that the caller may change."""

    def progress_of(self, rows: Ints) -> list[float] | None:
        """Return the progress of these jobs, if that is all their news; None if there is more."""


@runtime_checkable
class MeasuredTraining(Protocol):
    """Interface of training whose speed a policy may observe."""

    def rates(self, rows: Ints) -> Floats:
        """Return current samples per second of jobs with GPUs, (k,)."""


@runtime_checkable
class LoadingTraining(Protocol):
    """Interface of training whose data-loading times a policy may observe."""

    def loads(self, row: int, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return some ``loads`` of a job on its GPUs, and ``waits`` on several; empty if unknown."""


@runtime_checkable
class DrawnLoads(Protocol):
    """Interface of an application's facts that can draw data loads."""

    def draw_loads(self, gpu_type: str, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw seconds of `count` loads and of the corresponding waits for slower processes."""


def observed_facts(
    policy: SchedulingPolicy, training: Training, table: JobTable, running: Ints, span: tuple[float, float], seed: int
) -> list[tuple[int, dict[str, Any]]]:
    """Yield (row, facts for ``update_job``) of the jobs that train in a round of this span, for a policy that learns.

    Drawn loads depend on seed, round and job only.
    """
    if not (policy.learns and isinstance(training, MeasuredTraining)):
        return []
    rows = running[table.resume_s[running] < span[1]]
    told = [(row, {"observed": rate}) for row, rate in zip(rows.tolist(), training.rates(rows).tolist(), strict=True)]
    if policy.learns_loading and isinstance(training, LoadingTraining):
        for row, facts in told:
            facts |= training.loads(row, np.random.default_rng((seed, int(span[0]), row)))
    return told


def drop_observed(facts: dict[str, Any]) -> None:
    """Delete observations of a job that has lost its GPUs."""
    for name in ("observed", "loads", "waits"):
        facts.pop(name, None)


def rows_with_news(policy: SchedulingPolicy, table: JobTable, running: Ints, changed: Ints) -> Ints:
    """Return the jobs to report to the policy after a round: changed ones, or all that ran if it follows them."""
    return running[np.isnan(table.completion_s[running])] if policy.follows else changed


class ExactTraining:
    """Trains jobs at the goodput model's rates, exactly: progress is integrated over phases and up to completion.

    Loads are drawn for the applications whose `facts` are :class:`DrawnLoads`.
    """

    def __init__(self, table: JobTable, rates: RateTable, facts: Mapping[str, object] | None = None) -> None:
        self._table, self._rates, self._facts = table, rates, facts or {}
        self._draws: dict[str, bool] = {}  # whether an application's facts draw loads: to ask a protocol takes long
        self._where: dict[int, tuple[str, int]] = {}  # GPU type and number of GPUs of jobs whose loads can be drawn

    def arrive(self, row: int) -> Mapping[str, Any]:
        """Return no facts: the policy's own model has all of them."""
        return {}

    def profiled_on(self, row: int) -> Sequence[str]:
        """Return an empty sequence: everything is known."""
        return ()

    def begin_all(self, rows: Ints, allocations: Sequence[Allocation]) -> None:
        """Look up the jobs' rate curves."""
        jobs, curve, draws = self._table.jobs, self._rates.curve, self._draws
        at = rows.tolist()
        self._table.curve[rows] = [curve(jobs[row], each) for row, each in zip(at, allocations, strict=True)]
        for row, allocation in zip(at, allocations, strict=True):
            application = jobs[row].application
            if application not in draws:
                draws[application] = isinstance(self._facts.get(application), DrawnLoads)
            if draws[application]:
                self._where[row] = (allocation.gpu_type, allocation.gpus)

    def halt_all(self, rows: Ints) -> None:
        """Note that the jobs in these rows of the table have lost their GPUs and make no progress."""
        self._table.curve[rows] = -1
        if self._where:
            for row in rows.tolist():
                self._where.pop(row, None)

    def leave(self, row: int) -> None:
        """Do nothing: a job without GPUs has no state besides its row."""

    def fall_back(self, row: int) -> None:
        """Return the job to the start of its phase."""
        phase = int(self._table.phase[row])
        ends = self._rates.phase_ends[self._table.application[row]]
        self._table.progress[row] = ends[phase - 1] if phase else 0.0

    def advance(self, running: Ints, begin_s: float, end_s: float) -> tuple[Ints, Ints]:
        """Train the running jobs from `begin_s` to `end_s`; returns as :func:`.execution.advance` does."""
        return advance(self._table, self._rates, running, begin_s, end_s)

    def rates(self, rows: Ints) -> Floats:
        """Return samples per second in each job's present phase, with the slowdown included, (k,)."""
        return self._rates.rates(self._table.curve[rows], self._table.phase[rows])

    def loads(self, row: int, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return some loads on a job's GPUs, with waits if there are several."""
        facts = self._facts.get(self._table.jobs[row].application)
        if row not in self._where or not isinstance(facts, DrawnLoads):
            return {}
        kind, gpus = self._where[row]
        loads, waits = facts.draw_loads(kind, TOLD_LOADS, rng)
        return {"loads": loads.tolist()} | ({"waits": waits.tolist()} if gpus > 1 else {})

    def news(self, row: int) -> Mapping[str, Any]:
        """Return the job's progress."""
        return {"progress": float(self._table.progress[row])}

    def news_of(self, rows: Ints) -> list[dict[str, Any]]:
        """Return the jobs' progress."""
        return [{"progress": progress} for progress in self._table.progress[rows].tolist()]

    def progress_of(self, rows: Ints) -> list[float]:
        """Return the jobs' progress."""
        found: list[float] = self._table.progress[rows].tolist()
        return found
