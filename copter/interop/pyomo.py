"""A Pyomo solver backed by a session: a model solved again is edited instead of rebuilt.

Importing this module registers it: ``pyomo.contrib.solver.common.factory.SolverFactory("copter")``, and for the older
interface ``pyomo.environ.SolverFactory("copter")``.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.common.collections import ComponentMap
from pyomo.common.enums import ObjectiveSense
from pyomo.common.errors import InfeasibleConstraintException
from pyomo.contrib.solver.common.base import Availability, SolverBase
from pyomo.contrib.solver.common.config import BranchAndBoundConfig
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.contrib.solver.common.results import Results, SolutionStatus, TerminationCondition
from pyomo.contrib.solver.common.solution_loader import SolutionLoader
from pyomo.contrib.solver.common.util import (
    IncompatibleModelError,
    NoDualsError,
    NoFeasibleSolutionError,
    NoOptimalSolutionError,
    NoReducedCostsError,
    NoSolutionError,
)
from pyomo.core.staleflag import StaleFlagManager
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from copter.interop.live_program import LivePrograms
from copter.interop.pyomo_domains import column_of
from copter.interop.search import searched
from copter.interop.semicontinuous import with_zero
from copter.interop.statuses import WORDS
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Status
from copter.runtime.errors import CopterError
from copter.runtime.settings import Settings
from copter.runtime.version import VERSION

Floats = NDArray[np.float64]

NO_POINT = (TerminationCondition.provenInfeasible, TerminationCondition.unbounded, TerminationCondition.error)
SETTINGS = Settings.names()


class Point(SolutionLoader):  # type: ignore[misc]
    """Values, duals and reduced costs, indexed by Pyomo's objects."""

    def __init__(self, model: Any, info: Any, x: Floats | None, y: Floats | None, reduced: Floats | None) -> None:
        self._pyomo_model = model
        self._info, self._x, self._y, self._reduced = info, x, y, reduced

    def get_number_of_solutions(self) -> int:
        """Return 1 if there is a solution, otherwise 0."""
        return int(self._x is not None)

    def get_vars(self, vars_to_load: Sequence[Any] | None = None) -> Mapping[Any, float]:
        """Return the solution's value of each variable asked for, all by default."""
        if self._x is None:
            raise NoSolutionError()
        return chosen(self._info.columns, self._x.tolist(), vars_to_load)

    def get_duals(self, cons_to_load: Sequence[Any] | None = None) -> dict[Any, float]:
        """Return duals by constraint: the objective's change per unit of right-hand side."""
        if self._y is None:
            raise NoDualsError()
        found: dict[Any, float] = {}
        for row, dual in zip(self._info.rows, self._y.tolist(), strict=True):
            found[row.constraint] = found.get(row.constraint, 0.0) + dual
        return found if cons_to_load is None else {constraint: found[constraint] for constraint in cons_to_load}

    def get_reduced_costs(self, vars_to_load: Sequence[Any] | None = None) -> Mapping[Any, float]:
        """Return reduced costs by variable."""
        if self._reduced is None:
            raise NoReducedCostsError()
        return chosen(self._info.columns, self._reduced.tolist(), vars_to_load)


