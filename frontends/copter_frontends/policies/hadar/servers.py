"""Server assignment for bundles: the fewest servers, without moving jobs whose GPUs are unchanged (H15)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from copter_frontends.policies.hadar.job_book import Floats, Ints
from copter_frontends.policy_kit import NodeInventory
from copter_frontends.vocabulary import Allocation, Cluster, InvalidJobError


class Servers:
    """The nodes of a cluster with their free GPUs, for bundles of several GPU types.

    Parameters
    ----------
    cluster : Cluster
        Read, never changed.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.nodes = NodeInventory(cluster)
        self.types = self.nodes.types

    def take(self, allocation: Allocation) -> None:
        """Take GPUs that are free."""
        self.nodes.take(allocation)

    def give(self, allocation: Allocation) -> None:
        """Return GPUs; nodes that no longer exist are ignored."""
        self.nodes.give(allocation)

    def parts(self, allocation: Allocation) -> list[Allocation]:
        """Split an allocation by type."""
        if not allocation.mixture:
            return [allocation]
        return [
            Allocation(name, gpus, tuple(share for share in allocation.nodes if self.nodes.has(name, share[0])))
            for name, gpus in allocation.mixture
        ]

    def checked_parts(self, job_id: str, allocation: Allocation) -> list[Allocation]:
        """Split an allocation by type; raises InvalidClusterError or InvalidJobError unless its nodes exist and add
        up.
        """
        parts = self.parts(allocation)
        for part in parts:
            self.nodes.check(job_id, part)
        if sum(part.gpus for part in parts) != allocation.gpus:
            raise InvalidJobError(f"cannot pin job {job_id!r}: the types of {allocation} do not add up to its GPUs")
        return parts

    def find(self, bundle: Sequence[int], rates: Sequence[float] | Floats) -> Allocation:
        """Find servers for a bundle within the free GPUs: each type's part on as few servers as possible.

        Parameters
        ----------
        bundle : sequence of int (types,)
        rates : sequence of float (types,)
            The job's rates, which determine the limiting type.
        """
        shares: dict[str, int] = {}
        used = [q for q, gpus in enumerate(bundle) if gpus]
        for q in used:
            result = self.nodes.find(self.types[q], bundle[q], split=True)
            if result is None:
                raise RuntimeError(f"a bundle of {list(bundle)} GPUs was asked for, more than are free")
            if len(used) == 1:
                return Allocation(self.types[q], bundle[q], result)
            shares.update(result)
        return self.allocation(shares, rates)

    def take_whole(self, kind: int, gpus: int) -> Allocation | None:
        """Take GPUs of the type numbered `kind`, on no more servers than necessary; None if they do not fit."""
        name = self.types[kind]
        shares = self.nodes.take_whole(name, gpus)
        return None if shares is None else Allocation(name, gpus, shares)

    def find_without(
        self, bundle: Sequence[int], rates: Sequence[float] | Floats, nodes: Collection[str]
    ) -> Allocation | None:
        """Find free servers for a bundle as :meth:`find` does, but avoid `nodes`.

        None if the other servers have too few free GPUs, or if a bundle of one type would need more servers than
        necessary. A bundle of several types may be on any number of servers.
        """
        hidden = [
            Allocation(name, free, ((node, free),))
            for name in self.types
            for node in sorted(nodes)
            if self.nodes.has(name, node) and (free := self.nodes.free_on(name, node))
        ]
        for part in hidden:
            self.nodes.take(part)
        room = all(gpus <= self.nodes.free(name) for name, gpus in zip(self.types, bundle, strict=True))
        found = self.find(bundle, rates) if room else None
        for part in hidden:
            self.nodes.give(part)
        return None if found is None or (self.is_spread(found) and not found.mixture) else found

    def allocation(self, shares: Mapping[str, int], rates: Sequence[float] | Floats) -> Allocation:
        """Return the allocation of GPUs on nodes, {node: GPUs}, for a job with these rates by type."""
        by_type: dict[str, int] = {}
        for name in self.types:
            mine = sum(gpus for node, gpus in shares.items() if self.nodes.has(name, node))
            if mine:
                by_type[name] = mine
        slowest = min(by_type, key=lambda name: rates[self.types.index(name)])
        mixture = tuple(by_type.items()) if len(by_type) > 1 else ()
        return Allocation(slowest, sum(by_type.values()), tuple(sorted(shares.items())), mixture)

    def is_spread(self, allocation: Allocation) -> bool:
        """Whether an allocation uses more servers than its number of GPUs of one type needs."""
        if allocation.mixture:
            return True
        return len(allocation.nodes) > -(-allocation.gpus // self.nodes.node_gpus(allocation.gpu_type))

    def bundle(self, allocation: Allocation) -> Ints:
        """Return an allocation's GPUs of each type, (types,)."""
        result = np.zeros(len(self.types), dtype=np.int64)
        for name, gpus in allocation.by_type.items():
            result[self.types.index(name)] = gpus
        return result

    def capacity(self) -> Ints:
        """Return the GPUs of each type, (types,)."""
        return np.array([self.nodes.capacity(name) for name in self.types], dtype=np.int64)
