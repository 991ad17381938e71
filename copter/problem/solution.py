"""What a solve returns: status, values, prices, a certified bound and true residuals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from copter.errors import StaleSolutionError, UnknownHandleError

if TYPE_CHECKING:
    from copter.model.model import Model

Floats = NDArray[np.float64]


class Status(str, Enum):
    """How a solve ended; these are answers, not exceptions."""

    OPTIMAL = "optimal"
    PRIMAL_INFEASIBLE = "primal_infeasible"
    DUAL_INFEASIBLE = "dual_infeasible"
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    NUMERICAL_ERROR = "numerical_error"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Residuals:
    """How far a point is from optimal, on the problem as given (docs/formulation.md, F6-F9).

    Attributes
    ----------
    primal, dual, gap : float
        Relative: ||row and bound violation|| / (1 + ||b||), ||reduced-cost violation|| / (1 + ||c||),
        |P - D| / (1 + |P| + |D|).
    primal_absolute, dual_absolute, gap_absolute : float
        Largest violation of a row or bound, largest violation of a reduced cost's sign, |P - D|.
    """

    primal: float
    dual: float
    gap: float
    primal_absolute: float
    dual_absolute: float
    gap_absolute: float

    def within(self, tolerance: float, absolute_tolerance: float) -> bool:
        """Whether the relative triple and the absolute violations are within tolerance (NaN is not)."""
        relative = self.primal <= tolerance and self.dual <= tolerance and self.gap <= tolerance
        return relative and self.primal_absolute <= absolute_tolerance and self.dual_absolute <= absolute_tolerance


@dataclass(frozen=True, slots=True)
class SparseValues:
    """Values of a model's working columns as they were when the solution was found."""

    key: NDArray[np.int64]
    x: Floats
    y: Floats
    slot_of: dict[Hashable, int]
    row_of: dict[Hashable, int]
    model: Model


@dataclass(frozen=True, slots=True)
class Given:
    """A ray that is there already."""

    ray: Floats

    def __call__(self) -> Floats:
        return self.ray


@dataclass(frozen=True)
class Solution:
    """An answer, frozen and stamped with the version of the model that it belongs to.

    Signs are those of HiGHS: y is the change of the optimal objective per unit of right-hand side, and
    reduced_costs = c - A'y, for minimisation and maximisation alike.

    Attributes
    ----------
    status : Status
    objective : float
        c'x + offset at the returned point.
    bound : float
        Dual bound computed from the prices alone: no feasible point is better, whatever the solver did. Where
        `bound_is_certified` is False (columns without finite bounds) it is the dual objective.
    gap : float
        |objective - bound| / (1 + |objective| + |bound|).
    residuals : Residuals
    iterations : int
        Newton steps.
    pricing_passes, proximal_steps : int
    solve_time_s : float
    model_version : int
    restart_reason : str or None
        Why a session's state could not be kept, if it could not.
    working_columns : int
        Columns that were not priced away.
    """

    status: Status
    objective: float
    bound: float
    bound_is_certified: bool
    residuals: Residuals
    iterations: int = 0
    pricing_passes: int = 0
    proximal_steps: int = 0
    solve_time_s: float = 0.0
    model_version: int = 0
    restart_reason: str | None = None
    working_columns: int = 0
    _ray: Callable[[], Floats] | None = field(default=None, repr=False)
    _dense: Callable[[], tuple[Floats, Floats, Floats]] | None = field(default=None, repr=False)
    _sparse: SparseValues | None = field(default=None, repr=False)
    _cache: dict[str, tuple[Floats, Floats, Floats]] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """How pickle and copy take a solution: with its arrays and its ray worked out now.

        A session's solution whose model has been edited since keeps what was asked of it before, and the values by
        request; the model goes along as it stands.
        """
        state = dict(self.__dict__)
        if self._dense is not None and "dense" not in self._cache:
            with suppress(StaleSolutionError):
                self._arrays()
        ray = None
        if self._ray is not None:
            with suppress(StaleSolutionError):
                ray = self._ray()
        state["_cache"] = dict(self._cache)
        state["_dense"] = None
        state["_ray"] = None if ray is None else Given(ray)
        return state

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound."""
        return self.residuals.gap

    @property
    def x(self) -> Floats:
        """Primal values, (n,), in the model's column order (requests in the order they were added)."""
        return self._arrays()[0]

    @property
    def y(self) -> Floats:
        """Row duals, (m,): resources in the order they were added, then the requests' limits."""
        return self._arrays()[1]

    @property
    def reduced_costs(self) -> Floats:
        """c - A'y, (n,)."""
        return self._arrays()[2]

    @property
    def ray(self) -> Floats | None:
        """Verified certificate: row multipliers of PRIMAL_INFEASIBLE, a direction in x of DUAL_INFEASIBLE, or None."""
        return None if self._ray is None else self._ray()

    def _arrays(self) -> tuple[Floats, Floats, Floats]:
        if "dense" not in self._cache:
            if self._dense is None:
                raise StaleSolutionError("this solution holds no dense values")
            self._cache["dense"] = self._dense()
        return self._cache["dense"]

    def of(self, request: Hashable) -> Floats:
        """Values of one request's columns, (n,)."""
        columns, values = self.columns_of(request)
        sparse = self._require_sparse()
        sparse.model._require_unchanged(request, self.model_version)
        dense = sparse.model._lower_of(request)
        dense[columns] = values
        return dense

    def columns_of(self, request: Hashable) -> tuple[NDArray[np.int64], Floats]:
        """Columns of a request that may be off their lower bound, and their values; cheap whatever the model's size."""
        sparse = self._require_sparse()
        if request not in sparse.slot_of:
            raise UnknownHandleError(f"request {request!r} was not in the model that this solution is of")
        slot = sparse.slot_of[request]
        first, last = np.searchsorted(sparse.key, [slot << 32, (slot + 1) << 32])
        return sparse.key[first:last] & 0xFFFFFFFF, sparse.x[first:last].copy()

    def by_request(self) -> Iterator[tuple[Hashable, NDArray[np.int64], Floats]]:
        """Every request with its columns that may be off their lower bound, and their values (views)."""
        sparse = self._require_sparse()
        slots = np.fromiter(sparse.slot_of.values(), dtype=np.int64, count=len(sparse.slot_of))
        first = np.searchsorted(sparse.key, slots << 32).tolist()
        last = np.searchsorted(sparse.key, (slots + 1) << 32).tolist()
        columns = sparse.key & 0xFFFFFFFF
        for request, begin, end in zip(sparse.slot_of, first, last, strict=True):
            yield request, columns[begin:end], sparse.x[begin:end]

    def working_columns_by_slot(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
        """(slot, column, x) of the columns that may be off their lower bound, for shims that work on whole arrays."""
        sparse = self._require_sparse()
        return (sparse.key >> 32).astype(np.int32), (sparse.key & 0xFFFFFFFF).astype(np.int32), sparse.x

    def price(self, resource: Hashable) -> float:
        """Dual of a resource's row: the objective's change per extra unit."""
        sparse = self._require_sparse()
        if resource not in sparse.row_of:
            raise UnknownHandleError(f"resource {resource!r} was not in the model that this solution is of")
        return float(sparse.y[sparse.row_of[resource]])

    def _require_sparse(self) -> SparseValues:
        if self._sparse is None:
            raise UnknownHandleError("this solution is of a LinearProgram, which has no requests; use x and y")
        return self._sparse
