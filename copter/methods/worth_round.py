"""A session's round of a model with concave worths: Newton's method on prices, or why there is no optimum."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from copter.methods.answers import Ended, Proven, solution_of
from copter.methods.choose import Choice
from copter.methods.protocol import Callback
from copter.methods.solve import solve
from copter.methods.warm_state import WarmState
from copter.methods.worth.program import WorthProgram
from copter.methods.worth.solve import FIRST_MU, Answer, Newton
from copter.methods.worth.tangents import by_tangents
from copter.model.assembly import assemble
from copter.model.column_map import slots_in_order
from copter.model.ledger import Ledger
from copter.model.model import Model
from copter.model.values import ModelValues
from copter.problem.residuals import Residuals, relative_gap
from copter.problem.solution import Solution, Status
from copter.problem.values import OwnDuals, SparseValues
from copter.problem.worth import Worth
from copter.runtime.errors import EditNotAllowedError
from copter.runtime.settings import Settings
from copter.runtime.threads import one_blas_thread
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]

CONCAVE = Choice("worth", "requests have concave worths: Newton's method on prices")


def worth_solve(
    model: Model,
    iterate: WarmState,
    settings: Settings,
    watch: Watch,
    callback: Callback | None = None,
    restart_reason: str | None = None,
) -> Solution:
    """Solve a model with concave worths; see :func:`copter.methods.warm.warm_solve`.

    Raises
    ------
    EditNotAllowedError
        If a request has more than a limit, or must have a total of zero that its worth does not allow.
    """
    ledger, matrix = model.ledger, model.ledger.matrix
    program = iterate.worths
    if program is None:
        program = iterate.worths = WorthProgram(ledger)
    else:
        program.follow(ledger)
    iterate.refresh_prices(matrix)
    m = matrix.n_rows
    newton = Newton(
        program,
        (matrix.row_lower[:m].copy(), matrix.row_upper[:m].copy()),
        (settings.tolerance, settings.absolute_tolerance),
        model.offset,
        watch,
    )
    warm = isfinite(iterate.mu) and bool(iterate.y.any())
    y = ledger.sign * iterate.y if warm else newton.first_prices()
    with one_blas_thread(), np.errstate(all="ignore"):  # what overflows is judged as such
        answer = newton.run(y, iterate.mu if warm else FIRST_MU)
        if answer.ended == "stalled":
            answer = newton.run_surely()
    if answer.ended in ("stalled", "diverged"):
        infeasible = without_point(model, settings, watch)
        if infeasible is not None:
            return solution_of(model, infeasible, watch.elapsed_s, restart_reason)
        require_totals(program, ledger, newton.upper)
        dead = (newton.upper <= 0.0) & program.packing
        if dead.any():
            with one_blas_thread(), np.errstate(all="ignore"):  # what overflows is judged as such
                answer = newton.run_without(dead)
        if answer.ended in ("stalled", "diverged"):
            answer = by_tangents(newton, answer, settings, solve)
    if answer.ended == "optimal":
        starts = answer.y if answer.starts is None else answer.starts
        iterate.y, iterate.mu = ledger.sign * starts, newton.next_mu(answer)
    ended = ended_of(model, program, newton, answer, watch)
    if callback is not None:
        callback(answer.passes, ended.proven.residuals.gap, ended.proven.residuals.primal_absolute)
    return solution_of(model, ended, watch.elapsed_s, restart_reason)


def require_totals(program: WorthProgram, ledger: Ledger, upper: Floats) -> None:
    """Raise EditNotAllowedError if rows without units leave a request nothing that its worth values at -inf.

    A column is closed if it uses a row of at most zero units, on which no column has usage below zero.
    """
    parts = program.parts
    used_up = ((upper <= 0.0) & program.packing)[parts["row"]] & (parts["value"] > 0.0)
    before = np.append(0, np.cumsum(used_up))
    open_rate = np.where(np.diff(before[parts["entry"]]) > 0, 0.0, parts["rate"])
    for request, slot in ledger.slot_of.items():
        held, at = ledger.worths.get(slot), int(program.place[slot])
        mine = slice(parts["start"][at], parts["start"][at] + parts["count"][at])
        if held is not None and parts["count"][at] and not open_rate[mine].any() and Worth(*held[0])(0.0) == -np.inf:
            raise EditNotAllowedError(
                f"request {request!r} can have nothing, as what it uses has no units, and its worth values that at "
                "-inf: give the worth a floor, or remove the request"
            )


def without_point(model: Model, settings: Settings, watch: Watch) -> Ended | None:
    """Return the verdict that no point keeps to the rows, from the linear program without worths; None if one does."""
    ledger = model.ledger
    left = max(settings.time_limit_s - watch.elapsed_s, 1e-3 * settings.time_limit_s)  # the verdict needs a little
    found = solve(assemble(ledger), replace(settings, time_limit_s=left, method="auto"))
    ray = found.ray
    if found.status is not Status.PRIMAL_INFEASIBLE or ray is None:
        return None
    y, nothing = np.zeros(ledger.matrix.n_rows), np.zeros(0)
    key = np.zeros(0, dtype=np.int64)
    values = WorthValues(ledger, key, nothing, y, np.zeros(ledger.matrix.n_slots))
    sparse = SparseValues(key, nothing, y, ledger.slots_then(), dict(ledger.row_of), values)
    residuals = found.residuals
    proven = Proven(float("nan"), float("inf"), False, residuals)
    return Ended(found.status, proven, sparse, CONCAVE, found.iterations, ray=lambda: ray)


def ended_of(model: Model, program: WorthProgram, newton: Newton, answer: Answer, watch: Watch) -> Ended:
    """Convert the answer to the model's terms; its bound is rounded outward."""
    ledger = model.ledger
    rounding = ledger.matrix.rounding_bound()
    bound = answer.bound + answer.margin + rounding * (1.0 + 1e-12)
    bound += 8e-16 * (abs(answer.bound) + rounding)
    objective = answer.objective
    sides = np.concatenate((newton.lower, newton.upper))
    norm = float(np.linalg.norm(sides[np.isfinite(sides)]))
    gap = relative_gap(objective, bound) if isfinite(objective) else float("inf")
    residuals = Residuals(
        float(np.linalg.norm(answer.over)) / (1.0 + norm),
        0.0,
        gap,
        float(answer.over.max(initial=0.0)),
        0.0,
        abs(objective - bound),
    )
    status = Status.NUMERICAL_ERROR
    if answer.ended == "optimal" and gap <= settings_gap(newton):
        status = Status.OPTIMAL
    elif answer.ended == "stopped":
        status = Status.INTERRUPTED if watch.interrupted else Status.TIME_LIMIT
    key, x = program.keys()
    values = WorthValues(ledger, key, x, answer.y, slopes_of(program))
    sparse = SparseValues(key, x, answer.y, ledger.slots_then(), dict(ledger.row_of), values)
    proven = Proven(objective, bound, isfinite(bound), residuals)
    return Ended(status, proven, sparse, CONCAVE, answer.steps, answer.passes)


