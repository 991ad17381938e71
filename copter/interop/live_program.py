"""A linear program kept between solves: each new version is compared with the last, and the differences become
edits.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.interop.allowance import Allowance, Way
from copter.methods.simplex.shift import recognise, same_pattern
from copter.methods.simplex.warm_basis import WarmBasis
from copter.methods.solve import solve
from copter.model.model import Model
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.problem.values import distinct
from copter.runtime.settings import Settings
from copter.runtime.watch import Watch
from copter.session.session import Session

Floats = NDArray[np.float64]

# number of requests into which the columns are divided: an edit affects the basis only of the blocks it touches
BLOCKS = 64
MOST_ROWS = 3000  # programs with more rows are not given to a session
MOST_COLUMNS = 1_000_000  # with more columns a session does not pivot from its basis
MOST_ENTRIES = 5_000_000  # with more entries no basis of the program is kept
# from this many columns per row on, a session with changed costs starts from prices rather than from its basis
WIDE = 200
BROAD = 20  # from this many columns per row on, a session is tried before the basis of the whole program
# Seconds of processor time; if a fresh solve takes less, a session, which works in Python, cannot be faster.
SESSION_S = 0.02
LEAST_S = 0.005  # least seconds that a try may take
NUDGE = 0.005  # relative change of bounds up to which the basis of the whole program is tried first
MOST_WAITING = 3.0  # most times that a session's limit, in wall-clock time, is longer because the machine is busy
MOST_KEPT = 4  # most structures that one cache keeps
ANSWERS = (Status.OPTIMAL, Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE, Status.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Edits:
    """Kinds of differences between two programs.

    Attributes
    ----------
    costs, coefficients, bounds, rows : bool
        Whether c, the values of A, the bounds of the columns, the bounds of the rows were edited.
    rebuilt : bool
        Whether shape, pattern or sense differed, so that the solve started anew.
    shifted : bool
        Whether shape or pattern differed, but rows and columns of the last program were found in this one.
    """

    costs: bool = False
    coefficients: bool = False
    bounds: bool = False
    rows: bool = False
    rebuilt: bool = False
    shifted: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A solution as arrays that later edits do not change.

    Attributes
    ----------
    status : Status
    x, y, reduced_costs : ndarray (n,), (m,), (n,)
        y is the objective's change per unit of right-hand side, reduced_costs = c - A'y.
    objective, bound : float
        Objective with the offset.
    iterations : int
    warm : bool
        Whether the solve started from a kept state.
    solve_time_s : float
        Time of the solver alone, without the edits.
    ray : ndarray or None
        Certificate of PRIMAL_INFEASIBLE (m,) or DUAL_INFEASIBLE (n,).
    """

    status: Status
    x: Floats
    y: Floats
    reduced_costs: Floats
    objective: float
    bound: float
    iterations: int
    warm: bool
    solve_time_s: float
    ray: Floats | None


class ChargedWatch(Watch):
    """A watch that also stops when a second clock, such as one of processor time, reaches its limit."""

    __slots__ = ("_clock", "_end")

    def __init__(self, limit_s: float, clock: Callable[[], float], may_s: float) -> None:
        super().__init__(limit_s)
        self._clock, self._end = clock, clock() + may_s

    def __call__(self) -> bool:
        return super().__call__() or self._clock() >= self._end


