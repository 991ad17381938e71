"""The allocations that a job may get, with their gains: the rows of G (section 3.6; HP13, HP14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.hops.errors import ThroughputError
from copter_frontends.policies.hops.requirements import RequirementSet
from copter_frontends.policies.hops.server_groups import ServerGroup, ServerGroups
from copter_frontends.vocabulary import Job

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rate = Callable[[str, int, int, tuple[str, ...]], float]
PACKED, SPREAD = 0, 1


@dataclass(frozen=True, slots=True)
class Offers:
    """A job's columns: (kind, group, size) with their gains.

    Attributes
    ----------
    requirements : RequirementSet
    kind, group, gpus : int64 arrays (n,)
        Kind PACKED: on one server; SPREAD: on several servers, each filled as far as possible. `gpus` is R_k.
    gain : float64 array (n,)
        G_ij: throughput relative to the job's smallest one (HP14).
    base : float
        Samples per second at a gain of 1.
    sensitivity : float
        rho of (10).
    key : bytes
        Equal for jobs whose columns are equal except for the gains.
    """

    requirements: RequirementSet
    kind: Ints
    group: Ints
    gpus: Ints
    gain: Floats
    base: float
    sensitivity: float
    key: bytes

    def scaled(self, factor: Floats) -> Offers:
        """Return the offers for servers that are faster by these factors, (groups,)."""
        rates = self.gain * factor[self.group]
        least = float(rates.min() / self.gain.min())
        return replace(self, gain=rates / least, base=self.base * least)

    def at(self, kind: int, group: int, gpus: int) -> int:
        """Return the column of an offer; -1 if there is none."""
        return _columns_of(self.key).get((kind, group, gpus), -1)

    def of(self, column: int) -> tuple[int, int, int]:
        """Return (kind, group, GPUs) of a column."""
        return _offers_of(self.key)[column]

    def packed_on(self, group: int) -> tuple[tuple[int, int], ...]:
        """Return (GPUs, column) of the offers on one server of a group, in the columns' order."""
        return _packed_of(self.key).get(group, ())


class OfferTable(NamedTuple):
    """The columns of many jobs' offers, those of jobs that share them once.

    Attributes
    ----------
    start : int64 array (jobs,)
        Place of each job's first column.
    kind, group, gpus : int64 arrays (columns,)
    gain : float64 array (columns,)
    """

    start: Ints
    kind: Ints
    group: Ints
    gpus: Ints
    gain: Floats

    @classmethod
    def of(cls, offers: Sequence[Offers]) -> OfferTable:
        """Return the table of these jobs' offers."""
        which = list(map(id, offers))
        different = dict(zip(which, offers, strict=True))
        parts = [(each.kind, each.group, each.gpus, each.gain) for each in different.values()]
        if not parts:
            none = np.zeros(0, dtype=np.int64)
            return cls(none, none, none, none, np.zeros(0))
        kind, group, gpus, gain = (np.concatenate(each) for each in zip(*parts, strict=True))
        ends = np.cumsum([len(each) for each, _, _, _ in parts])
        first = dict(zip(different, [0, *ends.tolist()], strict=False))
        start = np.fromiter(map(first.__getitem__, which), dtype=np.int64, count=len(which))
        return cls(start, kind, group, gpus, gain)


@lru_cache(maxsize=4096)
def _columns_of(key: bytes) -> dict[tuple[int, int, int], int]:
    """Return the column of every (kind, group, size), cached for jobs with equal columns."""
    return {each: at for at, each in enumerate(_offers_of(key))}


@lru_cache(maxsize=4096)
def _offers_of(key: bytes) -> list[tuple[int, int, int]]:
    """Return (kind, group, size) of every column, cached for jobs with equal columns."""
    parts = np.frombuffer(key, dtype=np.int64).reshape(3, -1)
    return list(zip(*parts.tolist(), strict=True))


@lru_cache(maxsize=4096)
def _packed_of(key: bytes) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return {group: (size, column) of the offers on one of its servers}, cached for jobs with equal columns."""
    found: dict[int, list[tuple[int, int]]] = {}
    for column, (kind, group, gpus) in enumerate(_offers_of(key)):
        if kind == PACKED:
            found.setdefault(group, []).append((gpus, column))
    return {group: tuple(each) for group, each in found.items()}


@dataclass(frozen=True, slots=True)
class OfferRules:
    """Rules by which offers are made.

    Parameters
    ----------
    threshold : float
        sigma: a job with a higher sensitivity is kept on one server if possible.
    scale_by_smallest : bool
        Whether to multiply gains by R_1, like Sia's N_min, so that large rigid jobs are worth more than small ones.
    """

    threshold: float = 1.4
    scale_by_smallest: bool = False

    def make(self, job: Job, requirements: RequirementSet, groups: ServerGroups, rate: Rate) -> Offers | None:
        """Return a job's offers on these groups; None if it cannot run anywhere.

        Raises
        ------
        ThroughputError
            If an estimate is negative or not finite.
        """
        sensitivity = self.sensitivity(job, groups, rate)
        sizes = requirements.sizes
        servers = groups.servers_by_type
        result: list[tuple[int, int, int, float]] = []
        for g, group in enumerate(groups.groups):
            if not group.servers:
                continue
            distributed = sensitivity <= self.threshold or sizes[0] > group.gpus
            there = group.gpus * servers[group.gpu_type]
            for size in sizes:
                if size <= group.gpus:
                    result.append((PACKED, g, size, _checked(job, group, size, 1, rate)))
                if distributed and 2 <= size <= there:
                    nodes = max(2, -(-size // group.gpus))
                    result.append((SPREAD, g, size, _checked(job, group, size, nodes, rate)))
        result = [each for each in result if each[3] > 0]
        if not result:
            return None
        kind, group_of, gpus = (np.array([each[i] for each in result], dtype=np.int64) for i in range(3))
        rates = np.array([each[3] for each in result])
        base = float(rates.min()) / (requirements.smallest if self.scale_by_smallest else 1)
        key = kind.tobytes() + group_of.tobytes() + gpus.tobytes()
        return Offers(requirements, kind, group_of, gpus, rates / base, base, sensitivity, key)

    @staticmethod
    def sensitivity(job: Job, groups: ServerGroups, rate: Rate) -> float:
        """Return rho: the per-GPU throughput on one GPU divided by that on two GPUs of two servers, averaged over the
        types that run both.
        """
        ratios = []
        for group in _one_a_type(groups):
            alone = _checked(job, group, 1, 1, rate)
            apart = _checked(job, group, 2, 2, rate)
            if alone > 0 and apart > 0:
                ratios.append(alone / (apart / 2.0))
        return float(np.mean(ratios)) if ratios else 1.0


def _one_a_type(groups: ServerGroups) -> list[ServerGroup]:
    return list({group.gpu_type: group for group in reversed(groups.groups) if group.servers}.values())


def _checked(job: Job, group: ServerGroup, gpus: int, nodes: int, rate: Rate) -> float:
    value = rate(group.gpu_type, gpus, nodes, group.servers)
    if not 0.0 <= value < np.inf:
        raise ThroughputError(
            f"job {job.id!r} on {gpus} {group.gpu_type!r} GPUs over {nodes} servers: the estimated throughput is "
            f"{value}, must be finite and >= 0"
        )
    return value
