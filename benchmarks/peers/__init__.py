"""Other solvers on the same sequence of LPs; each in a process of its own."""

from __future__ import annotations

from copter_frontends.replay.peers.answer import Answer, Limits, Peer
from peers.remote import RemotePeer

NAMES = ("highs", "highs-milp", "glop", "pdlp")

__all__ = ["NAMES", "Answer", "Limits", "Peer", "RemotePeer", "make_peer"]


def make_peer(name: str) -> Peer:
    """The peer of this name; a solver is imported only where it is used, as they are optional."""
    if name == "highs":
        from copter_frontends.replay.peers.highs import WAYS, HighsPeer

        return HighsPeer(WAYS)
    if name == "highs-milp":
        from copter_frontends.replay.peers.highs import MILP, HighsPeer

        return HighsPeer(MILP)
    if name == "glop":
        from copter_frontends.replay.peers.glop import GlopPeer

        return GlopPeer()
    if name == "pdlp":
        from copter_frontends.replay.peers.pdlp import PdlpPeer

        return PdlpPeer()
    raise ValueError(f"unknown peer {name!r}: one of {', '.join(NAMES)}")
