"""The result of a solve: status, values, prices, a certified bound and residuals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from copter.problem.checker import Judged
from copter.problem.display import figure, page, percent, seconds
from copter.problem.explanation import Explanation, explained
from copter.problem.linear_program import LinearProgram
from copter.problem.residuals import Residuals
from copter.problem.slots_then import table_of
from copter.problem.table import Table, frame, table
from copter.problem.values import Given, Offsets, SparseValues
from copter.runtime.errors import StaleSolutionError, UnknownHandleError

Floats = NDArray[np.float64]
Arrays = tuple[Floats, Floats, Floats]
Named = tuple[tuple[Hashable, ...], tuple[Hashable, ...]]


class Status(str, Enum):
    """How a solve ended. Infeasible, unbounded and out of time are statuses, not exceptions."""

    OPTIMAL = "optimal"
    PRIMAL_INFEASIBLE = "primal_infeasible"
    DUAL_INFEASIBLE = "dual_infeasible"
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    NUMERICAL_ERROR = "numerical_error"
    INTERRUPTED = "interrupted"


WITHOUT_OPTIMUM = {
    Status.PRIMAL_INFEASIBLE: "no point meets all limits (see conflict)",
    Status.DUAL_INFEASIBLE: "the objective has no bound (see ray)",
}
"""What a solution says instead of figures, which would be those of its last point."""


class Effort(NamedTuple):
    """How a linear program was solved, as its :class:`Solution` says: seconds, counts of work, the method's name."""

    solve_time_s: float
    iterations: int = 0
    pricing_passes: int = 0
    proximal_steps: int = 0
    working_columns: int = 0
    method: str = ""


