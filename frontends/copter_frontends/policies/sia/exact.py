"""The integer optimum of a round by branch and bound (HiGHS through SciPy), for small clusters (S11')."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from copter import LinearProgram
from copter.highs.milp import branch_and_bound
from copter_frontends.policies.sia.formulation import SiaFormulation
from copter_frontends.policies.sia.job_book import IDLE
from copter_frontends.policies.sia.relaxed_solution import RelaxedSolution
from copter_frontends.policies.sia.shim import Assignment, integer_assignment

RELATIVE_GAP = (
    1e-9  # small, so that ties are broken by the semantics; with the public simulator's 1e-4 the solver breaks them
)
TIME_SHARE = 0.5  # share of the remaining time for branch and bound; placement needs the other half
MOST_NODES = 2000  # most nodes of the search; a limit in seconds would differ between machines
MOST_COLUMNS = 5000  # with more columns the shim's plan, whose gap is far below a per cent, is kept


def exact_assignment(formulation: SiaFormulation, solution: RelaxedSolution, left_s: float) -> tuple[Assignment, int]:
    """Improve :func:`~copter_frontends.policies.sia.shim.integer_assignment` by branch and bound while time is left.

    Parameters
    ----------
    formulation : SiaFormulation
    solution : RelaxedSolution
    left_s : float
        Remaining wall-clock seconds of the plan; if there are none, the rounded plan is returned.

    Returns
    -------
    Assignment
    int
        Number of jobs that were fractional in the LP's solution.
    """
    rounded, fractional = integer_assignment(formulation, solution)
    closed = solution.bound - rounded.objective <= RELATIVE_GAP * abs(solution.bound)
    if not formulation.jobs or closed or left_s <= 0:
        return rounded, fractional
    searched = _branch_and_bound(formulation, TIME_SHARE * left_s)
    return (searched if searched is not None and searched.evaluate() > rounded.objective else rounded), fractional


def _branch_and_bound(formulation: SiaFormulation, time_limit_s: float) -> Assignment | None:
    """Solve S5 over the columns of positive value; None if the program is empty or too large, or no point was found."""
    jobs = list(formulation.jobs)
    columns, values, rows = [], [], []
    for i, job_id in enumerate(jobs):
        pinned = formulation.jobs[job_id].pinned
        value = formulation.values(job_id)
        worth = np.array([pinned]) if pinned != IDLE else np.flatnonzero(value > 0)
        columns.append(worth)
        values.append(value[worth])
        rows.append(np.full(len(worth), i))
    column, row = np.concatenate(columns), np.concatenate(rows)
    n, kinds = len(column), len(formulation.types)
    if not 0 < n <= MOST_COLUMNS:
        return None
    each = csr_array((np.ones(n), (row, np.arange(n))), shape=(len(jobs), n))
    shared = csr_array(
        (formulation.gpus[column].astype(np.float64), (formulation.kind[column], np.arange(n))), shape=(kinds, n)
    )
    further = [_further_row(formulation, at, row, column, jobs) for at in range(len(formulation.rows))]
    least = np.array([formulation.jobs[job_id].pinned != IDLE for job_id in jobs], dtype=np.float64)
    capacity = [float(formulation.model.count(name)) for name in formulation.types]
    spare = [float(formulation.model.count(each.key)) for each in formulation.rows]
    upper = np.concatenate([np.ones(len(jobs)), capacity, spare])
    program = LinearProgram(
        -np.concatenate(values),
        vstack([each, shared, *further]),
        np.concatenate([least, np.zeros(kinds + len(spare))]),
        upper,
        np.zeros(n),
        np.ones(n),
        integrality=np.ones(n),
    )
    result = branch_and_bound(program, time_limit_s, RELATIVE_GAP, MOST_NODES)
    if result.x is None:
        return None
    assignment = Assignment(formulation)
    for at in np.flatnonzero(result.x > 0.5).tolist():
        assignment.take(jobs[int(row[at])], int(column[at]))
    return assignment


def _further_row(
    formulation: SiaFormulation, at: int, row: NDArray[np.int64], column: NDArray[np.int64], jobs: list[str]
) -> csr_array:
    """Return a shared row over the program's variables; zero for jobs outside the row."""
    part = np.array([at in formulation.jobs[job_id].rows for job_id in jobs], dtype=np.float64)
    return csr_array((formulation.rows[at].usage[column] * part[row])[None, :])
