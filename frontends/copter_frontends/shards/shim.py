"""The shim from the program's R to copies: repair memory, add replicas, drop new copies, stay in the band (SH8).

As in the thesis's shim, the least loaded copies leave a server whose memory is exceeded, and their load goes to the
other copies of their shards. A shard's only copy is moved instead. Then load moves between copies along augmenting
paths until all servers are in the band, and new copies that the others can replace are removed, the least loaded first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter_frontends.shards.balance_kernels import Spread, do_without, rebalance
from copter_frontends.shards.cluster import Bools, Floats, Ints, ShardCluster, summed
from copter_frontends.shards.errors import NoRoomError
from copter_frontends.shards.new_copies import NewCopies

INSIDE = 1e-7  # share of the band's width that stays free, so that sums in another order also stay inside
MOST_PUSHES = 5000  # most pushes of load from one server
MOST_ROUNDS = 8  # most rounds of new copies (SH9)


@dataclass(slots=True, eq=False)
class Copies:
    """Copies with the load they serve, in mean loads, sorted by shard.

    Attributes
    ----------
    shard, server : ndarray (copies,)
    part : ndarray (copies,)
    live : ndarray (copies,) of bool
    """

    shard: Ints
    server: Ints
    part: Floats
    live: Bools

    @classmethod
    def of(cls, shard: Ints, server: Ints, part: Floats) -> Copies:
        """Sort copies by their shards."""
        order = np.lexsort((server, shard))
        return cls(shard[order].astype(np.int64), server[order].astype(np.int64), part[order].copy(),
                   np.ones(len(shard), dtype=np.bool_))  # fmt: skip

    def kept(self) -> Copies:
        """Return the live copies."""
        live = self.live
        return Copies(self.shard[live], self.server[live], self.part[live], np.ones(int(live.sum()), dtype=np.bool_))

    def server_load(self, servers: int) -> Floats:
        """Return the load of every server."""
        return summed(self.server, self.part * self.live, servers)


def repair(
    cluster: ShardCluster,
    load: Floats,
    shard: Ints,
    server: Ints,
    share: Floats,
    reduce: bool = True,
    idle: bool = False,
) -> tuple[Ints, Ints, Floats]:
    """Turn the LP's shares into copies that fit the servers' memory, with enough replicas and loads near the band.

    Parameters
    ----------
    cluster : ShardCluster
    load : ndarray (shards,)
        Loads as multiples of the mean load of a server.
    shard, server, share : ndarray (entries,)
        The nonzero entries of the LP's R: the share of a shard's load that a server serves.
    reduce : bool
        Whether to drop new copies that the other copies can replace; the thesis's shim does not.
    idle : bool
        Whether existing copies that serve no load stay if the memory allows it; they may be useful later.

    Returns
    -------
    shard, server, share : ndarray (copies,)
        The copies, and shares that sum to one for each shard.

    Raises
    ------
    NoRoomError
        If no arrangement within the memory was found.
    """
    copies = Copies.of(shard, server, share * load[shard])
    copies = with_replicas(cluster, copies)
    copies = memory_repaired(cluster, load, copies)
    copies = balanced(cluster, copies, reduce, grow=True)
    copies = without_idle(cluster, copies)
    if idle:
        copies = with_idle(cluster, copies)
    share = share_of(cluster, load, copies)
    return copies.shard, copies.server, share


def share_of(cluster: ShardCluster, load: Floats, copies: Copies) -> Floats:
    """Return shares that sum to one: in proportion to load, or equal for shards without load."""
    served = np.bincount(copies.shard, copies.part, cluster.n_shards)
    count = np.bincount(copies.shard, minlength=cluster.n_shards)
    has = served[copies.shard] > 0.0
    return np.divide(copies.part, served[copies.shard], out=1.0 / count[copies.shard], where=has)


def by_shard(cluster: ShardCluster, copies: Copies) -> tuple[Ints, Ints, Ints]:
    """Return (first copy of every shard, first entry of every server in the last array, copies by server)."""
    first = np.searchsorted(copies.shard, np.arange(cluster.n_shards + 1))
    by = np.argsort(copies.server, kind="stable")
    by_first = np.searchsorted(copies.server[by], np.arange(cluster.n_servers + 1))
    return first, by_first, by


# Replicas and memory --------------------------------------------------------------------------------------------------


def with_replicas(cluster: ShardCluster, copies: Copies) -> Copies:
    """Return the required number of copies of every shard: existing ones first, then on servers with most memory."""
    count = np.bincount(copies.shard, minlength=cluster.n_shards)
    lacking = np.flatnonzero(count < cluster.replicas)
    if not len(lacking):
        return copies
    used = summed(copies.server, cluster.size[copies.shard], cluster.n_servers)
    room = np.where(cluster.is_up, cluster.memory - used, -np.inf)
    here = np.zeros_like(cluster.holds)
    here[copies.shard, copies.server] = True
    new_shard, new_server = [], []
    for shard in lacking.tolist():
        for _ in range(cluster.replicas - int(count[shard])):
            fits = np.where(here[shard], -np.inf, room) - cluster.size[shard]
            wish = np.where(cluster.holds[shard] & (fits >= -1e-9), np.inf, fits)
            server = int(np.argmax(wish))
            here[shard, server] = True
            room[server] -= cluster.size[shard]
            new_shard.append(shard)
            new_server.append(server)
    return Copies.of(
        np.concatenate((copies.shard, new_shard)).astype(np.int64),
        np.concatenate((copies.server, new_server)).astype(np.int64),
        np.concatenate((copies.part, np.zeros(len(new_shard)))),
    )


def memory_repaired(cluster: ShardCluster, load: Floats, copies: Copies) -> Copies:
    """Return copies that fit every server's memory (SH8); raises NoRoomError.

    Copies are removed or moved one by one; if no copy fits elsewhere, all shards are packed anew.
    """
    try:
        return _thinned(cluster, copies)
    except NoRoomError:
        packed = _packed(cluster, load)
        if packed is None:
            raise
        return packed


def _packed(cluster: ShardCluster, load: Floats) -> Copies | None:
    """Return the minimum number of copies, largest shards first: on their servers if possible, otherwise where they
    fit tightest.
    """
    room = np.where(cluster.is_up, cluster.memory, -np.inf)
    taken = np.zeros_like(cluster.holds)
    for shard in np.argsort(-cluster.size, kind="stable").tolist():
        size = float(cluster.size[shard])
        for _ in range(cluster.replicas):
            left = np.where(taken[shard], -np.inf, room - size)
            fits = left >= -1e-12
            if not fits.any():
                return None
            server = int(np.argmin(np.where(fits, np.where(cluster.holds[shard], -np.inf, left), np.inf)))
            taken[shard, server] = True
            room[server] -= size
    shard_, server_ = np.nonzero(taken)
    return Copies.of(shard_, server_, load[shard_] / cluster.replicas)


def _thinned(cluster: ShardCluster, copies: Copies) -> Copies:
    """Remove or move copies until every server has room; raises NoRoomError."""
    size, most = cluster.size, cluster.memory * (1.0 + 1e-12)
    used = summed(copies.server, size[copies.shard], cluster.n_servers)
    over = np.flatnonzero(used > most).tolist()
    if not over:
        return copies
    parts: dict[int, dict[int, float]] = {}
    for shard, server, part in zip(*(a.tolist() for a in (copies.shard, copies.server, copies.part)), strict=True):
        parts.setdefault(shard, {})[server] = part
    on: list[list[int]] = [[] for _ in range(cluster.n_servers)]
    for shard, own in parts.items():
        for server in own:
            on[server].append(shard)
    for server in over:
        while used[server] > most[server]:
            spare = [shard for shard in on[server] if len(parts[shard]) > cluster.replicas]
            if spare:
                shard = min(spare, key=lambda shard: (parts[shard][server], shard))
                _shift(parts[shard], server)
            else:
                shard = _move(cluster, server, on, parts, used)
            on[server].remove(shard)
            used[server] -= size[shard]
    entries = [(shard, server, part) for shard, own in parts.items() for server, part in own.items()]
    shard_, server_, part_ = (np.array(column) for column in zip(*entries, strict=True))
    return Copies.of(shard_, server_, part_.astype(np.float64))


def _shift(own: dict[int, float], server: int) -> None:
    """Remove a copy and divide its load among the shard's other copies, in proportion to their loads."""
    amount = own.pop(server)
    total = sum(own.values())
    for other in own:
        own[other] += amount * (own[other] / total if total > 0.0 else 1.0 / len(own))