class LiveProgram:
    """Solves a series of programs; each solve starts from the last one if the structures agree.

    The first program is solved by :func:`copter.solve`. Later programs of the same structure can also be solved by
    pivots from the last basis of the whole program (:class:`WarmBasis`), or by a :class:`copter.Session` whose model is
    edited, either from its last basis and prices or by blocks. :class:`Allowance` chooses by processor time, so that a
    series never takes much longer than fresh solves. If the program is a time window that has shifted, so that some
    rows and columns left and others came, the solve also starts from the last basis. A program of any other structure
    starts anew.

    Parameters
    ----------
    clock : callable
        Function that returns the seconds to charge, by default processor time.

    Attributes
    ----------
    edits : Edits
        Differences that the last call of :meth:`solve` found.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self.edits = Edits(rebuilt=True)
        self._clock = clock
        self._begin_anew()
        self._lp: LinearProgram | None = None  # the last program that was solved

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies and pickles start empty: factorisations and sessions are not copied."""
        return type(self), ()

    def _begin_anew(self) -> None:
        self._allowance: Allowance | None = None
        # the last program with an optimum, its x and y
        self._optimum: tuple[LinearProgram, Floats, Floats] | None = None
        self._basis: WarmBasis | None = None
        self._session: Session | None = None
        self._held: LinearProgram | None = None  # the program that the session's model holds
        self._starts: list[int] = []

    @property
    def is_warm(self) -> bool:
        """Whether the next solve of the same structure can start from a kept state."""
        return self._session is not None or self._basis is not None

    def fits(self, lp: LinearProgram) -> bool:
        """Whether the last program had the same structure as this one."""
        return self._lp is not None and same_structure(self._lp, lp)

    def solve(self, lp: LinearProgram, settings: Settings | None = None) -> Answer:
        """Solve a program, ignoring integrality.

        Parameters
        ----------
        lp : LinearProgram
        settings : Settings, optional
            With a `method` other than "auto", every program is solved from scratch.

        Returns
        -------
        Answer
        """
        settings = settings or Settings()
        started = time.perf_counter()
        first = ""
        if self._lp is not None and same_structure(self._lp, lp):
            self.edits = difference(self._lp, lp)
            first = "basis" if self._is_nudged(lp) else ""
            self._lp = lp
        elif not self.follow(self, lp):
            self.edits, self._lp = Edits(rebuilt=True), lp
            self._begin_anew()
            return self._afresh(lp, settings)
        allowance = self._allowance if settings.method == "auto" else None
        for way, may_s in () if allowance is None else allowance.begin(first):
            answer = self._warm(lp, settings, way, may_s)
            if answer is not None:
                return self._noted(answer)
            left_s = settings.time_limit_s - (time.perf_counter() - started)
            settings = replace(settings, time_limit_s=max(left_s, 1e-3))
        return self._afresh(lp, settings)

    def _is_nudged(self, lp: LinearProgram) -> bool:
        """Whether only bounds of rows and columns have changed, by so little that few pivots will do."""
        if self._lp is None or self.edits.costs or self.edits.coefficients:
            return False
        for name in ("row_lower", "row_upper", "col_lower", "col_upper"):
            before, now = getattr(self._lp, name), getattr(lp, name)
            at = np.flatnonzero(before != now)
            if not (np.abs(now[at] - before[at]) <= NUDGE * np.abs(before[at])).all():
                return False
        return True

    def follow(self, other: LiveProgram, lp: LinearProgram) -> bool:
        """Take over the kept basis of another live program, or of this one, if `lp` is that program's window shifted.

        Returns whether it was taken over. The basis then belongs to this object only. A kept session is dropped,
        because its model has the rows and columns of the earlier program.
        """
        if other._lp is None or other._allowance is None or recognise(other._lp, lp) is None:
            return False
        self._optimum, self._basis = other._optimum, other._basis
        self._allowance, other._basis = other._allowance.of_basis(), self._basis if self is other else None
        self._session = self._held = None
        self.edits, self._lp = Edits(shifted=True), lp
        return True

    def _afresh(self, lp: LinearProgram, settings: Settings) -> Answer:
        started, wall = self._clock(), time.perf_counter()
        answer = answer_of(lp, solve(lp, settings), warm=False)
        cost_s, wall_s = self._clock() - started, time.perf_counter() - wall
        if answer.status in ANSWERS and 0 not in lp.shape and settings.method == "auto":
            if self._allowance is None:
                self._allowance = Allowance(ways_for(lp, cost_s))
            self._allowance.fresh(cost_s, wall_s)
        return self._noted(answer)

    def _noted(self, answer: Answer) -> Answer:
        if answer.status is Status.OPTIMAL and self._lp is not None:
            self._optimum = self._lp, answer.x, answer.y
        return answer

    def _warm(self, lp: LinearProgram, settings: Settings, way: Way, may_s: float) -> Answer | None:
        """Solve from a kept state within `may_s` seconds of processor time; None if that does not suffice."""
        allowance = self._allowance
        if allowance is None or (way.name == "basis" and self._optimum is None):
            return None
        started = self._clock()
        by_basis = way.name == "basis"
        ready = self._basis_ready() if by_basis else self._session_for(lp)
        prepared = self._clock()
        answer = None
        if ready:
            if by_basis:
                answer = self._pivot(lp, settings, max(may_s, LEAST_S))
            else:
                ratio = max(allowance.clock_ratio, waiting_ratio()) / way.parallel
                limit_s = min(settings.time_limit_s, max(may_s * ratio, LEAST_S))
                begun = time.perf_counter()
                answer = self._edit(lp, replace(self._by_edits(lp, settings, way.name), time_limit_s=limit_s))
                way.parallel = max(1.0, (self._clock() - prepared) / max(time.perf_counter() - begun, LEAST_S))
        allowance.end(way, answer is not None, self._clock() - prepared, prepared - started)
        if by_basis and (answer is None or way.rests):
            self._basis = None
        elif way.rests:
            self._session = self._held = None
        return answer

    # Ways to solve from a kept state
    # -----------------------------------------------------------------------------------------------------

    def _basis_ready(self) -> bool:
        """Make a basis if none is kept, from the last optimum; returns whether there is one."""
        try:
            if self._basis is None and self._optimum is not None:
                self._basis = WarmBasis(*self._optimum)
        except ArithmeticError:
            return False
        return self._basis is not None

    def _pivot(self, lp: LinearProgram, settings: Settings, may_s: float) -> Answer | None:
        if self._basis is None:
            return None
        with ChargedWatch(settings.time_limit_s, self._clock, may_s) as watch:
            solution = self._basis.solve(lp, settings, watch)
        kept = solution is not None and solution.status in ANSWERS
        return replace(answer_of(lp, solution, warm=False), warm=True) if solution is not None and kept else None

    def _session_for(self, lp: LinearProgram) -> bool:
        """Start a session if none is kept; always returns True."""
        if self._session is None:
            self._starts = block_starts(lp.shape[1])
            self._session, self._held = Session(model_of(lp, self._starts)), lp
        return True

    def _edit(self, lp: LinearProgram, settings: Settings) -> Answer | None:
        if self._session is None or self._held is None:
            return None
        with self._session.model.batch():
            edit(self._session.model, self._starts, self._held, lp)
        self._held = lp
        self._session.settings = settings
        solution = self._session.solve()
        return answer_of(lp, solution, warm=True) if solution.status in ANSWERS else None

    def _by_edits(self, lp: LinearProgram, settings: Settings, way: str) -> Settings:
        """Return the session's settings that suit the edits: pivots from the last basis, or proximal steps.

        The way "blocks" is the block interior-point method without a warm start. It pays if every number has changed,
        because the session's model has blocks, which the program alone has not.

        A changed cost or coefficient removes its whole block from the basis. With many columns per row the proximal
        method, which keeps prices and values, is then faster (docs/howto/interop.md).
        """
        m, n = lp.shape
        if way == "blocks":
            return replace(settings, method="blocks")
        if n >= WIDE * m and (self.edits.costs or self.edits.coefficients):
            return replace(settings, basis_columns=0, interior_rows=max(m, settings.interior_rows))
        return replace(settings, basis_columns=n)


