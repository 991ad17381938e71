"""Record of the GPUs that each job had over time, for the activity chart."""

from __future__ import annotations

from dataclasses import dataclass

MOST_SPANS = 200_000  # most spans of activity that are kept


@dataclass(frozen=True, slots=True)
class Span:
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

    def begin(self, job: str, now_s: float, gpu_type: str, gpus: int) -> None:
        """Note that a job has these GPUs from now on; its previous span ends."""
        if job in self._open:
            self.end(job, now_s)
        self._open[job] = (now_s, gpu_type, gpus)

    def end(self, job: str, now_s: float) -> None:
        """Note that a job has no GPUs any more."""
        had = self._open.pop(job, None)
        if had is not None and now_s > had[0] and len(self.spans) < MOST_SPANS:
            self.spans.append(Span(job, had[0], now_s, had[1], had[2]))

    def until(self, now_s: float) -> tuple[Span, ...]:
        """Return all spans; open ones end at `now_s`."""
        still = [Span(job, begin_s, now_s, kind, gpus) for job, (begin_s, kind, gpus) in self._open.items()]
        return (*self.spans, *(span for span in still if now_s > span.begin_s))
