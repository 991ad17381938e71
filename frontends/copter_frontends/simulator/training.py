"""How jobs train between two plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from copter_frontends.simulator.execution import advance
from copter_frontends.simulator.job_table import Floats, Ints, JobTable
from copter_frontends.simulator.rates import RateTable
from copter_frontends.vocabulary import Allocation


class Training(Protocol):
    """Trains jobs from one plan to the next; a job is a row of the simulation's table."""

    def arrive(self, row: int) -> Mapping[str, Any]:
        """A job joins; return what its policy is told of it (fields of ``update_job``)."""

    def profiled_on(self, row: int) -> Sequence[str]:
        """GPU types that a job is profiled on before it joins, where profiling takes GPUs."""

    def begin(self, row: int, allocation: Allocation) -> None:
        """A job's allocation begins or changes."""

    def halt(self, row: int) -> None:
        """A job loses its GPUs."""

    def leave(self, row: int) -> None:
        """A job has ended or was removed."""

    def fall_back(self, row: int) -> None:
        """A job's node failed: it goes on from its last checkpoint, the start of its phase."""

    def advance(self, running: Ints, begin_s: float, end_s: float) -> tuple[Ints, Ints]:
        """Train the running jobs; return the rows that changed and have not completed, and those that completed."""

    def news(self, row: int) -> Mapping[str, Any]:
        """What the policy is told of a job that changed (fields of ``update_job``)."""


@runtime_checkable
class MeasuredTraining(Protocol):
    """Training of which a policy may see how fast it is."""

    def rates(self, rows: Ints) -> Floats:
        """Samples per second that jobs with GPUs do now, (k,)."""


def observed_rates(
    policy: object, training: Training, table: JobTable, running: Ints, end_s: float
) -> list[tuple[int, float]]:
    """(row, samples per second) of the jobs that train in a round that ends at `end_s`, for a policy that learns."""
    if not (getattr(policy, "learns", False) and isinstance(training, MeasuredTraining)):
        return []
    rows = running[table.resume_s[running] < end_s]
    return list(zip(rows.tolist(), training.rates(rows).tolist(), strict=True))


def rows_with_news(policy: object, table: JobTable, running: Ints, changed: Ints) -> list[int]:
    """Rows of the jobs of which the policy is told after a round: those that changed, or all that ran if it follows."""
    rows = running[np.isnan(table.completion_s[running])] if getattr(policy, "follows", False) else changed
    return [int(row) for row in rows]


class ExactTraining:
    """At the goodput model's rates, exact over phases and at completion."""

    def __init__(self, table: JobTable, rates: RateTable) -> None:
        self._table, self._rates = table, rates

    def arrive(self, row: int) -> Mapping[str, Any]:
        """No facts: the policy's own model says all."""
        return {}

    def profiled_on(self, row: int) -> Sequence[str]:
        """None: all is known."""
        return ()

    def begin(self, row: int, allocation: Allocation) -> None:
        """Look up the job's rate curve."""
        self._table.curve[row] = self._rates.curve(self._table.jobs[row], allocation)

    def halt(self, row: int) -> None:
        """The job has no rate any more."""
        self._table.curve[row] = -1

    def leave(self, row: int) -> None:
        """Nothing to drop: all that is kept of a job is its row."""
        self.halt(row)

    def fall_back(self, row: int) -> None:
        """To the start of the phase."""
        phase = int(self._table.phase[row])
        ends = self._rates.phase_ends[self._table.application[row]]
        self._table.progress[row] = ends[phase - 1] if phase else 0.0

    def advance(self, running: Ints, begin_s: float, end_s: float) -> tuple[Ints, Ints]:
        """See :func:`.execution.advance`."""
        return advance(self._table, self._rates, running, begin_s, end_s)

    def rates(self, rows: Ints) -> Floats:
        """Samples per second of the phase that each job is in, its slowdown included, (k,)."""
        return self._rates.rates(self._table.curve[rows], self._table.phase[rows])

    def news(self, row: int) -> Mapping[str, Any]:
        """How far the job is."""
        return {"progress": float(self._table.progress[row])}
