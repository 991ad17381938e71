"""Traffic engineering on real networks: commodities share the links of a backbone, each on arc-disjoint paths.

max sum f; a commodity's paths carry at most its demand, an arc's paths at most its capacity.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from judge import Judged

from copter import Model
from copter_frontends.replay.program import Floats, Ints, Program
from families.blocks import MOST, Outage, drawn_limits, set_counts, set_limits
from families.frontends import constants_of, demand_matrix, make_paths, published_network
from families.networks import NETWORKS, Network
from families.protocol import Outcome, SolverOptions, amount_of
from families.uniform import SessionSolver
from families.verdicts import judge_outcome


class TrafficRounds:
    """A published instance whose demands or links change.

    Parameters
    ----------
    name : str
        One of :data:`families.networks.NETWORKS`.
    change : {"limits", "some-limits", "link"}
        A link is both arcs between two nodes.
    amount : float, optional
    seed : int
        Of the changes.
    """

    changes: ClassVar[tuple[str, ...]] = ("limits", "some-limits", "link")

    def __init__(self, name: str, change: str, amount: float | None, seed: int) -> None:
        if name not in NETWORKS:
            raise ValueError(f"unknown network {name!r}: one of {', '.join(NETWORKS)}")
        self.network, self.rng = NETWORKS[name], np.random.default_rng(seed)
        self.change, self.amount = change, amount_of(change, amount)
        graph = published_network(self.network.topology)
        matrix = demands(self.network)
        self.pairs = np.argwhere(matrix > 0)
        self.usual = matrix[matrix > 0]
        self.limit = self.usual.copy()
        if self.network.capacity is not None:
            graph = graph.with_capacity(self.network.capacity)
        self.capacity, self.paths = graph.capacity.copy(), make_paths(graph, self.pairs)
        self.outage = Outage(self.rng, graph.links)
        self.model = Model(sense="max")
        for row, count in enumerate(self.capacity.tolist()):
            self.model.add_resources(row, count)
        self.limited = self.recounted = np.zeros(0, dtype=np.int64)
        self.is_new = True

    @property
    def counts(self) -> dict[str, int]:
        """Size."""
        columns = len(self.paths.hops)
        sizes = {"jobs": len(self.pairs), "rows": len(self.capacity), "variables": columns}
        return sizes | {"nonzeros": len(self.paths.arc) + columns}

    def prepare(self) -> None:
        """Draw the round's changes."""
        none = np.zeros(0, dtype=np.int64)
        self.limited = self.recounted = none
        if self.change == "link":
            self.recounted = self.outage.next(self.capacity)
        else:
            self.limited = drawn_limits(self.rng, self.change, self.amount, self.usual, self.limit)

    def edit(self) -> None:
        """Apply them to the model."""
        if len(self.limited):
            set_limits(self.model, self.limited.tolist(), self.limit[self.limited])
        if len(self.recounted):
            set_counts(self.model, self.recounted.tolist(), self.capacity[self.recounted])
        if self.is_new:
            self.arrive()
        self.is_new = False

    def arrive(self) -> None:
        """Add all pairs at once."""
        paths, sizes = self.paths, np.diff(self.paths.first)
        start = np.concatenate(([0], np.cumsum(paths.hops)))
        usage = sp.csc_array((np.ones(len(paths.arc)), paths.arc, start), shape=(len(self.capacity), len(paths.hops)))
        usage.sort_indices()
        self.model.add_own_requests(
            list(range(len(self.pairs))),
            sizes,
            np.ones(len(paths.hops)),
            usage,
            resources=range(len(self.capacity)),
            limit=self.limit,
            upper=np.repeat(MOST * self.usual, sizes),
        )

    def solver(self, options: SolverOptions) -> SessionSolver:
        """A session."""
        return SessionSolver(self.model, False, options)

    def adopt(self, outcome: Outcome) -> None:
        """Nothing depends on the flows."""

    def program(self) -> Program:
        """Arcs, then commodities; columns are paths, commodity by commodity."""
        paths, m, n = self.paths, len(self.capacity), len(self.paths.hops)
        own = np.repeat(np.arange(len(self.pairs)), np.diff(paths.first))
        start = np.concatenate(([0], np.cumsum(paths.hops + 1)))
        last = np.zeros(start[-1], dtype=bool)
        last[start[1:] - 1] = True
        row = np.empty(start[-1], dtype=np.int64)
        row[last], row[~last] = m + own, paths.arc
        A = sp.csc_array((np.ones(len(row)), row, start), shape=(m + len(self.pairs), n))
        A.sort_indices()
        return Program(
            c=np.ones(n),
            A=A,
            row_lower=np.full(m + len(self.pairs), -np.inf),
            row_upper=np.concatenate((self.capacity, self.limit)),
            col_lower=np.zeros(n),
            col_upper=MOST * self.usual[own],
            column_key=np.arange(n),
            row_key=np.arange(m + len(self.pairs)),
        )

    def point(self, outcome: Outcome) -> tuple[Floats, Floats]:
        """x and y as the solution has them."""
        solution = outcome.answer[0]
        return solution.x, solution.y

    def whole(self, outcome: Outcome) -> tuple[Ints, Floats] | None:
        """None: flows need not be whole."""
        return None

    def judged_in_parts(self, outcome: Outcome) -> Judged | None:
        """Judge the program as it is written out: the judge itself goes through its columns in parts."""
        return judge_outcome(self, self.program(), outcome)


def demands(network: Network) -> Floats:
    """The matrix (n, n), zero where there is no commodity; ValueError where the data are not there."""
    graph, constants = published_network(network.topology), constants_of(network.topology)
    found = demand_matrix(graph, constants, network.model, network.scale, network.seed)
    if network.share < 1.0:
        kept = np.random.RandomState(0).random_sample(found.shape) < network.share
        found[~kept] = 0.0
    return found
