"""HiGHS used as fast as it honestly can be: edited in place, its basis kept; only its own calls are timed."""

from __future__ import annotations

import time
from typing import Any

import highspy
import numpy as np
from families.protocol import Family, Floats, Ints
from judge import Point

from peers.program import Answer, Snapshot, entries, matrix_of

Status = highspy.HighsBasisStatus


class HighsPeer:
    """HiGHS on the same sequence.

    Parameters
    ----------
    warm : bool
        Edit in place and start from the last basis; otherwise the model is passed anew every round.
    solver : str
        "ipm" or "simplex": how a solve without a basis goes.
    forget : bool
        Edit in place, but drop the basis before every solve: what edits are worth by themselves.
    """

    def __init__(self, warm: bool = True, solver: str = "ipm", forget: bool = False) -> None:
        self.warm, self.solver, self.forget = warm, solver, forget
        self.name = "highs_warm" if warm else f"highs_{solver}_cold"
        self.highs = highspy.Highs()
        self.highs.silent()
        self.known = Snapshot()
        self.has_basis = False

    # Keeping in step ----------------------------------------------------------------------------------------------

    def update(self, family: Family) -> float:
        """Hand the round's edits over; seconds that HiGHS's calls took."""
        now = Snapshot.of(family)
        if not self.warm or len(self.known.requests) == 0:
            seconds = self.pass_whole(family, now)
        else:
            here, there = self.known.kept(family)
            basis = self.basis() if len(here) < len(self.known.requests) or len(there) < len(now.requests) else None
            seconds = self.delete(here, family.columns)
            seconds += self.change(now, here, there, family.columns)
            seconds += self.add(family, now, there)
            if basis is not None:
                seconds += self.restore(basis, here, there, len(now.requests), family.columns)
        self.known = now
        return seconds

    def pass_whole(self, family: Family, now: Snapshot) -> float:
        """Give HiGHS the whole model."""
        matrix, n = matrix_of(family), len(now.requests)
        data = highspy.HighsLp()
        data.num_row_, data.num_col_ = matrix.shape
        data.sense_ = highspy.ObjSense.kMaximize
        data.col_cost_ = now.cost.ravel()
        data.col_lower_, data.col_upper_ = np.zeros(matrix.shape[1]), np.repeat(now.limits, family.columns)
        data.row_lower_ = np.full(matrix.shape[0], -np.inf)
        data.row_upper_ = np.concatenate((now.capacity, now.limits))
        data.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        data.a_matrix_.start_, data.a_matrix_.index_ = matrix.indptr, matrix.indices
        data.a_matrix_.value_ = matrix.data
        assert matrix.shape[0] == len(now.capacity) + n
        started = time.perf_counter()
        self.highs.passModel(data)
        self.has_basis = False
        return time.perf_counter() - started

    def basis(self) -> tuple[list[Any], list[Any]] | None:
        """The last basis, which HiGHS drops on deletes."""
        found = self.highs.getBasis()
        return (found.col_status, found.row_status) if found.valid else None

    def delete(self, here: Ints, k: int) -> float:
        """Delete the requests that are not among those kept."""
        gone = np.setdiff1d(np.arange(len(self.known.requests)), here)
        if len(gone) == 0:
            return 0.0
        columns = (gone[:, None] * k + np.arange(k)).ravel().astype(np.int32)
        rows = (len(self.known.capacity) + gone).astype(np.int32)
        started = time.perf_counter()
        self.highs.deleteCols(len(columns), columns)
        self.highs.deleteRows(len(rows), rows)
        return time.perf_counter() - started

    def change(self, now: Snapshot, here: Ints, there: Ints, k: int) -> float:
        """Change costs, limits and capacities that are not what they were, in the order after the deletes."""
        before, after = self.known.cost[here].ravel(), now.cost[there].ravel()
        columns = np.flatnonzero(before != after).astype(np.int32)
        costs = after[columns]
        limited = np.flatnonzero(self.known.limits[here] != now.limits[there])
        limits = now.limits[there][limited]
        bounded = (limited[:, None] * k + np.arange(k)).ravel().astype(np.int32)
        upper = np.repeat(limits, k)
        moved = np.flatnonzero(self.known.capacity != now.capacity)
        rows = np.concatenate((moved, len(now.capacity) + limited)).astype(np.int32)
        bounds = np.concatenate((now.capacity[moved], limits))
        lower, none = np.zeros(len(bounded)), np.full(len(rows), -np.inf)
        started = time.perf_counter()
        if len(columns):
            self.highs.changeColsCost(len(columns), columns, costs)
        if len(bounded):
            self.highs.changeColsBounds(len(bounded), bounded, lower, upper)
        for row, low, high in zip(rows.tolist(), none.tolist(), bounds.tolist(), strict=True):
            self.highs.changeRowBounds(row, low, high)
        return time.perf_counter() - started

    def add(self, family: Family, now: Snapshot, there: Ints) -> float:
        """Add the requests that arrived; they stand at the end."""
        fresh = np.setdiff1d(np.arange(len(now.requests)), there)
        if len(fresh) == 0:
            return 0.0
        start, row, value = entries(family, fresh, len(now.capacity) + len(there))
        count, limits = len(fresh) * family.columns, now.limits[fresh]
        costs, upper = now.cost[fresh].ravel(), np.repeat(limits, family.columns)
        start, row = start[:-1].astype(np.int32), row.astype(np.int32)
        none, lower, low = np.zeros(0, dtype=np.int32), np.full(len(fresh), -np.inf), np.zeros(count)
        started = time.perf_counter()
        self.highs.addRows(len(fresh), lower, limits, 0, none, none, np.zeros(0))
        self.highs.addCols(count, costs, low, upper, len(value), start, row, value)
        return time.perf_counter() - started

    def restore(self, basis: tuple[list[Any], list[Any]], here: Ints, there: Ints, n: int, k: int) -> float:
        """Set what survives of the basis: new columns at their lower bound, new limits' rows basic."""
        columns, rows = [Status.kLower] * (n * k), basis[1][: len(self.known.capacity)] + [Status.kBasic] * n
        shift = len(self.known.capacity)
        for before, after in zip(here.tolist(), there.tolist(), strict=True):
            columns[after * k : after * k + k] = basis[0][before * k : before * k + k]
            rows[shift + after] = basis[1][shift + before]
        return self.set_basis(columns, rows)

    def set_basis(self, columns: list[Any], rows: list[Any]) -> float:
        """Seconds that setBasis takes; HiGHS repairs one of the wrong size."""
        basis = highspy.HighsBasis()
        basis.col_status, basis.row_status = columns, rows
        basis.valid, basis.alien = True, True
        started = time.perf_counter()
        self.highs.setBasis(basis)
        self.has_basis = True
        return time.perf_counter() - started

    def start_from(self, family: Family, point: Point) -> None:
        """Give HiGHS the basis of copter's vertex, for where its own cold solve did not end in time."""
        n, k, rows = len(family.requests), family.columns, len(family.capacity)
        column_status, row_status = [Status.kLower] * (n * k), [Status.kUpper] * (rows + n)
        positive = point.x > 0
        support = np.bincount(point.place[positive], minlength=n)
        for at in (point.place[positive] * k + point.column[positive]).tolist():
            column_status[at] = Status.kBasic
        for at in np.flatnonzero(support == 0).tolist():
            row_status[rows + at] = Status.kBasic
        extra = int(np.maximum(support - 1, 0).sum())
        for row in np.argsort(point.price)[: max(rows - extra, 0)].tolist():
            row_status[row] = Status.kBasic
        self.set_basis(column_status, row_status)

    # Solving ------------------------------------------------------------------------------------------------------

    def solve(self, time_limit_s: float) -> Answer:
        """Solve from the basis at hand, cold when there is none, within a time limit."""
        if self.forget:
            self.highs.clearSolver()
            self.has_basis = False
        self.highs.setOptionValue("solver", "simplex" if self.has_basis else self.solver)
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + time_limit_s)
        started = time.perf_counter()
        self.highs.run()
        seconds = time.perf_counter() - started
        info, status = self.highs.getInfo(), self.highs.getModelStatus()
        optimal = status == highspy.HighsModelStatus.kOptimal
        self.has_basis = self.warm and bool(self.highs.getBasis().valid)
        x, price = self.values() if optimal else (None, None)
        return Answer(
            optimal=optimal,
            status=self.highs.modelStatusToString(status),
            objective=float(info.objective_function_value),
            solve_s=seconds,
            iterations=int(max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0)),
            x=x,
            price=price,
        )

    def values(self) -> tuple[Floats, Floats]:
        """Columns' values and the resources' prices."""
        found = self.highs.getSolution()
        return np.array(found.col_value), np.array(found.row_dual[: len(self.known.capacity)])
