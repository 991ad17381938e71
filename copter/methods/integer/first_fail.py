"""Depth-first search that branches on the row that is hardest to satisfy (M12)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.integer.fixing import fix_in_order
from copter.methods.integer.problem import Domain, IntegerProblem, row_tolerance
from copter.methods.integer.relaxation import Relaxation
from copter.methods.solve import solve
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Status
from copter.runtime.settings import Settings

Floats = NDArray[np.float64]

FAILURES = 10  # contradictions in the first descent before a restart with other random choices
GROWTH = 1.2  # factor by which the allowed contradictions grow with each descent
MOST_CONTINUOUS = 500  # with more continuous columns, no LP checks their rows after each step
PART_S = 1.0  # most seconds of one LP over the continuous columns
REST = 1e-2  # weight of columns that are zero in the relaxation; quadrupled with each descent, up to 1


class FirstFail:
    """The rows that require integer columns to be raised, and the search over them."""

    def __init__(self, problem: IntegerProblem, relaxation: Relaxation) -> None:
        self.problem, self.relaxation = problem, relaxation
        rows = sp.csr_array(problem.lp.A)
        # One row per finite bound, in the form row >= side.
        self.matrix = sp.csr_array(sp.vstack((rows, -rows)))
        side = np.concatenate((problem.lp.row_lower, -problem.lp.row_upper))
        self.least: Floats = side - row_tolerance(side)
        self.raising = sp.csr_array(self.matrix.multiply(problem.is_integer) > 0.0, dtype=np.float64)
        part = sp.csr_array(self.matrix[:, problem.continuous])
        self.touched = np.diff(part.indptr) > 0
        free = np.isinf(problem.root.upper - problem.root.lower)[problem.continuous]
        self.part = part if 0 < len(problem.continuous) <= MOST_CONTINUOUS and free.any() else None
        self.positive, self.negative = self.matrix.maximum(0.0).tocsr(), self.matrix.minimum(0.0).tocsr()

    def run(self, x: Floats, rng: np.random.Generator, until: float) -> bool:
        """Descend until a better point is found or the clock reaches `until`; returns whether one was found."""
        problem = self.problem
        until = min(until, problem.clock.deadline_s)
        appeal = np.clip(x - problem.root.lower, 0.0, 1.0)
        patience, rest, noise = float(FAILURES), REST, np.ones(problem.n)
        while problem.clock.elapsed_s < until and not self.relaxation.over():
            settled, complete = self._descend((rest + appeal) * noise, patience, until)
            if settled is not None:
                fixed = fix_in_order(problem, settled, settled.lower.copy(), settled.open(), restarts=2)
                if fixed is not None and self.relaxation.complete(fixed, "first-fail search"):
                    return True
            noise, patience, rest = rng.random(problem.n), GROWTH * patience, min(4.0 * rest, 1.0)
            if complete:
                return False
        return False

    def _descend(self, appeal: Floats, patience: float, until: float) -> tuple[Domain | None, bool]:
        """Return (domain in which all rows hold with integer columns at their lower bounds, or None; whether the search
        was exhaustive).
        """
        stack: list[tuple[Domain, int]] = []
        domain, failures = self.problem.root.copy(), 0
        while failures < patience and self.problem.clock.elapsed_s < until:
            column = self._choose(domain, appeal)
            if column is None:
                return domain, False
            before = domain.copy()
            raised = column >= 0 and domain.restrict(column, domain.lower[column] + 1.0, np.inf)
            if column >= 0:
                stack.append((before, column))
            if raised and self._leaves_room(domain):
                continue
            failures += 1
            while stack:
                domain, column = stack.pop()
                if domain.restrict(column, -np.inf, domain.lower[column]) and self._leaves_room(domain):
                    break
            else:
                return None, True
        return None, False

    def _leaves_room(self, domain: Domain) -> bool:
        """Whether the continuous columns can still satisfy every row, given the bounds of the integer columns.

        If bounds are infinite, as for the positions of a tour's stops, propagation misses contradictions; an LP finds
        them. Always true with many continuous columns.
        """
        part = self.part
        if part is None:
            return True
        lp, continuous = self.problem.lp, self.problem.continuous
        integer = self.problem.is_integer
        least = self.positive @ np.where(integer, domain.upper, 0.0) + self.negative @ np.where(
            integer, domain.lower, 0.0
        )
        side = self.least - least
        wanting = np.flatnonzero(np.isfinite(side) & self.touched)
        rest = LinearProgram(
            np.zeros(len(continuous)),
            part[wanting],
            side[wanting],
            np.full(len(wanting), np.inf),
            lp.col_lower[continuous],
            lp.col_upper[continuous],
        )
        return solve(rest, Settings(time_limit_s=PART_S)).status is not Status.PRIMAL_INFEASIBLE

    def _choose(self, domain: Domain, appeal: Floats) -> int | None:
        """Return the most appealing column of the row that the fewest columns can help; None if all rows hold, -1 if
        one cannot.

        Integer columns count at their lower bounds, continuous columns at the bound that helps the row most.
        """
        integer = self.problem.is_integer
        high = np.where(integer, domain.lower, domain.upper)
        with np.errstate(invalid="ignore"):
            activity = self.positive @ high + self.negative @ domain.lower
        open_columns = (integer & (domain.lower < domain.upper)).astype(np.float64)
        wanting = np.flatnonzero(activity < self.least)
        if not len(wanting):
            return None
        helpers = (self.raising @ open_columns)[wanting]
        row = wanting[int(np.argmin(helpers))]
        if helpers.min() < 1.0:
            return -1
        columns = self.raising.indices[self.raising.indptr[row] : self.raising.indptr[row + 1]]
        columns = columns[open_columns[columns] > 0.0]
        return int(columns[int(np.argmax(appeal[columns]))])
