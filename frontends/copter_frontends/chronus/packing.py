"""Nodes for guaranteed jobs: consolidated, and where they were if that can be (Proposition 1; docs/chronus.md, C15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from copter_frontends.policy_kit import NodeInventory
from copter_frontends.vocabulary import Allocation


@dataclass(frozen=True, slots=True)
class Parcel:
    """A job to be packed: its id, GPU type, the GPUs that it uses and those taken for it, and where it was."""

    job_id: str
    gpu_type: str
    gpus: int
    taken: int
    before: Allocation | None = None


def pack(nodes: NodeInventory, parcels: Sequence[Parcel]) -> dict[str, Allocation]:
    """Take nodes for all parcels, largest first; the rounding is given back at the end, for jobs that fill gaps.

    Where every taken size is friendly (:func:`.rounding.friendly_sizes`) and the nodes are free, all that fit by
    number are consolidated: whatever is placed before a size is a multiple of it, so that free GPUs of a node come in
    multiples of it too. Otherwise a parcel may be spread over nodes, or be left out where its GPUs are not free.

    Parameters
    ----------
    nodes : NodeInventory
        Changed: what is returned is taken.
    parcels : sequence of Parcel
    """
    result: dict[str, Allocation] = {}
    reserved: list[Allocation] = []
    for parcel in sorted(parcels, key=lambda p: (-p.taken, p.before is None, p.job_id)):
        shares = _as_before(nodes, parcel) or nodes.find(parcel.gpu_type, parcel.taken)
        if shares is None:
            shares = nodes.find(parcel.gpu_type, parcel.gpus, split=True)
        if shares is None:
            continue
        whole = Allocation(parcel.gpu_type, sum(gpus for _, gpus in shares), shares)
        nodes.take(whole)
        reserved.append(whole)
        result[parcel.job_id] = _used(parcel, whole)
    for job_id, whole in zip(result, reserved, strict=True):
        nodes.give(whole)
        nodes.take(result[job_id])
    return result


def _as_before(nodes: NodeInventory, parcel: Parcel) -> tuple[tuple[str, int], ...] | None:
    """The taken GPUs on the nodes where the job was, if it was consolidated and they are free."""
    held = parcel.before
    if held is None or held.gpu_type != parcel.gpu_type or held.gpus != parcel.gpus:
        return None
    size = nodes.node_gpus(parcel.gpu_type)
    if not all(nodes.has(parcel.gpu_type, node) for node, _ in held.nodes) or len(held.nodes) > -(
        -parcel.taken // size
    ):
        return None
    shares = (
        tuple((node, min(parcel.taken, size)) for node, _ in held.nodes) if parcel.taken > held.gpus else held.nodes
    )
    if sum(gpus for _, gpus in shares) != parcel.taken:
        return None
    return None if nodes.short_of(Allocation(parcel.gpu_type, parcel.taken, shares)) else shares


def _used(parcel: Parcel, whole: Allocation) -> Allocation:
    """The part of the taken GPUs that the job uses."""
    room, before = dict(whole.nodes), parcel.before
    if before is not None and before.gpus == parcel.gpus and all(room.get(n, 0) >= gpus for n, gpus in before.nodes):
        return before
    left, shares = parcel.gpus, []
    for node, gpus in whole.nodes:
        if left > 0:
            shares.append((node, min(gpus, left)))
            left -= shares[-1][1]
    return Allocation(parcel.gpu_type, parcel.gpus, tuple(shares))
