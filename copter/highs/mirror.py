"""A copy of a model in HiGHS, kept up to date by edits, for comparisons of copter with HiGHS.

The mirror uses HiGHS in the fastest way we know: rows and columns are added and deleted in place, costs and bounds
changed in place, and each solve starts from the last basis. Where most of a program is new in every round, passing it
whole is faster, with the part of the last basis that survives.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from copter.highs.lp import filled_lp, run_highs, silent_highs
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution
from copter.runtime.errors import CopterError

try:
    import highspy
except ImportError as error:  # pragma: no cover - depends on the installation
    raise CopterError("the HiGHS comparison needs highspy: pip install highspy") from error

Floats = NDArray[np.float64]
Names = list[Hashable]

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4  # values of HiGHS's simplex_strategy


@dataclass(frozen=True, slots=True)
class HighsRun:
    """Result of one HiGHS solve: status, objective, seconds for the edits and the solve, simplex and IPM iterations."""

    optimal: bool
    status: str
    objective: float
    edit_s: float
    solve_s: float
    iterations: int


class Mirrored(Protocol):
    """What a mirror reads of a :class:`copter.Model`."""

    @property
    def ledger(self) -> Any:
        """The matrix, and where requests and resources are in it."""

    @property
    def requests(self) -> Iterable[Hashable]:
        """The requests' ids."""

    @property
    def resources(self) -> Iterable[Hashable]:
        """The resources' ids."""

    def cost(self, request: Hashable, /) -> Floats:
        """Return a request's costs."""

    def count(self, resource: Hashable, /) -> float:
        """Return a resource's count."""

    def fixed(self, request: Hashable, /) -> int | None:
        """Return the column to which a request is fixed."""

    def to_linear_program(self) -> LinearProgram:
        """Return the model as one program."""


