"""The normal equations of every interior-point step: A diag(theta) A' + delta I (equation I5)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.interior.cholesky import Factor, NormalMatrix, column_counts, front_rows, supernodes
from copter.methods.interior.ordering import minimum_degree, postordered
from copter.methods.interior.stopping import unless_stopped
from copter.problem.sums import inner, norm
from copter.runtime.memory import require_room
from copter.runtime.threads import one_blas_thread
from copter.runtime.watch import Stopped

Floats = NDArray[np.float64]

PIVOT = 1e-14  # a pivot below this share of its diagonal entry belongs to a row that depends on earlier rows
LIFT = 1e-13  # relative increase of each diagonal entry, so that rounding alone gives no pivot to a dependent row
REFINEMENTS = 12  # most steps of conjugate gradients, with the factor as preconditioner
ACCURATE = 1e-10  # relative residual at which refinement stops
ROUGH = 1e-4  # relative residual that suffices for a predictor step, which only sets the next step's target
PATIENCE = 2  # conjugate gradients end after this many steps in a row without a smaller residual
SINGULAR = 1e-7  # a direction belongs to dependent rows if its curvature is below this share of the factor's curvature
CLOSINGS = 2  # most corrections of the rows' residual after a solve
CLOSED = 1e-13  # relative residual of the rows at which corrections end

CHUNK = 2e7  # multiplications between two checks of the clock
MOST_FLOPS = 1e9  # multiplications above which a factorisation counts as expensive
FEW_FLOPS = 2e10  # multiplications below which a factorisation's fronts are too small for several threads


class NormalEquations:
    """The matrix A diag(theta) A' + delta I, for one A and many theta.

    Parameters
    ----------
    matrix : sparse matrix (m, n)
    must_stop : callable, optional
        Called between steps; True raises :class:`Stopped`.
    """

    def __init__(self, matrix: sp.csr_array, must_stop: Callable[[], bool] | None = None) -> None:
        self.must_stop = must_stop
        m = matrix.shape[0]
        entries = np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.float64)
        products = min(inner(entries, entries), float(m) ** 2)
        require_room("the matrix of the normal equations", products, 20)
        full = bool((entries == m).any())
        permuted, tree = unless_stopped(lambda: self._order(matrix, full), must_stop, products)
        unless_stopped(lambda: self._analyse(permuted, tree), must_stop, products)
        self.matrix, self.transpose = matrix, matrix.T
        self._value = np.empty(len(self._index))
        self._work = np.zeros(m)
        self.rows = sp.csr_array(matrix)[self.ordering]
        self.rows.sort_indices()
        self.columns = sp.csc_array(self.rows)
        self.columns.sort_indices()
        self._matrix = NormalMatrix(self._arrays(self.rows), self._arrays(self.columns), self._start, self._index)
        self._columns_transposed = self.columns.T
        self._chunks = self._chunks_of_rows()
        self.theta: Floats = np.ones(matrix.shape[1])
        self.delta = 0.0

    def _order(self, matrix: sp.csr_array, full: bool) -> tuple[sp.csc_array, NDArray[np.int32]]:
        """Choose the ordering; returns the permuted pattern and its elimination tree."""
        pattern = normal_pattern(matrix, full)
        self.ordering, permuted, tree = postordered(pattern, minimum_degree(pattern, self.must_stop))
        return permuted, tree

    def _analyse(self, permuted: sp.csc_array, tree: NDArray[np.int32]) -> None:
        """Find the supernodes and fronts of the factor."""
        m = permuted.shape[0]
        count = np.empty(m, dtype=np.int32)
        column_counts(permuted.indptr, permuted.indices, tree, count)
        first = np.empty(m + 1, dtype=np.int32)
        groups = supernodes(tree, count, first)
        first = first[: groups + 1].copy()
        require_room("the Cholesky factor of the normal equations", float(count.sum(dtype=np.int64)), 8)
        lower = sp.csc_array(sp.tril(permuted))
        lower.sort_indices()
        self._start, self._index = lower.indptr.astype(np.int32, copy=False), lower.indices.astype(np.int32, copy=False)
        row_start, row, parent = front_rows(permuted.indptr, permuted.indices, first, groups)
        self.factor = Factor(self._start, self._index, first, row_start, row, parent)

    @staticmethod
    def _arrays(matrix: sp.csr_array | sp.csc_array) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
        return matrix.indptr.astype(np.int32, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data

    def _chunks_of_rows(self) -> list[int]:
        """Return bounds of runs of rows, each of limited work, so that the clock can be checked between them."""
        per_row = self.rows.astype(bool) @ np.diff(self.columns.indptr).astype(np.float64)
        whole = np.floor(np.cumsum(per_row) / CHUNK)
        return [0, *(np.flatnonzero(np.diff(whole)) + 1).tolist(), self.rows.shape[0]]

    def factorise(self, theta: Floats, delta: float) -> int:
        """Factorise for this theta; returns the number of rows dropped as dependent."""
        self.theta, self.delta = theta, delta
        for begin, end in pairwise(self._chunks):
            self._matrix.write(theta, self._value, self._work, begin, end)
            if self.must_stop is not None and self.must_stop():
                raise Stopped
        diagonal = self._value[self._start[:-1]]
        least = PIVOT * diagonal
        self._value[self._start[:-1]] += delta + LIFT * diagonal
        with one_blas_thread(self.factor.flops < FEW_FLOPS):
            if not self.factor.factorise(self._value, least, self.must_stop):
                raise Stopped
        return self.factor.skipped

    def times(self, y: Floats) -> Floats:
        """Return A diag(theta) A' y, in the factor's row order."""
        return np.asarray(self.rows @ (self.theta * (self._columns_transposed @ y)))

    def step(self, short: Floats, known: Floats, rough: bool = False) -> tuple[Floats, Floats]:
        """Return (dt, dy) with A dt = short and A'dy - dt / theta = known; `rough` skips the correction of
        cancellation.

        A second step removes the small residual that cancellation leaves in the rows.
        """
        with one_blas_thread():  # a solve reads the factor once, which several threads do not make faster
            return self._step(short, known, rough)

    def _step(self, short: Floats, known: Floats, rough: bool) -> tuple[Floats, Floats]:
        theta = self.theta
        dy = self.solve(short + self.matrix @ (theta * known), ROUGH if rough else ACCURATE)
        dt = theta * (self.transpose @ dy - known)
        if rough:
            return dt, dy
        goal = CLOSED * (1.0 + norm(short))
        for _ in range(CLOSINGS):
            left = short - self.matrix @ dt
            if norm(left) <= goal:
                break
            more = self.solve(left)
            dy, dt = dy + more, dt + theta * (self.transpose @ more)
        return dt, dy

    def solve(self, right: Floats, accuracy: float = ACCURATE) -> Floats:
        """Solve A diag(theta) A' y = right to a relative residual, by the factor and conjugate gradients."""
        target = right[self.ordering]
        y = target.copy()
        self.factor.solve(y)
        best, least, since = y.copy(), np.inf, 0
        residual = target - self.times(y)
        goal = accuracy * max(norm(target), 1e-300)
        direction, previous = np.zeros(0), 0.0
        for step in range(REFINEMENTS):
            if self.must_stop is not None and self.must_stop():
                raise Stopped
            size = norm(residual)
            since = 0 if size < 0.5 * least else since + 1
            if size < least:
                best, least = y.copy(), size
            if not goal < size < np.inf or since > PATIENCE:
                break
            preconditioned = residual.copy()
            self.factor.solve(preconditioned)
            slope = inner(residual, preconditioned)
            direction = preconditioned if step == 0 else preconditioned + slope / previous * direction
            image = self.times(direction)
            curvature = inner(direction, image)
            if not curvature > SINGULAR * slope or not slope > 0.0:
                break
            y = y + slope / curvature * direction
            residual = residual - slope / curvature * image
            previous = slope
        solution = np.empty_like(right)
        solution[self.ordering] = best
        return solution


def is_dear(system: object) -> bool:
    """Whether the factorisation is so expensive that SuperLU's, of the augmented system, would take many seconds."""
    return isinstance(system, NormalEquations) and system.factor.flops > MOST_FLOPS


def normal_pattern(matrix: sp.csr_array, full: bool = False) -> sp.csc_array:
    """Return the pattern of A A' with its diagonal, (m, m); `full` says that some column has an entry in every row."""
    m = matrix.shape[0]
    if full:
        return sp.csc_array(np.ones((m, m), dtype=np.bool_))
    ones = sp.csr_array((np.ones(matrix.nnz, dtype=np.bool_), matrix.indices, matrix.indptr), shape=matrix.shape)
    return sp.csc_array(ones @ ones.T + sp.eye_array(m, dtype=np.bool_))
