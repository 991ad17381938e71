"""Assignment of GPUs without regard to their types, and the jobs that can then run (docs/papers/baselines.md, B23)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from copter_frontends.policy_kit import Wanted
from copter_frontends.vocabulary import Allocation


def give_blindly(
    ranking: Sequence[str],
    gpus: Mapping[str, int],
    room: Mapping[str, int],
    held: Mapping[str, Allocation],
    runs_on: Callable[[str, str], bool],
) -> Wanted:
    """Assign GPUs to jobs as if all were of one type; each job then runs on the type of most of its GPUs.

    Parameters
    ----------
    ranking : sequence of job id
        Jobs, best first; they are chosen while they fit into the GPUs of all types together.
    gpus : mapping of job id to int
        Requested GPUs of each job.
    room : mapping of GPU type to int
        Free GPUs of each type, in the cluster's order.
    held : mapping of job id to Allocation
        Current allocations; chosen jobs keep theirs.
    runs_on : callable (job id, GPU type) -> bool
        Whether a job could run on the type of an otherwise empty cluster; other types are not considered.

    Returns
    -------
    dict of job id to (GPU type, GPUs)
        Allocations of the jobs that fit on their type; the others get nothing in this round, and their GPUs idle.
    """
    total, chosen = sum(room.values()), []
    for job_id in ranking:
        if gpus[job_id] <= total:
            total -= gpus[job_id]
            chosen.append(job_id)
    left = dict(room)
    given: Wanted = {}
    for job_id in chosen:
        had = held.get(job_id)
        if had is not None and had.gpus == gpus[job_id] <= left[had.gpu_type]:
            left[had.gpu_type] -= had.gpus
            given[job_id] = (had.gpu_type, had.gpus)
    line = [kind for kind, count in left.items() for _ in range(count)]
    for job_id in sorted((j for j in chosen if j not in given), key=lambda j: -gpus[j]):
        mine, line = line[: gpus[job_id]], line[gpus[job_id] :]
        could = [kind for kind in left if runs_on(job_id, kind)]
        kind = max(could, key=mine.count, default=None)
        if kind is not None and gpus[job_id] <= left[kind]:
            left[kind] -= gpus[job_id]
            given[job_id] = (kind, gpus[job_id])
    return given
