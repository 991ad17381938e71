"""Sia's programme solved from scratch by HiGHS every round: LP* and the exact MILP (docs/baselines.md, B26-B27)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter import Model, Residuals, Session, Solution, Status
from copter.errors import SettingsError
from copter.model.assembly import sparse_values
from copter.problem.residuals import relative_gap
from copter_frontends.sia import SiaPolicy
from copter_frontends.vocabulary import Cluster, Plan

Floats = NDArray[np.float64]


class ColdHighsSession(Session):
    """A session that remembers nothing: HiGHS gets the whole model and starts cold.

    Parameters
    ----------
    model : Model
    integer : bool
        Solve the integer programme, and not its relaxation.
    relative_gap : float
        Of the integer programme, where HiGHS may stop.
    time_limit_s : float
        Of a solve; the deadline that :meth:`solve` is given holds too.
    threads : int
        Of HiGHS; 0 for its own choice.
    """

    def __init__(
        self, model: Model, integer: bool, relative_gap: float = 1e-4, time_limit_s: float = math.inf, threads: int = 0
    ) -> None:
        super().__init__(model)
        self.integer, self.relative_gap, self.time_limit_s, self.threads = integer, relative_gap, time_limit_s, threads
        self.last_solve_s = 0.0

    def solve(self, deadline_s: float | None = None, callback: object = None) -> Solution:
        """Hand the model over and solve it; the plan of no columns where HiGHS found none in time."""
        from copter.interop.highs import HighsMirror

        limit_s = min(self.time_limit_s, math.inf if deadline_s is None else deadline_s)
        mirror = HighsMirror(self.model, self.threads)
        edit_s = mirror.update()
        count = self.model.n_columns
        if self.integer and count:
            columns = np.arange(count, dtype=np.int32)
            mirror.highs.changeColsIntegrality(count, columns, np.ones(count, dtype=np.uint8))
            mirror.highs.setOptionValue("mip_rel_gap", self.relative_gap)
        run = mirror.run(min(limit_s, 1e7), edit_s, "choose" if self.integer else "ipm")
        self.last_solve_s = edit_s + run.solve_s
        found, info = mirror.highs.getSolution(), mirror.highs.getInfo()
        x = np.asarray(found.col_value) if found.value_valid else np.zeros(count)
        prices = np.zeros(len(self.model.resources))
        if found.dual_valid and not self.integer:
            prices = np.maximum(np.asarray(found.row_dual)[: len(prices)], 0.0)
        bound = float(info.mip_dual_bound) if self.integer else math.inf
        if not math.isfinite(bound):
            bound = priced_bound(self.model, prices)
        return self._answer(x, prices, bound, run.optimal)

    def _answer(self, x: Floats, prices: Floats, bound: float, optimal: bool) -> Solution:
        model = self.model
        keys, values, at, objective = [], [], 0, model.offset
        for request in model.requests:
            cost = model.cost(request)
            block = x[at : at + len(cost)]
            columns = np.flatnonzero(block > 1e-9)
            keys.append((np.int64(model.ledger.slot(request)) << 32) | columns.astype(np.int64))
            values.append(block[columns])
            objective += float(cost @ block)
            at += len(cost)
        key = np.concatenate([np.zeros(0, dtype=np.int64), *keys])
        value = np.concatenate([np.zeros(0), *values])
        order = np.argsort(key)
        y = np.zeros(max(model.ledger.row_of.values(), default=-1) + 1)
        for resource, price in zip(model.resources, prices, strict=True):
            y[model.ledger.row(resource)] = price
        return Solution.of_model(
            Status.OPTIMAL if optimal else Status.TIME_LIMIT,
            objective,
            max(bound, objective),
            True,
            Residuals(0.0, 0.0, relative_gap(objective, bound), 0.0, 0.0, abs(objective - bound)),
            sparse_values(model.ledger, key[order], value[order], y),
            solve_time_s=self.last_solve_s,
            model_version=model.version,
        )


def priced_bound(model: Model, prices: Floats) -> float:
    """Dual bound of a maximisation from prices alone: sum N_k pi_k + sum_i limit_i max(0, max_c (v_ic - n_c' pi))."""
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
    """Sia with its programme solved cold by HiGHS: the relaxation and Sia's shim (LP*), or the integer programme.

    Parameters
    ----------
    cluster : Cluster
    integer : bool
    relative_gap, time_limit_s, threads
        As for :class:`ColdHighsSession`.
    **options
        Of :class:`~copter_frontends.sia.SiaPolicy`.

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
        if not relative_gap >= 0:
            raise SettingsError(f"relative_gap is {relative_gap}, must be >= 0")
        if not time_limit_s > 0:
            raise SettingsError(f"time_limit_s is {time_limit_s}, must be > 0")
        self._cold = (integer, relative_gap, time_limit_s, threads)
        super().__init__(cluster, **options)

    def _build(self) -> None:
        super()._build()
        self.formulation.session = ColdHighsSession(self.formulation.model, *self._cold)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.formulation.session = ColdHighsSession(self.formulation.model, *self._cold)

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """As Sia's, with HiGHS's own time as the time of the solve, as if the model were with it already."""
        plan = super().plan(now_s, deadline_s)
        session = self.formulation.session
        assert isinstance(session, ColdHighsSession)
        return replace(plan, timings={**plan.timings, "solve": session.last_solve_s})
