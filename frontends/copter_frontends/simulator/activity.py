"""Record of the GPUs that each job had over time, for the activity chart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
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
        self.spans: list[tuple[str, float, float, str, int]] = []  # as in Span, which takes longer to make
        self._open: dict[str, tuple[float, str, int]] = {}

    def begin_all(self, jobs: Iterable[str], now_s: float, allocations: Iterable[Allocation]) -> None:
        """Note that jobs have these GPUs from now on; their previous spans end."""
        jobs = list(jobs)
        self.end_all(filter(self._open.__contains__, jobs), repeat(now_s))
        given = [(now_s, allocation.gpu_type, allocation.gpus) for allocation in allocations]
        self._open.update(zip(jobs, given, strict=True))

    def end_all(self, jobs: Iterable[str], now_s: Iterable[float]) -> None:
        """Note the times at which jobs have no GPUs any more."""
        still, spans = self._open, self.spans
        for job, end_s in zip(jobs, now_s, strict=False):
            had = still.pop(job, None)
            if had is not None and end_s > had[0] and len(spans) < MOST_SPANS:
                spans.append((job, had[0], end_s, had[1], had[2]))

    def until(self, now_s: float) -> tuple[Span, ...]:
        """Return all spans; open ones end at `now_s`."""
        still = [Span(job, begin_s, now_s, kind, gpus) for job, (begin_s, kind, gpus) in self._open.items()]
        return (*map(Span._make, self.spans), *(span for span in still if now_s > span.begin_s))
