"""What a solve claims, decided in rational arithmetic: true, within its tolerances, honestly open, or false."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np

from copter import LinearProgram, Solution, Status
from copter.highs.lp import highs_lp
from copter.problem.checker import check
from tests.adversary.test_bounds import dual_function
from tests.copter.exact import exact

TOLERANCE = 1e-6
NEAR = 1e-5  # relative: an optimum of mild figures that is further off is false
EXACT_ROWS, EXACT_COLUMNS = 24, 24  # of programs that the exact simplex decides at once
SURE = 1e-9
NEARBY = Fraction(1, 10**9)
"""Relative change of each figure of a program that makes a nearby one (backward error by Oettli and Prager, 1964)."""

TRUE, TOLERATED, OPEN, FALSE = "true", "within tolerance", "no verdict", "false"


@dataclass(frozen=True)
class Judgement:
    """A verdict, who decided it ("certificate", "exact" or "HiGHS"), and what is wrong."""

    verdict: str
    by: str
    why: str = ""


def judged(lp: LinearProgram, solution: Solution, mild: bool, by_simplex: bool = True) -> Judgement:
    """Decide a solution's claims.

    Parameters
    ----------
    lp : LinearProgram
    solution : Solution
        Of the program, or of the model that it was made of.
    mild : bool
        Whether the figures are such that a point within tolerance has an objective within `NEAR`.
    by_simplex : bool
        Whether the exact simplex decides also what the solution's own prices prove in exact arithmetic.
    """
    wrong = residual_fault(lp, solution)
    if wrong:
        return Judgement(FALSE, "checker", wrong)
    if not by_simplex and proves_itself(lp, solution):
        return Judgement(TRUE, "certificate")
    if lp.shape[0] > EXACT_ROWS or lp.shape[1] > EXACT_COLUMNS:
        by_highs = against_highs(lp, solution, mild)
        if by_highs is not None:
            return by_highs
    return exactly(lp, solution, mild)


def proves_itself(lp: LinearProgram, solution: Solution) -> bool:
    """Whether its prices, or its ray, prove what it claims, in exact arithmetic; the point holds to `SURE`."""
    sign = 1.0 if lp.sense == "min" else -1.0
    if solution.status is Status.PRIMAL_INFEASIBLE and solution.ray is not None:
        costless = LinearProgram(np.zeros(lp.shape[1]), lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper)
        value = dual_function(costless, solution.ray)
        return value is not None and value > 0
    if solution.status is not Status.OPTIMAL or not solution.bound_is_certified:
        return False
    value = dual_function(lp, sign * solution.y)
    claimed = value is not None and Fraction(sign * solution.bound) <= value
    return claimed and solution.residuals.primal <= SURE and solution.gap <= TOLERANCE


def residual_fault(lp: LinearProgram, solution: Solution) -> str:
    """What the checker finds of a point that is called optimal."""
    if solution.status is not Status.OPTIMAL:
        return ""
    seen = check(lp, solution.x, solution.y)
    if not seen.residuals.primal <= 10 * TOLERANCE:
        return f"called optimal, its rows are violated by {seen.residuals.primal:.3g}"
    if solution.bound_is_certified and not solution.gap <= 10 * TOLERANCE:
        return f"called optimal with a gap of {solution.gap:.3g}"
    return ""


def exactly(lp: LinearProgram, solution: Solution, mild: bool) -> Judgement:
    """The verdict of the exact simplex."""
    status, best = exact(lp)
    said, found = solution.status, solution.bound
    if solution.bound_is_certified and np.isfinite(found):
        sign = 1 if lp.sense == "min" else -1
        if status is Status.DUAL_INFEASIBLE:
            return Judgement(FALSE, "exact", f"bound {found!r} is certified, the program is unbounded")
        if best is not None and sign * Fraction(found) > sign * best:
            return Judgement(FALSE, "exact", f"bound {found!r} is certified, the optimum is {float(best)!r}")
    contradicted = TOLERATED if holds_nearby(lp, solution) else FALSE
    if said is Status.PRIMAL_INFEASIBLE:
        return Judgement(TRUE if status is said else contradicted, "exact", f"called infeasible, it is {status.value}")
    if said is Status.DUAL_INFEASIBLE:
        verdict = contradicted if status is Status.OPTIMAL else TRUE
        return Judgement(verdict, "exact", "called unbounded, it has an optimum")
    if said is not Status.OPTIMAL:
        return Judgement(OPEN, "exact", said.value)
    if best is None:
        return Judgement(TOLERATED, "exact", f"called optimal, it is {status.value}")
    off = abs(Fraction(solution.objective) - best) / (1 + abs(best))
    if off <= Fraction(NEAR):
        return Judgement(TRUE, "exact")
    return Judgement(
        contradicted if mild else TOLERATED, "exact", f"optimum {solution.objective!r}, it is {float(best)!r}"
    )


def holds_nearby(lp: LinearProgram, solution: Solution) -> bool:
    """Whether the answer is right, in exact arithmetic, for programs whose figures differ from these by `NEARBY`.

    A residual is nil for one of these programs if it is at most `NEARBY` times the sum of its terms' sizes. An
    infeasible program needs the Farkas inequality of its ray, an unbounded one a direction of recession that improves,
    an optimal one a feasible point and feasible prices whose objectives are `NEAR`.
    """
    if solution.status is Status.PRIMAL_INFEASIBLE and solution.ray is not None:
        costless = LinearProgram(np.zeros(lp.shape[1]), lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper)
        value = nearby_dual(costless, solution.ray)
        return value is not None and value > 0
    sign = 1 if lp.sense == "min" else -1
    if solution.status is Status.DUAL_INFEASIBLE and solution.ray is not None:
        return leads_away(lp, solution.ray, sign)
    if solution.status is not Status.OPTIMAL or not is_feasible_nearby(lp, solution.x):
        return False
    value, objective = nearby_dual(lp, sign * solution.y), Fraction(solution.objective)
    return value is not None and abs(sign * value - objective) <= Fraction(NEAR) * (1 + abs(objective))


def nil_nearby(terms: list[Fraction]) -> Fraction:
    """The sum of the terms; nought if a relative change of each by `NEARBY` makes it so."""
    total = sum(terms, Fraction(0))
    return total if abs(total) > NEARBY * sum(map(abs, terms), Fraction(0)) else Fraction(0)


def products(lp: LinearProgram, vector: np.ndarray, by_row: bool) -> list[list[Fraction]]:
    """Terms of each row of A x, or of each column of y A."""
    found: list[list[Fraction]] = [[] for _ in range(lp.shape[0 if by_row else 1])]
    for j in range(lp.shape[1]):
        for e in range(lp.A.indptr[j], lp.A.indptr[j + 1]):
            i = int(lp.A.indices[e])
            found[i if by_row else j].append(Fraction(lp.A.data[e]) * Fraction(vector[j if by_row else i]))
    return found


def nearby_dual(lp: LinearProgram, y: np.ndarray) -> Fraction | None:
    """The dual function of the minimisation at prices of it, reduced costs that are nil nearby left out."""
    sign = 1 if lp.sense == "min" else -1
    used = products(lp, y, by_row=False)
    reduced = [nil_nearby([sign * Fraction(c), *(-t for t in terms)]) for c, terms in zip(lp.c, used, strict=True)]
    total, prices = sign * Fraction(lp.offset), [Fraction(v) for v in y]
    for values, lower, upper in ((prices, lp.row_lower, lp.row_upper), (reduced, lp.col_lower, lp.col_upper)):
        for value, low, high in zip(values, lower, upper, strict=True):
            at = low if value > 0 else high
            if value != 0 and not np.isfinite(at):
                return None
            total += value * Fraction(at) if value != 0 else 0
    return total


def leads_away(lp: LinearProgram, ray: np.ndarray, sign: int) -> bool:
    """Whether a direction keeps every row and bound for ever, and improves the objective."""
    activity = [nil_nearby(terms) for terms in products(lp, ray, by_row=True)]
    ways = (*zip(activity, lp.row_lower, lp.row_upper, strict=True), *zip(ray, lp.col_lower, lp.col_upper, strict=True))
    stays = all((d >= 0 or not np.isfinite(low)) and (d <= 0 or not np.isfinite(high)) for d, low, high in ways)
    return stays and sum(sign * Fraction(c) * Fraction(d) for c, d in zip(lp.c, ray, strict=True)) < 0


def is_feasible_nearby(lp: LinearProgram, x: np.ndarray) -> bool:
    """Whether a point keeps every row and bound of a program nearby."""
    rows = zip(products(lp, x, by_row=True), lp.row_lower, lp.row_upper, strict=True)
    columns = (([Fraction(value)], low, high) for value, low, high in zip(x, lp.col_lower, lp.col_upper, strict=True))
    for terms, low, high in (*rows, *columns):
        if np.isfinite(low) and nil_nearby([*terms, -Fraction(low)]) < 0:
            return False
        if np.isfinite(high) and nil_nearby([*terms, -Fraction(high)]) > 0:
            return False
    return True


def against_highs(lp: LinearProgram, solution: Solution, mild: bool) -> Judgement | None:
    """The verdict where HiGHS has a point that is feasible to `SURE` and agrees; None: decide exactly."""
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("time_limit", 10.0)
    solver.passModel(highs_lp(lp))
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Judgement(TRUE, "HiGHS") if solution.status is Status.PRIMAL_INFEASIBLE else None
    if status != highspy.HighsModelStatus.kOptimal:
        return Judgement(TRUE, "HiGHS") if solution.status is Status.DUAL_INFEASIBLE else None
    found = solver.getSolution()
    point = check(lp, np.array(found.col_value), np.array(found.row_dual))
    if point.primal_absolute > SURE or point.dual_absolute > SURE:
        return None
    size, sign = 1.0 + abs(point.objective), 1.0 if lp.sense == "min" else -1.0
    if solution.bound_is_certified and sign * (solution.bound - point.objective) > SURE * size:
        return None
    if solution.status is Status.OPTIMAL and abs(solution.objective - point.objective) <= NEAR * size:
        return Judgement(TRUE, "HiGHS")
    known = (Status.OPTIMAL, Status.PRIMAL_INFEASIBLE, Status.DUAL_INFEASIBLE)
    return Judgement(OPEN, "HiGHS", solution.status.value) if solution.status not in known else None
