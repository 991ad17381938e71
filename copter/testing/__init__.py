"""Seeded generators and assertions for tests of programs that use copter, built on :mod:`copter.problem.checker`.

The checker recomputes every figure from the linear program as given. The engine itself calls a solution OPTIMAL by this
checker, so it catches a solution of another program, but not an error in the definitions of the figures.
"""

from copter.testing.assertions import (
    Judged,
    assert_optimal,
    check,
    faults,
    integer_violation,
    is_improving_ray,
    is_infeasibility_ray,
    sia_like_model,
    sia_like_value,
)

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
