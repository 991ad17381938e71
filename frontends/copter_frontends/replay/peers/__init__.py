"""Other solvers on the same sequence of programs, each updated by its own calls."""

from __future__ import annotations

from importlib.util import find_spec

from copter_frontends.replay.peers.answer import Answer, Limits, Peer

HIGHS_WAYS = (
    "highs_dual_warm",
    "highs_primal_warm",
    "highs_simplex_cold",
    "highs_ipm_cold",
    "highs_ipm_cold_no_crossover",
    "highs_ipm_cold_no_crossover_1e-6",
)
MILP_WAY = "highs_milp"
"""HiGHS on the mixed-integer program; not one of the peers of an LP."""
PEERS = {
    "highs": ("highspy", HIGHS_WAYS),
    "glop": ("ortools", ("glop_warm",)),
    "pdlp": ("ortools", ("pdlp_warm",)),
    "clarabel": ("clarabel", ("clarabel_cold",)),
    "soplex": ("pyscipopt", ("soplex_warm",)),
    "columns": ("highspy", ("highs_columns_warm",)),
    "columns-glop": ("ortools", ("glop_columns_warm",)),
    "gurobi": ("gurobipy", ("gurobi_dual_warm", "gurobi_barrier_cold")),
    "cplex": ("cplex", ("cplex_dual_warm", "cplex_barrier_cold")),
    "copt": ("coptpy", ("copt_dual_warm", "copt_barrier_cold")),
}
"""Peers by name: the package that each needs, and the ways in which it is used."""
LICENSED = ("gurobi", "cplex", "copt")
"""Peers that need a licence. The project has none: only stubs of them were run."""

__all__ = [
    "HIGHS_WAYS",
    "LICENSED",
    "MILP_WAY",
    "PEERS",
    "Answer",
    "Limits",
    "Peer",
    "installed",
    "keeps_state",
    "peer_for",
]


def keeps_state(way: str) -> bool:
    """Whether a way starts a solve from the last one's basis or point; others solve every round from scratch."""
    return way.endswith("_warm")


def installed(name: str) -> bool:
    """Whether a peer's package is installed."""
    return find_spec(PEERS[name][0]) is not None


def peer_for(way: str, threads: int | None = None) -> Peer:
    """Return a peer for one way of use; its library is imported in the calling process."""
    if way == "highs_columns_warm":
        from copter_frontends.replay.peers.column_generation import ColumnPeer
        from copter_frontends.replay.peers.highs import WAYS, Mirror

        # primal: new columns leave the last point feasible; after a round's edits the dual takes ten times as long
        return ColumnPeer(way, Mirror(way, WAYS["highs_primal_warm"]))
    if way == "glop_columns_warm":
        from copter_frontends.replay.peers.column_generation import ColumnPeer
        from copter_frontends.replay.peers.glop import GlopPeer

        return ColumnPeer(way, GlopPeer())
    if way.startswith("gurobi_"):
        from copter_frontends.replay.peers.gurobi import GurobiPeer

        return GurobiPeer(way, threads=threads or 2)
    if way.startswith("cplex_"):
        from copter_frontends.replay.peers.cplex import CplexPeer

        return CplexPeer(way, threads=threads or 2)
    if way.startswith("copt_"):
        from copter_frontends.replay.peers.copt import CoptPeer

        return CoptPeer(way, threads=threads or 2)
    if way.startswith("highs_"):
        from copter_frontends.replay.peers.highs import MILP, WAYS, HighsPeer

        return HighsPeer({way: (WAYS | MILP)[way]})
    if way == "glop_warm":
        from copter_frontends.replay.peers.glop import GlopPeer

        return GlopPeer()
    if way == "pdlp_warm":
        from copter_frontends.replay.peers.pdlp import PdlpPeer

        return PdlpPeer(threads=threads or 2)
    if way == "clarabel_cold":
        from copter_frontends.replay.peers.clarabel import ClarabelPeer

        return ClarabelPeer(threads=threads or 2)
    if way != "soplex_warm":
        raise ValueError(f"unknown way {way!r}")
    from copter_frontends.replay.peers.soplex import SoplexPeer

    return SoplexPeer()
