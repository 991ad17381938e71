"""HiGHS in all its suitable ways; only its own calls are timed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.highs.lp import filled_lp, silent_highs
from copter_frontends.replay.peers.answer import Answer, Limits
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.program import Floats, Ints, Overlap, Program

Status: Any = highspy.HighsBasisStatus
INLINE = 2000  # up to this many changed coefficients are passed one by one, more as a whole program
Basis = tuple[list[Any], list[Any]]  # statuses of columns and of rows


@dataclass(frozen=True, slots=True)
class Way:
    """One way to use HiGHS.

    Attributes
    ----------
    options : dict
        Options of HiGHS.
    warm : bool
        Whether to start from the last basis; otherwise HiGHS's data of the last solve are dropped, so that it
        presolves.
    rebuilt : bool
        Whether to pass the whole program every round instead of editing it in place.
    integer : bool
        Whether to solve the MILP.
    """

    options: dict[str, Any]
    warm: bool = False
    rebuilt: bool = False
    integer: bool = False


SIMPLEX, IPM = {"solver": "simplex"}, {"solver": "ipm"}
WAYS: dict[str, Way] = {
    "highs_dual_warm": Way(SIMPLEX | {"simplex_strategy": 1}, warm=True),
    "highs_primal_warm": Way(SIMPLEX | {"simplex_strategy": 4}, warm=True),
    "highs_ipm_cold": Way(IPM | {"run_crossover": "on"}),
    "highs_ipm_cold_no_crossover": Way(IPM | {"run_crossover": "off"}),  # with its own tolerance of 1e-8
    "highs_ipm_cold_no_crossover_1e-6": Way(IPM | {"run_crossover": "off", "ipm_optimality_tolerance": 1e-6}),
    "highs_simplex_cold": Way(SIMPLEX),
}
MILP: dict[str, Way] = {"highs_milp": Way({}, rebuilt=True, integer=True)}


class Mirror:
    """A HiGHS object that follows a family's programs, with its own order of rows and columns.

    Remaining rows and columns keep their positions; new ones come last. A maximisation is passed as a minimisation,
    because without crossover HiGHS 1.15 returns prices of the wrong sign for some rows of a maximisation that presolve
    removed.
    """

    def __init__(self, name: str, way: Way) -> None:
        self.name, self.way = name, way
        self.highs = silent_highs()
        for option, value in way.options.items():
            self.highs.setOptionValue(option, value)
        self.known: Program | None = None  # in HiGHS's order
        self.columns: Ints = np.zeros(0, dtype=np.int64)  # positions of HiGHS's columns in the family's program
        self.rows: Ints = self.columns
        self.sign = 1.0  # sign of the costs, because HiGHS gets a minimisation

    # Updates ----------------------------------------------------------------------------------------------

    def update(self, program: Program) -> float:
        """Load a round's program; returns the seconds of HiGHS's calls."""
        if self.known is None:
            self.columns, self.rows = np.arange(program.shape[1]), np.arange(program.shape[0])
            self.known = program
            return self.pass_whole(program)
        if self.way.rebuilt:
            self.known = None
            return self.update(program)
        columns = Overlap.of(self.known.column_key, program.column_key)
        rows = Overlap.of(self.known.row_key, program.row_key)
        now = program.taken(rows.order, columns.order)
        changed = coefficients(self.known, now, rows, columns)
        self.columns, self.rows = columns.order, rows.order
        before, self.known = self.known, now
        # HiGHS itself extends its basis by new rows and columns; it drops it on deletions
        dropped = len(columns.gone) + len(rows.gone) > 0 or changed.nnz > INLINE
        basis = self.carried(rows, columns) if self.way.warm and dropped else None
        if changed.nnz > INLINE:
            seconds = self.pass_whole(now)
        else:
            seconds = self.delete(rows.gone, columns.gone)
            seconds += self.change(before, now, (rows.before, columns.before), changed)
            seconds += self.add(now, len(rows.before), len(columns.before))
        return seconds if basis is None else seconds + self.set_basis(basis)

    def pass_whole(self, program: Program) -> float:
        """Give HiGHS the whole program."""
        self.sign = 1.0 if program.sense == "min" else -1.0
        data = filled_lp(
            self.sign * program.c,
            program.A,
            (program.row_lower, program.row_upper),
            (program.col_lower, program.col_upper),
            program.integrality.astype(int) if self.way.integer else None,
            offset=self.sign * program.offset,
        )
        started = clock()
        self.highs.passModel(data)
        return clock() - started

    def delete(self, rows: Ints, columns: Ints) -> float:
        """Delete the removed rows and columns."""
        started = clock()
        if len(columns):
            self.highs.deleteCols(len(columns), columns.astype(np.int32))
        if len(rows):
            self.highs.deleteRows(len(rows), rows.astype(np.int32))
        return clock() - started

    def change(self, before: Program, now: Program, stay: tuple[Ints, Ints], changed: sp.coo_array) -> float:
        """Update changed costs, bounds, sides and coefficients of surviving rows and columns."""
        rows, columns = stay
        m, n = len(rows), len(columns)
        low, high, below, above = now.col_lower[:n], now.col_upper[:n], now.row_lower[:m], now.row_upper[:m]
        costs = places(before.c[columns] != now.c[:n])
        boxes = places((before.col_lower[columns] != low) | (before.col_upper[columns] != high))
        sides = places((before.row_lower[rows] != below) | (before.row_upper[rows] != above))
        cost, low, high, below, above = self.sign * now.c[costs], low[boxes], high[boxes], below[sides], above[sides]
        entries = list(zip(*(part.tolist() for part in (*changed.coords, changed.data)), strict=True))
        started = clock()
        if len(costs):
            self.highs.changeColsCost(len(costs), costs, cost)
        if len(boxes):
            self.highs.changeColsBounds(len(boxes), boxes, low, high)
        if len(sides):
            self.highs.changeRowsBounds(len(sides), sides, below, above)
        for row, column, value in entries:
            self.highs.changeCoeff(row, column, value)
        if before.offset != now.offset:
            self.highs.changeObjectiveOffset(self.sign * now.offset)
        return clock() - started

    def add(self, now: Program, m: int, n: int) -> float:
        """Add new rows with their entries in older columns, then new columns."""
        A = now.A
        tail = A[:, n:] if n else A
        head = A[:, :n].tocsr()[m:] if len(now.row_key) > m else None
        if head is not None:
            start, index = head.indptr[:-1].astype(np.int32), head.indices.astype(np.int32)
        first, row = tail.indptr[:-1].astype(np.int32), tail.indices.astype(np.int32)
        cost, low, high = self.sign * now.c[n:], now.col_lower[n:], now.col_upper[n:]
        below, above = now.row_lower[m:], now.row_upper[m:]
        started = clock()
        if head is not None:
            self.highs.addRows(len(below), below, above, head.nnz, start, index, head.data)
        if len(cost):
            self.highs.addCols(len(cost), cost, low, high, tail.nnz, first, row, tail.data)
        return clock() - started

    # Bases --------------------------------------------------------------------------------------------------------

    def last_basis(self) -> Basis | None:
        """Return HiGHS's basis, which it drops on deletions."""
        found = self.highs.getBasis()
        return (found.col_status, found.row_status) if found.valid else None

    def carried(self, rows: Overlap, columns: Overlap) -> Basis | None:
        """Return the last basis for the remaining rows and columns; new columns are at a finite bound, new rows
        basic.
        """
        last = self.last_basis()
        if last is None:
            return None
        own, sides = (np.array(part, dtype=object) for part in last)
        known = self.known
        assert known is not None
        low, high = known.col_lower[len(columns.before) :], known.col_upper[len(columns.before) :]
        fresh = np.where(np.isfinite(low), Status.kLower, np.where(np.isfinite(high), Status.kUpper, Status.kZero))
        return own[columns.before].tolist() + fresh.tolist(), sides[rows.before].tolist() + [Status.kBasic] * len(
            rows.fresh
        )

    def set_basis(self, basis: Basis) -> float:
        """Set the basis, which HiGHS repairs if its size is wrong; returns the seconds."""
        found = highspy.HighsBasis()
        found.col_status, found.row_status = basis
        found.valid, found.alien = True, True
        started = clock()
        self.highs.setBasis(found)
        return clock() - started

    def basis_at(self, x: Floats, y: Floats) -> Basis:
        """Return a basis for a point of the last program: columns between bounds and rows without a price are basic."""
        known = self.known
        assert known is not None
        x, y = x[self.columns], y[self.rows]
        column = np.full(len(x), Status.kBasic, dtype=object)
        column[x >= known.col_upper], column[x <= known.col_lower] = Status.kUpper, Status.kLower
        at_upper = (y > 0) == (known.sense == "max")
        row = np.where(y == 0, Status.kBasic, np.where(at_upper, Status.kUpper, Status.kLower))
        return column.tolist(), row.tolist()

    # Solving ------------------------------------------------------------------------------------------------------

    def solve(self, limit_s: float, edit_s: float) -> Answer:
        """Solve within a time limit, from the last basis in a warm way."""
        if not self.way.warm:
            self.highs.clearSolver()
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + limit_s)
        started = clock()
        self.highs.run()
        seconds = clock() - started
        info, status = self.highs.getInfo(), self.highs.getModelStatus()
        # Without crossover HiGHS often calls its point "unknown"; the judge decides whether it is good enough.
        optimal = status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnknown)
        has_point = optimal or (self.way.integer and info.primal_solution_status == 2)
        iterations = info.simplex_iteration_count, info.ipm_iteration_count, info.crossover_iteration_count
        found = Answer(
            way=self.name,
            optimal=optimal,
            status=self.highs.modelStatusToString(status),
            objective=self.sign * float(info.objective_function_value) if has_point else np.nan,
            edit_s=edit_s,
            solve_s=seconds,
            iterations=int(sum(max(count, 0) for count in iterations)),
        )
        if not has_point:
            return found
        x, y = self.values()
        return replace(found, x=x, y=y)

    def values(self) -> tuple[Floats, Floats]:
        """Return x and y in the family's order."""
        found = self.highs.getSolution()
        x, y = np.empty(len(self.columns)), np.zeros(len(self.rows))
        x[self.columns] = found.col_value
        if len(found.row_dual) == len(y):
            y[self.rows] = self.sign * np.array(found.row_dual)
        return x, y


