"""The service window: the head of the queue that may be served, and its adjustment for fragments (HP22, HP23)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def service_window(order: Sequence[str], smallest: Mapping[str, int], gpus: int) -> list[str]:
    """Return the shortest prefix of the queue whose smallest requirements sum to at least all GPUs.

    Parameters
    ----------
    order : sequence of job ids
        Highest priority first.
    smallest : mapping of job id to int
        R_1 of each job.
    gpus : int
        GPUs to be planned.
    """
    result: list[str] = []
    total = 0
    for job in order:
        if total >= gpus:
            break
        result.append(job)
        total += smallest[job]
    return result


def adjust_for_sensitivity(
    order: Sequence[str],
    window: Sequence[str],
    smallest: Mapping[str, int],
    sensitivity: Mapping[str, float],
    idle_gpus: int,
) -> list[str]:
    """Add later jobs that lose little when spread, until the window's mean sensitivity is at most the queue's.

    Jobs after the window are visited in the queue's order; a job is added if its sensitivity is below the queue's mean
    and it needs fewer GPUs than are idle.
    """
    result = list(window)
    if not order or not window:
        return result
    mean = sum(sensitivity[job] for job in order) / len(order)
    total, inside = sum(sensitivity[job] for job in result), set(window)
    for job in order:
        if total / len(result) <= mean:
            break
        if job not in inside and sensitivity[job] < mean and smallest[job] < idle_gpus:
            result.append(job)
            total += sensitivity[job]
    return result