class Copter(SolverBase):  # type: ignore[misc]
    """Pyomo's solver interface, version 2, for linear and mixed-integer linear models.

    Notes
    -----
    A model is compiled at each solve. If rows, columns and nonzeros are in the same places as at the last solve, the
    differences become edits of a session. ``solver_options`` are the fields of :class:`copter.Settings`.
    """

    CONFIG: ClassVar[Any] = BranchAndBoundConfig()

    def __init__(self, **kwds: Any) -> None:
        super().__init__(**kwds)
        self.live = LivePrograms()

    def available(self) -> Availability:
        """Return that the solver is available: this module is part of copter."""
        return Availability.FullLicense

    def version(self) -> tuple[int, ...]:
        """Return copter's version."""
        return tuple(int(part) for part in VERSION.split(".")[:3])

    def solve(self, model: Any, **kwds: Any) -> Results:
        """Solve a Pyomo model and, unless ``load_solutions`` is False, load the solution into it.

        Keywords are Pyomo's options of a solve; they override :attr:`config`.

        Raises
        ------
        IncompatibleModelError
            If the model is not linear or has several objectives.
        NoOptimalSolutionError
            If the solve ends without an optimum and ``raise_exception_on_nonoptimal_result`` is True.
        NoFeasibleSolutionError
            If there is no solution to load.
        """
        started, stamp = time.perf_counter(), datetime.datetime.now(datetime.timezone.utc)
        config = self.config(value=kwds, preserve_implicit=True)
        StaleFlagManager.mark_all_as_stale()
        settings = settings_of(config)
        results = Results()
        try:
            info, lp = compiled(model)
        except InfeasibleConstraintException as error:
            nothing(results, model, TerminationCondition.provenInfeasible)
            log = f"a constraint without variables cannot hold: {error}"
        else:
            if config.time_limit is not None and config.time_limit <= 0.0:
                nothing(results, model, TerminationCondition.maxTimeLimit)
                log = "no time to solve in"
            elif lp.is_mixed_integer:
                log = self._search(results, model, info, lp, config, settings)
            else:
                log = self._solve(results, model, info, lp, settings)
            if not info.objectives:
                results.incumbent_objective = results.objective_bound = None
        results.solver_log = f"copter {VERSION}: {results.termination_condition.name}: {log}\n"
        for stream in config.tee:
            stream.write(results.solver_log)
        results.solver_name, results.solver_version, results.solver_config = self.name, self.version(), config
        results.timing_info.start_timestamp = stamp
        good = results.termination_condition is TerminationCondition.convergenceCriteriaSatisfied
        if not good and config.raise_exception_on_nonoptimal_result:
            raise NoOptimalSolutionError()
        if config.load_solutions:
            if results.solution_status is SolutionStatus.noSolution:
                raise NoFeasibleSolutionError()
            results.solution_loader.load_solution()
        results.timing_info.wall_time = time.perf_counter() - started
        return results

    def _solve(self, results: Results, model: Any, info: Any, lp: LinearProgram, settings: Settings) -> str:
        """Solve the LP, fill `results`, and return a line for the log."""
        answer = self.live.solve(lp, settings)
        results.termination_condition = TerminationCondition[WORDS[answer.status.value].pyomo]
        optimal = answer.status is Status.OPTIMAL
        results.solution_status = SolutionStatus.optimal if optimal else SolutionStatus.noSolution
        results.extra_info.iteration_count = answer.iterations
        parts: tuple[Floats | None, ...] = (answer.x, answer.y, answer.reduced_costs) if optimal else (None, None, None)
        results.solution_loader = Point(model, info, *parts)
        if optimal:
            results.incumbent_objective = answer.objective
            results.objective_bound = not_beyond(answer.bound, answer.objective, lp.sense)
        how = "from the last solve" if answer.warm else "afresh"
        return f"{lp.shape[0]} rows, {lp.shape[1]} columns, {answer.iterations} iterations, {how}"

    def _search(
        self, results: Results, model: Any, info: Any, lp: LinearProgram, config: Any, settings: Settings
    ) -> str:
        """Search for an integer point, fill `results`, and return a line for the log."""
        gap = 1e-6 if config.rel_gap is None else config.rel_gap
        found = searched(lp, config.time_limit, settings, gap=gap)
        results.termination_condition = TerminationCondition[WORDS[found.status.value].pyomo]
        within = found.x is not None and found.gap <= gap
        if within:
            results.termination_condition = TerminationCondition.convergenceCriteriaSatisfied
        results.solution_status = SolutionStatus.noSolution
        if found.x is not None and results.termination_condition not in NO_POINT:
            results.solution_status = SolutionStatus.optimal if within else SolutionStatus.feasible
            results.incumbent_objective = found.objective
        results.objective_bound = found.bound
        if results.incumbent_objective is not None:
            results.objective_bound = not_beyond(found.bound, found.objective, lp.sense)
        results.solution_loader = Point(model, info, found.x, None, None)
        by = found.found_by or "none"
        return f"{lp.shape[0]} rows, {lp.shape[1]} columns, gap {found.gap:.2g}, point by {by}"


