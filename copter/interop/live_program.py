"""A linear program kept alive: each new version is compared with the last one, and the difference becomes edits."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter import LinearProgram, Model, Session, Settings, Solution, Status, solve

Floats = NDArray[np.float64]

BLOCKS = 64  # requests that the columns are shared out to: an edit disturbs the basis only in the blocks it touches
MOST_ROWS = 3000  # rows above which every program is solved afresh: no basis is kept
MOST_COLUMNS = 1_000_000  # columns up to which a session pivots from its basis
WIDE = 200  # columns to a row, from which on moved costs are followed by the prices rather than by the basis
PATIENCE, LEAST_S = 2.0, 0.05  # times a one-shot solve's seconds that a session may take, and at least this long
MOST_FAILURES = 2  # times in a row that the session missed its time, after which it is given up
ANSWERS = (Status.OPTIMAL, Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE, Status.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Edits:
    """Kinds of differences between two programs.

    Attributes
    ----------
    costs, coefficients, bounds, rows : bool
        Whether c, the values of A, the bounds of the columns, the bounds of the rows were edited.
    rebuilt : bool
        Whether shape, pattern or sense had changed, so that nothing was kept.
    """

    costs: bool = False
    coefficients: bool = False
    bounds: bool = False
    rows: bool = False
    rebuilt: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A solution as arrays that stay what they are when the program is edited.

    Attributes
    ----------
    status : Status
    x, y, reduced_costs : ndarray (n,), (m,), (n,)
        In copter's signs: y is the objective's change per unit of right-hand side, reduced_costs = c - A'y.
    objective, bound : float
        With the offset.
    iterations : int
    warm : bool
        Whether a session gave it.
    solve_time_s : float
        Of the solver alone; edits are not in it.
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


class LiveProgram:
    """Solves one program after another, each from where the last one ended if their structures agree.

    The first program is solved by :func:`copter.solve`. The second one of the same structure begins a
    :class:`copter.Session`; from then on changed costs, bounds and coefficients are edits of its model. A session that
    takes longer than solving afresh would is left alone until the structure changes.

    Attributes
    ----------
    edits : Edits
        What the last call of :meth:`solve` had to change.
    """

    def __init__(self) -> None:
        self.edits = Edits(rebuilt=True)
        self._lp: LinearProgram | None = None  # the last one that was solved
        self._held: LinearProgram | None = None  # the one that the session's model holds
        self._session: Session | None = None
        self._starts: list[int] = []
        self._one_shot_s = 0.0
        self._failures = 0

    @property
    def is_warm(self) -> bool:
        """Whether a session is kept, so that the next solve of the same structure starts warm."""
        return self._session is not None

    def solve(self, lp: LinearProgram, settings: Settings | None = None) -> Answer:
        """Solve a program without its integrality.

        Parameters
        ----------
        lp : LinearProgram
        settings : Settings, optional

        Returns
        -------
        Answer
        """
        settings = settings or Settings()
        before, self._lp = self._lp, lp
        if before is None or not same_structure(before, lp):
            self.edits, self._session, self._held, self._failures = Edits(rebuilt=True), None, None, 0
            return self._afresh(lp, settings)
        self.edits = difference(before, lp)
        fits = 0 < lp.shape[0] <= MOST_ROWS and 0 < lp.shape[1] <= MOST_COLUMNS
        if not fits or self._failures >= MOST_FAILURES:
            return self._afresh(lp, settings)
        session = self._brought_up(lp)
        limit_s = min(settings.time_limit_s, max(PATIENCE * self._one_shot_s, LEAST_S))
        session.settings = replace(self._by_edits(lp, settings), time_limit_s=limit_s)
        solution = session.solve()
        if solution.status in ANSWERS:
            self._failures = 0
            return answer_of(lp, solution, warm=True)
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            self._session = self._held = None
        return self._afresh(lp, settings)

    def _by_edits(self, lp: LinearProgram, settings: Settings) -> Settings:
        """Settings that suit what was edited: pivots from the last basis, or steps in the prices.

        Moved costs or coefficients take every block that they touch out of the basis. With many columns to a row the
        proximal method, which keeps prices and values, is then the faster one (docs/howto/interop.md).
        """
        m, n = lp.shape
        if n >= WIDE * m and (self.edits.costs or self.edits.coefficients):
            return replace(settings, basis_columns=0, interior_rows=max(m, settings.interior_rows))
        return replace(settings, basis_columns=n)

    def _afresh(self, lp: LinearProgram, settings: Settings) -> Answer:
        started = time.perf_counter()
        solution = solve(lp, settings)
        self._one_shot_s = time.perf_counter() - started
        return answer_of(lp, solution, warm=False)

    # The session's model ------------------------------------------------------------------------------------------

    def _brought_up(self, lp: LinearProgram) -> Session:
        """The session, its model edited to this program; a new one where there is none."""
        session, held = self._session, self._held
        if session is None or held is None:
            self._starts = block_starts(lp.shape[1])
            session = Session(model_of(lp, self._starts))
            self._session = session
        else:
            with session.model.batch():
                edit(session.model, self._starts, held, lp)
        self._held = lp
        return session


def same_structure(one: LinearProgram, other: LinearProgram) -> bool:
    """Whether two programs differ in numbers only."""
    if one.A is other.A:
        return one.sense == other.sense
    return (
        one.shape == other.shape
        and one.sense == other.sense
        and np.array_equal(one.A.indptr, other.A.indptr)
        and np.array_equal(one.A.indices, other.A.indices)
    )


def difference(one: LinearProgram, other: LinearProgram) -> Edits:
    """Which numbers differ."""

    def differ(*names: str) -> bool:
        return any(not np.array_equal(getattr(one, name), getattr(other, name)) for name in names)

    return Edits(
        costs=differ("c"),
        coefficients=one.A is not other.A and not np.array_equal(one.A.data, other.A.data),
        bounds=differ("col_lower", "col_upper"),
        rows=differ("row_lower", "row_upper"),
    )


def block_starts(n: int) -> list[int]:
    """First column of every block, and n."""
    size = max(1, -(-n // BLOCKS))
    return [*range(0, n, size), n]


def model_of(lp: LinearProgram, starts: list[int]) -> Model:
    """The program as a model: resources are its rows, requests without a limit its blocks of columns."""
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
    """Change a model of one program into a model of another of the same structure."""
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
    """Blocks that hold these columns."""
    size = starts[1] - starts[0]
    blocks: list[int] = np.unique(columns // size).tolist()
    return blocks


def block_usage(lp: LinearProgram, first: int, last: int) -> tuple[Any, list[int]]:
    """(a block's columns over the rows that it has entries in, these rows)."""
    start = lp.A.indptr[first : last + 1]
    index, data = lp.A.indices[start[0] : start[-1]], lp.A.data[start[0] : start[-1]]
    used = np.unique(index)
    usage = sp.csc_array((data, np.searchsorted(used, index), start - start[0]), shape=(len(used), last - first))
    return usage, used.tolist()


def answer_of(lp: LinearProgram, solution: Solution, warm: bool) -> Answer:
    """The solution's arrays; a session's solution knows nothing of the program's offset."""
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
