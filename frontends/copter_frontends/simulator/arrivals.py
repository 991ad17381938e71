"""Joining of submitted jobs: at the next round, or after they have been profiled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from copter_frontends.simulator.job_table import JobTable
from copter_frontends.simulator.occupancy import Changes
from copter_frontends.simulator.profiling import ProfilingQueue
from copter_frontends.simulator.training import Training
from copter_frontends.vocabulary import Allocation, FrontendError, Job
from copter_frontends.vocabulary.semantics import Semantics


class Arrivals:
    """The jobs of a table that have not joined yet.

    Parameters
    ----------
    table : JobTable
    semantics : Semantics
    capacity : mapping of GPU type to int
    round_s : float
    """

    def __init__(self, table: JobTable, semantics: Semantics, capacity: Mapping[str, int], round_s: float) -> None:
        self._table, self._next = table, 0  # rows from this one on have not been submitted
        shared = semantics.profiling_share is not None
        self._queue = ProfilingQueue(capacity, semantics, round_s) if shared else None
        alone = semantics.profiling == "bootstrap" and not shared
        self._wait_s = semantics.profiling_s * len(semantics.profiling_runs) if alone else 0.0
        self._profiled: list[int] = []  # rows that have been submitted and are being profiled, in order of arrival

    @property
    def left(self) -> int:
        """Number of jobs that have not joined."""
        return len(self._table) - self._next + len(self._profiled) + (0 if self._queue is None else len(self._queue))

    def joining(self, now_s: float, training: Training, add_probe: Callable[[Job], None]) -> list[int]:
        """Return the rows that join now, and add probes for jobs that wait to be profiled."""
        table, first, queue = self._table, self._next, self._queue
        while self._next < len(table) and table.submit_s[self._next] <= now_s:
            self._next += 1
        if queue is None:
            return self._after_profiling(range(first, self._next), now_s, training)
        for row in range(first, self._next):
            queue.enter(row, table.jobs[row], training.profiled_on(row))
        for probe in queue.new_probes():
            try:
                add_probe(probe)
            except FrontendError:
                queue.refused(probe.id)
        return queue.take_ready()

    def _after_profiling(self, submitted: Iterable[int], now_s: float, training: Training) -> list[int]:
        """Return the rows that need no profiling, or whose profiling has ended, in order of arrival."""
        if not self._wait_s:
            return list(submitted)
        at_once: list[int] = []
        for row in submitted:
            (self._profiled if training.profiled_on(row) else at_once).append(row)
        ended = [row for row in self._profiled if self._table.submit_s[row] + self._wait_s <= now_s]
        self._profiled = self._profiled[len(ended) :]
        return sorted([*at_once, *ended])

    def with_probes(self, active: Collection[str]) -> Collection[str]:
        """Return the ids that a plan may contain."""
        return active if self._queue is None else {*active, *self._queue.probes}

    def without_probes(self, active: Collection[str], changes: Changes) -> Changes:
        """Return a plan's changes without the changes of probes."""
        return changes if self._queue is None else changes.of(active)

    def end_round(self, allocations: Mapping[str, Allocation]) -> list[str]:
        """Record a round with these allocations; returns the ids of finished probes."""
        return [] if self._queue is None else self._queue.end_round(allocations)
