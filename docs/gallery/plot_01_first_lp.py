"""
A first LP
==========

Three products, two machines: which amounts earn most?

A :class:`copter.LinearProgram` is plain data: costs, a sparse matrix, bounds of rows and columns.
:func:`copter.solve` answers with the point, the prices of the rows, and a bound that proves how good the
point is.
"""

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import copter

profit = np.array([5.0, 4.0, 3.0])
hours = sp.csc_matrix([[2.0, 3.0, 1.0], [4.0, 1.0, 2.0]])  # rows: machines; columns: products
available = np.array([5.0, 11.0])

program = copter.LinearProgram(
    profit, hours, row_lower=[-np.inf, -np.inf], row_upper=available, col_lower=np.zeros(3), sense="max"
)
solution = copter.solve(program)
print(solution.status.name, solution.objective)
print("amounts", solution.x, "prices of an hour", solution.y)

# %%
# The answer proves itself: no point is better than the bound, and the gap between the two is what is not
# proven.

print(solution.bound, solution.bound_is_certified, solution.gap)
assert solution.status is copter.Status.OPTIMAL
assert solution.gap < 1e-6

# %%
# A file of linear programs does as well (MPS, or CPLEX's LP format), here or on the command line: ``copter
# solve FILE``.

path = Path(tempfile.mkdtemp()) / "products.mps"
copter.write_mps(program, path)
again = copter.solve(copter.read_mps(path))
assert abs(again.objective - solution.objective) < 1e-9
