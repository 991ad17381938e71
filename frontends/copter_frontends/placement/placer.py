"""The placer: assigns nodes to jobs that have a GPU type and a number of GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import compress, filterfalse
from operator import and_, is_, not_

from copter_frontends.placement.demand import check_demand, counted
from copter_frontends.placement.errors import PlacementError
from copter_frontends.placement.node_pool import NodePool
from copter_frontends.placement.node_table import NodeTable, node_tables
from copter_frontends.placement.settling import settle
from copter_frontends.vocabulary import Allocation, Cluster, GpuType, Node

Wanted = Mapping[str, tuple[str, int]]
_Held = tuple[dict[str, NodePool], dict[str, Allocation], dict[str, dict[str, int]]]


class Placer:
    """Assigns nodes to jobs and moves as few jobs as possible (thesis 3.3.3-3.3.4, "Placer").

    Let R be the number of GPUs of a node of the type. A job of fewer than R GPUs is on one node; a larger job has whole
    nodes to itself. A job with unchanged type and count keeps its nodes, unless another job could not be placed
    otherwise; then the smallest jobs are moved. A placement depends on the arguments and the cluster only, not on
    earlier calls or the order of the mappings.

    Parameters
    ----------
    cluster : Cluster
        The cluster, read at every call, so that nodes may change between calls.

    Notes
    -----
    If each type's total demand fits its capacity, R is a power of two, sizes are powers of two below R or multiples of
    R, and no job is pinned, a placement is always found. With pins, or if R is not a power of two, a placement is found
    whenever one exists (for the same sizes). Other sizes are packed by best fit in descending size.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._tables: dict[str, NodeTable] = {}
        self._seen_nodes: list[Node] = []
        self._seen_types: dict[str, GpuType] = {}
        self._last: _Last | None = None

    def __getstate__(self) -> dict[str, object]:
        """Return all fields but the last placement, which need not be saved."""
        return {**self.__dict__, "_last": None}

    def place(
        self, wanted: Wanted, previous: Mapping[str, Allocation], pinned: Collection[str] = ()
    ) -> tuple[dict[str, Allocation], frozenset[str]]:
        """Place every wanted job.

        Parameters
        ----------
        wanted : mapping of job id to (GPU type, GPUs)
        previous : mapping of job id to Allocation
            Previous allocations, including those of jobs that are no longer wanted and of nodes that are gone.
        pinned : collection of job ids
            Wanted jobs that keep exactly their previous nodes.

        Returns
        -------
        allocations : dict of job id to Allocation
            Allocations in the order of `wanted`. An unmoved job has the same object as in `previous`.
        moved : frozenset of job ids
            Jobs with the same type and count as before, but on other nodes.

        Raises
        ------
        PlacementError
            For an unknown type, an impossible count, an over-committed type, a pin that cannot be kept, or a job for
            which pins (or sizes that do not divide each other) leave no room. The state is then unchanged.
        """
        tables = self._current_tables()
        counts = counted(wanted)
        check_demand(wanted, counts, tables)
        pins = sorted(set(pinned))
        last, self._last = self._last, None
        held = None if last is None else last.held_again(wanted, previous, pins)
        pools, placed, pending = held or _held(tables, wanted, previous, pins)
        suspects = self._settle(pools, placed, pending, wanted, previous)
        moved = _moved(suspects, placed, previous)
        result = {job: placed[job] for job in wanted}
        self._last = _Last(pools, dict(placed), dict(wanted), counts, result)
        return result, moved

    def place_changes(
        self, changes: Mapping[str, tuple[str, int] | None], previous: Mapping[str, Allocation], pinned: Collection[str]
    ) -> tuple[dict[str, Allocation], set[str]] | None:
        """Do :meth:`place` where all but few jobs are as the last call left them.

        Parameters
        ----------
        changes : mapping of job id to (GPU type, GPUs) or None
            Wanted GPUs, None for none, of every job whose wanted GPUs or previous allocation are not those with which
            the last call of this placer ended.
        previous : mapping of job id to Allocation
            The allocations that the last call returned, the same object, in which the jobs of `changes` may have other
            allocations now.
        pinned : collection of job ids
            See :meth:`place`.

        Returns
        -------
        allocations : dict of job id to Allocation
            Of all wanted jobs, in any order.
        touched : set of job ids
            All jobs whose allocation may be another than their previous one.
        None
            If `previous` is not of the last call, or its pools cannot be patched: :meth:`place` then decides.
        """
        tables, last = self._current_tables(), self._last
        if last is None or last.result is not previous:
            return None
        wanted, counts = dict(last.wanted), last.counts.copy()
        for job, want in changes.items():
            had = wanted.pop(job, None)
            if had is not None:
                counts[had] -= 1
            if want is not None:
                wanted[job] = want
                counts[want] += 1
        check_demand(wanted, counts, tables)
        pins = sorted(set(pinned))
        self._last = None
        gone = [job for job in changes if job not in wanted and job in last.allocations]
        held = last.patched([job for job in changes if job in wanted], gone, wanted, previous, pins)
        if held is None:
            return None
        pools, placed, pending = held
        suspects = self._settle(pools, placed, pending, wanted, previous, previous)
        _moved(suspects, placed, previous)
        self._last = _Last(pools, dict(placed), wanted, counts, placed)
        return placed, suspects | changes.keys()

    def _settle(
        self,
        pools: dict[str, NodePool],
        placed: dict[str, Allocation],
        pending: dict[str, dict[str, int]],
        wanted: Wanted,
        previous: Mapping[str, Allocation],
        result: Mapping[str, Allocation] | None = None,
    ) -> set[str]:
        """Place the pending jobs too; returns the jobs that may have moved. If a job has no room, the others are the
        last placement, in place of `result` if that is given.
        """
        suspects: set[str] = set()
        before = {name: pool.copy() if pending[name] else pool for name, pool in pools.items()}
        kept = dict(placed)
        for gpu_type, jobs in pending.items():
            if jobs:
                try:
                    settled, displaced = settle(pools[gpu_type], jobs, previous)
                except PlacementError:
                    of_kept = {job: wanted[job] for job in kept}
                    self._last = _Last(before, kept, of_kept, counted(of_kept), result)
                    raise
                placed.update(settled)
                suspects.update(displaced, (job for job in jobs if _same_size(previous.get(job), settled[job])))
        return suspects

    def place_what_fits(
        self, wanted: Wanted, previous: Mapping[str, Allocation], pinned: Collection[str] = ()
    ) -> tuple[dict[str, Allocation], frozenset[str], tuple[str, ...]]:
        """Do :meth:`place`, but leave out jobs for which pinned jobs leave no room, instead of raising.

        Returns
        -------
        allocations, moved
            As :meth:`place`.
        left_out : tuple of job ids
        """
        rest = dict(wanted)
        left_out: list[str] = []
        while True:
            try:
                allocations, moved = self.place(rest, previous, pinned)
                return allocations, moved, tuple(left_out)
            except PlacementError as error:
                if error.job_id is None or error.job_id in pinned:
                    raise
                left_out.append(error.job_id)
                del rest[error.job_id]

    def _current_tables(self) -> dict[str, NodeTable]:
        """Return the numbering of the cluster's nodes, rebuilt after changes of the cluster."""
        nodes = list(self.cluster.nodes.values())
        if nodes != self._seen_nodes or self.cluster.types != self._seen_types:
            self._tables, self._last = node_tables(self.cluster), None
            self._seen_nodes, self._seen_types = nodes, dict(self.cluster.types)
        return self._tables


