"""Families of round sequences, each behind one protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from families.bursts import BurstyRounds
from families.chronus import ChronusRounds
from families.gub import GubRounds
from families.hadar import HadarRounds
from families.hare import HareRounds
from families.hops import HopsRounds
from families.multicommodity import MulticommodityRounds
from families.protocol import Family, amount_of
from families.shards import ShardRounds
from families.sia import SiaRounds
from families.traffic import TrafficRounds
from families.transport import TransportRounds

__all__ = ["FAMILIES", "NAMES", "Family", "Instance", "make_family"]


@dataclass(frozen=True, slots=True)
class Instance:
    """Which sequence of a family.

    Attributes
    ----------
    scale : int
        GPUs for the families of jobs, requests or shards for the others.
    change : str or None
        Kind of change (:data:`families.protocol.CHANGES`), the family's default if None.
    amount : float or None
        How much changes, the kind's default if None.
    seed : int
    mode : {"full", "capped"}
        Of the families of jobs.
    rows : int or None
        Coupling rows of gub and transport; servers of shards (default: one for 8).
    network : str
        Of traffic (:data:`families.networks.NETWORKS`), which has no scale.
    """

    scale: int
    change: str | None = None
    amount: float | None = None
    seed: int = 0
    mode: str = "full"
    rows: int | None = None
    network: str = "GtsCe"

    @property
    def kind(self) -> str:
        """Kind of change."""
        return self.change or "churn"

    @property
    def churn(self) -> float:
        """How much changes."""
        return amount_of(self.kind, self.amount)


BURSTS_EVERY = 10  # rounds


@dataclass(frozen=True, slots=True)
class Entry:
    """A family: its class, how one is made, its least scale."""

    kind: type
    make: Callable[[Instance], Family]
    least: int = 10


FAMILIES: dict[str, Entry] = {
    "sia": Entry(SiaRounds, lambda i: SiaRounds(i.scale, i.mode, i.churn, i.seed), 56),
    "hadar": Entry(HadarRounds, lambda i: HadarRounds(i.scale, i.mode, i.churn, i.seed), 56),
    "hops": Entry(HopsRounds, lambda i: HopsRounds(i.scale, i.mode, i.churn, i.seed), 168),
    "chronus": Entry(ChronusRounds, lambda i: ChronusRounds(i.scale, i.seed), 32),
    "hare": Entry(HareRounds, lambda i: HareRounds(i.scale, i.mode, i.kind, i.churn, i.seed), 56),
    "gub": Entry(GubRounds, lambda i: GubRounds(i.scale, i.rows or 50, i.kind, i.amount, i.seed)),
    "transport": Entry(TransportRounds, lambda i: TransportRounds(i.scale, i.rows or 100, i.kind, i.amount, i.seed)),
    "multicommodity": Entry(MulticommodityRounds, lambda i: MulticommodityRounds(i.scale, i.kind, i.amount, i.seed)),
    "traffic": Entry(TrafficRounds, lambda i: TrafficRounds(i.network, i.kind, i.amount, i.seed)),
    "shards": Entry(ShardRounds, lambda i: ShardRounds(i.scale, i.rows, i.kind, i.seed), 32),
    "bursts": Entry(BurstyRounds, lambda i: BurstyRounds(i.scale, i.mode, i.churn, i.seed, BURSTS_EVERY), 112),
}
NAMES = tuple(FAMILIES)


def make_family(name: str, instance: Instance) -> Family:
    """The family of this name.

    Raises
    ------
    ValueError
        No family of this name, a kind of change that it does not know, a scale that is too small.
    """
    if name not in FAMILIES:
        raise ValueError(f"unknown family {name!r}: one of {', '.join(NAMES)}")
    entry = FAMILIES[name]
    change = instance.change or entry.kind.changes[0]
    if change not in entry.kind.changes:
        raise ValueError(f"{name} knows no change {change!r}: one of {', '.join(entry.kind.changes)}")
    if instance.scale < entry.least:
        raise ValueError(f"the scale of {name} must be >= {entry.least}")
    return entry.make(replace(instance, change=change))
