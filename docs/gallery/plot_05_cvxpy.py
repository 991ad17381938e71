"""
CVXPY
=====

``problem.solve(solver=COPTER())``: the first solve is a fresh one; when a parameter changes, only what
differs is edited, and the solve goes on from the last basis.
"""

import cvxpy as cp
import numpy as np

from copter.interop.cvxpy import COPTER

rng = np.random.default_rng(0)
jobs, machines = 30, 5
hours = rng.uniform(1.0, 4.0, size=(jobs, machines))
capacity = cp.Parameter(machines, nonneg=True, value=np.full(machines, 12.0))
share = cp.Variable((jobs, machines), bounds=[0.0, 1.0])
problem = cp.Problem(
    cp.Maximize(cp.sum(share)),
    [cp.sum(share, axis=1) <= 1, cp.sum(cp.multiply(hours, share), axis=0) <= capacity],
)
solver = COPTER()
for lost in range(4):
    capacity.value = np.full(machines, 12.0) - np.eye(machines)[lost] * lost
    problem.solve(solver=solver)
    warm = problem.solver_stats.extra_stats["warm"]
    print(problem.status, round(problem.value, 6), "warm" if warm else "fresh")

# %%
# The same by HiGHS:

assert abs(problem.solve(solver=cp.HIGHS) - problem.value) < 1e-6
