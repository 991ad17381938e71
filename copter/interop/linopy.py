"""A linopy solver with persistent updates: a model solved again keeps its session, even if linopy rebuilds its
matrices.

Importing this module registers it: ``model.solve("copter")``, and PyPSA's ``network.optimize(solver_name="copter")``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from linopy import solvers
from linopy.constants import Result, Solution, SolverReport, Status, TerminationCondition
from linopy.persistent.snapshot import VarKind
from linopy.solvers import Solver, SolverFeature, SolverName
from numpy.typing import NDArray

from copter.interop.live_program import LivePrograms
from copter.interop.semicontinuous import with_zero
from copter.interop.statuses import WORDS
from copter.methods.integer.solve import solve_integer
from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import CopterError
from copter.runtime.settings import Settings

Floats = NDArray[np.float64]

NAME = "copter"
LOG = logging.getLogger("copter")
SETTINGS = Settings.names()
SEARCH = ("deadline_s", "gap", "seed", "max_nodes", "shim")
SHARED = LivePrograms()  # kept outside the solver object, because linopy and PyPSA make a new one for each call


@dataclass
class Arrays:
    """A program as arrays that updates overwrite.

    Attributes
    ----------
    c, lower, upper : ndarray (n,)
    whole, semi : ndarray (n,) of bool
        Which columns are integer, and which are semi-continuous.
    A : CSC array (m, n)
    row_lower, row_upper : ndarray (m,)
    sense : str
    """

    c: Floats
    lower: Floats
    upper: Floats
    whole: NDArray[np.bool_]
    semi: NDArray[np.bool_]
    A: Any
    row_lower: Floats
    row_upper: Floats
    sense: Any

    @classmethod
    def of(cls, model: Any) -> Arrays:
        """Return the arrays of a linopy model."""
        found = model.matrices
        n = len(found.vlabels)
        rows = sp.csc_array((0, n)) if found.A is None else sp.csc_array(found.A)
        m = rows.shape[0]
        b = np.asarray(found.b, dtype=np.float64) if m else np.zeros(0)
        sign = np.asarray(found.sense)
        return cls(
            np.array(found.c, dtype=np.float64),
            np.array(found.lb, dtype=np.float64),
            np.array(found.ub, dtype=np.float64),
            np.isin(np.asarray(found.vtypes), ("B", "I")),
            np.asarray(found.vtypes) == "S",
            rows,
            np.where(sign != "<", b, -np.inf) if m else b,
            np.where(sign != ">", b, np.inf) if m else b,
            model.objective.sense,
        )

    def program(self) -> LinearProgram:
        """Return the current program."""
        lower, upper, least = with_zero(self.semi, self.lower, self.upper)
        return LinearProgram(
            self.c, self.A, self.row_lower, self.row_upper, lower, upper, self.whole, self.sense, semicontinuous=least
        )


@dataclass
class Copter(Solver[None]):  # type: ignore[misc]
    """Linopy's solver interface, backed by a session.

    ``solver = Copter.from_model(model, io_api="direct", track_updates=True)``, then
    ``solver.solve(model, assign=True)`` as often as the model changes. Options are the fields of
    :class:`copter.Settings`, and for mixed-integer models those of :func:`copter.solve_integer`.

    Notes
    -----
    linopy turns changed bounds, right-hand sides, coefficients and costs into updates. If it asks for a rebuild (new
    labels or coordinates) but rows, columns and nonzeros are in the same places, the session is kept and the
    differences become edits.
    """

    live: LivePrograms = field(init=False, default_factory=lambda: SHARED, repr=False)

    display_name: ClassVar[str] = "copter"
    features: ClassVar[frozenset[SolverFeature]] = frozenset(
        {
            SolverFeature.INTEGER_VARIABLES,
            SolverFeature.SEMI_CONTINUOUS_VARIABLES,
            SolverFeature.DIRECT_API,
            SolverFeature.SOLUTION_FILE_NOT_NEEDED,
            SolverFeature.MIP_DUAL_BOUND_REPORT,
        }
    )
    accepted_io_apis: ClassVar[frozenset[str]] = frozenset({"direct"})
    supports_persistent_update: ClassVar[bool] = True
    supports_sign_update: ClassVar[bool] = True

    @classmethod
    def is_available(cls) -> bool:
        """Return True: this module is part of copter."""
        return True

    def _build(self, **build_kwargs: Any) -> None:
        self.io_api: str | None = self.io_api or "direct"
        if self.io_api != "direct":
            raise ValueError(f"copter takes io_api='direct' only, not {self.io_api!r}")
        super()._build(**build_kwargs)

    def _build_direct(self, *, set_names: bool, **build_kwargs: Any) -> None:
        model = self.model
        self.solver_model = Arrays.of(model)
        self.sense = self.solver_model.sense
        self._cache_model_labels(model)

    # Updates ------------------------------------------------------------------------------------------------------

    def _apply_var_bounds(self, ctx: Arrays, indices: Any, lower: Any, upper: Any) -> None:
        ctx.lower[indices], ctx.upper[indices] = lower, upper

    def _apply_var_types(self, ctx: Arrays, positions: Any, kinds: Any) -> None:
        ctx.whole[positions] = [kind in (VarKind.BINARY, VarKind.INTEGER) for kind in kinds]
        ctx.semi[positions] = [kind == VarKind.SEMI_CONTINUOUS for kind in kinds]

    def _apply_con_rhs(self, ctx: Arrays, diff: Any) -> None:
        ctx.row_lower[diff.con_rhs_indices], ctx.row_upper[diff.con_rhs_indices] = diff.con_rhs_as_bounds()

    def _apply_con_signs(self, ctx: Arrays, indices: Any, signs: Any) -> None:
        b = np.where(np.isfinite(ctx.row_upper), ctx.row_upper, ctx.row_lower)[indices]
        sign = np.asarray([str(each)[0] for each in signs])
        ctx.row_lower[indices] = np.where(sign != "<", b, -np.inf)
        ctx.row_upper[indices] = np.where(sign != ">", b, np.inf)

    def _apply_con_coefs(self, ctx: Arrays, rows: Any, cols: Any, vals: Any) -> None:
        moved = ctx.A.copy()
        places = entry_places(moved, np.asarray(rows), np.asarray(cols))
        moved.data[places] = vals
        ctx.A = moved

    def _apply_obj_linear(self, ctx: Arrays, indices: Any, values: Any) -> None:
        ctx.c[indices] = values

    def _apply_obj_sense(self, ctx: Arrays, sense: str) -> None:
        ctx.sense = sense

    # Solving ------------------------------------------------------------------------------------------------------

    def _run_direct(self, **run_kwargs: Any) -> Result:
        unknown = sorted(set(self.options) - {*SETTINGS, *SEARCH})
        if unknown:
            raise ValueError(f"copter has no option {unknown[0]!r}: it takes {', '.join((*SETTINGS, *SEARCH))}")
        settings = Settings(**{name: value for name, value in self.options.items() if name in SETTINGS})
        try:
            lp = self.solver_model.program()
        except CopterError as error:
            raise ValueError(f"copter: {error}") from error
        if lp.is_mixed_integer:
            return self._searched(lp, settings)
        answer = self.live.solve(lp, settings)
        status = Status.from_termination_condition(TerminationCondition[WORDS[answer.status.value].linopy])
        status.legacy_status = answer.status.value
        solution = Solution()
        if status.is_ok:
            solution = Solution(
                by_label(answer.x, self._vlabels, self._n_vars),
                by_label(answer.y, self._clabels, self._n_cons),
                answer.objective,
            )
        return self._make_result(
            status, solution, solver_model=self.solver_model, report=SolverReport(runtime=answer.solve_time_s)
        )

    def _searched(self, lp: LinearProgram, settings: Settings) -> Result:
        search = {name: value for name, value in self.options.items() if name in SEARCH}
        found = solve_integer(lp, settings=settings, **search)
        status = Status.from_termination_condition(TerminationCondition[WORDS[found.status.value].linopy])
        status.legacy_status = found.status.value
        solution = Solution()
        if found.x is not None and status.is_ok:
            solution = Solution(by_label(found.x, self._vlabels, self._n_vars), np.zeros(0), found.objective)
        report = SolverReport(runtime=found.solve_time_s, mip_gap=found.gap, dual_bound=found.bound)
        return self._make_result(status, solution, solver_model=self.solver_model, report=report)


def by_label(values: Floats, labels: Any, size: int) -> Floats:
    """Place values at the positions of their labels; unused positions are NaN."""
    found = np.full(size, np.nan)
    found[np.asarray(labels, dtype=np.intp)] = values
    return found


def entry_places(A: Any, rows: NDArray[np.integer[Any]], columns: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Return the positions of entries in a CSC array's data; raises ValueError for an entry outside the pattern."""
    A.sort_indices()
    m = A.shape[0]
    key = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr)) * m + A.indices
    wanted = columns.astype(np.int64) * m + rows
    places: NDArray[np.intp] = np.searchsorted(key, wanted)
    if (places >= len(key)).any() or (key[np.minimum(places, len(key) - 1)] != wanted).any():
        raise ValueError("a coefficient changes where the matrix has no entry")
    return places


def register() -> None:
    """Add copter at the end of linopy's solvers, so that linopy's default stays the same; repeated calls do nothing.

    linopy 0.10 has no entry point for solvers: it selects them from an Enum and a tuple, so both get one more member.
    A linopy with docs/howto/linopy_entry_point.patch does this itself.
    """
    if hasattr(solvers, "register_solver"):
        solvers.register_solver(NAME, Copter)
    if NAME in SolverName._value2member_map_:
        return
    member = object.__new__(SolverName)
    member._name_, member._value_, member._sort_order_ = Copter.__name__, NAME, len(SolverName)
    SolverName._member_map_[member._name_] = SolverName._value2member_map_[NAME] = member
    SolverName._member_names_.append(member._name_)
    setattr(solvers, Copter.__name__, Copter)
    solvers._SOLVER_PROBE_ORDER = (*solvers._SOLVER_PROBE_ORDER, NAME)
    solvers.NO_SOLUTION_FILE_SOLVERS.append(NAME)
    for names in (solvers.available_solvers, solvers.licensed_solvers):
        names.refresh()
    LOG.info("copter is registered with linopy: model.solve('copter'), network.optimize(solver_name='copter')")


register()
