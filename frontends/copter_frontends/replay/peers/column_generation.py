"""Column generation: a restricted master of HiGHS or GLOP that stays warm, and pricing of all columns in NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter_frontends.replay.peers.answer import Answer, Limits
from copter_frontends.replay.peers.clock import clock
from copter_frontends.replay.program import Floats, Ints, Overlap, Program

TOLERANCE = 1e-7  # least gain of a column, relative to the largest cost, for which it enters the master
FEW = 0.25  # share of the columns that differ in their use of shared rows, up to which each use is priced once
UNUSED = 10  # rounds without a value above zero after which a column leaves the master, at its next compaction
Mask = NDArray[np.bool_]


class Master(Protocol):
    """Interface: a solver that keeps a program and its basis."""

    def update(self, program: Program) -> float:
        """Change the kept program into this one; returns the seconds of the solver's own calls."""

    def solve(self, limit_s: float, edit_s: float) -> Answer:
        """Solve from the last basis."""


class ColumnPeer:
    """A master with the columns that earned something so far; the others are priced until none earns more.

    The layout of the program (which columns share a use of the shared rows, and which belong to one request) is what
    a scheduler knows, so it is not counted. The master's calls, its solves, the pricing of every column and the choice
    of the columns that enter are. Where the master has no point, all columns enter. A request that ends leaves its
    columns behind, fixed at zero, until a third of the master is such; to delete them would cost the solver its
    factors.

    Parameters
    ----------
    way : str
        Name of this way.
    master : Master
    """

    needs_start = False

    def __init__(self, way: str, master: Master) -> None:
        self.way, self.master = way, master
        self.known: Program | None = None  # the master's program, with what was left behind
        self.y: Floats = np.zeros(0)  # prices of the last round's rows
        self.row_key: Ints = np.zeros(0, dtype=np.int64)
        self.seen: dict[int, int] = {}  # round in which a column of the master was above zero, or entered
        self.at = 0

    @property
    def ways(self) -> tuple[str, ...]:
        """The one way."""
        return (self.way,)

    def keep(self, ways: tuple[str, ...]) -> None:
        """Do nothing: there is one way."""

    def start_from(self, x: Floats, y: Floats) -> None:
        """Do nothing: the master starts from its own last basis."""

    def round(self, program: Program, limits: Limits) -> list[Answer]:
        """Change the master, then solve and price until no column gains."""
        self.at += 1
        program = without_implied_bounds(program)
        layout = Layout.of(program)
        y = np.zeros(program.shape[0])
        rows = Overlap.of(self.row_key, program.row_key)
        y[rows.after] = self.y[rows.before]
        inside = np.isin(program.column_key, np.fromiter(self.seen, dtype=np.int64, count=len(self.seen)))
        inside |= program.col_lower != 0.0  # a column outside is at zero
        started = clock()
        fresh = layout.best(layout.gains(program.c, y), -np.inf)
        edit_s = clock() - started
        inside[fresh[~layout.served(inside)[layout.request_of[fresh]]]] = True
        solve_s, iterations, limit_s, entering = 0.0, 0, limits.solve_s, fresh[:0]
        while True:
            edit_s += self.master.update(self.restricted(program, inside))
            found = self.master.solve(max(limit_s - solve_s, 1e-3), 0.0)
            solve_s += found.solve_s
            iterations += found.iterations
            if not found.optimal or found.x is None or found.y is None:
                if inside.all() or solve_s >= limit_s:
                    break
                inside[:], entering = True, fresh[:0]  # the columns so far have no point, as a row asks for more
                continue
            y = found.y[: program.shape[0]]
            if len(entering) and not found.iterations:  # the solver's own tolerance is above what the best ones gain
                break
            started = clock()
            gains = layout.gains(program.c, y)
            gains[inside] = -np.inf
            entering = layout.best(gains, layout.tolerance)
            solve_s += clock() - started
            if not len(entering) or solve_s >= limit_s:
                break
            inside[entering] = True
        self.y, self.row_key = y, program.row_key
        return [self.answer(program, inside, found, edit_s, solve_s, iterations)]

    def answer(
        self, program: Program, inside: Mask, found: Answer, edit_s: float, solve_s: float, iterations: int
    ) -> Answer:
        """Return the round's answer, with a value for every column of the program."""
        columns = np.flatnonzero(inside)
        before, self.seen = self.seen, {}
        last = program.column_key[columns].tolist()
        if found.x is None or found.y is None:
            self.seen = {key: before.get(key, self.at) for key in last}
            return replace(found, way=self.way, edit_s=edit_s, solve_s=solve_s, iterations=iterations)
        x = np.zeros(program.shape[1])
        x[columns] = found.x[: len(columns)]
        used = (x[columns] > 0.0).tolist()
        self.seen = {key: self.at if now else before.get(key, self.at) for key, now in zip(last, used, strict=True)}
        return replace(
            found, way=self.way, edit_s=edit_s, solve_s=solve_s, iterations=iterations,
            x=x, y=found.y[: program.shape[0]], objective=float(program.c @ x + program.offset),
        )  # fmt: skip

    def restricted(self, program: Program, inside: Mask) -> Program:
        """Return the master's program: the columns inside, then those left behind, fixed at zero."""
        now = program.taken(np.arange(program.shape[0]), np.flatnonzero(inside))
        before = self.known
        if before is not None:
            columns, rows = Overlap.of(before.column_key, now.column_key), Overlap.of(before.row_key, now.row_key)
            if 2 * len(columns.gone) <= now.shape[1]:
                now = with_left(now, before, rows, columns)
            else:
                old = np.array([self.seen.get(key, self.at) for key in now.column_key.tolist()], dtype=np.int64)
                inside[np.flatnonzero(inside)[(old < self.at - UNUSED) & (now.col_lower == 0.0)]] = False
                now = program.taken(np.arange(program.shape[0]), np.flatnonzero(inside))
        self.known = now
        return now


