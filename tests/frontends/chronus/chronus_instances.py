"""Random lease problems for the tests of Chronus."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from copter import LinearProgram
from copter_frontends.policies.chronus.options import Ints, Options
from copter_frontends.policy_kit.deadlines.rewards import SOFT_FACTORS, SOFT_VALUES

NO_LIMIT_S = float("inf")  # of a solve: a busy machine may give it no time for many seconds of the clock
STRICT = ((1.0, 100.0),)
SOFT = tuple(zip(SOFT_FACTORS, SOFT_VALUES, strict=True))


def lease_problem(
    jobs: int, gpus: int, horizon: int, seed: int, types: int = 1, must: float = 0.0
) -> tuple[Options, Ints]:
    """Jobs with deadlines drawn as the paper does; with `must` some of them are promised their last deadline."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int, int, int, int, float]] = []
    promised = []
    for job in range(jobs):
        work = rng.uniform(1.0, 0.6 * horizon)
        size = int(rng.choice([1, 2, 4, 8], p=[0.6, 0.2, 0.1, 0.1]))
        first = work * rng.uniform(1.2, 2.0)
        steps = STRICT if rng.random() < 0.4 else SOFT
        count = len(rows)
        for kind in range(types):
            need = int(np.ceil(work * (1.0 + 0.5 * kind)))
            for step, (factor, value) in enumerate(steps):
                last = min(int(first * factor), horizon)
                if need <= last:
                    rows.append((job, kind, kind, size, need, last, step, value - 1.0))
        promised.append(len(rows) > count and rng.random() < must)
    return Options.of(rows, promised), np.full((types, horizon), gpus, dtype=np.int64)


def highs_optimum(program: LinearProgram) -> float | None:
    """The optimum by SciPy's HiGHS; None where there is no plan."""
    if len(program.c) == 0:
        return 0.0
    found = milp(
        -program.c,
        constraints=LinearConstraint(program.A, program.row_lower, program.row_upper),
        bounds=Bounds(program.col_lower, program.col_upper),
        integrality=program.integrality,
        options={"mip_rel_gap": 0.0},
    )
    return -float(found.fun) if found.success else None
