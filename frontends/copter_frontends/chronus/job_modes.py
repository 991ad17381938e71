"""Ways to run a job: GPU types and numbers of GPUs, and how long each takes (docs/chronus.md, C2)."""

from __future__ import annotations

from dataclasses import dataclass

from copter_frontends.chronus.job_book import Mode
from copter_frontends.chronus.rounding import friendly_sizes, round_up
from copter_frontends.policy_kit import NodeInventory, Throughputs, requested_gpus
from copter_frontends.vocabulary import Job


@dataclass(frozen=True, slots=True)
class JobModes:
    """Makes the modes of jobs.

    Parameters
    ----------
    nodes : NodeInventory
    throughputs : Throughputs
    round_up, elastic : bool
        As for :class:`.ChronusPolicy`.
    """

    nodes: NodeInventory
    throughputs: Throughputs
    round_up: bool
    elastic: bool

    def remaining_s(self, job: Job, progress: float) -> float:
        """Seconds that a job still takes on its fastest type."""
        gpus = requested_gpus(job)
        rate = max(self.throughputs.rate(job, k, gpus) for k in self.nodes.types)
        left = self.throughputs.work(job) * (1.0 - progress)
        return left / rate if rate > 0 else float("inf")

    def modes_of(self, job: Job) -> tuple[Mode, ...]:
        """Ways to run a job: one per GPU type that runs it and, of an elastic job, a number of GPUs in its range."""
        result = []
        for number, kind in enumerate(self.nodes.types):
            for gpus in self._counts(job, kind):
                rate = self.throughputs.rate(job, kind, gpus)
                if rate > 0:
                    taken = round_up(gpus, self.nodes.node_gpus(kind)) if self.round_up else gpus
                    result.append(Mode(number, gpus, taken, self.throughputs.work(job) / rate))
        return tuple(result)

    def _counts(self, job: Job, kind: str) -> list[int]:
        """What a job asks for, and in elastic mode the sizes of its range that consolidate."""
        wanted, size = requested_gpus(job), self.nodes.node_gpus(kind)
        if not self.elastic or job.gpus is not None:
            return [wanted]
        most = min(job.max_gpus or wanted, self.nodes.capacity(kind))
        sizes = [*friendly_sizes(size), *range(2 * size, most + 1, size)]
        return [wanted, *(gpus for gpus in sizes if job.min_gpus <= gpus <= most and gpus != wanted)]