def waiting_ratio() -> float:
    """Return about how many wall-clock seconds a second of processor time takes now, from the machine's load; at most
    :data:`MOST_WAITING`.
    """
    return min(os.getloadavg()[0] / (os.cpu_count() or 1), MOST_WAITING)


def ways_for(lp: LinearProgram, fresh_s: float) -> list[str]:
    """Return the kinds of warm start that are worth trying, most promising first."""
    m, n = lp.shape
    ways = ["basis"] if lp.A.nnz <= MOST_ENTRIES else []
    if m <= MOST_ROWS and n <= MOST_COLUMNS and fresh_s >= SESSION_S:
        if n < BROAD * m:
            return [*ways, "session"]
        return ["blocks", "session", *ways] if m > Settings().interior_rows else ["session", "blocks", *ways]
    return ways


class LivePrograms:
    """A cache of recently used live programs, shared by callers that have no storage of their own.

    Thread-safe: a program in use by one solve is not given to another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._programs: list[LiveProgram] = []
        self.edits = Edits(rebuilt=True)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies and pickles start empty."""
        return type(self), ()

    def solve(self, lp: LinearProgram, settings: Settings | None = None) -> Answer:
        """Call :meth:`LiveProgram.solve` of the cached program with the same structure, or of a new one."""
        with self._lock:
            live = next((each for each in self._programs if each.fits(lp)), None)
            if live is None:
                live = LiveProgram()
                if self._programs:
                    live.follow(self._programs[0], lp)
            self._programs = [each for each in self._programs if each is not live]
        answer = live.solve(lp, settings)
        with self._lock:
            self._programs = [live, *self._programs][:MOST_KEPT]
            self.edits = live.edits
        return answer

    @property
    def is_warm(self) -> bool:
        """Whether the most recently solved program has a kept state to start from."""
        return bool(self._programs) and self._programs[0].is_warm


