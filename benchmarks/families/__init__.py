"""Families of round sequences, each behind one protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from families.protocol import Family, amount_of

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
    """A family: its class (module.name), how one is made, its least scale.

    A module is read when its family is asked for: some bring frontends along, and 80 MB that are not the engine's.
    """

    place: str
    make: Callable[[Any, Instance], Family]
    least: int = 10

    @property
    def kind(self) -> Any:
        """The class."""
        module, name = self.place.split(".")
        return getattr(import_module(f"families.{module}"), name)


FAMILIES: dict[str, Entry] = {
    "sia": Entry("sia.SiaRounds", lambda kind, i: kind(i.scale, i.mode, i.churn, i.seed), 56),
    "hadar": Entry("hadar.HadarRounds", lambda kind, i: kind(i.scale, i.mode, i.churn, i.seed), 56),
    "hops": Entry("hops.HopsRounds", lambda kind, i: kind(i.scale, i.mode, i.churn, i.seed), 168),
    "chronus": Entry("chronus.ChronusRounds", lambda kind, i: kind(i.scale, i.seed), 32),
    "hare": Entry("hare.HareRounds", lambda kind, i: kind(i.scale, i.mode, i.kind, i.churn, i.seed), 56),
    "gub": Entry("gub.GubRounds", lambda kind, i: kind(i.scale, i.rows or 50, i.kind, i.amount, i.seed)),
    "transport": Entry(
        "transport.TransportRounds", lambda kind, i: kind(i.scale, i.rows or 100, i.kind, i.amount, i.seed)
    ),
    "multicommodity": Entry(
        "multicommodity.MulticommodityRounds", lambda kind, i: kind(i.scale, i.kind, i.amount, i.seed)
    ),
    "traffic": Entry("traffic.TrafficRounds", lambda kind, i: kind(i.network, i.kind, i.amount, i.seed)),
    "shards": Entry("shards.ShardRounds", lambda kind, i: kind(i.scale, i.rows, i.kind, i.seed), 32),
    "bursts": Entry("bursts.BurstyRounds", lambda kind, i: kind(i.scale, i.mode, i.churn, i.seed, BURSTS_EVERY), 112),
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
    kind = entry.kind
    change = instance.change or kind.changes[0]
    if change not in kind.changes:
        raise ValueError(f"{name} knows no change {change!r}: one of {', '.join(kind.changes)}")
    if instance.scale < entry.least:
        raise ValueError(f"the scale of {name} must be >= {entry.least}")
    return entry.make(kind, replace(instance, change=change))
