"""Placement of best-effort jobs: Algorithm 1's search over placement-sensitive jobs (papers/chronus.md, C19, C20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product
from math import log2
from typing import Literal

from copter_frontends.policy_kit import NodeInventory
from copter_frontends.vocabulary import Job

Shares = tuple[tuple[str, int], ...]
PAPER_SPACE = 100_000  # combinations of placements that the paper searches (C20)
Style = Literal["local_search", "quasi", "consolidate"]
Speed = Callable[[Job, int, int], float]
"""(job, nodes, fewest nodes) -> speed relative to the fewest nodes: RTS(j, A) / RTS(j, A*)."""


@dataclass(frozen=True, slots=True)
class NodeSpeeds:
    """Relative speeds by number of nodes, derived from each application's loss of speed on two nodes instead of one.

    An iteration takes t_n = t_1 + log2(n) (t_2 - t_1) on n nodes (section 3.2.2). The speed on n nodes, relative to the
    fewest nodes f that the job needs, is therefore t_f / t_n.
    """

    costs: Mapping[str, float]

    def __call__(self, job: Job, nodes: int, fewest: int) -> float:
        """Return the relative speed: one on the fewest nodes, less with each further node."""
        if nodes <= fewest:
            return 1.0
        lost = self.costs.get(job.application, 0.0)
        step = lost / (1.0 - lost)  # (t_2 - t_1) / t_1
        return (1.0 + log2(max(fewest, 1)) * step) / (1.0 + log2(max(nodes, fewest, 1)) * step)


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Placement of a batch of jobs of one GPU type.

    Parameters
    ----------
    speed : Speed
    style : {"local_search", "quasi", "consolidate"}
        Algorithm 1; or each job in turn on as few nodes as the free GPUs allow; or each job on the fewest nodes that it
        needs, or not at all.
    space : int
        |S|, the largest number of combinations searched (:data:`PAPER_SPACE` in the paper); each places all jobs of the
        batch.
    spread : int
        The placements A_i of a job are: on as few nodes as the free GPUs allow, in the smallest gaps, and evenly on up
        to `spread` nodes more than it needs.
    """

    speed: Speed
    style: Style = "local_search"
    space: int = 256
    spread: int = 2

    def place(self, nodes: NodeInventory, gpu_type: str, jobs: Sequence[tuple[Job, int]]) -> dict[str, Shares]:
        """Return the shares of the jobs that fit; `nodes` is not changed.

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
            return result  # all jobs are consolidated, so that no placement is better
        potential = {job.id: self._potential(job, gpus, size) for job, gpus in order}
        ranked = sorted((job for job, gpus in order if gpus > 1), key=lambda job: -potential[job.id])
        gpus_of = {job.id: gpus for job, gpus in order}
        chosen: dict[str, list[str]] = {}
        count = 1
        for job in ranked:  # K = argmax_k prod_i |A_i| <= |S|
            own = self._styles(gpus_of[job.id], size)
            count *= len(own)
            if count > self.space or best >= total - 1e-9:
                break
            chosen[job.id] = own
            value, shares = self._best_of(room, size, order, chosen)
            if value > best + 1e-9:
                best, result = value, shares
        return result

    def _best_of(
        self, room: Mapping[str, int], size: int, order: Sequence[tuple[Job, int]], chosen: Mapping[str, list[str]]
    ) -> tuple[float, dict[str, Shares]]:
        """Return the best combination of the chosen jobs' placements, by the sum of RW; these jobs are placed first."""
        first = [each for each in order if each[0].id in chosen]
        rest = [each for each in order if each[0].id not in chosen]
        best, result = -1.0, dict[str, Shares]()
        for combination in product(*chosen.values()):
            styles = {job.id: "quasi" for job, _ in order} | dict(zip(chosen, combination, strict=True))
            value, shares = self._place(room, size, first + rest, styles)
            if value > best + 1e-9:
                best, result = value, shares
        return best, result

    def _styles(self, gpus: int, size: int) -> list[str]:
        """Return the placements to try for a job, its A_i."""
        fewest = -(-gpus // size)
        return ["quasi", "apart", *(f"on {n}" for n in range(fewest + 1, min(fewest + self.spread, gpus) + 1))]

    def _potential(self, job: Job, gpus: int, size: int) -> float:
        """Return the largest minus the smallest RW of a job (8)."""
        fewest = -(-gpus // size)
        return gpus * (1.0 - self.speed(job, max(gpus, fewest), fewest))

    def _place(
        self, room: Mapping[str, int], size: int, jobs: Sequence[tuple[Job, int]], styles: Mapping[str, str]
    ) -> tuple[float, dict[str, Shares]]:
        """Place jobs in turn; returns the sum of RW (7) and their shares."""
        free, value, result = _Room(room, size), 0.0, dict[str, Shares]()
        for job, gpus in jobs:
            style = styles.get(job.id, "together")
            shares = None
            if style in ("quasi", "together"):
                shares = free.together(gpus)
            elif style != "apart":
                shares = _evenly(free.nodes, gpus, int(style.removeprefix("on ")))
            if shares is None and style != "together":
                shares = _apart(free.nodes, gpus, smallest=style == "apart")
            if shares is None:
                continue
            free.take(shares)
            result[job.id] = shares
            value += gpus * self.speed(job, len(shares), -(-gpus // size))
        return value, result


class _Room:
    """Free GPUs of nodes of one size; the nodes with as many are found without looking at the others.

    Attributes
    ----------
    nodes : dict of node id to int
        Free GPUs.
    """

    def __init__(self, free: Mapping[str, int], size: int) -> None:
        self.nodes, self._size, self._ids = dict(free), size, list(free)
        self._number = {node: at for at, node in enumerate(self._ids)}
        # for each number of free GPUs a heap of the nodes' numbers, also of nodes that have fewer by now
        self._with: list[list[int]] = [[] for _ in range(size + 1)]
        for at, count in enumerate(free.values()):
            self._with[count].append(at)  # ascending, so it is a heap

    def take(self, shares: Shares) -> None:
        """Take these GPUs, which are free."""
        for node, gpus in shares:
            left = self.nodes[node] = self.nodes[node] - gpus
            heappush(self._with[left], self._number[node])

    def together(self, gpus: int) -> Shares | None:
        """Return shares on the fewest nodes: empty nodes, and the fullest node with room for the remainder; None if
        impossible.
        """
        whole, rest = divmod(gpus, self._size)
        if not whole:
            node = self._fullest(rest)
            return None if node is None else ((node, rest),)
        empty = [self._pop(self._size) for _ in range(whole)]
        last = self._fullest(rest) if rest and None not in empty else None
        found = [self._ids[at] for at in empty if at is not None]
        for node in found:
            heappush(self._with[self._size], self._number[node])
        if len(found) < whole or (rest and last is None):
            return None
        return tuple(sorted([*((node, self._size) for node in found), *(() if last is None else ((last, rest),))]))

    def _fullest(self, gpus: int) -> str | None:
        """Return the first of the nodes with least room for these GPUs."""
        nodes, ids = self.nodes, self._ids
        for count in range(gpus, self._size + 1):
            heap = self._with[count]
            while heap:
                node = ids[heap[0]]
                if nodes[node] == count:
                    return node
                heappop(heap)
        return None

    def _pop(self, count: int) -> int | None:
        """Remove the first node with so many free GPUs from its heap and return its number; None without one."""
        heap = self._with[count]
        while heap:
            at = heappop(heap)
            if self.nodes[self._ids[at]] == count:
                return at
        return None


def _evenly(free: Mapping[str, int], gpus: int, nodes: int) -> Shares | None:
    """Return shares spread evenly over `nodes` nodes, the fullest with room; None if impossible."""
    part, extra = divmod(gpus, nodes)
    shares: list[tuple[str, int]] = []
    used: set[str] = set()
    for at in range(nodes):
        count = part + (at < extra)
        fits = [(left, node) for node, left in free.items() if left >= count and node not in used]
        if not fits:
            return None
        node = min(fits)[1]
        used.add(node)
        shares.append((node, count))
    return tuple(sorted(shares))


def _apart(free: Mapping[str, int], gpus: int, smallest: bool) -> Shares | None:
    """Return shares on the nodes with most room first, or with least room, which fills gaps; None if impossible."""
    shares, left = [], gpus
    for node, count in sorted(free.items(), key=lambda each: each[1] if smallest else -each[1]):
        if left > 0 and count > 0:
            shares.append((node, min(count, left)))
            left -= shares[-1][1]
    return tuple(sorted(shares)) if left == 0 else None
