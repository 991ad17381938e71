"""What the judge says of a family's outcome: of the point of its LP, and of its whole plan."""

from __future__ import annotations

import numpy as np
from judge import Judged, integer_violation, judge

from copter_frontends.replay.program import Program
from families.protocol import Family, Outcome

WHOLE = 1e-6  # how far a plan may be outside rows and from whole numbers, and its value from what it says, relative
SAME = 1e-7  # how far a point's value may be from what the solver says, relative


def judge_outcome(family: Family, program: Program, outcome: Outcome) -> Judged:
    """Judge the point of the LP, and the plan if there is one; SystemExit for a false one."""
    judged = judge(program, *family.point(outcome))
    require_same_value(outcome, judged)
    judge_plan(family, program, outcome, judged.bound)
    return judged


def require_same_value(outcome: Outcome, judged: Judged) -> None:
    """SystemExit unless a point is worth what the solver says."""
    if abs(judged.objective - outcome.objective) > SAME * (1.0 + abs(judged.objective)):
        raise SystemExit(f"the solver says {outcome.objective}, its point is worth {judged.objective}")


def judge_plan(family: Family, program: Program, outcome: Outcome, bound: float) -> None:
    """SystemExit unless the plan, if there is one, is whole, feasible, worth what it says and not above the bound."""
    whole = family.whole(outcome)
    if whole is None or outcome.plan is None:
        return
    places, values = whole
    taken = program.taken(np.arange(program.shape[0]), places)
    judged = judge(taken, values, np.zeros(program.shape[0]))
    says, sign = outcome.plan.objective, 1.0 if program.sense == "max" else -1.0
    size = 1.0 + abs(says)
    outside = judged.primal_absolute > WHOLE or integer_violation(taken, values) > WHOLE
    if outside or abs(judged.objective - says) > WHOLE * size or sign * (says - bound) > WHOLE * size:
        raise SystemExit(
            f"the whole plan says {says}, is worth {judged.objective}, is outside its rows by "
            f"{judged.primal_absolute:.1e}; the bound is {bound}"
        )