class _Last:
    """The last placement, from which the next one starts.

    Parameters
    ----------
    pools : mapping of GPU type to NodePool
        With all jobs on their nodes; not used by anybody else any more.
    allocations : mapping of job id to Allocation
        Of all jobs.
    wanted : mapping of job id to (GPU type, GPUs)
        What they were to have.
    counts : Counter of (GPU type, GPUs)
        How many jobs were to have each.
    result : mapping of job id to Allocation or None
        What the caller has of it, if changes to it can be placed.
    """

    def __init__(
        self,
        pools: dict[str, NodePool],
        allocations: dict[str, Allocation],
        wanted: Wanted,
        counts: Counter[tuple[str, int]],
        result: Mapping[str, Allocation] | None,
    ) -> None:
        self.pools, self.allocations, self.wanted, self.counts = pools, allocations, wanted, counts
        self.result = result
        for pool in pools.values():
            pool.let_pins_go(allocations)

    def held_again(self, wanted: Wanted, previous: Mapping[str, Allocation], pins: list[str]) -> _Held | None:
        """Return the same as :func:`_held`, faster, by patching the last pools; see :meth:`patched`."""
        had, found = self.allocations, previous.get
        kept_node = map(is_, map(found, wanted), map(had.get, wanted))
        kept_size = map(is_, wanted.values(), map(self.wanted.get, wanted))
        others = list(compress(wanted, map(not_, map(and_, kept_node, kept_size))))  # the few that may have changed
        return self.patched(others, filterfalse(wanted.__contains__, had), wanted, previous, pins)

    def patched(
        self,
        changed: Iterable[str],
        gone: Iterable[str],
        wanted: Wanted,
        previous: Mapping[str, Allocation],
        pins: list[str],
    ) -> _Held | None:
        """Return the same as :func:`_held`, where of the wanted jobs only the `changed` ones may be otherwise than last
        time, and of last time's jobs only the `gone` ones are not wanted.

        None, with the last pools unusable, if jobs clash on nodes or a pin does not fit; :func:`_held` then decides.
        """
        pools, had, found, placed = self.pools, self.allocations, previous.get, dict(self.allocations)
        others = []
        for job in changed:
            old = found(job)
            if old is None or old is not had.get(job) or _size(old) != wanted[job]:
                others.append(job)
        for job in [*gone, *filter(had.__contains__, others)]:
            old = placed.pop(job)
            pools[old.gpu_type].release(job, old)
        for job in pins:
            old = found(job)
            if old is None or job not in wanted or _size(old) != wanted[job]:
                return None
            if job not in placed and not pools[old.gpu_type].hold(job, old):
                return None
            pools[old.gpu_type].fix(job)
            placed[job] = old
        kept, pending = _keep([(job, wanted[job]) for job in others if job not in placed], previous, pools)
        if any(pool.clash for pool in pools.values()):
            return None
        placed.update(kept)
        return pools, placed, pending


