"""Shard balancing: the published loads each round judged as the linear program in R with all columns."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from judge import Judged

from copter_frontends.replay.program import Floats, Ints, Program
from families.frontends import CopterShards, Relaxed, ShardCluster, load_rounds, repair
from families.protocol import Outcome, SolverOptions
from families.verdicts import judge_outcome

MOST_ROUNDS = 10_000
A_SERVER = 8  # shards, where the number of servers is not given


class ShardRounds:
    """Shards on servers whose loads change all at once.

    Parameters
    ----------
    shards : int
    servers : int or None
    change : {"stateless", "stateful"}
        Loads of every round for itself, or close to the last round's.
    seed : int
        Of the loads; 0 for the published ones.
    """

    changes: ClassVar[tuple[str, ...]] = ("stateless", "stateful")

    def __init__(self, shards: int, servers: int | None, change: str, seed: int) -> None:
        self.policy = CopterShards(ShardCluster.round_robin(shards, servers or max(2, shards // A_SERVER)))
        self.loads = load_rounds(shards, MOST_ROUNDS, change, seed or 42)
        self.coming = next(self.loads)
        self.load = np.zeros(shards)

    @property
    def cluster(self) -> ShardCluster:
        """As the last plan left it."""
        return self.policy.cluster

    @property
    def counts(self) -> dict[str, int]:
        """Size of the program with all columns."""
        d, n = self.cluster.holds.shape
        return {"jobs": d, "rows": 2 * n, "variables": d * n, "nonzeros": 3 * d * n}

    def prepare(self) -> None:
        """Draw the next loads."""
        self.coming = next(self.loads)

    def edit(self) -> None:
        """Take them in; the model's edits are made where it is solved, pass by pass."""
        _, self.load = self.policy.scaled(self.coming)

    def solver(self, options: SolverOptions) -> ShardSolver:
        """The frontend's linear program and shim."""
        return ShardSolver(self)

    def adopt(self, outcome: Outcome) -> None:
        """The copies of the plan are there now."""
        shard, server, _ = outcome.answer[1]
        holds = np.zeros_like(self.cluster.holds)
        holds[shard, server] = True
        self.policy.cluster = self.cluster.with_holds(holds)

    def program(self) -> Program:
        """Servers' loads, servers' memories, then shards; columns are shard by shard."""
        cluster, (d, n) = self.cluster, self.cluster.holds.shape
        server, shard = np.tile(np.arange(n), d), np.repeat(np.arange(d), n)
        row = np.stack((server, n + server, 2 * n + shard), axis=1).ravel()
        value = np.stack((self.load[shard], cluster.size[shard], np.ones(d * n)), axis=1).ravel()
        keys = np.arange(d * n)
        return Program(
            c=(cluster.new_copy[:, None] * ~cluster.holds).ravel(),
            A=sp.csc_array((value, row, np.arange(0, 3 * d * n + 1, 3)), shape=(2 * n + d, d * n)),
            row_lower=np.concatenate((np.full(n, 1.0 - cluster.band), np.full(n, -np.inf), np.ones(d))),
            row_upper=np.concatenate((np.full(n, 1.0 + cluster.band), cluster.memory, np.ones(d))),
            col_lower=np.zeros(d * n),
            col_upper=np.ones(d * n),
            column_key=keys,
            row_key=np.arange(2 * n + d),
            sense="min",
        )

    def point(self, outcome: Outcome) -> tuple[Floats, Floats]:
        """R and prices of the linear program."""
        relaxed: Relaxed = outcome.answer[0]
        x = np.zeros(self.cluster.holds.shape)
        np.add.at(x, (relaxed.shard, relaxed.server), relaxed.share)
        return x.ravel(), np.concatenate((relaxed.price, np.minimum(relaxed.memory_price, 0.0), relaxed.least))

    def whole(self, outcome: Outcome) -> tuple[Ints, Floats] | None:
        """None: copies are not columns of this program."""
        return None

    def judged_in_parts(self, outcome: Outcome) -> Judged | None:
        """As the judge finds the program as it is written out."""
        return judge_outcome(self, self.program(), outcome)


class ShardSolver:
    """copter's way through a round."""

    def __init__(self, family: ShardRounds) -> None:
        self.family = family

    def solve(self) -> Outcome:
        """The linear program, then the shim."""
        family, policy = self.family, self.family.policy
        started = time.perf_counter()
        relaxed = policy.formulation.solve(family.cluster, family.load, policy.standing(family.load))
        solve_s = time.perf_counter() - started
        shares = repair(family.cluster, family.load, relaxed.shard, relaxed.server, relaxed.share)
        return Outcome(
            status="optimal" if relaxed.bound >= relaxed.objective - 1e-5 * (1.0 + relaxed.objective) else "feasible",
            objective=relaxed.objective,
            bound=relaxed.bound,
            solve_s=solve_s,
            passes=relaxed.passes,
            iterations=relaxed.iterations,
            answer=(relaxed, shares),
        )
