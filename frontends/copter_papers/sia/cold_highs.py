"""Sia's program solved from scratch by HiGHS every round: LP* and the exact MILP (papers/baselines.md, B33-B34)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter import Model, Status
from copter.runtime.errors import SettingsError
from copter_frontends.policies.sia.policy import SiaPolicy
from copter_frontends.vocabulary import Cluster, Plan

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ColdSolution:
    """HiGHS's solution, with the part of :class:`copter.Solution` that Sia's shim and plan use.

    Attributes
    ----------
    status : Status
        OPTIMAL, or TIME_LIMIT if HiGHS did not end in time.
    objective, bound : float
        Value of the point, and an upper bound on the program's optimum.
    blocks : dict of request to float64 array
        Values of each request's columns.
    prices : dict of resource to float
        Duals of the resources' rows; zeros for the integer program.
    """

    status: Status
    objective: float
    bound: float
    blocks: Mapping[Hashable, Floats]
    prices: Mapping[Hashable, float]

    def by_request(self) -> Iterator[tuple[Hashable, NDArray[np.int64], Floats]]:
        """Yield every request with its nonzero columns and their values."""
        for request, block in self.blocks.items():
            columns = np.flatnonzero(block > 1e-9)
            yield request, columns, block[columns]

    def by_column(self) -> tuple[list[Hashable], NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return :meth:`by_request` as arrays: all requests, then (index of the request, column, value)."""
        found = [np.flatnonzero(block > 1e-9) for block in self.blocks.values()]
        values = [block[columns] for columns, block in zip(found, self.blocks.values(), strict=True)]
        owner = np.repeat(np.arange(len(found)), [len(columns) for columns in found])
        none = np.zeros(0, dtype=np.int64)
        return list(self.blocks), owner, np.concatenate([none, *found]), np.concatenate([np.zeros(0), *values])

    def price(self, resource: Hashable) -> float:
        """Return the dual of a resource's row."""
        return self.prices[resource]


@dataclass(frozen=True)
class ColdHighs:
    """A solver without warm starts: HiGHS receives the whole model every time.

    Parameters
    ----------
    integer : bool
        Whether to solve the integer program instead of its relaxation.
    relative_gap : float
        Gap of the integer program at which HiGHS stops.
    time_limit_s : float
        Time limit of a solve; the deadline given to :meth:`solve` holds too.
    threads : int
        Threads of HiGHS; 0 for its own choice.

    Raises
    ------
    SettingsError
        If the gap or the time limit is out of range.
    """

    integer: bool
    relative_gap: float = 1e-4
    time_limit_s: float = math.inf
    threads: int = 0

    def __post_init__(self) -> None:
        if not self.relative_gap >= 0:
            raise SettingsError(f"relative_gap is {self.relative_gap}, must be >= 0")
        if not self.time_limit_s > 0:
            raise SettingsError(f"time_limit_s is {self.time_limit_s}, must be > 0")

    def solve(self, model: Model, deadline_s: float) -> tuple[ColdSolution, float]:
        """Return a model's solution and HiGHS's own seconds. All columns are zero if there is no point in time."""
        from copter.highs.mirror import HighsMirror  # needs highspy, an optional extra

        mirror = HighsMirror(model, self.threads)
        edit_s = mirror.update()
        count = model.n_columns
        if self.integer and count:
            columns = np.arange(count, dtype=np.int32)
            mirror.highs.changeColsIntegrality(count, columns, np.ones(count, dtype=np.uint8))
            mirror.highs.setOptionValue("mip_rel_gap", self.relative_gap)
        limit_s = min(self.time_limit_s, deadline_s, 1e7)
        run = mirror.run(limit_s, edit_s, "choose" if self.integer else "ipm")
        result, info = mirror.highs.getSolution(), mirror.highs.getInfo()
        x = np.asarray(result.col_value) if result.value_valid else np.zeros(count)
        prices = np.zeros(len(model.resources))
        if result.dual_valid and not self.integer:
            prices = np.maximum(np.asarray(result.row_dual)[: len(prices)], 0.0)
        bound = float(info.mip_dual_bound) if self.integer else math.inf
        if not math.isfinite(bound):
            bound = priced_bound(model, prices)
        blocks, objective = _by_request(model, x)
        solution = ColdSolution(
            status=Status.OPTIMAL if run.optimal else Status.TIME_LIMIT,
            objective=objective,
            bound=max(bound, objective),
            blocks=blocks,
            prices=dict(zip(model.resources, prices.tolist(), strict=True)),
        )
        return solution, edit_s + run.solve_s


def _by_request(model: Model, x: Floats) -> tuple[dict[Hashable, Floats], float]:
    """Split a point into the requests' columns; also returns its objective."""
    blocks: dict[Hashable, Floats] = {}
    at, objective = 0, model.offset
    for request in model.requests:
        cost = model.cost(request)
        blocks[request] = x[at : at + len(cost)]
        objective += float(cost @ blocks[request])
        at += len(cost)
    return blocks, objective


def priced_bound(model: Model, prices: Floats) -> float:
    """Return the dual bound of a maximisation: sum N_k pi_k + sum_i limit_i max(0, max_c (v_ic - n_c' pi))."""
    lp = model.to_linear_program()
    resources = list(model.resources)
    counts = np.array([model.count(resource) for resource in resources])
    reduced = np.asarray(lp.c - lp.A.tocsr()[: len(resources)].T @ prices)
    total, at = float(counts @ prices) + model.offset, 0
    for request in model.requests:
        size, held = len(model.cost(request)), model.fixed(request)
        block = reduced[at : at + size]
        total += float(block[held]) if held is not None else model.limit(request) * max(0.0, float(block.max()))
        at += size
    return total


class ColdSiaPolicy(SiaPolicy):
    """Sia with its program solved cold by HiGHS: the relaxation and Sia's shim (LP*), or the integer program.

    Parameters
    ----------
    cluster : Cluster
    integer : bool
    relative_gap, time_limit_s, threads
        See :class:`ColdHighs`.
    **options
        Arguments of :class:`~copter_frontends.policies.sia.policy.SiaPolicy`.

    Raises
    ------
    SettingsError
        If the gap or the time limit is out of range.
    """

    def __init__(
        self,
        cluster: Cluster,
        integer: bool = False,
        relative_gap: float = 1e-4,
        time_limit_s: float = math.inf,
        threads: int = 0,
        **options: Any,
    ) -> None:
        self.solver = ColdHighs(integer, relative_gap, time_limit_s, threads)
        self._solve_s = 0.0
        super().__init__(cluster, **options)

    def solve(self, deadline_s: float) -> ColdSolution:
        """Return HiGHS's solution."""
        solution, self._solve_s = self.solver.solve(self.formulation.model, deadline_s)
        return solution

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """Plan as Sia does; the reported solve time is HiGHS's own, without copying the model."""
        plan = super().plan(now_s, deadline_s)
        return replace(plan, timings={**plan.timings, "solve": self._solve_s})