def _move(
    cluster: ShardCluster, server: int, on: list[list[int]], parts: dict[int, dict[int, float]], used: Floats
) -> int:
    """Move a shard off a full server: the one with the least load that fits elsewhere."""
    room = np.where(cluster.is_up, cluster.memory - used, -np.inf)
    for shard in sorted(on[server], key=lambda shard: (parts[shard][server], shard)):
        fits = room - cluster.size[shard]
        fits[list(parts[shard])] = -np.inf
        held = cluster.holds[shard] & (fits >= -1e-12)
        target = int(np.argmax(np.where(held, np.inf, fits)))
        if fits[target] >= -1e-12:
            parts[shard][target] = parts[shard].pop(server)
            used[target] += cluster.size[shard]
            return shard
    raise NoRoomError(
        f"server {server} holds more than its memory of {cluster.memory[server]:g}, and no shard of it fits elsewhere: "
        "add servers or memory"
    )


# Balance --------------------------------------------------------------------------------------------------------------


def balanced(cluster: ShardCluster, copies: Copies, reduce: bool, grow: bool = False) -> Copies:
    """Return copies with all servers in the band, as far as possible, and with few new copies.

    `grow`: whether to make new copies if the existing ones do not bring all servers into the band.
    """
    if not copies.part.sum() > 0.0:
        return copies
    mean = float(copies.part.sum()) / int(cluster.is_up.sum())
    width = cluster.band * mean * (1.0 - INSIDE)
    lower = np.where(cluster.is_up, mean - width, 0.0)
    upper = np.full(cluster.n_servers, mean + width)
    for left in reversed(range(1 + (MOST_ROUNDS if grow else 0))):
        spread = spread_of(cluster, copies)
        done = rebalance(spread, lower, upper, MOST_PUSHES, True)
        if done or not left:
            break
        count = len(copies.shard)
        copies = Copies.of(*NewCopies(cluster, copies.shard, copies.server, copies.part, lower, upper).make())
        if len(copies.shard) == count:  # no copy helps: memory is full, or no load can be moved
            break
    if done and reduce:
        new = np.flatnonzero(~cluster.holds[copies.shard, copies.server])
        gain = copies.part[new] / cluster.new_copy[copies.shard[new]]
        do_without(spread, lower, upper, new[np.argsort(gain, kind="stable")], cluster.replicas, MOST_PUSHES)
        copies = copies.kept()
    return copies


