"""Solve of a model that is judged as a whole linear program: by its blocks, or by a general LP method.

It solves models whose requests have private rows or least sums (blocks.md), models with more coupling rows than columns
(from their last optimum), and models for which the settings name the simplex or the interior-point method. The checker
decides whether a point is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from copter.highs.linear import BASIC, LinearTask
from copter.highs.vertex import optimal_vertex
from copter.methods.answers import Ended, Proven
from copter.methods.before_interior import by_simplex
from copter.methods.block_rounds import answer_by_blocks
from copter.methods.blocks.answer import BlockAnswer
from copter.methods.blocks.basis import blocks_work, first_vertex_work
from copter.methods.blocks.program import program_of
from copter.methods.choose import (
    DIRECT_WORK,
    FROM_VERTEX,
    FROM_VERTEX_WORK,
    KEPT,
    RESUMED,
    RESUMED_WORK,
    SUM_PIVOTS,
    WHOLE_PIVOTS,
    Choice,
)
from copter.methods.contradictions import by_sums, impossible_row, of_one_request
from copter.methods.interior.solve import solve_interior
from copter.methods.protocol import Round
from copter.model.column_map import ColumnMap
from copter.model.matrix.bounds import own_keys
from copter.model.values import sparse_values
from copter.problem.checker import Judged, check
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution, Status
from copter.problem.values import OwnDuals
from copter.runtime.settings import Settings

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Keys = NDArray[np.int64]
VERDICTS = (Status.OPTIMAL, Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE)
CLOSER = 1e-3  # factor on the tolerances of a second solve, if the first point misses them in the model's own units


@dataclass(slots=True)
class Point:
    """A primal and dual point in the order and signs of the whole program, with the checker's findings."""

    x: Floats
    y: Floats
    judged: Judged


Found = tuple[Point, Status, Floats | None]


