"""Jobs that run well below their rate on their servers, and move to other servers of the type (H21)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from copter_frontends.policies.hadar.holdings import Holdings
from copter_frontends.policies.hadar.round_values import RoundTerms, rounds_left
from copter_frontends.vocabulary import Allocation

SLOW = 0.8  # a job with a reported rate below this share of its known rate is a straggler (H21)


@dataclass(frozen=True, slots=True)
class Straggler:
    """A job that is slower on its servers than its rate on that type.

    Attributes
    ----------
    gpu_type : str
    full, told : float
        The job's known rate on the type, and the rate reported on some servers.
    nodes : frozenset of str
        The servers on which it is slow.
    left : bool
        Whether it has been elsewhere since.
    """

    gpu_type: str
    full: float
    told: float
    nodes: frozenset[str]
    left: bool = False


class Stragglers:
    """Slow servers, detected by single jobs.

    A low rate is first attributed to the servers on which it was measured, if the type has other servers on which no
    job is slow. If the low rate is reported again, on other servers or after a return to these, or if there are no
    other servers, it is attributed to the type. A rate on servers of several types is always attributed to the slowest
    type.

    Parameters
    ----------
    holdings : Holdings

    Attributes
    ----------
    found : dict of job id to Straggler
    """

    def __init__(self, holdings: Holdings) -> None:
        self.holdings = holdings
        self.found: dict[str, Straggler] = {}

    def note(self, job_id: str, rates: Mapping[str, float]) -> None:
        """Check rates reported for a job before they are stored."""
        before, held = self.found.get(job_id), self.holdings.held.get(job_id)
        book, kinds = self.holdings.formulation.book, self.holdings.servers.types
        if before is not None and before.gpu_type in rates:
            del self.found[job_id]
        if held is None or held.mixture or held.gpu_type not in rates:
            return
        row, kind = book.row(job_id), kinds.index(held.gpu_type)
        again = before if before is not None and before.gpu_type == held.gpu_type else None
        full = again.full if again is not None else float(book.rates[row, kind])
        told, nodes = rates[held.gpu_type], frozenset(node for node, _ in held.nodes)
        elsewhere = again is not None and not nodes & again.nodes
        if not 0 < told < SLOW * full:
            if again is not None and elsewhere:  # the other servers have the expected speed
                self.found[job_id] = Straggler(held.gpu_type, told, again.told, again.nodes)
            return
        returned = again is not None and again.left  # its search for other servers led back to these
        if bool(book.known[row, kind]) and not (elsewhere or returned) and self._others(held, nodes | self._slow()):
            self.found[job_id] = Straggler(held.gpu_type, full, told, nodes)

    def forget(self, job_ids: Iterable[str]) -> None:
        """Delete jobs."""
        for job_id in filter(self.found.__contains__, job_ids):
            del self.found[job_id]

    def avoided(self) -> dict[str, frozenset[str]]:
        """Return, for each straggler, the servers to avoid if others are free: those on which a job was slow."""
        return dict.fromkeys(self.found, self._slow())

    def release(self, terms: RoundTerms) -> None:
        """Release the servers of stragglers that would end sooner on other free servers.

        The other stragglers are valued at their reported rates while they stay on these servers.
        """
        servers, book = self.holdings.servers, self.holdings.formulation.book
        reserved, slow = list[Allocation](), self._slow()
        for job_id, each in sorted(self.found.items()):
            row, kind = book.row(job_id), servers.types.index(each.gpu_type)
            held = self.holdings.held.get(job_id)
            there = held is not None and any(node in each.nodes for node, _ in held.nodes)
            if held is not None and there and job_id not in self.holdings.pins:
                bundle = servers.bundle(held).tolist()
                other = servers.find_without(bundle, book.rates[row], slow)
                if other is not None and self._sooner(row, each, terms):
                    servers.take(other)
                    reserved.append(other)
                    self.holdings.release(job_id)
                    there = False
            book.rates[row, kind] = each.told if there else each.full
            if not there:
                self.found[job_id] = replace(each, left=True)
        for other in reserved:
            servers.give(other)

    def _slow(self) -> frozenset[str]:
        return frozenset[str]().union(*(each.nodes for each in self.found.values()))

    def _others(self, held: Allocation, nodes: frozenset[str]) -> bool:
        """Whether the type has, on servers other than `nodes`, as many GPUs as the job holds."""
        inventory = self.holdings.servers.nodes
        own = sum(inventory.node_gpus(held.gpu_type) for node in nodes if inventory.has(held.gpu_type, node))
        return inventory.capacity(held.gpu_type) - own >= held.gpus

    def _sooner(self, row: int, each: Straggler, terms: RoundTerms) -> bool:
        """Whether a job ends in an earlier round elsewhere, including the restart."""
        book = self.holdings.formulation.book
        left = float(book.total[row] * (1.0 - book.progress[row]))
        lost = 1.0 - float(terms.moving(book.restart_s[row : row + 1])[0])
        stay, move = rounds_left(
            np.array([left]), np.array([each.told, each.full]), terms.round_s, np.array([0.0, lost])
        )
        return bool(stay > move)
