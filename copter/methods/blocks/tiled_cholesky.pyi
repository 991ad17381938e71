from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

def dense_cholesky(
    matrix: _Floats, least: _Floats, n_threads: int, must_stop: Callable[[], bool] | None = None
) -> bool: ...
def dense_solve(factor: _Floats, right: _Floats) -> None: ...
