"""A model together with the iterate that survives from round to round."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from copter.algorithm.iterate import Iterate
from copter.algorithm.solve import Outcome, Solve
from copter.assembly import dense_ray, dense_solution
from copter.errors import EditNotAllowedError
from copter.model import Model
from copter.settings import Settings
from copter.shims import IntegerPlan, RoundingShim, Shim
from copter.solution import Residuals, Solution, SparseValues, Status

# Endings after which prices or values have gone off to infinity: there is nothing worth starting from.
DIVERGED = (Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE, Status.NUMERICAL_ERROR)


class Session:
    """Solves a model again and again, each time from where the last solve ended.

    Prices of surviving resources and values of surviving requests are kept through every edit; new requests start at
    rest and are priced in; removed ones give their capacity back.

    Parameters
    ----------
    model : Model
        Edited by its owner between solves.
    settings : Settings, optional

    Notes
    -----
    A session is used by one thread at a time; different sessions are independent.
    """

    def __init__(self, model: Model, settings: Settings | None = None) -> None:
        self.model = model
        self.settings = settings or Settings()
        self._iterate = Iterate(self.settings.sigma)
        self._restart: str | None = "first solve"
        self._busy = threading.Lock()
        self._plan: IntegerPlan | None = None
        self.last_solution: Solution | None = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._busy.acquire(blocking=False):
            raise EditNotAllowedError("this session is solving in another thread: use one session a thread")
        try:
            yield
        finally:
            self._busy.release()

    def solve(
        self, deadline_s: float | None = None, callback: Callable[[int, float, float], bool | None] | None = None
    ) -> Solution:
        """Solve the model as it now stands, from the state that the last solve left.

        Parameters
        ----------
        deadline_s : float, optional
            Wall-clock seconds for this solve; the settings' limit holds too.
        callback : callable, optional
            Called after each pricing pass as ``callback(passes, relative_gap, largest_violation)``; True ends the
            solve with INTERRUPTED.

        Returns
        -------
        Solution
        """
        with self._alone():
            settings = self.settings
            if deadline_s is not None:
                settings = replace(settings, time_limit_s=min(deadline_s, settings.time_limit_s))
            started = time.perf_counter()
            reason, self._restart = self._restart, None
            if reason is not None:
                self._iterate = Iterate(self.settings.sigma)
            outcome = Solve(
                self.model._matrix, self._iterate, settings, callback, self.model._sign * self.model.offset
            ).run()
            if outcome.status in DIVERGED:
                self._restart = f"the last solve ended {outcome.status.value}"
            return self._solution(outcome, reason, time.perf_counter() - started)

    def solve_integer(self, shim: Shim | None = None, deadline_s: float | None = None) -> IntegerPlan:
        """Solve the LP, then make a whole plan of it.

        Parameters
        ----------
        shim : Shim, optional
            By default :class:`copter.shims.RoundingShim`. It is given the last plan that this method returned, and the
            new one is never worse where that still fits.
        deadline_s : float, optional
            As for :meth:`solve`; the shim comes after.

        Returns
        -------
        IntegerPlan
            Feasible, with the LP's certified bound and the true gap.
        """
        solution = self.solve(deadline_s=deadline_s)
        self.last_solution = solution
        self._plan = (shim or RoundingShim())(self.model, solution, self._plan)
        return self._plan

    def reset(self) -> None:
        """Forget the iterate: the next solve starts cold."""
        with self._alone():
            self._iterate = Iterate(self.settings.sigma)
            self._restart = "reset"

    def _solution(self, outcome: Outcome, reason: str | None, seconds: float) -> Solution:
        model, sign = self.model, self.model._sign
        ws = self._iterate.ws
        objective = sign * outcome.objective + model.offset
        bound = sign * outcome.priced.bound + model.offset
        raw = outcome.residuals
        gap = abs(objective - bound)
        residuals = Residuals(
            raw.primal, raw.dual, gap / (1.0 + abs(objective) + abs(bound)), raw.primal_absolute, raw.dual_absolute, gap
        )
        sparse = SparseValues(
            ws.key, ws.x.copy(), sign * outcome.priced.y, dict(model._slot_of), dict(model._row_of), model
        )
        version = model.version
        status, ray = outcome.status, outcome.ray
        return Solution(
            status=status,
            objective=objective,
            bound=bound,
            bound_is_certified=outcome.priced.certified,
            residuals=residuals,
            iterations=outcome.newton_steps,
            pricing_passes=outcome.passes,
            proximal_steps=outcome.proximal_steps,
            solve_time_s=seconds,
            model_version=version,
            restart_reason=reason,
            working_columns=ws.size,
            _ray=None if ray is None else (lambda: dense_ray(model, sparse, status, ray, version)),
            _dense=lambda: dense_solution(model, sparse, version),
            _sparse=sparse,
        )
