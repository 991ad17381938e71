"""Capacity rows besides those of GPU types: the placement guarantee on odd nodes, and tenants' quotas (S7, S8)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import SettingsError
from copter_frontends.vocabulary import Configuration

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SharedRow:
    """sum over jobs and configurations of usage x <= limit.

    Attributes
    ----------
    key : hashable
        Name of the model's resource.
    usage : float64 array (n,)
        Usage of each configuration.
    limit : int
        Initial limit.
    gpu_type : str or None
        GPU type whose nodes give the limit; None for a quota.
    node_gpus, per_node : int
        GPUs of a node of the type, and its contribution to the limit.
    tenant : str or None
        Tenant whose jobs count in the row; None for all jobs.
    """

    key: Hashable
    usage: Floats
    limit: int
    gpu_type: str | None = None
    node_gpus: int = 1
    per_node: int = 0
    tenant: str | None = None


def placement_rows(
    configurations: Sequence[Configuration], capacity: Mapping[str, int], gpus_per_node: Mapping[str, int]
) -> list[SharedRow]:
    """Return capacity rows that guarantee a placement on nodes of R GPUs if R is not a power of two (S7).

    Let s be a power of two, at most R. A node holds floor(R / s) jobs of s GPUs, so such jobs can use R - R mod s of
    its GPUs. The row of a GPU type and s: the GPUs of all jobs with s or more GPUs are at most R - R mod s times the
    number of nodes, where a job on whole nodes counts as R - R mod s GPUs per node. If R mod s equals R mod (s / 2),
    other rows imply this one, and it is left out; if R is a power of two there are no rows.

    Parameters
    ----------
    configurations : sequence of Configuration
        Configurations, one for each entry of a row's usage.
    capacity, gpus_per_node : mapping of GPU type to int
        Total GPUs of each type, and R.
    """
    result: list[SharedRow] = []
    for kind, size in gpus_per_node.items():
        nodes = capacity[kind] // size
        for block in (2**k for k in range(1, size.bit_length())):
            if size % block == size % (block // 2):
                continue
            useful = size - size % block
            usage = [_usage(place, block, size, useful) if place.gpu_type == kind else 0 for place in configurations]
            row = np.array(usage, dtype=np.float64)
            result.append(SharedRow((kind, block), row, nodes * useful, kind, node_gpus=size, per_node=useful))
    return result


def _usage(place: Configuration, block: int, size: int, useful: int) -> int:
    """Return the GPUs that a configuration takes of the parts of nodes usable by jobs of `block` GPUs (S7)."""
    if place.gpus >= size:
        return place.gpus // size * useful
    return place.gpus if place.gpus >= block else 0


def quota_rows(configurations: Sequence[Configuration], quotas: Mapping[str, int]) -> list[SharedRow]:
    """Return one row per tenant with a quota: the GPUs of its jobs on all types (S8)."""
    gpus = np.array([place.gpus for place in configurations], dtype=np.float64)
    return [SharedRow(("quota", name), gpus, count, tenant=name) for name, count in quotas.items()]


def check_quotas(quotas: Mapping[str, int]) -> dict[str, int]:
    """Return the quotas; raises SettingsError unless each is a whole number of GPUs >= 0."""
    for tenant, count in quotas.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise SettingsError(f"the quota of tenant {tenant!r} is {count!r}, must be a whole number of GPUs >= 0")
    return dict(quotas)