class HighsMirror:
    """A copy in HiGHS of a :class:`copter.Model`.

    Edited in place, the model's requests all have finite limits and no rows of their own, and its resources stay.

    Parameters
    ----------
    model : Model
    threads : int
        Threads that HiGHS may use; 0 for its own choice.
    primal : bool
        Whether HiGHS continues by primal simplex: by far its fastest method while the last basis is nearly optimal, as
        after the edits of one round. After the edits of many rounds dual simplex is faster (docs/decisions.md).
    whole : bool
        Whether to pass the whole program each time, which is faster in HiGHS than edits if most of it is new. For the
        basis, columns are matched by request and position (unless the request was added again), rows by resource and
        request.
    """

    def __init__(self, model: Mirrored, threads: int = 0, primal: bool = True, whole: bool = False) -> None:
        self.model, self.whole = model, whole
        self.highs = silent_highs()
        self.highs.setOptionValue("threads", threads)
        self.highs.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX if primal else DUAL_SIMPLEX)
        self._resources: dict[Hashable, float] = {}
        self._sizes: dict[Hashable, int] = {}
        self._columns_at: dict[Hashable, int] = {}
        self._versions: dict[Hashable, tuple[Any, ...]] = {}
        self._empty = True
        self._statuses: tuple[dict[Hashable, Any], dict[Hashable, Any]] | None = None
        self._names: tuple[Names, Names] = ([], [])

    # Keeping in step ----------------------------------------------------------------------------------------------

    def update(self) -> float:
        """Pass all edits since the last call to HiGHS; returns the seconds that HiGHS's own calls took."""
        if self.whole:
            return self._pass_again()
        if self.model.ledger.matrix.n_with_rows:
            raise CopterError("a mirror knows limits only: pass model.to_linear_program() of requests with own rows")
        if self._empty:
            self._sizes = {r: len(self.model.cost(r)) for r in self.model.requests}
            self._columns_at = {r: self.model.ledger.columns_at[r] for r in self.model.requests}
            return self._pass_whole()
        kept = self._basis_by_request()
        seconds = self._delete_departed()
        seconds += self._change_capacities()
        seconds += self._add_arrived()
        seconds += self._change_costs_and_bounds()
        if kept is not None:
            seconds += self._give_basis_back(*kept)
        return seconds

    def _pass_again(self) -> float:
        """Pass the model and the surviving part of the last basis."""
        basis = self.highs.getBasis()
        if basis.valid and self._names[0]:
            self._statuses = (
                dict(zip(self._names[0], basis.col_status, strict=True)),
                dict(zip(self._names[1], basis.row_status, strict=True)),
            )
        lp = self.model.to_linear_program()
        ledger, status = self.model.ledger, highspy.HighsBasisStatus
        sizes = [(request, ledger.added_at[request], len(self.model.cost(request))) for request in self.model.requests]
        columns: Names = [(request, at, k) for request, at, count in sizes for k in range(count)]
        rows: Names = [("resource", resource) for resource in self.model.resources]
        if len(rows) + len(sizes) == lp.shape[0]:
            rows += [("request", request) for request, _, _ in sizes]
        else:  # requests have private rows, which are matched by position only
            rows += [("row", place) for place in range(len(rows), lp.shape[0])]
        seconds = self._pass(lp, np.full(lp.shape[1], np.inf))  # the sums bound the columns
        self._names = (columns, rows)
        if self._statuses is not None:
            of_columns, of_rows = self._statuses
            new = highspy.HighsBasis()
            new.col_status = [of_columns.get(name, status.kLower) for name in columns]
            new.row_status = [of_rows.get(name, status.kBasic) for name in rows]
            new.valid, new.alien = True, True
            started = time.perf_counter()
            self.highs.setBasis(new)
            seconds += time.perf_counter() - started
        return seconds

    def _basis_by_request(self) -> tuple[dict[Hashable, tuple[list[Any], Any]], list[Any]] | None:
        """Return the last basis by request (columns, limit row) and by resource; HiGHS drops its own when rows are
        deleted.
        """
        basis = self.highs.getBasis()
        if not basis.valid:
            return None
        columns, rows, at = basis.col_status, basis.row_status, 0
        result = {}
        for position, (request, size) in enumerate(self._sizes.items()):
            result[request] = (columns[at : at + size], rows[len(self._resources) + position])
            at += size
        return result, rows[: len(self._resources)]

    def _give_basis_back(self, kept: dict[Hashable, tuple[list[Any], Any]], resources: list[Any]) -> float:
        """Set the basis that survives the edits: new columns at their lower bounds, new rows basic."""
        status = highspy.HighsBasisStatus
        basis = highspy.HighsBasis()
        columns: list[Any] = []
        rows = list(resources)
        for request, size in self._sizes.items():
            of_columns, of_row = kept.get(request, ([], status.kBasic))
            if len(of_columns) != size:
                of_columns, of_row = [status.kLower] * size, status.kBasic
            columns += of_columns
            rows.append(of_row)
        # A basis needs one member for each row. A removed job with two basic columns leaves one member too few, so a
        # resource's slack becomes basic. Otherwise HiGHS would search for a basis of its own, which takes it a minute
        # here.
        missing = len(rows) - rows.count(status.kBasic) - columns.count(status.kBasic)
        for at in range(len(self._resources)):
            if missing > 0 and rows[at] != status.kBasic:
                rows[at] = status.kBasic
                missing -= 1
        basis.col_status, basis.row_status = columns, rows
        basis.valid, basis.alien = True, missing != 0
        started = time.perf_counter()
        self.highs.setBasis(basis)
        return time.perf_counter() - started

    def _pass_whole(self) -> float:
        lp = self.model.to_linear_program()
        uppers = [self._bounds(request)[1] for request in self._sizes]
        seconds = self._pass(lp, np.concatenate(uppers or [np.zeros(0)]))
        self._empty = False
        self._resources = {r: self.model.count(r) for r in self.model.resources}
        self._remember_bounds()
        return seconds

    def _pass(self, lp: LinearProgram, col_upper: Floats) -> float:
        """Pass a program with other upper bounds."""
        columns = (lp.col_lower, col_upper)
        data = filled_lp(lp.c, lp.A, (lp.row_lower, lp.row_upper), columns, sense=lp.sense, offset=lp.offset)
        started = time.perf_counter()
        self.highs.passModel(data)
        return time.perf_counter() - started

    def _bounds(self, request: Hashable) -> tuple[Floats, Floats]:
        """Return a request's bounds, without upper bounds that its limit implies.

        The program is equivalent, and HiGHS is faster: its dual simplex sorts all columns with two finite bounds in
        every ratio test, which takes half a second an iteration for 1.8 million of them.
        """
        slot = self.model.ledger.slot(request)
        lower, upper = self.model.ledger.matrix.bounds_of(slot)
        if self.model.fixed(request) is None and not lower.any():
            upper[upper >= self.model.ledger.matrix.limit_of(slot)] = np.inf
        return lower, upper

    def _delete_departed(self) -> float:
        gone = {r for r in self._sizes if self.model.ledger.columns_at.get(r) != self._columns_at[r]}
        if not gone:
            return 0.0
        columns, rows, at = [], [], 0
        for position, (request, size) in enumerate(self._sizes.items()):
            if request in gone:
                columns.append(np.arange(at, at + size, dtype=np.int32))
                rows.append(len(self._resources) + position)
            at += size
        started = time.perf_counter()
        self.highs.deleteCols(sum(map(len, columns)), np.concatenate(columns))
        self.highs.deleteRows(len(rows), np.array(rows, dtype=np.int32))
        seconds = time.perf_counter() - started
        for request in gone:  # one that was added again, or has got other columns, is treated as new
            del self._sizes[request], self._columns_at[request]
            self._versions.pop(request, None)
        return seconds

    def _change_capacities(self) -> float:
        started = time.perf_counter()
        for row, (resource, before) in enumerate(self._resources.items()):
            now = self.model.count(resource)
            if now != before:
                self.highs.changeRowBounds(row, -np.inf, now)
                self._resources[resource] = now
        return time.perf_counter() - started

    def _add_arrived(self) -> float:
        fresh = [r for r in self.model.requests if r not in self._sizes]
        if not fresh:
            return 0.0
        matrix, row_of = self.model.ledger.matrix, {s: i for i, s in enumerate(self.model.ledger.row_of.values())}
        first = len(self._resources) + len(self._sizes)
        costs, uppers, starts, indices, values, limits, offset = [], [], [], [], [], [], 0
        for position, request in enumerate(fresh):
            slot = self.model.ledger.slot(request)
            template = matrix.slabs[slot].template
            n = template.n_columns
            entries = np.diff(template.column_start)
            shared = np.array([row_of[int(s)] for s in template.row], dtype=np.int32)
            costs.append(self.model.cost(request))
            uppers.append(self._bounds(request)[1])
            limits.append(matrix.limit_of(slot))
            at = template.column_start[1:]  # each column's entry in the limit row follows its other entries
            indices.append(np.insert(shared, at, first + position))
            values.append(np.insert(template.coefficient, at, 1.0))
            starts.append(offset + np.concatenate(([0], np.cumsum(entries + 1)[:-1])))
            offset += int(entries.sum()) + n
            self._sizes[request], self._columns_at[request] = n, self.model.ledger.columns_at[request]
        count = sum(map(len, costs))
        none = np.zeros(0, dtype=np.int32)
        started = time.perf_counter()
        self.highs.addRows(len(fresh), np.full(len(fresh), -np.inf), np.array(limits), 0, none, none, np.zeros(0))
        self.highs.addCols(
            count,
            np.concatenate(costs),
            np.zeros(count),
            np.concatenate(uppers),
            offset,
            np.concatenate(starts).astype(np.int32),
            np.concatenate(indices).astype(np.int32),
            np.concatenate(values),
        )
        return time.perf_counter() - started

    def _change_costs_and_bounds(self) -> float:
        costs = np.concatenate([self.model.cost(r) for r in self._sizes])
        columns = np.arange(len(costs), dtype=np.int32)
        started = time.perf_counter()
        self.highs.changeColsCost(len(costs), columns, costs)
        seconds = time.perf_counter() - started
        at = 0
        for request, size in self._sizes.items():
            fixed = (self.model.fixed(request),)
            if self._versions.get(request, (None,)) != fixed:
                lower, upper = self._bounds(request)
                started = time.perf_counter()
                self.highs.changeColsBounds(size, np.arange(at, at + size, dtype=np.int32), lower, upper)
                seconds += time.perf_counter() - started
                self._versions[request] = fixed
            at += size
        return seconds

    def _remember_bounds(self) -> None:
        self._versions = {r: (self.model.fixed(r),) for r in self._sizes}

    # Solving ------------------------------------------------------------------------------------------------------

    def run(self, time_limit_s: float, edit_s: float = 0.0, solver: str = "choose") -> HighsRun:
        """Solve from the current basis, or cold without one, within a time limit."""
        self.highs.setOptionValue("solver", solver)
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + time_limit_s)
        started = time.perf_counter()
        run_highs(self.highs)
        seconds = time.perf_counter() - started
        info = self.highs.getInfo()
        status = self.highs.getModelStatus()
        return HighsRun(
            optimal=status == highspy.HighsModelStatus.kOptimal,
            status=self.highs.modelStatusToString(status),
            objective=float(info.objective_function_value),
            edit_s=edit_s,
            solve_s=seconds,
            iterations=int(max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0)),
        )

    def start_from(self, solution: Solution) -> None:
        """Give HiGHS the basis of a purified solution, for programs that its own cold solve does not finish.

        A mirror of whole programs starts without one.
        """
        if self.whole:
            return
        basis = highspy.HighsBasis()
        status = highspy.HighsBasisStatus
        n_rows = len(self._resources) + len(self._sizes)
        column_status = [status.kLower] * sum(self._sizes.values())
        row_status = [status.kUpper] * n_rows
        by_request = {request: (columns, values) for request, columns, values in solution.by_request()}
        at, extra = 0, 0
        for position, (request, size) in enumerate(self._sizes.items()):
            columns, values = by_request.get(request, (np.zeros(0, dtype=np.int64), np.zeros(0)))
            support = columns[values > 0]
            for column in support:
                column_status[at + int(column)] = status.kBasic
            if len(support) == 0:
                row_status[len(self._resources) + position] = status.kBasic
            extra += max(len(support) - 1, 0)
            at += size
        # Rows with a price of zero are basic; if the basis still lacks members, rows with the smallest prices are
        # added.
        prices = np.abs([solution.price(r) for r in self._resources])
        for row in np.argsort(prices)[: max(len(prices) - extra, 0)]:
            row_status[int(row)] = status.kBasic
        basis.col_status, basis.row_status, basis.valid = column_status, row_status, True
        self.highs.setBasis(basis)