@dataclass(frozen=True)
class Solution:
    """The immutable result of a solve, marked with the version of the model that it belongs to.

    :meth:`of_program` makes it for a linear program, `copter/methods/answers.py` for a model.

    Signs are those of HiGHS: y is the change of the optimal objective per unit of right-hand side, and
    reduced_costs = c - A'y, for minimisation and maximisation alike.

    Attributes
    ----------
    status : Status
    objective : float
        c'x + offset at the returned point.
    bound : float
        Dual bound computed from the prices only: no feasible point is better, even if the solver is wrong. If
        `bound_is_certified` is False (columns without finite bounds), it is only the dual objective.
    gap : float
        |objective - bound| / (1 + |objective| + |bound|).
    residuals : Residuals
    iterations : int
        Newton steps.
    pricing_passes, proximal_steps : int
    solve_time_s : float
    model_version : int
    restart_reason : str or None
        Why the session started cold; None if it started from its last state.
    working_columns : int
        Columns left in the working set after pricing.
    method : str
        Method that found the answer: "basis", "blocks", "proximal", "price_descent", "coordinate_descent", "simplex",
        "interior"; "kept" if the last answer was proven again, "presolve" if presolve solved the program. Empty if no
        method ran.
    why : str
        Why this method, in a clause (`copter/methods/choose.py`).
    """

    status: Status
    objective: float
    bound: float
    bound_is_certified: bool
    residuals: Residuals
    _dense: Callable[[], Arrays] = field(repr=False)
    iterations: int = 0
    pricing_passes: int = 0
    proximal_steps: int = 0
    solve_time_s: float = 0.0
    model_version: int = 0
    restart_reason: str | None = None
    working_columns: int = 0
    method: str = ""
    why: str = ""
    _sparse: SparseValues | None = field(default=None, repr=False)
    _ray: Callable[[], Floats] | None = field(default=None, repr=False)
    _conflict: Callable[[], Named] | None = field(default=None, repr=False)
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of_program(
        cls,
        lp: LinearProgram,
        status: Status,
        x: Floats,
        y: Floats,
        judged: Judged,
        ray: Floats | None = None,
        *,
        effort: Effort,
    ) -> Solution:
        """Make the solution of a linear program from the point (x, y) and the checker's findings."""
        reduced_costs = lp.c - lp.A.T @ y
        return cls(
            status=status,
            objective=judged.objective,
            bound=judged.bound,
            bound_is_certified=judged.bound_is_certified,
            residuals=judged.residuals,
            **effort._asdict(),
            _dense=lambda: (x, y, reduced_costs),
            _ray=None if ray is None else (lambda: ray),
        )

    def __bool__(self) -> bool:
        """Whether the status is OPTIMAL; after a deadline or an interruption the point may still be of use."""
        return self.status is Status.OPTIMAL

    def __repr__(self) -> str:
        ended = f"{self.method}, {seconds(self.solve_time_s)}" if self.method else seconds(self.solve_time_s)
        found = f"objective {figure(self.objective)}, gap {percent(self.gap)}"
        return f"<Solution {self.status.value}: {WITHOUT_OPTIMUM.get(self.status, found)}, {ended}>"

    def _repr_html_(self) -> str:
        found = [
            ("objective", figure(self.objective)),
            ("bound", figure(self.bound) + (", certified" if self.bound_is_certified else "")),
            ("gap", percent(self.gap)),
        ]
        if self.status in WITHOUT_OPTIMUM:
            found = [("answer", WITHOUT_OPTIMUM[self.status])]
        facts = [
            ("status", self.status.value),
            *found,
            ("time", seconds(self.solve_time_s)),
            ("method", f"{self.method}: {self.why}" if self.why else self.method),
        ]
        return page("copter solution", facts)

    def __getstate__(self) -> dict[str, Any]:
        """Prepare for pickle and copy: arrays and ray are computed now, so that the copy needs no model.

        If the model has been edited since the solve, only the values by request and what had already been computed are
        kept.
        """
        arrays, ray, named = None, None, None
        with suppress(StaleSolutionError):
            arrays = self._arrays()
        with suppress(StaleSolutionError):
            ray, named = self.ray, None if self._conflict is None else self._conflict()
        return {
            **self.__dict__,
            "_dense": Given(arrays),
            "_cache": {},
            "_ray": None if self._ray is None else Given(ray),
            "_conflict": None if self._conflict is None else Given(named),
            "_sparse": None if self._sparse is None else self._sparse.detached(),
        }

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        return self.residuals.gap

    @property
    def x(self) -> Floats:
        """Primal values, (n,), in the model's column order (requests in the order they were added)."""
        if self._sparse is None or "dense" in self._cache:
            return self._arrays()[0]
        x: Floats = self._cached("x", self._sparse.behind.x)
        return x

    @property
    def y(self) -> Floats:
        """Row duals, (m,), in the order of ``Model.to_linear_program``: resources, then the requests' own rows."""
        return self._arrays()[1]

    @property
    def reduced_costs(self) -> Floats:
        """c - A'y, (n,)."""
        return self._arrays()[2]

    @property
    def ray(self) -> Floats | None:
        """Verified certificate: row multipliers of PRIMAL_INFEASIBLE, a direction in x of DUAL_INFEASIBLE, or None."""
        return None if self._ray is None else self._ray()

    def _arrays(self) -> Arrays:
        arrays: Arrays = self._cached("dense", self._dense)
        return arrays

    def _cached(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a named value, computed at the first call and then cached."""
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    @property
    def conflict(self) -> Named:
        """(resources, requests) whose rows form the proof of PRIMAL_INFEASIBLE; empty for any other status.

        If it names one request and no resource, that request's own rows, limit and bounds contradict each other.
        """
        return ((), ()) if self._conflict is None else self._cached("conflict", self._conflict)

    # By request, one or many --------------------------------------------------------------------------------------

    def of(self, request: Hashable) -> Floats:
        """Return the values of one request's columns, (n,).

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 4)
        >>> model.add_request("job", [1.0, 2.0], {"gpu": [1, 1]})
        >>> copter.Session(model).solve().of("job").tolist()
        [0.0, 1.0]
        """
        return self._require_sparse().values_of([request])[1]

    def explain(self, request: Hashable) -> Explanation:
        """Explain one request's allocation: prices, its columns side by side, and what would change the answer.

        Losses and turns hold at the present prices, effects of capacity for the present basis. The time is proportional
        to the number of the request's columns and, for capacities, of the model's nonzero columns.

        Raises
        ------
        UnknownHandleError, StaleSolutionError
            Also where the model has been edited since.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 1)
        >>> model.add_request("job", [3.0], {"gpu": [2]})
        >>> copter.Session(model).solve().explain("job").request == "job"
        True
        """
        sparse = self._require_sparse()
        sparse.slots([request])
        return explained(request, sparse.behind.facts(request))

    def values_of(self, requests: Sequence[Hashable]) -> tuple[Offsets, Floats]:
        """Return the values of many requests' columns as (offsets, values).

        The values of ``requests[i]`` are ``values[offsets[i]:offsets[i + 1]]``.

        Raises
        ------
        UnknownHandleError, StaleSolutionError
            For a request that was not in the model, or has been removed since.
        """
        return self._require_sparse().values_of(list(requests))

    def reduced_costs_of(self, requests: Sequence[Hashable]) -> tuple[Offsets, Floats]:
        """Return the reduced costs of many requests' columns (F5) as (offsets, values), see :meth:`values_of`.

        Raises
        ------
        UnknownHandleError, StaleSolutionError
            Also where the model has been edited since.
        """
        return self._require_sparse().reduced_costs_of(list(requests))

    def limit_duals(self, requests: Sequence[Hashable]) -> Floats:
        """Return the duals of the limits and least sums of many requests, (k,); zero without either."""
        sparse = self._require_sparse()
        slot = sparse.slots(requests)
        offsets, dual = sparse.behind.own().between(slot << 32, (slot << 32) + 1)
        found = np.zeros(len(slot))
        found[np.diff(offsets) > 0] = dual
        return found

    def private_duals(self, requests: Sequence[Hashable]) -> tuple[Offsets, Floats]:
        """Return the duals of many requests' private rows as (offsets, values), see :meth:`values_of`."""
        sparse = self._require_sparse()
        slot = sparse.slots(requests)
        return sparse.behind.own().between((slot << 32) + 1, (slot + 1) << 32)

    def prices(self, resources: Sequence[Hashable] | None = None) -> Floats:
        """Return the duals of many resources' rows, (k,); by default of all resources, in the order added."""
        sparse = self._require_sparse()
        return sparse.y[sparse.rows(list(sparse.row_of) if resources is None else resources)]

    def columns_of(self, request: Hashable) -> tuple[NDArray[np.int64], Floats]:
        """Return (columns, values) of a request's columns that may be off their lower bounds; independent of the
        model's size.
        """
        sparse = self._require_sparse()
        slot = int(sparse.slots([request])[0])
        first, last = np.searchsorted(sparse.key, [slot << 32, (slot + 1) << 32])
        return sparse.key[first:last] & 0xFFFFFFFF, sparse.values[first:last].copy()

    def by_request(self) -> Iterator[tuple[Hashable, NDArray[np.int64], Floats]]:
        """Yield every request with its columns that may be off their lower bounds and their values (views)."""
        sparse = self._require_sparse()
        slot_of = table_of(sparse.slot_of)
        slots = np.fromiter(slot_of.values(), dtype=np.int64, count=len(slot_of))
        first = np.searchsorted(sparse.key, slots << 32).tolist()
        last = np.searchsorted(sparse.key, (slots + 1) << 32).tolist()
        columns = sparse.key & 0xFFFFFFFF
        for request, begin, end in zip(slot_of, first, last, strict=True):
            yield request, columns[begin:end], sparse.values[begin:end]

    def by_column(self) -> tuple[list[Hashable], NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return :meth:`by_request` as arrays: all requests, then (index of the request, column, value) per working
        column.
        """
        sparse = self._require_sparse()
        slot_of = table_of(sparse.slot_of)
        slots = np.fromiter(slot_of.values(), dtype=np.int64, count=len(slot_of))
        place = np.zeros(int(slots.max(initial=-1)) + 1, dtype=np.int64)
        place[slots] = np.arange(len(slots))
        return list(slot_of), place[sparse.key >> 32], sparse.key & 0xFFFFFFFF, sparse.values

    def working_columns_by_slot(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
        """Return arrays (slot, column, value) of the columns that may be off their lower bounds, for vectorised
        shims.
        """
        sparse = self._require_sparse()
        return (sparse.key >> 32).astype(np.int32), (sparse.key & 0xFFFFFFFF).astype(np.int32), sparse.values

    def to_frame(self) -> Any:
        """Return the nonzero columns as a `pandas.DataFrame`: request, column, value (needs pandas)."""
        return frame(self.nonzeros())

    def nonzeros(self) -> Table:
        """Return the arrays `request`, `column` and `value` of all nonzero columns, in the order of the model."""
        names: list[Hashable] = []
        columns, values = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for request, places, x in self.by_request():
            kept = x != 0.0
            names += [request] * int(kept.sum())
            columns.append(places[kept])
            values.append(x[kept])
        return table(names, np.concatenate(columns), np.concatenate(values))

    def price(self, resource: Hashable) -> float:
        """Return the dual of a resource's row: the objective's change per extra unit.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model(sense="max")
        >>> model.add_resource("gpu", 1)
        >>> model.add_request("job", [3.0], {"gpu": [2]})
        >>> copter.Session(model).solve().price("gpu")
        1.5
        """
        sparse = self._require_sparse()
        return float(sparse.y[sparse.rows([resource])[0]]) + 0.0  # no price is 0, not -0

    @property
    def sparse(self) -> SparseValues:
        """Return working columns and prices by slot; raises UnknownHandleError for a LinearProgram's solution."""
        return self._require_sparse()

    def _require_sparse(self) -> SparseValues:
        if self._sparse is None:
            raise UnknownHandleError("this solution is of a LinearProgram, which has no requests; use x and y")
        return self._sparse
