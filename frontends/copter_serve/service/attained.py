"""GPU time of each job, counted as plans come into force and passed to later schedulers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from copter_frontends.vocabulary import Attained


class Had(NamedTuple):
    """One job's GPU time up to `since_s`, in total (`gpu_s`) and `by_type`; since then it holds `gpus` GPUs of type
    `kind`.
    """

    since_s: float
    kind: str
    gpus: int
    gpu_s: float
    by_type: Mapping[str, float]

    def until(self, now_s: float) -> Had:
        """Return the record with the time up to `now_s` added."""
        passed_s = max(now_s - self.since_s, 0.0)
        if not self.gpus or not passed_s:
            return self
        seconds = {**self.by_type, self.kind: self.by_type.get(self.kind, 0.0) + passed_s}
        return Had(now_s, self.kind, self.gpus, self.gpu_s + self.gpus * passed_s, seconds)


class AttainedBook:
    """The GPU time of a cluster's jobs; a job's record is updated only when its allocation changes."""

    def __init__(self) -> None:
        self.jobs: dict[str, Had] = {}

    def give(self, job_id: str, given: Mapping[str, Any], now_s: float) -> None:
        """Record that a job has this allocation from now on."""
        had = self.jobs.get(job_id, Had(now_s, "", 0, 0.0, {})).until(now_s)
        self.jobs[job_id] = Had(now_s, given["gpu_type"], given["gpus"], had.gpu_s, had.by_type)

    def end(self, job_id: str, now_s: float) -> None:
        """Record that a job has no GPUs from now on."""
        had = self.jobs.get(job_id)
        if had is not None and had.gpus:
            had = had.until(now_s)
            self.jobs[job_id] = Had(now_s, "", 0, had.gpu_s, had.by_type)

    def forget(self, job_ids: Collection[str]) -> None:
        """Forget removed jobs."""
        for job_id in job_ids:
            self.jobs.pop(job_id, None)

    def at(self, now_s: float) -> dict[str, Attained]:
        """Return the GPU time up to `now_s` of every job that ever had GPUs."""
        found = {}
        for job_id, had in self.jobs.items():
            now = had.until(now_s)
            waiting_s = 0.0 if now.gpus else max(now_s - now.since_s, 0.0)
            found[job_id] = Attained(now.gpu_s, waiting_s, dict(now.by_type))
        return found
