"""Controlled studies of one structure each, as seeded sequences of rounds behind one protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from families.bursts import BurstyRounds
from families.gub import GubRounds
from families.multicommodity import MulticommodityRounds
from families.protocol import Family, amount_of
from families.sia import SiaRounds
from families.transport import TransportRounds

__all__ = ["FAMILIES", "NAMES", "Family", "Instance", "make_family"]


@dataclass(frozen=True, slots=True)
class Instance:
    """Which sequence of a family.

    Attributes
    ----------
    scale : int
        GPUs for sia and bursts, requests for the others.
    change : str or None
        Kind of change (:data:`families.protocol.CHANGES`), the family's default if None.
    amount : float or None
        How much changes, the kind's default if None.
    seed : int
    mode : {"full", "capped"}
        Of sia and bursts.
    rows : int or None
        Coupling rows of gub and transport.
    """

    scale: int
    change: str | None = None
    amount: float | None = None
    seed: int = 0
    mode: str = "full"
    rows: int | None = None

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

    kind: Any
    make: Callable[[Any, Instance], Family]
    least: int = 10


FAMILIES: dict[str, Entry] = {
    "sia": Entry(SiaRounds, lambda kind, i: kind(i.scale, i.mode, i.churn, i.seed), 56),
    "gub": Entry(GubRounds, lambda kind, i: kind(i.scale, i.rows or 50, i.kind, i.amount, i.seed)),
    "transport": Entry(TransportRounds, lambda kind, i: kind(i.scale, i.rows or 100, i.kind, i.amount, i.seed)),
    "multicommodity": Entry(MulticommodityRounds, lambda kind, i: kind(i.scale, i.kind, i.amount, i.seed)),
    "bursts": Entry(BurstyRounds, lambda kind, i: kind(i.scale, i.mode, i.churn, i.seed, BURSTS_EVERY), 112),
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