class HighsPeer:
    """HiGHS in several ways, run one after the other.

    In the first round only the cold ways solve, and the warm ways start from their best basis. In later rounds the
    fastest way of the last round runs first and sets the time limit of the others.

    Parameters
    ----------
    ways : dict of name to Way
    """

    def __init__(self, ways: dict[str, Way]) -> None:
        self.mirrors = {name: Mirror(name, way) for name, way in ways.items()}
        self.last_s: dict[str, float] = {}
        self.needs_start = False  # whether no basis was found for the warm ways

    @property
    def ways(self) -> tuple[str, ...]:
        """Names of the ways that are kept."""
        return tuple(self.mirrors)

    def keep(self, ways: tuple[str, ...]) -> None:
        """Drop all other ways."""
        self.mirrors = {name: mirror for name, mirror in self.mirrors.items() if name in ways}

    def round(self, program: Program, limits: Limits) -> list[Answer]:
        """Apply the round's edits and solve, in every way in use."""
        edit_s = {name: mirror.update(program) for name, mirror in self.mirrors.items()}
        names, started = self.order(), bool(self.last_s)
        warm = [name for name in names if self.mirrors[name].way.warm]
        if not started and len(warm) < len(names):
            names = names[: -len(warm)] if warm else names
        found, best = [], np.inf
        for name in names:
            answer = self.mirrors[name].solve(limits.after(best), edit_s[name])
            found.append(answer)
            self.last_s[name] = answer.total_s
            best = min(best, answer.total_s) if answer.optimal else best
        if not started and len(names) < len(edit_s):
            self.start_warm(warm, found)
        return found

    def start_warm(self, warm: list[str], found: list[Answer]) -> None:
        """Start the warm ways from the basis of the fastest other way that has one."""
        for answer in sorted((a for a in found if a.optimal), key=lambda a: a.total_s):
            basis = self.mirrors[answer.way].last_basis()
            if basis is not None:
                for name in warm:
                    self.mirrors[name].set_basis(basis)
                return
        self.needs_start = bool(warm)

    def order(self) -> list[str]:
        """Return the ways' names in their order: warm ways are last in the first round and first in the second; later,
        the fastest of the last round comes first.
        """
        unknown = 0.0 if self.last_s else 1e9
        return sorted(self.mirrors, key=lambda name: self.last_s.get(name, unknown * self.mirrors[name].way.warm))

    def start_from(self, x: Floats, y: Floats) -> None:
        """Give the warm ways a basis at a point, if no cold solve has finished in time."""
        self.needs_start = False
        for mirror in self.mirrors.values():
            if mirror.way.warm:
                mirror.set_basis(mirror.basis_at(x, y))


