"""Families of round sequences, each behind one protocol."""

from __future__ import annotations

from families.gub import GubRounds
from families.hadar import HadarRounds
from families.hops import HopsRounds
from families.multicommodity import MulticommodityRounds
from families.protocol import Family
from families.sia import SiaRounds
from families.transport import TransportRounds

NAMES = ("sia", "hadar", "hops", "gub", "transport", "multicommodity")
ROWS = {"gub": 50, "transport": 100}

__all__ = ["NAMES", "ROWS", "Family", "make_family"]


def make_family(name: str, scale: int, churn: float, seed: int, mode: str = "full", rows: int | None = None) -> Family:
    """The family of this name at a scale: GPUs for sia, hadar and hops, requests for the others."""
    if name == "sia":
        return SiaRounds(scale, mode, churn, seed)
    if name == "hadar":
        return HadarRounds(scale, mode, churn, seed)
    if name == "hops":
        return HopsRounds(scale, mode, churn, seed)
    if name == "gub":
        return GubRounds(scale, rows or ROWS[name], churn, seed)
    if name == "transport":
        return TransportRounds(scale, rows or ROWS[name], churn, seed)
    if name == "multicommodity":
        return MulticommodityRounds(scale, churn, seed)
    raise ValueError(f"unknown family {name!r}: one of {', '.join(NAMES)}")
