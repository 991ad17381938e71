import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

def dense_cholesky(matrix: _Floats, least: _Floats, n_threads: int) -> None: ...
def dense_solve(factor: _Floats, right: _Floats) -> None: ...
