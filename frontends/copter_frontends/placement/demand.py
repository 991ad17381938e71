"""Checks of the wanted GPUs before placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import index

from copter_frontends.placement.errors import PlacementError
from copter_frontends.placement.node_table import NodeTable


def counted(wanted: Mapping[str, tuple[str, int]]) -> Counter[tuple[str, int]]:
    """Return how many jobs want each (type, GPUs); PlacementError for a want that is no tuple."""
    try:
        return Counter(wanted.values())
    except TypeError:
        raise PlacementError("every wanted job needs a tuple (gpu_type, gpus), not a list or a mapping") from None


def check_demand(
    wanted: Mapping[str, tuple[str, int]], counts: Mapping[tuple[str, int], int], tables: Mapping[str, NodeTable]
) -> None:
    """Raise unless every job's (type, GPUs) is possible by itself and each type's total fits its capacity.

    `counts` says how many jobs want each.

    Raises
    ------
    PlacementError
        For the first job (by id) of an unknown type or an impossible count, or for an over-committed type.
    """
    complaints = {want: complaint for want, jobs in counts.items() if jobs and (complaint := _complaint(want, tables))}
    if complaints:
        job = min(job for job, want in wanted.items() if want in complaints)
        raise PlacementError(f"job {job!r}: {complaints[wanted[job]]}")
    demand: Counter[str] = Counter()
    for (gpu_type, gpus), jobs in counts.items():
        demand[gpu_type] += gpus * jobs
    for gpu_type, table in tables.items():
        if demand[gpu_type] > table.gpus:
            raise PlacementError(
                f"GPU type {gpu_type!r} is over-committed: the jobs want {demand[gpu_type]} GPUs and its "
                f"{len(table.ids)} nodes have {table.gpus}; want fewer or add nodes"
            )


def _complaint(want: tuple[str, int], tables: Mapping[str, NodeTable]) -> str:
    """Return what is wrong with one wanted (type, GPUs), in words; an empty string if nothing is."""
    try:
        gpu_type, gpus = want[0], index(want[1])
    except (TypeError, IndexError):
        return f"wants {want!r}, must be a tuple (gpu_type, whole number of GPUs)"
    table = tables.get(gpu_type)
    if table is None:
        return f"unknown GPU type {gpu_type!r}; the cluster has: {', '.join(sorted(tables)) or 'none'}"
    if gpus < 1:
        return f"wants {gpus} GPUs of {gpu_type!r}, must be >= 1; leave a job without GPUs out"
    size = table.gpus_per_node
    if gpus > size and gpus % size:
        return (
            f"wants {gpus} GPUs of {gpu_type!r}, which is neither below a node's {size} GPUs nor whole nodes; "
            f"charge it whole nodes: {gpus // size * size} or {-(-gpus // size) * size} GPUs"
        )
    return ""