def settings_gap(newton: Newton) -> float:
    """Return the largest gap of an optimum: the outward rounding of the whole bound may add to Newton's."""
    return newton.tolerance * (1.0 + 1e-6)


def slopes_of(program: WorthProgram) -> Floats:
    """Return the slope of each slot's worth."""
    alive = np.flatnonzero(program.slots >= 0)
    slopes = np.zeros(int(program.slots.max(initial=-1)) + 1)
    slopes[program.slots[alive]] = program.passes.slope[alive]
    return slopes


class WorthValues(ModelValues):
    """The model behind a solution with concave worths: reduced costs are those of the worths' slopes.

    Attributes
    ----------
    slopes : ndarray (slots,)
        The slope of the worth of the request in each slot.
    """

    def __init__(self, ledger: Ledger, key: Keys, x: Floats, y: Floats, slopes: Floats) -> None:
        super().__init__(ledger, key, x, y, None)
        self.slopes = slopes

    def duals(self) -> tuple[Floats, Floats]:
        """Return (prices, then duals of limits; reduced costs c + s v - A'y - the limit's price)."""
        ledger, matrix = self.ledger, self.ledger.matrix
        slots = slots_in_order(ledger)
        first = matrix.starts_of(slots)
        reduced = ledger.sign * matrix.flat_reduced_costs(slots, int(first[-1]), ledger.sign * self.y, True)
        place = dict(zip(slots.tolist(), first.tolist(), strict=False))
        for slot, (_, rates) in ledger.worths.items():
            at = place[slot]
            reduced[at : at + len(rates)] += self.slopes[slot] * rates
        tops = np.maximum.reduceat(reduced, first[:-1]) if len(slots) else np.zeros(0)
        tops = np.where(np.isinf(matrix.sums_of(slots)[1]), np.maximum(tops, 0.0), tops)
        order = np.argsort(slots)
        self._own = OwnDuals(slots[order].astype(np.int64) << 32, tops[order])
        reduced -= np.repeat(tops, np.diff(first))
        return np.concatenate((self.y[list(ledger.row_of.values())], tops)) + 0.0, reduced