def places(where: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the indices of true entries, as HiGHS expects them."""
    return np.flatnonzero(where).astype(np.int32)


def coefficients(before: Program, now: Program, rows: Overlap, columns: Overlap) -> sp.coo_array:
    """Return changed coefficients of surviving rows and columns, by position in `now`."""
    m, n = len(rows.before), len(columns.before)
    whole = m == len(before.row_key) == len(now.row_key) and n == len(before.column_key) == len(now.column_key)
    if whole and before.A.nnz == now.A.nnz and same(before.A, now.A):
        return sp.coo_array((m, n))
    old = before.taken(rows.before, columns.before).A
    new = now.A[:, :n].tocsr()[:m].tocsc()
    moved = (new - old).tocoo()  # the difference also has an entry where a coefficient became zero
    at = moved.data != 0
    row, column = moved.coords[0][at], moved.coords[1][at]
    value = np.asarray(new.tocsr()[row, column]).ravel() if len(row) else np.zeros(0)
    return sp.coo_array((value, (row, column)), shape=(m, n)) if len(row) else sp.coo_array((m, n))


def same(one: sp.csc_array, other: sp.csc_array) -> bool:
    """Whether two matrices are equal entry by entry."""
    return (
        np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and np.array_equal(one.data, other.data)
    )