def _moved(suspects: set[str], placed: dict[str, Allocation], previous: Mapping[str, Allocation]) -> frozenset[str]:
    """Return those of the suspects that are on other nodes; the others get their previous objects."""
    moved = set()
    for job in suspects:
        if placed[job].nodes == previous[job].nodes:
            placed[job] = previous[job]
        else:
            moved.add(job)
    return frozenset(moved)


def _size(allocation: Allocation) -> tuple[str, int]:
    return allocation.gpu_type, allocation.gpus


def _held(
    tables: Mapping[str, NodeTable], wanted: Wanted, previous: Mapping[str, Allocation], pins: list[str]
) -> _Held:
    """Return pools in which pinned and unchanged jobs have their nodes, their allocations, and the rest by type."""
    pools, placed = _pinned_pools(tables, wanted, previous, pins)
    others: Iterable[tuple[str, tuple[str, int]]] = wanted.items()
    if pins:
        others = [item for item in others if item[0] not in placed]
    kept, pending = _keep(others, previous, pools)
    if any(pool.clash for pool in pools.values()):  # the previous allocations overlap: larger jobs, then ids, first
        pools, placed = _pinned_pools(tables, wanted, previous, pins)
        kept, pending = _keep(sorted(others, key=lambda item: (-item[1][1], item[0])), previous, pools)
    placed.update(kept)
    return pools, placed, pending


def _pinned_pools(
    tables: Mapping[str, NodeTable], wanted: Wanted, previous: Mapping[str, Allocation], pins: list[str]
) -> tuple[dict[str, NodePool], dict[str, Allocation]]:
    """Return new pools that contain the pinned jobs, and these jobs' allocations."""
    pools = {name: NodePool(table) for name, table in tables.items()}
    placed = {}
    for job in pins:
        want, old = wanted.get(job), previous.get(job)
        if want is None:
            raise PlacementError(f"job {job!r} is pinned but not wanted; want its previous GPUs or unpin it")
        if old is None:
            raise PlacementError(f"job {job!r} is pinned but has no previous allocation to keep; unpin it")
        if (old.gpu_type, old.gpus) != want:
            raise PlacementError(
                f"job {job!r} is pinned to {old.gpus} GPUs of {old.gpu_type!r} but wanted with {want[1]} of "
                f"{want[0]!r}; want what it has or unpin it"
            )
        pool = pools[old.gpu_type]
        unknown = [name for name, _ in old.nodes if name not in pool.table.index]
        if unknown:
            raise PlacementError(
                f"job {job!r} is pinned to nodes that are not among the cluster's of type {old.gpu_type!r}: "
                f"{', '.join(unknown)}; unpin it or bring them back"
            )
        if not pool.hold_for_good(job, old):
            raise PlacementError(_pin_complaint(job, old, pool))
        placed[job] = old
    for pool in pools.values():
        pool.clash = False
    return pools, placed


def _pin_complaint(job: str, old: Allocation, pool: NodePool) -> str:
    if pool.clash:
        return (
            f"job {job!r} is pinned to nodes {old.nodes} that the jobs pinned before it ({', '.join(pool.pinned)}) "
            "have filled; unpin one of them"
        )
    return (
        f"job {job!r} is pinned to {old.nodes}, which are not {old.gpus} GPUs on one node of "
        f"{pool.table.gpus_per_node} or on whole nodes; unpin it so that it can be placed properly"
    )


def _keep(
    items: Iterable[tuple[str, tuple[str, int]]], previous: Mapping[str, Allocation], pools: Mapping[str, NodePool]
) -> tuple[dict[str, Allocation], dict[str, dict[str, int]]]:
    """Keep every unchanged job in place; returns their allocations and, by type, the GPUs of the jobs still to
    place.
    """
    kept: dict[str, Allocation] = {}
    pending: dict[str, dict[str, int]] = {name: {} for name in pools}
    for job, (gpu_type, gpus) in items:
        old = previous.get(job)
        if old is not None and old.gpus == gpus and old.gpu_type == gpu_type and pools[gpu_type].hold(job, old):
            kept[job] = old
        else:
            pending[gpu_type][job] = int(gpus)
    return kept, pending


def _same_size(old: Allocation | None, new: Allocation) -> bool:
    return old is not None and old.gpu_type == new.gpu_type and old.gpus == new.gpus
