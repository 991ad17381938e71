"""Where best-effort jobs go: Algorithm 1's search over the placement-sensitive ones (docs/chronus.md, C16, C17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from copter_frontends.policy_kit import NodeInventory
from copter_frontends.vocabulary import Job

Shares = tuple[tuple[str, int], ...]
Style = Literal["local_search", "quasi", "consolidate"]
Speed = Callable[[Job, int, int], float]
"""(job, nodes, fewest nodes) -> speed relative to the fewest nodes: RTS(j, A) / RTS(j, A*)."""


@dataclass(frozen=True, slots=True)
class SpreadCosts:
    """Relative speeds from a share that each application loses on more nodes than it needs."""

    costs: Mapping[str, float]

    def __call__(self, job: Job, nodes: int, fewest: int) -> float:
        """One, or one less the application's cost where it is spread."""
        return 1.0 if nodes <= fewest else 1.0 - self.costs.get(job.application, 0.0)


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Placement of a batch of jobs of one GPU type.

    Parameters
    ----------
    speed : Speed
    style : {"local_search", "quasi", "consolidate"}
        Algorithm 1; every job in turn on the fewest nodes that are free; every job on the fewest that it needs, or
        not at all.
    space : int
        |S|: most combinations searched (100,000 in the paper; every one places all jobs of the batch).
    """

    speed: Speed
    style: Style = "local_search"
    space: int = 64

    def place(self, nodes: NodeInventory, gpu_type: str, jobs: Sequence[tuple[Job, int]]) -> dict[str, Shares]:
        """Shares of the jobs that fit; `nodes` is not changed.

        Parameters
        ----------
        nodes : NodeInventory
        gpu_type : str
        jobs : sequence of (Job, GPUs)
            In the order in which they are served.
        """
        room = nodes.free_by_node(gpu_type)
        size = nodes.node_gpus(gpu_type)
        order = sorted(jobs, key=lambda each: -each[1])
        if self.style == "consolidate":
            return self._place(room, size, order, {})[1] if jobs else {}
        best, result = self._place(room, size, order, dict.fromkeys((job.id for job, _ in jobs), "quasi"))
        total = float(sum(gpus for _, gpus in jobs))
        if self.style == "quasi" or best >= total - 1e-9:
            return result  # all are consolidated: no placement is better
        potential = {job.id: self._potential(job, gpus, size) for job, gpus in order}
        ranked = sorted((job for job, gpus in order if gpus > 1), key=lambda job: -potential[job.id])
        chosen = [job.id for job in ranked[: max(self.space.bit_length() - 1, 0)]]  # two solutions each
        for combination in product(("quasi", "apart"), repeat=len(chosen)):
            styles = {job.id: "quasi" for job, _ in order} | dict(zip(chosen, combination, strict=True))
            first = [each for each in order if each[0].id in chosen]
            rest = [each for each in order if each[0].id not in styles or each[0].id not in chosen]
            value, shares = self._place(room, size, first + rest, styles)
            if value > best + 1e-9:
                best, result = value, shares
        return result

    def _potential(self, job: Job, gpus: int, size: int) -> float:
        """Largest less smallest RW (8)."""
        fewest = -(-gpus // size)
        return gpus * (1.0 - self.speed(job, max(gpus, fewest), fewest))

    def _place(
        self, room: Mapping[str, int], size: int, jobs: Sequence[tuple[Job, int]], styles: Mapping[str, str]
    ) -> tuple[float, dict[str, Shares]]:
        """Place jobs in turn; the sum of RW (7), and where they are."""
        free, value, result = dict(room), 0.0, {}
        for job, gpus in jobs:
            style = styles.get(job.id, "together")
            shares = None if style == "apart" else _together(free, size, gpus)
            if shares is None and style != "together":
                shares = _apart(free, gpus, smallest=style == "apart")
            if shares is None:
                continue
            for node, count in shares:
                free[node] -= count
            result[job.id] = shares
            value += gpus * self.speed(job, len(shares), -(-gpus // size))
        return value, result


def _together(free: Mapping[str, int], size: int, gpus: int) -> Shares | None:
    """The fewest nodes: whole free ones, and the fullest with room for the remainder."""
    whole, rest = divmod(gpus, size)
    empty = [node for node, count in free.items() if count == size][:whole] if whole else []
    if len(empty) < whole:
        return None
    shares = [(node, size) for node in empty]
    if rest:
        fits = [(count, node) for node, count in free.items() if count >= rest and node not in empty]
        if not fits:
            return None
        least = min(count for count, _ in fits)
        shares.append((next(node for count, node in fits if count == least), rest))
    return tuple(sorted(shares))


def _apart(free: Mapping[str, int], gpus: int, smallest: bool) -> Shares | None:
    """Nodes with most room first, or with least, so that gaps are filled and free nodes are left to others."""
    shares, left = [], gpus
    for node, count in sorted(free.items(), key=lambda each: each[1] if smallest else -each[1]):
        if left > 0 and count > 0:
            shares.append((node, min(count, left)))
            left -= shares[-1][1]
    return tuple(sorted(shares)) if left == 0 else None
