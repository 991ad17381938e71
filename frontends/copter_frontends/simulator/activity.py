"""Record of the GPUs that each job had over time, for the activity chart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from copter_frontends.vocabulary import Allocation

MOST_SPANS = 200_000  # most spans of activity that are kept


class Span(NamedTuple):
    """An uninterrupted period of one job on one allocation, in simulated seconds."""

    job: str
    begin_s: float
    end_s: float
    gpu_type: str
    gpus: int


class Activity:
    """Collects spans as jobs start, change and stop."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._open: dict[str, tuple[float, str, int]] = {}

    def begin_all(self, jobs: Iterable[str], now_s: float, allocations: Iterable[Allocation]) -> None:
        """Note that jobs have these GPUs from now on; their previous spans end."""
        known = self._open
        for job, allocation in zip(jobs, allocations, strict=True):
            if job in known:
                self.end(job, now_s)
            known[job] = (now_s, allocation.gpu_type, allocation.gpus)

    def end(self, job: str, now_s: float) -> None:
        """Note that a job has no GPUs any more."""
        had = self._open.pop(job, None)
        if had is not None and now_s > had[0] and len(self.spans) < MOST_SPANS:
            self.spans.append(Span(job, had[0], now_s, had[1], had[2]))

    def until(self, now_s: float) -> tuple[Span, ...]:
        """Return all spans; open ones end at `now_s`."""
        still = [Span(job, begin_s, now_s, kind, gpus) for job, (begin_s, kind, gpus) in self._open.items()]
        return (*self.spans, *(span for span in still if now_s > span.begin_s))