@dataclass(slots=True)
class WholeProgram:
    """A solve of a model that is judged as a whole; the checker decides the status.

    Attributes
    ----------
    program : LinearProgram
        The whole model.
    columns : ColumnMap
        Columns of the program.
    own_first : ndarray (requests + 1,)
        First own row of every request.
    """

    of: Round
    program: LinearProgram
    columns: ColumnMap
    own_first: Ints
    iterations: int = 0
    seen: tuple[BlockAnswer, Point] | None = None

    @classmethod
    def start(cls, given: Round) -> WholeProgram:
        """Prepare a solve of the current model."""
        matrix, columns = given.model.ledger.matrix, ColumnMap.of_model(given.model.ledger)
        own_first = matrix.own_rows(columns.slots, columns.count)[0]
        given.iterate.refresh(matrix)
        return cls(given, given.model.to_linear_program(), columns, own_first)

    def still_optimal(self) -> Ended | None:
        """The iterate's point, if nothing was edited since it was optimal and it is so still."""
        if self.of.iterate.version != self.of.model.version:
            return None
        point = self.last_point()
        return self.ended((point, Status.OPTIMAL, None), KEPT) if self.is_optimal(point) else None

    def improve(self, order: tuple[Choice, ...]) -> Ended | None:
        """Solve by the first method of the order; the last one always ends."""
        choice, last = order[0], len(order) == 1
        if choice.method == "blocks":
            found, choice = self.by_blocks(choice)
        elif choice.method == "highs":
            found = self.by_highs()
        else:
            found = self.by_whole_program(choice)
        if found is None and last:
            found = self.last_point(), Status.NUMERICAL_ERROR, None
        if found is None or (choice is WHOLE_PIVOTS and found[1] not in VERDICTS):
            return None
        return self.ended(found, choice)

    def by_blocks(self, choice: Choice) -> tuple[Found | None, Choice]:
        """Solve by the block methods; returns (the result, None if another method must try; the choice behind it)."""
        usual = self.of.settings
        closer = replace(
            usual, tolerance=CLOSER * usual.tolerance, absolute_tolerance=CLOSER * usual.absolute_tolerance
        )
        tries = [(usual, True), (usual, False), (closer, False)]
        while tries and not self.of.watch():
            settings, warm = tries.pop(0)
            answer = self.answer(settings, warm)
            if answer is None:
                break
            self.iterations += answer.iterations
            if answer.vertex:
                choice = SUM_PIVOTS
            point = self.point_of(answer)
            if self.is_optimal(point):
                return (self.keep(point), Status.OPTIMAL, None), choice
            # a cold solve that met the tolerance in scaled units only: try the tighter tolerances
            if not answer.vertex:
                tries = [each for each in tries if each[0] is closer]
        if self.of.watch():
            return self.stopped(), choice
        ray = impossible_row(self.program)
        return None if ray is None else (self.last_point(), Status.PRIMAL_INFEASIBLE, ray), choice

    def by_highs(self) -> Found | None:
        """Solve by HiGHS in its own process, if that pays (K18); the next round's pivots start there."""
        lp, sign, iterate = self.program, self.sign, self.of.iterate
        blocks = program_of(self.of.model.ledger.matrix, self.columns.slots)
        if blocks_work(blocks) <= first_vertex_work(blocks):
            return None
        vertex = optimal_vertex(
            LinearTask(sign * lp.c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, self.of.watch.left_s),
            self.of.watch,
        )
        if vertex is None or vertex.x is None or vertex.y is None:
            return None
        self.iterations += vertex.iterations
        point = self.point(vertex.x, vertex.y)
        if not self.is_optimal(point):
            return None
        known = vertex.statuses
        iterate.whole.note(lp, point.x, point.y, None if known is None else known == BASIC)
        return self.keep(point), Status.OPTIMAL, None

    def by_whole_program(self, choice: Choice) -> Found | None:
        """Solve by the simplex or the interior-point method; None if the simplex method gives up."""
        if self.of.watch():
            return self.stopped()
        found: Solution | None
        if choice in (RESUMED, FROM_VERTEX):
            work = (RESUMED_WORK if choice is RESUMED else FROM_VERTEX_WORK) * self.program.A.nnz
            found = self.of.iterate.whole.solve(self.program, self.of.settings, self.of.watch, work)
        elif choice.method == "simplex":
            work = DIRECT_WORK if choice is WHOLE_PIVOTS else np.inf
            found = by_simplex(self.program, self.of.settings, self.of.watch, work, work)
        else:
            found = solve_interior(self.program, self.of.settings, self.of.watch, vertex=True)
        if found is None:
            return None
        self.iterations += found.iterations
        point, ray = self.point(found.x, self.sign * found.y), found.ray
        if found.status is Status.PRIMAL_INFEASIBLE and ray is not None:
            ray = by_sums(
                self.program, of_one_request(self.program, ray, self.own_first), self.columns.first, self.sum_rows()
            )
        return self.keep(point) if found.status is Status.OPTIMAL else point, found.status, ray

    def stopped(self) -> Found:
        """Return the iterate's point with the status of a timed-out or interrupted solve."""
        return self.last_point(), Status.INTERRUPTED if self.of.watch.interrupted else Status.TIME_LIMIT, None

    def answer(self, settings: Settings, warm: bool) -> BlockAnswer | None:
        """Solve by the methods for blocks, from the last basis or cold; None on failure."""
        matrix = self.of.model.ledger.matrix
        try:
            pivots = settings.method != "blocks"
            return answer_by_blocks(
                matrix, self.columns.slots, self.of.iterate, settings, self.of.watch, warm, pivots, self.accepts
            )
        except MemoryError:  # the general method's matrices are sparse
            return None

    @property
    def sign(self) -> float:
        """1 for a minimisation, -1 for a maximisation."""
        return self.of.model.ledger.sign

    def rows(self) -> list[int]:
        """Row slots of the resources, in the program's order."""
        return list(self.of.model.ledger.row_of.values())

    def point(self, x: Floats, y: Floats, like: Point | None = None) -> Point:
        """Return a checked point from minimisation duals: columns clipped to bounds, duals of infinite bounds set to
        zero.

        If the point equals `like`, the findings of that one are taken over.
        """
        lp = self.program
        x = np.clip(x, lp.col_lower, lp.col_upper)
        y = self.sign * np.where(np.isfinite(np.where(y > 0.0, lp.row_lower, lp.row_upper)), y, 0.0)
        if like is not None and np.array_equal(x, like.x) and np.array_equal(y, like.y):
            return like
        return Point(x, y, check(lp, x, y))

    def point_of(self, answer: BlockAnswer) -> Point:
        """Return an answer as a checked point; the last one is cached."""
        if self.seen is None or self.seen[0] is not answer:
            self.seen = answer, self.point(answer.x, np.concatenate((answer.y[self.rows()], answer.private)))
        return self.seen[1]

    def accepts(self, answer: BlockAnswer) -> bool:
        """Whether an answer is optimal, even if the method has not converged yet."""
        return self.is_optimal(self.point_of(answer))

    def is_optimal(self, point: Point) -> bool:
        """Whether the checker finds a point optimal."""
        return point.judged.residuals.within(self.of.settings.tolerance, self.of.settings.absolute_tolerance)

    # The iterate --------------------------------------------------------------------------------------------------

    def own_keys(self) -> Keys:
        """Return slot << 32 | row of every own row, in the program's order; row 0 is the sum."""
        return own_keys(self.of.model.ledger.matrix, self.columns.slots)

    def sum_rows(self) -> Keys:
        """Return, for each request, the program row of its sum; -1 without one."""
        counts = np.diff(self.own_first).astype(np.int64)
        summed = counts > self.of.model.ledger.matrix.private_sizes(self.columns.slots)
        return np.where(summed, len(self.rows()) + self.own_first[:-1], -1)

    def keep(self, point: Point) -> Point:
        """Store a point in the iterate; returns the point as stored."""
        matrix, ws, iterate = self.of.model.ledger.matrix, self.of.iterate.ws, self.of.iterate
        ws.grow(matrix, *self.columns.split(np.flatnonzero(point.x)))
        ws.x[:] = np.clip(point.x[self.columns.places(ws.key)], ws.lower, ws.upper)
        ws.fit()
        iterate.y = np.zeros(matrix.n_rows)
        iterate.y[self.rows()] = self.sign * point.y[: len(self.rows())]
        key = self.own_keys()
        order = np.argsort(key)
        iterate.hold_own(matrix, key[order], self.sign * point.y[len(self.rows()) :][order])
        iterate.cold, iterate.version = False, self.of.model.version
        last = self.last_point(point)
        return last if self.is_optimal(last) else point

    def last_point(self, like: Point | None = None) -> Point:
        """Return the iterate's point, as far as its columns and rows still exist."""
        x, y = self.program.col_lower.copy(), np.zeros(self.program.shape[0])
        x[np.isneginf(x)] = 0.0
        x[self.columns.places(self.of.iterate.ws.key)] = self.of.iterate.ws.x
        y[: len(self.rows())] = self.of.iterate.y[self.rows()]
        key = self.own_keys()
        y[len(self.rows()) :] = self.of.iterate.own_at(key)
        return self.point(x, y, like)

    # The end ------------------------------------------------------------------------------------------------------

    def ended(self, found: Found, choice: Choice) -> Ended:
        """Convert a point, its status and perhaps a ray to the model's terms."""
        (point, status, ray), ledger = found, self.of.model.ledger
        self.of.tell(point.judged.residuals)
        off, judged = point.x != self.program.col_lower, point.judged
        off[self.columns.places(self.of.iterate.ws.key)] = True
        away = np.flatnonzero(off)
        key = self.columns.keys(away)
        order = np.argsort(key)
        y = np.zeros(ledger.matrix.n_rows)
        y[self.rows()] = point.y[: len(self.rows())]
        own_key = self.own_keys()
        own = np.argsort(own_key)
        values = sparse_values(
            ledger, key[order], point.x[away][order], y, OwnDuals(own_key[own], point.y[len(self.rows()) :][own])
        )
        rounding = ledger.matrix.rounding_bound()
        proven = Proven(
            judged.objective,
            judged.bound - (self.sign * rounding if np.isfinite(rounding) else 0.0),
            judged.bound_is_certified and bool(np.isfinite(rounding)),
            judged.residuals,
        )
        return Ended(status, proven, values, choice, self.iterations, ray=None if ray is None else lambda: ray)
