"""Other solvers on the same sequence of LPs; each in a process of its own."""

from __future__ import annotations

from typing import Protocol

from families.protocol import Family

from peers.program import Answer
from peers.remote import RemotePeer

NAMES = ("highs", "highs-simplex-cold", "highs-ipm-cold", "glop", "pdlp")

__all__ = ["NAMES", "Peer", "RemotePeer", "make_peer"]


class Peer(Protocol):
    """Another solver, kept in step with a family."""

    name: str

    def update(self, family: Family) -> float:
        """Hand the round's edits over; seconds that the solver's own interface took."""

    def solve(self, time_limit_s: float) -> Answer:
        """Solve what it was told."""


def make_peer(name: str) -> Peer:
    """The peer of this name."""
    if name == "highs":
        from peers.highs import HighsPeer

        return HighsPeer()
    if name in ("highs-simplex-cold", "highs-ipm-cold"):
        from peers.highs import HighsPeer

        return HighsPeer(warm=False, solver=name.split("-")[1])
    if name == "glop":
        from peers.glop import GlopPeer

        return GlopPeer()
    if name == "pdlp":
        from peers.pdlp import PdlpPeer

        return PdlpPeer()
    raise ValueError(f"unknown peer {name!r}: one of {', '.join(NAMES)}")
