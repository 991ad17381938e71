"""The Newton system reduced to the columns, for programs with many inequalities and few columns (equation I15)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.methods.interior.normal_equations import NormalEquations
from copter.methods.interior.standard_form import StandardForm
from copter.problem.sums import inner, norm

Floats = NDArray[np.float64]

REFINEMENTS = 5  # most solves with one factorisation for a step, the first included
ACCURATE = 1e-13  # residual relative to the right sides at which refinement ends
AT_REST = 1e-14  # columns with theta below this share of the largest theta are kept fixed
LEAST = 1e-100  # least theta, so that its inverse is finite
WORTH = 2.0  # used if the rows' equations are at least this many times larger


def suits(form: StandardForm) -> bool:
    """Whether every row has its own activity column and the remaining column equations are much smaller."""
    m, n = len(form.row), len(form.column)
    if form.matrix.shape != (m, n + m) or not 0 < n <= m:
        return False
    by_row = np.diff(form.matrix.indptr).astype(np.float64) - 1.0
    by_column = np.bincount(form.matrix.indices, minlength=n)[:n].astype(np.float64)
    return bool(min(inner(by_column, by_column), m * m) >= WORTH * min(inner(by_row, by_row), n * n))


class ColumnEquations:
    """A' diag(1 / theta_s) A + diag(1 / theta_x), where the standard form's matrix is M = [A, G], G diagonal of +-1.

    Parameters
    ----------
    form : StandardForm
        One that :func:`suits`.
    must_stop : callable, optional
        See :class:`.NormalEquations`, which does the work.
    """

    def __init__(self, form: StandardForm, must_stop: Callable[[], bool] | None = None) -> None:
        self.columns = len(form.column)
        self.matrix = sp.csr_array(form.matrix[:, : self.columns])
        self.transposed = sp.csr_array(self.matrix.T)
        self.sign = sp.csr_array(form.matrix[:, self.columns :]).diagonal()
        whole = sp.csr_array(sp.hstack((self.transposed, sp.eye_array(self.columns))))
        self.normal = NormalEquations(whole, must_stop)
        self.theta: Floats = np.ones(form.matrix.shape[1])

    def factorise(self, theta: Floats, delta: float) -> None:
        """Factorise for this theta; columns with zero theta are replaced by a tiny value."""
        self.theta = np.maximum(np.where(theta > 0.0, theta, AT_REST * theta.max()), LEAST)
        theta = self.theta
        x, s = theta[: self.columns], theta[self.columns :]
        self.normal.factorise(np.concatenate((1.0 / s, 1.0 / x)), 0.0)

    def step(self, short: Floats, known: Floats, rough: bool = False) -> tuple[Floats, Floats]:
        """(dt, dy) with M dt = short and M'dy - dt / theta = known."""
        n = self.columns
        dt, dy = np.zeros(len(known)), np.zeros(len(short))
        size = norm(known) + norm(short)
        for _ in range(REFINEMENTS):
            left = short - self.matrix @ dt[:n] - self.sign * dt[n:]
            wrong = known - np.concatenate((self.transposed @ dy, self.sign * dy)) + dt / self.theta
            if norm(left) + norm(wrong) <= ACCURATE * size:
                break
            more, price = self._once(left, wrong)
            dt, dy = dt + more, dy + price
        return dt, dy

    def _once(self, short: Floats, known: Floats) -> tuple[Floats, Floats]:
        x, s = self.theta[: self.columns], self.theta[self.columns :]
        own = self.sign * known[len(x) :]
        dx = self.normal.solve(self.transposed @ (short / s + own) - known[: len(x)])
        left = short - self.matrix @ dx
        return np.concatenate((dx, self.sign * left)), own + left / s

    def solve(self, right: Floats) -> Floats:
        """Solve M diag(theta) M' y = right."""
        return self.step(right, np.zeros(len(self.theta)))[1]
