"""
SciPy
=====

``linprog`` and ``milp`` with SciPy's signatures. ``x0=`` a previous result keeps the program alive from call
to call.
"""

import numpy as np
import scipy.optimize

from copter.interop.scipy_linprog import linprog

rng = np.random.default_rng(0)
cost = -rng.uniform(1.0, 2.0, 200)
usage = rng.integers(0, 5, size=(20, 200)).astype(float)
available = np.full(20, 60.0)

result = None
for _ in range(5):
    result = linprog(cost, usage, available, bounds=(0, 1), x0=result)
    reference = scipy.optimize.linprog(cost, usage, available, bounds=(0, 1))
    print(result.message, result.fun)
    assert abs(result.fun - reference.fun) <= 1e-7 * (1 + abs(reference.fun))
    available = available + rng.uniform(-1.0, 1.0, 20)
