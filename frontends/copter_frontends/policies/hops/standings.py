"""Waiting time and progress of each job, from which the queue's priorities follow (HP19)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter, is_

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.hops.draft import Present
from copter_frontends.policies.hops.formulation import NONE
from copter_frontends.policies.hops.job_book import JobBook
from copter_frontends.policies.hops.latency_ratio import LEAST, LatencyQueue, Priority, Standing
from copter_frontends.policy_kit import BookedService, ServiceBook
from copter_frontends.vocabulary import Job

Floats = NDArray[np.float64]
_ROW = attrgetter("row")


class Standings:
    """Waiting times and estimated progress of the jobs, and the resulting queue.

    Parameters
    ----------
    book : JobBook
    priority : {"lr", "las", "sjf", "srtf", "ftf"}

    Attributes
    ----------
    queue : LatencyQueue
    """

    def __init__(self, book: JobBook, priority: Priority) -> None:
        self.book, self.queue = book, LatencyQueue(priority)
        self._done: dict[str, float] = {}  # estimated progress, for priorities that depend on the remaining work
        self._updated_s = 0.0

    def remove(self, job: Job, service: BookedService, now_s: float | None) -> None:
        """Delete a job; its latency ratio at `now_s` counts for the recent average if a plan has been made."""
        known = self.queue.values.pop(job.id, None) is not None
        if job.id in self.book.age_s and now_s is not None:
            wait_s = max(self._updated_s - job.submit_s - service.executed_s, 0.0) if known else 0.0
            self.queue.ended(now_s, wait_s / self.book.age_s[job.id])
        self._done.pop(job.id, None)

    def update(
        self,
        now_s: float,
        jobs: Mapping[str, Job],
        service: Mapping[str, BookedService],
        services: ServiceBook,
        running: Iterable[str],
        present: Mapping[str, Present],
    ) -> None:
        """Update waits, progress and priorities to `now_s`.

        Parameters
        ----------
        now_s : float
        jobs : mapping of job id to Job
        service : mapping of job id to BookedService
        services : ServiceBook
            The book of these.
        running : iterable of job ids
            Jobs with GPUs in the last plan; they are assumed to have run at the estimated speed since then.
        present : mapping of job id to Present
            The jobs' current GPUs; from them the progress of `running` since the last update is estimated.
        """
        ages, order = self.book.age_s, self.queue
        elapsed_s, self._updated_s = max(now_s - self._updated_s, 0.0), now_s
        known = jobs if len(ages) == len(jobs) else [job_id for job_id in jobs if job_id in ages]

        def waits(ids: Collection[str]) -> Floats:
            every = service.values() if ids is jobs else map(service.__getitem__, ids)
            rows = np.fromiter(map(_ROW, every), dtype=np.int64, count=len(ids))
            return np.maximum(now_s - services.submit_s[rows] - services.executed_s[rows], 0.0)

        def ratios(ids: Collection[str]) -> list[float]:
            aligned = ids is jobs and all(map(is_, ages, jobs))  # as they are where none was forgotten in between
            every = ages.values() if aligned else map(ages.__getitem__, ids)
            age_s = np.fromiter(every, dtype=np.float64, count=len(ids))
            found: list[float] = (waits(ids) / np.maximum(age_s, LEAST)).tolist()
            return found

        if order.priority == "lr":  # waiting over age, of all jobs, in every plan; progress does not count
            order.renew(now_s, known, ratios)
            return
        self._note_progress(elapsed_s, running, present)

        def standing(job_id: str) -> Standing:
            had, age_s = service[job_id], ages[job_id]
            left = 1.0 - max(had.progress, self._done.get(job_id, 0.0))
            wanted = self.book.requirements[job_id]
            return Standing(
                wait_s=float(waits([job_id])[0]),
                age_s=age_s,
                left_s=age_s * left,
                served_gpu_s=had.gpu_s,
                run_s=had.executed_s,
                share_gpus=self.book.gpus / max(len(jobs), 1),
                mean_gpus=wanted.mean,
                most_gpus=wanted.sizes[-1],
            )

        order.refresh(now_s, known, standing)

    def priorities(self) -> Collection[float]:
        """Return the priorities of the jobs that can run, in any order."""
        values, offers = self.queue.values, self.book.offers
        if len(values) == len(offers):  # every job with offers has a priority
            return values.values()
        return [value for job_id, value in values.items() if job_id in offers]

    def order(self, ids: Iterable[str], jobs: Mapping[str, Job]) -> list[str]:
        """Return those of the jobs that can run, highest priority first."""
        there = list(filter(self.book.offers.__contains__, ids))
        return self.queue.order(dict(zip(there, map(jobs.__getitem__, there), strict=True)))

    def _note_progress(self, elapsed_s: float, running: Iterable[str], present: Mapping[str, Present]) -> None:
        """Add what running jobs have done at their estimated speed."""
        for job_id in running:
            offers, here = self.book.offers.get(job_id), present.get(job_id)
            if offers is not None and here is not None and here.column != NONE:
                share = elapsed_s * offers.base * float(offers.gain[here.column]) / self.book.work[job_id]
                self._done[job_id] = min(self._done.get(job_id, 0.0) + share, 1.0)