def spread_of(cluster: ShardCluster, copies: Copies) -> Spread:
    """Return the copies as the kernels take them."""
    first, by_first, by = by_shard(cluster, copies)
    load = copies.server_load(cluster.n_servers)
    return Spread(first, copies.shard, copies.server, copies.live, copies.part, by_first, by, load)


def moved_between(
    cluster: ShardCluster, load: Floats, shard: Ints, server: Ints, share: Floats
) -> tuple[Ints, Ints, Floats]:
    """Return the same copies with load moved between them towards the band."""
    copies = balanced(cluster, Copies.of(shard, server, share * load[shard]), reduce=False)
    return copies.shard, copies.server, share_of(cluster, load, copies)


def without_idle(cluster: ShardCluster, copies: Copies) -> Copies:
    """Remove copies that serve no load, new ones first, while their shard has more copies than ``cluster.replicas``.

    Changes ``copies.live``; returns the copies that stay.
    """
    count = np.bincount(copies.shard, minlength=cluster.n_shards)
    is_new = ~cluster.holds[copies.shard, copies.server]
    for at in sorted(np.flatnonzero(copies.part <= 0.0).tolist(), key=lambda at: (not is_new[at], at)):
        if count[copies.shard[at]] > cluster.replicas:
            copies.live[at] = False
            count[copies.shard[at]] -= 1
    return copies.kept()


def with_idle(cluster: ShardCluster, copies: Copies) -> Copies:
    """Keep existing copies while their servers have room for them, those of the heaviest shards first."""
    room = cluster.memory - summed(copies.server, cluster.size[copies.shard], cluster.n_servers)
    here = np.zeros_like(cluster.holds)
    here[copies.shard, copies.server] = True
    shard, server = np.nonzero(cluster.holds & ~here & cluster.is_up)
    kept = np.zeros(len(shard), dtype=np.bool_)
    for at, (j, i) in enumerate(zip(shard.tolist(), server.tolist(), strict=True)):  # shards are heaviest first
        if room[i] >= cluster.size[j]:
            room[i] -= cluster.size[j]
            kept[at] = True
    return Copies.of(
        np.concatenate((copies.shard, shard[kept])),
        np.concatenate((copies.server, server[kept])),
        np.concatenate((copies.part, np.zeros(int(kept.sum())))),
    )
