"""Waiting time and progress of each job, from which the queue's priorities follow (HP19)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from copter_frontends.hops.drafting import Drafting
from copter_frontends.hops.formulation import NONE
from copter_frontends.hops.job_book import JobBook
from copter_frontends.hops.latency_ratio import LEAST, LatencyQueue, Priority, Standing
from copter_frontends.policy_kit import Service
from copter_frontends.vocabulary import Job


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
        self._waits: dict[str, float] = {}
        self._done: dict[str, float] = {}
        self._updated_s = 0.0

    def remove(self, job_id: str, now_s: float | None) -> None:
        """Delete a job; its latency ratio at `now_s` counts for the recent average if a plan has been made."""
        if job_id in self.book.age_s and now_s is not None:
            self.queue.ended(now_s, self._waits.get(job_id, 0.0) / self.book.age_s[job_id])
        self._waits.pop(job_id, None)
        self._done.pop(job_id, None)

    def update(
        self,
        now_s: float,
        jobs: Mapping[str, Job],
        service: Mapping[str, Service],
        running: Iterable[str],
        drafting: Drafting,
    ) -> None:
        """Update waits, progress and priorities to `now_s`.

        Parameters
        ----------
        now_s : float
        jobs : mapping of job id to Job
        service : mapping of job id to Service
        running : iterable of job ids
            Jobs with GPUs in the last plan; they are assumed to have run at the estimated speed since then.
        drafting : Drafting
            Knows the jobs' current GPUs.
        """
        elapsed_s, self._updated_s = max(now_s - self._updated_s, 0.0), now_s
        for job_id in running:
            offers = self.book.offers.get(job_id)
            column = NONE if offers is None else drafting.present_column(offers, drafting.held.get(job_id))
            if offers is not None and column != NONE:
                share = elapsed_s * offers.base * float(offers.gain[column]) / self.book.work[job_id]
                self._done[job_id] = min(self._done.get(job_id, 0.0) + share, 1.0)
        self._waits = {
            job_id: max(now_s - job.submit_s - service[job_id].executed_s, 0.0) for job_id, job in jobs.items()
        }

        def standing(job_id: str) -> Standing:
            had, age_s = service[job_id], self.book.age_s[job_id]
            left = 1.0 - max(had.progress, self._done.get(job_id, 0.0))
            wanted = self.book.requirements[job_id]
            return Standing(
                wait_s=self._waits[job_id],
                age_s=age_s,
                left_s=age_s * left,
                served_gpu_s=had.gpu_s,
                run_s=had.executed_s,
                share_gpus=self.book.gpus / max(len(jobs), 1),
                mean_gpus=wanted.mean,
                most_gpus=wanted.sizes[-1],
            )

        known = {job_id: job for job_id, job in jobs.items() if job_id in self.book.age_s}
        if self.queue.priority == "lr":  # latency ratios of all jobs are updated in every plan
            ages = self.book.age_s
            self.queue.renew(now_s, known, lambda job_id: self._waits[job_id] / max(ages[job_id], LEAST))
        else:
            self.queue.refresh(now_s, known, standing)

    def order(self, jobs: Mapping[str, Job]) -> list[str]:
        """Return the ids of the jobs that can run, highest priority first."""
        return [job for job in self.queue.order(jobs) if job in self.book.offers]