def same_structure(one: LinearProgram, other: LinearProgram) -> bool:
    """Whether two programs differ in numbers only."""
    return one.sense == other.sense and same_pattern(one, other)


def difference(one: LinearProgram, other: LinearProgram) -> Edits:
    """Return which numbers of two programs of one structure differ: costs, coefficients, column bounds, row bounds."""

    def differ(*names: str) -> bool:
        return any(not np.array_equal(getattr(one, name), getattr(other, name)) for name in names)

    return Edits(
        costs=differ("c"),
        coefficients=one.A is not other.A and not np.array_equal(one.A.data, other.A.data),
        bounds=differ("col_lower", "col_upper"),
        rows=differ("row_lower", "row_upper"),
    )


def block_starts(n: int) -> list[int]:
    """Return the first column of every block, and n at the end."""
    size = max(1, -(-n // BLOCKS))
    return [*range(0, n, size), n]


def model_of(lp: LinearProgram, starts: list[int]) -> Model:
    """Convert the program to a model: rows become resources, blocks of columns become requests without limits."""
    model = Model(lp.sense)
    with model.batch():
        for row, (lower, upper) in enumerate(zip(lp.row_lower.tolist(), lp.row_upper.tolist(), strict=True)):
            model.set_count(row, upper, lower)
        for block, (first, last) in enumerate(pairwise(starts)):
            usage, used = block_usage(lp, first, last)
            model.add_request(
                block,
                lp.c[first:last],
                usage,
                resources=used,
                limit=np.inf,
                lower=lp.col_lower[first:last],
                upper=lp.col_upper[first:last],
            )
    return model


def edit(model: Model, starts: list[int], held: LinearProgram, lp: LinearProgram) -> None:
    """Edit a model of one program into a model of another program with the same structure."""
    rows = np.flatnonzero((held.row_lower != lp.row_lower) | (held.row_upper != lp.row_upper))
    if len(rows):
        model.update_counts(rows.tolist(), lp.row_upper[rows], lp.row_lower[rows])
    costs = blocks_of(np.flatnonzero(held.c != lp.c), starts)
    if len(costs):
        model.update_costs(costs, [lp.c[starts[block] : starts[block + 1]] for block in costs])
    moved = np.flatnonzero((held.col_lower != lp.col_lower) | (held.col_upper != lp.col_upper))
    for block in blocks_of(moved, starts):
        part = slice(starts[block], starts[block + 1])
        model.update_bounds(block, lp.col_lower[part], lp.col_upper[part])
    if held.A is lp.A:
        return
    entries = np.flatnonzero(held.A.data != lp.A.data)
    columns = np.searchsorted(lp.A.indptr, entries, side="right") - 1
    for block in blocks_of(columns, starts):
        usage, used = block_usage(lp, starts[block], starts[block + 1])
        model.update_usage(block, usage, resources=used)


def blocks_of(columns: NDArray[np.intp], starts: list[int]) -> list[int]:
    """Return the blocks that contain these columns."""
    size = starts[1] - starts[0]
    blocks: list[int] = distinct(columns // size).tolist()
    return blocks


def block_usage(lp: LinearProgram, first: int, last: int) -> tuple[Any, list[int]]:
    """Return a block's columns restricted to the rows they touch, and the list of these rows."""
    start = lp.A.indptr[first : last + 1]
    index, data = lp.A.indices[start[0] : start[-1]], lp.A.data[start[0] : start[-1]]
    used = distinct(index)
    usage = sp.csc_array((data, np.searchsorted(used, index), start - start[0]), shape=(len(used), last - first))
    return usage, used.tolist()


def answer_of(lp: LinearProgram, solution: Solution, warm: bool) -> Answer:
    """Return the solution as arrays; adds the program's offset, which a session's model lacks."""
    offset = lp.offset if warm else 0.0
    y = solution.y
    return Answer(
        solution.status,
        solution.x,
        y,
        lp.c - lp.A.T @ y,
        solution.objective + offset,
        solution.bound + offset,
        solution.iterations,
        warm,
        solution.solve_time_s,
        solution.ray,
    )
