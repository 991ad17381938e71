"""The result of presolve: the reduced problem or a verdict, and postsolve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from copter.methods.presolve.restoration import Indices
from copter.methods.presolve.work import Work
from copter.problem.checker import is_improving_ray, is_infeasibility_ray
from copter.problem.linear_program import Floats, LinearProgram
from copter.problem.solution import Status
from copter.runtime.errors import DimensionError


@dataclass(frozen=True, eq=False)
class Presolved:
    """A reduced linear program and the way back to the original.

    Attributes
    ----------
    original : LinearProgram
    program : LinearProgram or None
        The reduced problem, of the same sense; None once a status is known.
    status : Status or None
        OPTIMAL: nothing is left, and `postsolve` of empty arrays gives the answer. PRIMAL_INFEASIBLE or
        DUAL_INFEASIBLE: proven by `ray`. None: `program` must be solved.
    ray : ndarray or None
        Verified on the original problem: row multipliers (m,) or a direction in x (n,).
    improving_ray : ndarray (n,) or None
        A verified direction along which the objective improves without bound. Then `program` is the feasibility problem
        (all costs zero): if it has a feasible point the original is DUAL_INFEASIBLE with this ray, else
        PRIMAL_INFEASIBLE. `postsolve` then returns duals of the problem without costs.
    rows, columns : ndarray
        Original numbers of the rows and columns that are left.
    """

    original: LinearProgram
    program: LinearProgram | None
    status: Status | None
    ray: Floats | None
    improving_ray: Floats | None
    rows: Indices
    columns: Indices
    _work: Work

    def postsolve(self, x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return values of the original problem from those of the reduced one.

        Parameters
        ----------
        x, y : ndarray (columns left,), (rows left,)
            Primal values and row duals, in the signs of docs/method/formulation.md.

        Returns
        -------
        (x, y, reduced_costs) : ndarrays (n,), (m,), (n,)

        Raises
        ------
        DimensionError
        """
        sign = 1.0 if self.original.sense == "min" else -1.0
        state = self._work.restoration(self._columns("x", x, self._work.x), self._rows("y", y) * sign)
        self._work.undo(state)
        dual = state.y * sign + 0.0
        c = self.original.c if self.improving_ray is None else np.zeros(len(state.x))
        return state.x, dual, c - self.original.A.T @ dual

    def postsolve_primal_ray(self, d: Floats) -> Floats | None:
        """Return the original problem's direction for one of the reduced problem; None if it is not a ray."""
        full = self._columns("d", d, np.zeros(self._work.n))
        state = self._work.restoration(full, np.zeros(self._work.m), homogeneous=True)
        self._work.undo(state)
        return state.x if is_improving_ray(self.original, state.x, self._work.tolerances.ray) else None

    def postsolve_farkas(self, y: Floats) -> Floats | None:
        """Return row multipliers of the original problem from those of the reduced one; None if they prove nothing."""
        return farkas_of(self._work, self._rows("y", y))

    def _columns(self, name: str, value: Floats, full: Floats) -> Floats:
        return _spread(name, value, self.columns, full)

    def _rows(self, name: str, value: Floats) -> Floats:
        return _spread(name, value, self.rows, np.zeros(self._work.m))


def _spread(name: str, value: Floats, at: Indices, full: Floats) -> Floats:
    given = np.asarray(value, dtype=np.float64)
    if given.shape != (len(at),):
        raise DimensionError(f"{name} has shape {given.shape}, the reduced problem's must be ({len(at)},)")
    result = full.copy()
    result[at] = given
    return result


def farkas_of(work: Work, y: Floats) -> Floats | None:
    """Return this stage's row multipliers, (m,), mapped to the original problem and verified there (equation P14)."""
    state = work.restoration(np.zeros(work.n), y, homogeneous=True)
    work.undo(state)
    return state.y if is_infeasibility_ray(work.lp, state.y, work.tolerances.ray) else None
