"""Seeded generators and assertions for tests of programs that use copter, built on :mod:`copter.problem.checker`.

The checker recomputes every figure from the linear program as given. The engine itself calls a solution OPTIMAL by this
checker, so it catches a solution of another program, but not an error in the definitions of the figures.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from copter.model.model import Model
from copter.problem.checker import Judged, check, integer_violation, is_improving_ray, is_infeasibility_ray
from copter.problem.linear_program import LinearProgram
from copter.problem.solution import Solution

__all__ = [
    "Judged",
    "assert_optimal",
    "check",
    "faults",
    "integer_violation",
    "is_improving_ray",
    "is_infeasibility_ray",
    "sia_like_model",
    "sia_like_value",
]

Floats = NDArray[np.float64]


def assert_optimal(lp: LinearProgram, x: Floats, y: Floats, tolerance: float = 1e-6) -> Judged:
    """Raise AssertionError unless (x, y) is optimal: relative residuals up to `tolerance`, absolute ones up to 10 times
    `tolerance`.
    """
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


def faults(lp: LinearProgram, solution: Solution, tolerance: float = 1e-6) -> list[str]:
    """List the claims of a solution that do not hold, each in a few words; the list is empty if all hold.

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
    result = []
    reduced = lp.c - lp.A.T @ solution.y
    if float(np.abs(reduced - solution.reduced_costs).max(initial=0.0)) > 1e-9 * (1.0 + np.abs(lp.c).max(initial=0.0)):
        result.append("reduced costs are not c - A'y")
    claims = {"objective": (solution.objective, judged.objective), "bound": (solution.bound, judged.bound)}
    names = ("primal", "dual", "gap", "primal_absolute", "dual_absolute")
    claims |= {name: (getattr(solution.residuals, name), getattr(judged, name)) for name in names}
    for name, (claimed, true) in claims.items():
        if not abs(claimed - true) <= 1e-9 * (1.0 + abs(true)):
            result.append(f"{name} is {true:.10g}, not {claimed:.10g}")
    if status == "optimal":
        figures = {name: getattr(judged, name) for name in (*names, "complementarity")}
        result += [f"{name} {v:.1e} is above {tolerance:.1e}" for name, v in figures.items() if not v <= tolerance]
    return result


def sia_like_model(jobs: int, gpus_per_type: int = 64, types: int = 3, seed: int = 0, capped: bool = False) -> Model:
    """Make a seeded model with the shape of Sia's LP: one request per job, one resource per GPU type.

    Configurations are powers of two within a node of 8, then whole nodes (up to 64 GPUs when capped); values are
    1.1 - G^(-1/2) with a concave, saturating G of the job's own.
    """
    rng = np.random.default_rng(seed)
    most = min(gpus_per_type, 64) if capped else gpus_per_type
    sizes = np.array([n for n in (1, 2, 4) if n <= most] + list(range(8, most + 1, 8)), dtype=np.float64)
    kind = np.repeat(np.arange(types), len(sizes))
    gpus = np.tile(sizes, types)
    model = Model(sense="max")
    for k in range(types):
        model.add_resource(f"type-{k}", gpus_per_type)
    template = model.add_template({f"type-{k}": np.where(kind == k, gpus, 0.0) for k in range(types)})
    for job in range(jobs):
        model.add_request(f"job-{job}", sia_like_value(rng, kind, gpus, types), template=template, integer=True)
    return model


def sia_like_value(rng: np.random.Generator, kind: NDArray[np.int64], gpus: Floats, types: int) -> Floats:
    """Values of one job's configurations, (n,)."""
    speed = rng.uniform(1.0, 10.0, types)[kind]
    goodput = speed * gpus ** rng.uniform(0.6, 0.95) / (1.0 + gpus / 2.0 ** rng.uniform(2.0, 9.0))
    return np.asarray(1.1 - (goodput / goodput.min()) ** -0.5)