def not_beyond(bound: float, objective: float, sense: str) -> float:
    """Return the bound, moved to the objective if rounding has put the bound on its wrong side."""
    return min(bound, objective) if sense == "min" else max(bound, objective)


def nothing(results: Results, model: Any, condition: TerminationCondition) -> None:
    """Fill in results without a solution."""
    results.termination_condition, results.solution_status = condition, SolutionStatus.noSolution
    results.solution_loader = Point(model, None, None, None, None)


def chosen(names: Sequence[Any], values: Sequence[float], wanted: Sequence[Any] | None) -> Mapping[Any, float]:
    """Return values by name, for all names or for the wanted ones."""
    found: Mapping[Any, float] = ComponentMap(zip(names, values, strict=True))
    return found if wanted is None else ComponentMap((name, found[name]) for name in wanted)


def compiled(model: Any) -> tuple[Any, LinearProgram]:
    """Return Pyomo's standard form of a model and the program made from it.

    Raises
    ------
    IncompatibleModelError
        If the model is not linear, has several objectives, or a variable whose domain has gaps that no integer or
        semi-continuous column has. A model without an objective gets an objective of zero.
    InfeasibleConstraintException
        For a violated constraint without variables.
    """
    try:
        info = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except InfeasibleConstraintException:
        raise
    except Exception as error:  # Pyomo raises several types
        raise IncompatibleModelError(f"copter takes linear models with one objective: {error}") from error
    if len(info.objectives) > 1:
        raise IncompatibleModelError(f"the model has {len(info.objectives)} active objectives, must have one at most")
    kind = np.array([row.bound_type for row in info.rows], dtype=np.int8)
    rhs = np.asarray(info.rhs, dtype=np.float64)
    columns = [column_of(variable) for variable in info.columns]
    low, high = (np.array([column[at] for column in columns], dtype=np.float64) for at in (0, 1))
    whole, semi = (np.array([column[at] for column in columns], dtype=np.bool_) for at in (2, 3))
    some = bool(info.objectives)
    sense: Literal["min", "max"] = "max" if some and info.objectives[0].sense == ObjectiveSense.maximize else "min"
    try:
        low, high, least = with_zero(semi, low, high)
        return info, LinearProgram(
            sp.csr_array(info.c).toarray()[0] if some else np.zeros(len(low)),
            sp.csc_array(info.A),
            np.where(kind <= 0, rhs, -np.inf),
            np.where(kind >= 0, rhs, np.inf),
            low,
            high,
            whole,
            sense,
            float(info.c_offset[0]) if some else 0.0,
            semicontinuous=least,
        )
    except CopterError as error:
        raise IncompatibleModelError(f"copter: {error}") from error


def settings_of(config: Any) -> Settings:
    """Convert Pyomo's configuration to settings; raises ValueError for an unknown option."""
    given = dict(config.solver_options)
    unknown = sorted(set(given) - set(SETTINGS))
    if unknown:
        raise ValueError(f"copter has no option {unknown[0]!r}: it takes {', '.join(SETTINGS)}")
    if config.time_limit:
        given.setdefault("time_limit_s", float(config.time_limit))
    if config.threads is not None:
        given.setdefault("threads", int(config.threads))
    return Settings(**given)


SolverFactory.register("copter", doc="copter: LPs kept alive across solves, MILPs")(Copter)