def without_implied_bounds(program: Program) -> Program:
    """Return the program without upper bounds that a row of the column's request implies.

    With them a solver may put a request's price on a bound of a column inside, where the columns outside do not see it.
    """
    entries = program.A.tocoo()
    row, column = entries.coords
    positive = np.ones(program.shape[0], dtype=np.bool_)
    positive[row[(entries.data < 0.0) | (program.col_lower[column] < 0.0)]] = False
    own = ((program.row_key >> 32)[row] == (program.column_key >> 32)[column]) & positive[row] & (entries.data > 0.0)
    most = np.full(program.shape[1], np.inf)
    np.minimum.at(most, column[own], program.row_upper[row[own]] / entries.data[own])
    return replace(program, col_upper=np.where(most <= program.col_upper, np.inf, program.col_upper))


def with_left(now: Program, before: Program, rows: Overlap, columns: Overlap) -> Program:
    """Return a program with the rows and columns that `before` has too many; its columns are fixed at zero."""
    if not len(columns.gone) and not len(rows.gone):
        return now
    m, n = now.shape
    place = np.empty(before.shape[0], dtype=np.int64)  # of the old rows in the new program
    place[rows.before], place[rows.gone] = rows.after, m + np.arange(len(rows.gone))
    own = before.A[:, columns.gone].tocoo()
    here = now.A.tocoo()
    A = sp.csc_array(
        (
            np.concatenate((here.data, own.data)),
            (
                np.concatenate((here.coords[0], place[own.coords[0]])),
                np.concatenate((here.coords[1], n + own.coords[1])),
            ),
        ),
        shape=(m + len(rows.gone), n + len(columns.gone)),
    )
    zero = np.zeros(len(columns.gone))
    lower, upper = before.row_lower[rows.gone], before.row_upper[rows.gone]
    free = (lower > 0.0) | (upper < 0.0)  # zero is no point of such a row
    return replace(
        now,
        A=A,
        c=np.concatenate((now.c, before.c[columns.gone])),
        col_lower=np.concatenate((now.col_lower, zero)),
        col_upper=np.concatenate((now.col_upper, zero)),
        column_key=np.concatenate((now.column_key, before.column_key[columns.gone])),
        row_lower=np.concatenate((now.row_lower, np.where(free, -np.inf, lower))),
        row_upper=np.concatenate((now.row_upper, np.where(free, np.inf, upper))),
        row_key=np.concatenate((now.row_key, before.row_key[rows.gone])),
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """How a program's columns are priced.

    Attributes
    ----------
    sign : float
        1.0 if a column gains by a cost above its price, -1.0 in a minimisation.
    tolerance : float
        Least gain of a column that enters.
    start : ndarray of int
        First column of each request.
    request_of : ndarray of int
        Request of each column, by its place.
    uses : csr_array
        Uses of the shared rows, one row for each that differs; of every column if most do.
    use_of : ndarray of int, or None
        Place of each column's use, unless each column has its own.
    own : csr_array
        Columns' entries in the rows of their requests.
    one : ndarray of int, or None
        Row of each request, if each has one and all its entries are 1.
    """

    sign: float
    tolerance: float
    start: Ints
    request_of: Ints
    uses: sp.csr_array
    use_of: Ints | None
    own: sp.csr_array
    one: Ints | None

    @classmethod
    def of(cls, program: Program) -> Layout:
        """Find the requests and the uses that columns share."""
        m, n = program.shape
        request = program.column_key >> 32
        start = np.flatnonzero(np.diff(request, prepend=request[:1] - 1))
        request_of = np.repeat(np.arange(len(start)), np.diff(start, append=n))
        entries = program.A.tocoo()
        row, column = entries.coords
        owned = (program.row_key >> 32)[row] == request[column]
        own = sp.csr_array((entries.data[owned], (column[owned], row[owned])), shape=(n, m))
        shared = sp.csr_array((entries.data[~owned], (column[~owned], row[~owned])), shape=(n, m))
        shared.sort_indices()
        told = shared @ np.random.default_rng(0).uniform(1.0, 2.0, m)  # equal uses give equal numbers
        _, first, use_of = np.unique(told, return_index=True, return_inverse=True)
        few = len(first) <= FEW * n
        one = None
        if own.nnz == n and np.all(np.diff(own.indptr) == 1) and np.all(own.data == 1.0):
            rows = own.indices[start] if n else own.indices
            one = rows.astype(np.int64) if np.array_equal(np.asarray(rows)[request_of], own.indices) else None
        return cls(
            sign=1.0 if program.sense == "max" else -1.0,
            tolerance=TOLERANCE * (1.0 + float(np.abs(program.c).max(initial=0.0))),
            start=start,
            request_of=request_of,
            uses=shared[first] if few else shared,
            use_of=use_of.astype(np.int64) if few else None,
            own=own,
            one=one,
        )

    def gains(self, c: Floats, y: Floats) -> Floats:
        """Return what each column earns above its price."""
        price = self.uses @ y
        gain = c - (price if self.use_of is None else price[self.use_of])
        gain -= y[self.one][self.request_of] if self.one is not None else self.own @ y
        return np.asarray(gain if self.sign > 0 else -gain)

    def best(self, gain: Floats, above: float) -> Ints:
        """Return the best column of each request whose best gains more than this, one of several best ones."""
        if not len(gain):
            return np.zeros(0, dtype=np.int64)
        most = np.maximum.reduceat(gain, self.start)
        asks = most > above
        columns = np.flatnonzero((gain == most[self.request_of]) & asks[self.request_of])
        first = np.flatnonzero(np.diff(self.request_of[columns], prepend=-1))
        return np.asarray(columns[first])

    def served(self, inside: Mask) -> Mask:
        """Return which requests have a column inside."""
        return np.bincount(self.request_of[inside], minlength=len(self.start)) > 0
