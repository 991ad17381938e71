"""CVXPY problems with concave worths: sums of logarithms, powers and minima of totals, as a model kept between solves.

CVXPY hands a problem over as cones: a logarithm t <= log(z) is an exponential cone (t, 1, z), a power a power cone. A
problem is of this kind (docs/method/concave_worth.md, W1) if every such t stands in the objective alone, the totals z
are made of different columns at or above zero with rates at or above zero, and a row, or all rows together, bound the
sum of each total's columns. Everything else is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from cvxpy import settings as words
from cvxpy.error import SolverError
from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver
from numpy.typing import NDArray

from copter.model.model import Model
from copter.problem.solution import Solution
from copter.problem.worth import Worth, log, minimum, power
from copter.runtime.errors import CopterError
from copter.runtime.settings import Settings
from copter.session.session import Session

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

SAME = 1e-9  # relative difference up to which the lines of a minimum are multiples of one total
IMPLIED = 1e-9  # ... and up to which bounds of t are those that its worth has anyway


@dataclass(frozen=True, slots=True)
class Term:
    """A worth as CVXPY states it: variable `t`, at most worth(rates' x[columns]) + constant."""

    t: int
    columns: Ints
    rates: Floats
    worth: Worth
    constant: float
    weight: float


@dataclass(frozen=True, slots=True)
class Request:
    """Columns that one limit bounds, with what they cost and use, in the signs of a maximisation."""

    columns: Ints
    cost: Floats
    limit: float
    limit_row: int
    exact: bool
    term: Term | None


class ConcaveProgram:
    """The arrays of a CVXPY problem, read as a model with concave worths.

    Attributes
    ----------
    c, A, b : ndarray (n,), csr_array (m, n), ndarray (m,)
        The objective, minimised, and the linear rows: the first `equal` are equations, the others A x <= b.
    terms : list of Term
    requests : list of Request
    rows : ndarray (k,)
        The rows that are resources of the model.

    Raises
    ------
    SolverError
        If the problem is of another kind, with the reason.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        dims = data[ConicSolver.DIMS]
        if data[words.BOOL_IDX] or data[words.INT_IDX]:
            raise refused("it has integer variables besides logarithms or powers")
        self.equal, self.linear = int(dims.zero), int(dims.zero + dims.nonneg)
        self.c = np.asarray(data[words.C], dtype=np.float64)
        whole = sp.csr_array(data[words.A])
        whole.eliminate_zeros()
        b = np.asarray(data[words.B], dtype=np.float64)
        self.A, self.b = whole[: self.linear], b[: self.linear]
        n = len(self.c)
        lower, upper = data.get(words.LOWER_BOUNDS), data.get(words.UPPER_BOUNDS)
        self.lower = np.full(n, -np.inf) if lower is None else np.array(lower, dtype=np.float64)
        self.upper = np.full(n, np.inf) if upper is None else np.array(upper, dtype=np.float64)
        self._powers = [float(each) for each in dims.p3d]
        self.terms = self._of_cones(-whole[self.linear :], b[self.linear :], int(dims.exp))
        self.own_rows = np.ones(self.linear, dtype=bool)  # rows that are neither bounds nor parts of worths
        self._minima()
        self._bounds()
        self.requests = self._grouped()
        self.rows = np.flatnonzero(self.own_rows)

    def _of_cones(self, A: Any, b: Floats, n_exp: int) -> list[Term]:
        """Return the logarithms and powers; the cones are A x + b."""
        terms = list[Term]()
        for at in range(n_exp + len(self._powers)):
            first, second, third = ((3 * at + i) for i in range(3))
            if at < n_exp:
                where, one, total = first, second, third
                alpha = None
            else:  # t <= z**p is the cone (z, 1, t) with p; t >= z**p for p < 0 is (z, t, 1) with p / (p - 1)
                share = self._powers[at - n_exp]
                grows = _entries(A, second)[0].size == 0
                where, one, total = (third, second, first) if grows else (second, third, first)
                alpha = 1.0 - share if grows else 1.0 + share / (1.0 - share)
            columns, values = _entries(A, where)
            if _entries(A, one)[0].size or b[one] != 1.0 or len(columns) != 1 or values[0] != 1.0:
                raise refused("a cone is not log(z) or a power of z in the objective (entr, kl_div, exp and others)")
            t, constant = int(columns[0]), -float(b[where])
            weight = float(self.c[t]) * (1.0 if alpha is not None and alpha > 1.0 else -1.0)
            if not weight > 0.0:
                raise refused("a logarithm or power is not in the objective with a positive weight")
            columns, rates = _entries(A, total)
            floor = float(b[total])
            if (rates < 0.0).any() or floor < 0.0 or not len(rates):
                raise refused("a total has a negative rate or constant, or no variable")
            try:
                worth = log(weight, floor) if alpha is None else power(alpha, weight * abs(1.0 - alpha), floor)
            except CopterError as error:
                raise refused(str(error)) from error
            terms.append(Term(t, columns, rates, worth, constant, float(self.c[t])))
        return terms

    def _minima(self) -> None:
        """Add the variables t that rows t <= rates'x + value alone bound from above, or -t, as CVXPY writes them."""
        by_column = sp.csc_array(self.A)
        used = {each.t for each in self.terms}
        if any(by_column.indptr[t] != by_column.indptr[t + 1] for t in used) or len(used) < len(self.terms):
            raise refused("the value of a logarithm or power stands in a row, or twice")
        totals = {int(column) for each in self.terms for column in each.columns}
        row_of = np.repeat(np.arange(self.linear), np.diff(self.A.indptr))
        positive = np.bincount(row_of[self.A.data > 0.0], minlength=self.linear)
        negative = np.bincount(row_of[self.A.data < 0.0], minlength=self.linear)
        for t in np.flatnonzero(self.c).tolist():
            at = slice(by_column.indptr[t], by_column.indptr[t + 1])
            rows, values = by_column.indices[at], by_column.data[at]
            sizes = -np.sign(self.c[t]) * values
            if t in used or t in totals or len(rows) < 2 or (rows < self.equal).any() or (sizes <= 0.0).any():
                continue
            if (positive[rows] > (values > 0.0)).any() or not (negative[rows] > (values < 0.0)).any():
                continue  # not rows size t - a'x <= value
            self.terms.append(self._minimum(t, rows, sizes))
            self.own_rows[rows] = False

    def _minimum(self, t: int, rows: Ints, sizes: Floats) -> Term:
        """Return the least of the lines t or -t <= (b - a'x) / size."""
        lines, columns, rates = list[tuple[float, float]](), np.zeros(0, dtype=np.intp), np.zeros(0)
        for row, value in zip(rows.tolist(), sizes.tolist(), strict=True):
            index, entry = _entries(self.A, row)
            others = index != t
            index, entry, slope = index[others], -entry[others] / value, 0.0
            if len(index):
                if not len(columns):
                    columns, rates = index, entry
                slope = float(entry[0] / rates[0])
                if not np.array_equal(index, columns) or (np.abs(entry - slope * rates) > SAME * np.abs(entry)).any():
                    raise refused("a minimum is one of different totals: only lines of one total are a worth")
            lines.append((slope, float(self.b[row]) / value))
        if not len(columns) or (rates < 0.0).any():
            raise refused("a minimum has a total with a negative rate, or none")
        weight = abs(float(self.c[t]))
        worth = minimum([(weight * slope, weight * value) for slope, value in lines])
        return Term(t, columns, rates, worth, 0.0, float(self.c[t]))

    def _bounds(self) -> None:
        """Read rows that bound one column from below; all columns but the t's must be at or above zero."""
        count = np.diff(self.A.indptr)
        single = np.flatnonzero((count == 1) & (np.arange(self.linear) >= self.equal))
        at = self.A.indptr[single]
        column, value = self.A.indices[at], self.A.data[at]
        least = value < 0.0
        np.maximum.at(self.lower, column[least], self.b[single[least]] / value[least])
        self.own_rows[single[least & (self.b[single] >= 0.0)]] = False
        self.plain = np.ones(len(self.c), dtype=bool)
        self.plain[[each.t for each in self.terms]] = False
        if (self.lower[self.plain] < 0.0).any():
            raise refused("a variable may be below zero: declare it nonneg=True")

    def _grouped(self) -> list[Request]:
        """Return the requests: the columns of each total, and every other column by itself."""
        owner = np.full(len(self.c), -1, dtype=np.intp)
        for at, term in enumerate(self.terms):
            if (owner[term.columns] >= 0).any():
                raise refused("two totals share a variable")
            if not self.plain[term.columns].all():
                raise refused("a total has a logarithm, power or minimum within")
            owner[term.columns] = at
        sums = self._sums(owner)
        most, by_column = self._implied(), sp.csc_array(self.A)
        found = list[Request]()
        for at, term in enumerate(self.terms):
            row = self._limit_row(term, by_column, sums, owner)
            columns, limit = (term.columns, np.inf) if row < 0 else (np.sort(_entries(self.A, row)[0]), np.inf)
            if row >= 0:
                owner[columns], self.own_rows[row] = at, False
                limit = float(self.b[row] / self.A.data[self.A.indptr[row]])
            else:
                limit = float(most[columns].sum())
            found.append(Request(columns, -self.c[columns], limit, row, 0 <= row < self.equal, term))
        for column in np.flatnonzero((owner < 0) & self.plain).tolist():
            alone = np.array([column], dtype=np.intp)
            found.append(Request(alone, -self.c[alone], float(most[column]), -1, False, None))
        for request in found:
            if not np.isfinite(request.limit):
                raise refused("no row bounds the sum of a total's variables; give each job a row sum(x) <= limit")
            if (self.lower[request.columns] > 0.0).any():
                raise refused("a variable has a lower bound above zero as an attribute: state it as a constraint")
            if (self.upper[request.columns] < request.limit).any():
                raise refused("a variable's bound is below its total's limit: state it as a constraint")
            self._require_free(request)
        return found

    def _require_free(self, request: Request) -> None:
        """Raise SolverError if bounds of t say more than its worth does."""
        term = request.term
        if term is None:
            return
        scale = term.weight if term.weight > 0.0 else -term.weight
        sign = 1.0 if term.weight < 0.0 else -1.0
        low, high = (sign * term.worth(z) / scale for z in (0.0, request.limit * float(term.rates.max())))
        low, high = sorted((low + term.constant, high + term.constant))
        slack = IMPLIED * (1.0 + min(abs(low), abs(high)))
        if self.lower[term.t] > low + slack or self.upper[term.t] < high - slack:
            raise refused("the value of a logarithm, power or minimum has bounds of its own")

    def _sums(self, owner: Ints) -> NDArray[np.bool_]:
        """Return which rows are multiples of plain sums over columns of one total, and others that no total has."""
        start, data = self.A.indptr, self.A.data
        good: NDArray[np.bool_] = self.own_rows & (np.diff(start) > 0) & (self.b > 0.0)
        full = np.flatnonzero(good)
        if len(full):
            least, most = (
                part.reduceat(np.append(data, 0.0), start[:-1].clip(max=len(data))) for part in (np.minimum, np.maximum)
            )
            good &= (least == most) & (least > 0.0)
            owned = np.append(owner[self.A.indices], -1)
            free = ~np.append(self.plain[self.A.indices], True)
            top = np.maximum.reduceat(owned, start[:-1].clip(max=len(data)))
            low = np.minimum.reduceat(np.where(owned < 0, len(self.terms), owned), start[:-1].clip(max=len(data)))
            good &= (top == low) & ~np.logical_or.reduceat(free, start[:-1].clip(max=len(data)))
        return good

    def _limit_row(self, term: Term, by_column: Any, sums: NDArray[np.bool_], owner: Ints) -> int:
        """Return the first row that is a sum over all of a total's columns; -1 if there is none."""
        column = term.columns[0]
        rows = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        mine = owner[column]
        for row in np.sort(rows[sums[rows]]).tolist():
            index = _entries(self.A, row)[0]
            if np.isin(term.columns, index).all() and np.isin(owner[index], (-1, mine)).all():
                return int(row)
        return -1

    def _implied(self) -> Floats:
        """Return the most that each column can be by its own bound and by rows without negative entries."""
        start = self.A.indptr
        owner = np.repeat(np.arange(self.linear), np.diff(start))
        bad = np.zeros(self.linear, dtype=bool)
        bad[owner[(self.A.data < 0.0) | ~self.plain[self.A.indices]]] = True
        use = ~bad[owner]
        most = self.upper.copy()
        np.minimum.at(most, self.A.indices[use], self.b[owner[use]] / self.A.data[use])
        found: Floats = np.maximum(most, 0.0)
        return found

    def usage(self, request: Request) -> tuple[Any, list[int]]:
        """Return a request's usage and the resources it is of."""
        part = sp.csc_array(self.by_column[:, request.columns])
        used = np.unique(part.indices)
        return sp.csc_array(part[used]), used.tolist()

    @cached_property
    def by_column(self) -> Any:
        """The rows that are resources, by columns."""
        return sp.csc_array(self.A[self.rows])

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What must be equal for two programs to differ in numbers only."""
        parts = (self.A.indptr, self.A.indices, self.rows, *(each.columns for each in self.requests))
        own = tuple((each.limit_row, -1 if each.term is None else each.term.t) for each in self.requests)
        return (self.A.shape, own, *(each.tobytes() for each in parts))


class LiveWorths:
    """A model with concave worths that is edited and solved again while problems differ in numbers only."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] | None = None
        self._held: ConcaveProgram | None = None
        self._session: Session | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies and pickles start empty."""
        return type(self), ()

    def solve(self, program: ConcaveProgram, settings: Settings) -> tuple[Solution, Floats, Floats, bool]:
        """Return (solution, x, y of the linear rows in copter's signs of a minimisation, whether it started warm)."""
        warm = self._session is not None and self._key == program.key
        if warm and self._held is not None and self._session is not None:
            self._edit(self._session.model, self._held, program)
            self._session.settings = settings
        else:
            self._session = Session(self._model(program), settings)
        self._key, self._held = program.key, program
        assert self._session is not None
        solution = self._session.solve()
        return solution, *self._arrays(program, solution), warm

    def _model(self, program: ConcaveProgram) -> Model:
        model = Model("max")
        with model.batch():
            for at, row in enumerate(program.rows.tolist()):
                low = program.b[row] if row < program.equal else -np.inf
                model.set_count(at, program.b[row], low)
            for name, request in enumerate(program.requests):
                usage, used = program.usage(request)
                model.add_request(
                    name,
                    request.cost,
                    usage,
                    resources=used,
                    limit=request.limit,
                    at_least=request.limit if request.exact else -np.inf,
                    worth=None if request.term is None else request.term.worth,
                    rates=None if request.term is None else rates_of(request),
                )
        return model

    def _edit(self, model: Model, held: ConcaveProgram, program: ConcaveProgram) -> None:
        """Edit the model of one program into that of another one with the same key."""
        with model.batch():
            moved = np.flatnonzero(held.b[program.rows] != program.b[program.rows])
            if len(moved):
                counts = program.b[program.rows[moved]]
                low = np.where(program.rows[moved] < program.equal, counts, -np.inf)
                model.update_counts(moved.tolist(), counts, low)
            for name, (old, new) in enumerate(zip(held.requests, program.requests, strict=True)):
                if not np.array_equal(old.cost, new.cost):
                    model.update_cost(name, new.cost)
                if old.limit != new.limit:
                    model.update_limit(name, new.limit, new.limit if new.exact else -np.inf)
                if new.term is not None and old.term is not None:
                    rates = rates_of(new)
                    if old.term.worth != new.term.worth or not np.array_equal(rates_of(old), rates):
                        model.update_worth(name, new.term.worth, rates)
            if not np.array_equal(held.A.data, program.A.data):
                for name in range(len(program.requests)):
                    was, now = held.usage(held.requests[name]), program.usage(program.requests[name])
                    if not np.array_equal(was[0].data, now[0].data):
                        model.update_usage(name, now[0], resources=now[1])

    def _arrays(self, program: ConcaveProgram, solution: Solution) -> tuple[Floats, Floats]:
        x, y = np.zeros(len(program.c)), np.zeros(program.linear)
        for name, request in enumerate(program.requests):
            x[request.columns] = solution.of(name)
            term = request.term
            if term is not None:
                worth = term.worth(float(term.rates @ x[term.columns]))
                x[term.t] = -worth / term.weight + term.constant
        y[program.rows] = -solution.prices(list(range(len(program.rows))))
        tops = solution.limit_duals(list(range(len(program.requests))))
        for request, top in zip(program.requests, tops.tolist(), strict=True):
            if request.limit_row >= 0:
                y[request.limit_row] = -top / program.A.data[program.A.indptr[request.limit_row]]
        return x, y


def rates_of(request: Request) -> Floats:
    """Return the rates of all of a request's columns."""
    rates = np.zeros(len(request.columns))
    if request.term is not None:
        rates[np.searchsorted(request.columns, request.term.columns)] = request.term.rates
    return rates


def refused(why: str) -> SolverError:
    """Return the error of a problem that is not of this kind."""
    return SolverError(
        f"copter solves linear programs, and sums of log, power (approx=False) and minimum of totals; here {why}"
    )


def _entries(A: Any, row: int) -> tuple[Ints, Floats]:
    at = slice(A.indptr[row], A.indptr[row + 1])
    order = np.argsort(A.indices[at])
    return A.indices[at][order].astype(np.intp), A.data[at][order]
