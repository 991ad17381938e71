"""Measured times of training, kept so that similar jobs need no profile (docs/papers/chronus.md, C21)."""

from __future__ import annotations

from math import isfinite, log2

from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.vocabulary import Job

MOST_COUNTED = 20  # a mean over so many measurements; later ones replace a share of it, so that old ones fade

Key = tuple[str, object, int | None, str, int]


class SeenTimes:
    """Seconds per unit of work that were measured, by model, batch size, GPU type and GPUs.

    A job with its own goodput function is a model of its own.
    """

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[float, int]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def note(self, job: Job, gpu_type: str, gpus: int, seconds: float) -> None:
        """Add a measurement, which is averaged with the earlier ones; raises InvalidDataError if it is not > 0."""
        if not (isfinite(seconds) and seconds > 0):
            raise InvalidDataError(
                f"job {job.id!r}: {seconds} s per unit of work on {gpus} {gpu_type}, must be finite and > 0"
            )
        key = _key(job, gpu_type, gpus)
        mean, count = self._seen.get(key, (0.0, 0))
        count = min(count + 1, MOST_COUNTED)
        self._seen[key] = (mean + (seconds - mean) / count, count)

    def seconds(self, job: Job, gpu_type: str, gpus: int) -> float | None:
        """Return the measured seconds per unit of work on exactly these GPUs; None if they were not measured."""
        known = self._seen.get(_key(job, gpu_type, gpus))
        return None if known is None else known[0]

    def estimate(self, job: Job, gpu_type: str, gpus: int, node_gpus: int) -> float | None:
        """Return the seconds per unit of work as measured, or extrapolated from one and two nodes; None if unknown.

        An iteration on n nodes has n times the work of one on a single node.
        """
        known = self.seconds(job, gpu_type, gpus)
        if known is not None or gpus <= node_gpus:
            return known
        one, two = (self.seconds(job, gpu_type, nodes * node_gpus) for nodes in (1, 2))
        if one is None or two is None:
            return None
        iteration_s = iteration_time(one, 2.0 * two, -(-gpus // node_gpus))
        return iteration_s * node_gpus / gpus if iteration_s > 0 else None


def iteration_time(one_node_s: float, two_nodes_s: float, nodes: int) -> float:
    """Return the seconds of an iteration on n nodes: t_n = t_1 + log2(n) (t_2 - t_1)."""
    if nodes < 1:
        raise SettingsError(f"nodes is {nodes}, must be >= 1")
    return one_node_s + log2(nodes) * (two_nodes_s - one_node_s)


def _key(job: Job, gpu_type: str, gpus: int) -> Key:
    own = job.own_goodput
    batch = job.max_batch_size if job.batch_size is None else job.batch_size
    return (job.application, own, batch, gpu_type, gpus)
