"""Assignment of nodes to guaranteed jobs: consolidated, and their previous nodes if possible (Proposition 1;
chronus.md, C17).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple

from copter_frontends.policy_kit import NodeInventory
from copter_frontends.policy_kit.free_gpus import Shares
from copter_frontends.vocabulary import Allocation


class Parcel(NamedTuple):
    """A job to be packed: id, GPU type, GPUs used, GPUs taken, previous allocation, and whether it must not move."""

    job_id: str
    gpu_type: str
    gpus: int
    taken: int
    before: Allocation | None = None
    stays: bool = False


def pack(nodes: NodeInventory, parcels: Sequence[Parcel]) -> dict[str, Allocation]:
    """Assign nodes to all parcels; GPUs taken only for rounding are freed at the end."""
    return without_rounding(nodes, parcels, pack_rounded(nodes, parcels))


def pack_rounded(nodes: NodeInventory, parcels: Sequence[Parcel]) -> dict[str, Allocation]:
    """Assign nodes with all GPUs taken to all parcels: those that stay where they are, then the largest first.

    If no parcel stays, all sizes are friendly (:func:`.rounding.friendly_sizes`), the nodes are free and the GPUs
    suffice in number, then all parcels are consolidated: every parcel placed before has a multiple of the current size,
    so that each node's free GPUs are a multiple of it too. Otherwise a parcel may be spread over nodes, or left out if
    its GPUs are not free.

    Parameters
    ----------
    nodes : NodeInventory
        The assigned GPUs are taken from it.
    parcels : sequence of Parcel
    """
    size_of = {kind: nodes.node_gpus(kind) for kind in nodes.types}
    ordered = _in_order(parcels)
    result = _all_that_stay(nodes, ordered, size_of)
    for parcel in ordered[len(result) :]:
        shares = _as_before(parcel, size_of[parcel.gpu_type])
        if shares is not None and not nodes.has_room(parcel.gpu_type, shares):
            shares = None
        if shares is None:
            shares = nodes.find(parcel.gpu_type, parcel.taken)
        if shares is None:
            shares = nodes.find(parcel.gpu_type, parcel.gpus, split=True)
        if shares is None:
            continue
        whole = result[parcel.job_id] = _whole(parcel, shares)
        nodes.take(whole)
    return result


def _in_order(parcels: Sequence[Parcel]) -> list[Parcel]:
    """Return those that stay first, then by GPUs taken, those that had GPUs first among equals, then by id."""
    ordered = sorted(parcels, key=itemgetter(0))  # sorts by one key each, the last one first, are the fastest
    ordered.sort(key=lambda parcel: parcel.before is None)
    ordered.sort(key=itemgetter(3), reverse=True)
    ordered.sort(key=itemgetter(5), reverse=True)
    return ordered


def _all_that_stay(
    nodes: NodeInventory, ordered: Sequence[Parcel], size_of: Mapping[str, int]
) -> dict[str, Allocation]:
    """Give the parcels that stay, which come first, their previous nodes at once; none if not all of these are free."""
    result: dict[str, Allocation] = {}
    for parcel in takewhile(itemgetter(5), ordered):
        shares = _as_before(parcel, size_of[parcel.gpu_type])
        if shares is None:
            return {}
        result[parcel.job_id] = _whole(parcel, shares)
    return result if nodes.take_together(result.values()) else {}


def _whole(parcel: Parcel, shares: Shares) -> Allocation:
    """Return a parcel's GPUs with those that it takes for rounding."""
    before = parcel.before
    if before is not None and shares is before.nodes:
        return before
    return Allocation(parcel.gpu_type, sum([gpus for _, gpus in shares]), shares)


def without_rounding(
    nodes: NodeInventory, parcels: Sequence[Parcel], packed: dict[str, Allocation]
) -> dict[str, Allocation]:
    """Free the GPUs that packed parcels take only for rounding, and return what they use."""
    for parcel in [parcel for parcel in parcels if parcel.taken > parcel.gpus]:
        whole = packed.get(parcel.job_id)
        if whole is not None and whole.gpus > parcel.gpus:
            nodes.give(whole)
            used = packed[parcel.job_id] = _used(parcel, whole)
            nodes.take(used)
    return packed


def _as_before(parcel: Parcel, size: int) -> Shares | None:
    """Return the job's previous nodes with the GPUs to take; None if they do not do, or if the job may move and was not
    consolidated.
    """
    held, taken = parcel.before, parcel.taken
    if held is None or held.gpu_type != parcel.gpu_type or held.gpus != parcel.gpus:
        return None
    shares = held.nodes
    if len(shares) == 1 and taken == held.gpus:  # as most are
        return shares
    spread = len(shares) > -(-taken // size)
    if spread and not parcel.stays:
        return None
    if not spread and taken > held.gpus:
        shares = tuple([(node, min(taken, size)) for node, _ in shares])
        if sum([gpus for _, gpus in shares]) != taken:
            return None
    return shares


def _used(parcel: Parcel, whole: Allocation) -> Allocation:
    """Return the GPUs that the job uses, out of those that it takes."""
    room, before = dict(whole.nodes), parcel.before
    if before is not None and before.gpus == parcel.gpus and all(room.get(n, 0) >= gpus for n, gpus in before.nodes):
        return before
    left, shares = parcel.gpus, []
    for node, gpus in whole.nodes:
        if left > 0:
            shares.append((node, min(gpus, left)))
            left -= shares[-1][1]
    return Allocation(parcel.gpu_type, parcel.gpus, tuple(shares))
