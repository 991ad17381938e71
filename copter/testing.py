"""The independent checker and seeded generators: NumPy and SciPy only, no code shared with the engine.

The checker recomputes everything from the original data, so that tests and benchmarks need not believe the solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from copter.problem.dual_bound import proven_dual_bound
from copter.problem.linear_program import LinearProgram

if TYPE_CHECKING:
    from copter.model.model import Model
    from copter.problem.solution import Solution

Floats = NDArray[np.float64]

LOSS = 1e-9  # relative, that proving a bound may cost; one that costs more is not called certified
ROUNDING = 1e-14  # of a sum, as a share of the sum of its terms' absolute values


@dataclass(frozen=True, slots=True)
class Judged:
    """What the checker finds; the figures are defined in docs/formulation.md (F4, F6-F9).

    `complementarity` is the largest product of a dual or reduced cost and the distance of its row or column from the
    bound that it stands for, over 1 + |P| + |D|.
    """

    objective: float
    bound: float
    bound_is_certified: bool
    primal: float
    dual: float
    gap: float
    primal_absolute: float
    dual_absolute: float
    gap_absolute: float
    complementarity: float


def check(lp: LinearProgram, x: Floats, y: Floats) -> Judged:
    """Judge a primal point and row duals of an LP (HiGHS's signs) from the original data.

    Parameters
    ----------
    lp : LinearProgram
    x : ndarray (n,)
    y : ndarray (m,)
        Rows' duals. A sign that no bound of the row supports counts as dual violation, as does a reduced cost that no
        bound of its column supports.

    Returns
    -------
    Judged
        The bound leaves unsupported parts out. It is certified where there are none and every rounding has been
        accounted for: then no feasible point is better, in exact arithmetic.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # infinite or NaN figures are no figures within tolerance
        return _judged(lp, x, y)


def _judged(lp: LinearProgram, x: Floats, y: Floats) -> Judged:
    sign = 1.0 if lp.sense == "min" else -1.0
    c, price = sign * lp.c, sign * np.asarray(y)
    activity = lp.A @ x
    violation = np.concatenate(
        (
            np.maximum(lp.row_lower - activity, 0.0),
            np.maximum(activity - lp.row_upper, 0.0),
            np.maximum(lp.col_lower - x, 0.0),
            np.maximum(x - lp.col_upper, 0.0),
        )
    )
    reduced = c - lp.A.T @ price
    dual_value, wrong, product = 0.0, [], 0.0
    for value, lower, upper, place in (
        (price, lp.row_lower, lp.row_upper, activity),
        (reduced, lp.col_lower, lp.col_upper, x),
    ):
        unsupported = ((value > 0) & np.isneginf(lower)) | ((value < 0) & np.isposinf(upper))
        wrong.append(np.where(unsupported, value, 0.0))
        supported = np.where(unsupported, 0.0, value)
        at = np.where(supported > 0, lower, upper)
        dual_value += float(np.sum(supported * np.where(supported == 0.0, 0.0, at)))
        distance = np.where(supported == 0.0, 0.0, place - np.where(supported == 0.0, 0.0, at))
        product = max(product, float(np.abs(supported * distance).max(initial=0.0)))
    dual_violation = np.concatenate(wrong)
    finite = np.concatenate((lp.row_lower[np.isfinite(lp.row_lower)], lp.row_upper[np.isfinite(lp.row_upper)]))
    primal_value = float(c @ x)
    objective, bound = sign * primal_value + lp.offset, sign * dual_value + lp.offset
    proven = proven_dual_bound(c, lp.A, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper, price)
    certified = dual_value - proven <= LOSS * (1.0 + abs(dual_value) + abs(primal_value))
    if certified:
        bound = sign * nextafter(proven + sign * lp.offset, -inf)
    return Judged(
        objective=objective,
        bound=bound,
        bound_is_certified=certified,
        primal=float(np.linalg.norm(violation) / (1.0 + np.linalg.norm(finite))),
        dual=float(np.linalg.norm(dual_violation) / (1.0 + np.linalg.norm(c))),
        gap=abs(objective - bound) / (1.0 + abs(objective) + abs(bound)),
        primal_absolute=float(violation.max(initial=0.0)),
        dual_absolute=float(np.abs(dual_violation).max(initial=0.0)),
        gap_absolute=abs(objective - bound),
        complementarity=product / (1.0 + abs(objective) + abs(bound)),
    )


def assert_optimal(lp: LinearProgram, x: Floats, y: Floats, tolerance: float = 1e-6) -> Judged:
    """Raise AssertionError unless (x, y) is optimal to the relative tolerance and to 10x it absolutely."""
    judged = check(lp, x, y)
    for name in ("primal", "dual", "gap"):
        value = getattr(judged, name)
        if not value <= tolerance:
            raise AssertionError(f"{name} residual {value:.3e} is above {tolerance:.1e}: {judged}")
    for name in ("primal_absolute", "dual_absolute"):
        value = getattr(judged, name)
        if not value <= 10 * tolerance:
            raise AssertionError(f"{name} violation {value:.3e} is above {10 * tolerance:.1e}: {judged}")
    return judged


def integer_violation(lp: LinearProgram, x: Floats) -> float:
    """Largest distance of an integer column's value from a whole number."""
    values = np.asarray(x)[lp.integrality]
    return float(np.abs(values - np.round(values)).max(initial=0.0))


def faults(lp: LinearProgram, solution: Solution, tolerance: float = 1e-6) -> list[str]:
    """What of a solution's claims does not hold, each in a few words; empty if all do.

    Parameters
    ----------
    lp : LinearProgram
    solution : Solution
        OPTIMAL claims residuals, gap and violations within the tolerance, PRIMAL_INFEASIBLE and DUAL_INFEASIBLE a ray
        that proves it. Every other status claims only that its point's figures are true.
    tolerance : float
        On the relative triple and on absolute violations.
    """
    status = solution.status.value
    if status in ("primal_infeasible", "dual_infeasible"):
        proves = is_infeasibility_ray if status == "primal_infeasible" else is_improving_ray
        if solution.ray is None:
            return [f"{status} without a ray"]
        return [] if proves(lp, solution.ray) else [f"the ray does not prove {status}"]
    judged = check(lp, solution.x, solution.y)
    found = []
    reduced = lp.c - lp.A.T @ solution.y
    if float(np.abs(reduced - solution.reduced_costs).max(initial=0.0)) > 1e-9 * (1.0 + np.abs(lp.c).max(initial=0.0)):
        found.append("reduced costs are not c - A'y")
    claims = {"objective": (solution.objective, judged.objective), "bound": (solution.bound, judged.bound)}
    names = ("primal", "dual", "gap", "primal_absolute", "dual_absolute")
    claims |= {name: (getattr(solution.residuals, name), getattr(judged, name)) for name in names}
    for name, (claimed, true) in claims.items():
        if not abs(claimed - true) <= 1e-9 * (1.0 + abs(true)):
            found.append(f"{name} is {true:.10g}, not {claimed:.10g}")
    if status == "optimal":
        figures = {name: getattr(judged, name) for name in (*names, "complementarity")}
        found += [f"{name} {v:.1e} is above {tolerance:.1e}" for name, v in figures.items() if not v <= tolerance]
    return found


def is_infeasibility_ray(lp: LinearProgram, ray: Floats, tolerance: float = 1e-7) -> bool:
    """Whether row multipliers prove an LP primal infeasible: min over all bounds of ray'(s - A x) is positive.

    The ray is taken with its largest entry 1. Its value must be above what rounding leaves in it, and a multiplier that
    no bound supports must be below `tolerance`, and below `tolerance` times the value: no point with a sum of absolute
    values below 1 / tolerance is feasible then.
    """
    size = np.abs(ray).max(initial=0.0)
    if not 0.0 < size < np.inf:
        return False
    price = ray / size
    reduced = -(lp.A.T @ price)
    terms = abs(lp.A).T @ np.abs(price)
    value, margin, unsupported = 0.0, 0.0, 0.0
    for multiplier, lower, upper, magnitude in (
        (price, lp.row_lower, lp.row_upper, np.abs(price)),
        (reduced, lp.col_lower, lp.col_upper, terms),
    ):
        bound = np.where(multiplier > 0, lower, upper)
        none = (multiplier == 0) | np.isinf(bound)
        unsupported = max(unsupported, float(np.abs(multiplier[none]).max(initial=0.0)))
        bound = np.where(none, 0.0, bound)
        value += float((multiplier * bound).sum())
        margin += float((np.abs(bound) * magnitude).sum())
    proven = np.isfinite(value) and value > ROUNDING * margin
    return bool(proven and unsupported <= tolerance * min(1.0, value))


def is_improving_ray(lp: LinearProgram, ray: Floats, tolerance: float = 1e-7) -> bool:
    """Whether the LP improves for ever along a direction in x.

    The ray is taken with its largest entry 1. A row or bound may move the wrong way by `tolerance`, and by no more than
    `tolerance` times the slope, in units of the largest cost that takes part.
    """
    size = np.abs(ray).max(initial=0.0)
    if not 0.0 < size < np.inf:
        return False
    direction = ray / size
    slope = float(lp.c @ direction) * (1.0 if lp.sense == "min" else -1.0)
    parts = np.abs(lp.c * direction)
    if not slope < -ROUNDING * float(parts.sum()):
        return False
    dearest = float(np.abs(lp.c[np.abs(direction) > tolerance]).max(initial=0.0))
    tolerance *= min(1.0, -slope / dearest) if dearest > 0 else 1.0
    change = lp.A @ direction
    blocked = (
        (np.isfinite(lp.row_upper) & (change > tolerance)).any()
        or (np.isfinite(lp.row_lower) & (change < -tolerance)).any()
        or (np.isfinite(lp.col_upper) & (direction > tolerance)).any()
        or (np.isfinite(lp.col_lower) & (direction < -tolerance)).any()
    )
    return not bool(blocked)


def sia_like_model(jobs: int, gpus_per_type: int = 64, types: int = 3, seed: int = 0, capped: bool = False) -> Model:
    """A seeded model with the shape of Sia's LP: one request a job, one resource a GPU type.

    Configurations are powers of two within a node of 8, then whole nodes (up to 64 GPUs when capped); values are
    1.1 - G^(-1/2) with a concave, saturating G of the job's own.
    """
    from copter.model.model import Model

    rng = np.random.default_rng(seed)
    most = min(gpus_per_type, 64) if capped else gpus_per_type
    sizes = np.array([n for n in (1, 2, 4) if n <= most] + list(range(8, most + 1, 8)), dtype=np.float64)
    kind = np.repeat(np.arange(types), len(sizes))
    gpus = np.tile(sizes, types)
    model = Model(sense="max")
    for k in range(types):
        model.add_resources(f"type-{k}", gpus_per_type)
    template = model.add_template({f"type-{k}": np.where(kind == k, gpus, 0.0) for k in range(types)})
    for job in range(jobs):
        model.add_request(f"job-{job}", sia_like_value(rng, kind, gpus, types), template=template, integer=True)
    return model


def sia_like_value(rng: np.random.Generator, kind: NDArray[np.int64], gpus: Floats, types: int) -> Floats:
    """Values of one job's configurations, (n,)."""
    speed = rng.uniform(1.0, 10.0, types)[kind]
    goodput = speed * gpus ** rng.uniform(0.6, 0.95) / (1.0 + gpus / 2.0 ** rng.uniform(2.0, 9.0))
    return np.asarray(1.1 - (goodput / goodput.min()) ** -0.5)
