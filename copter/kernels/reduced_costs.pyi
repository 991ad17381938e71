import numpy as np
from numpy.typing import NDArray

class ReducedCosts:
    n_rows: int
    n_columns: int
    n_touched: int
    work: int
    def __init__(
        self, n_rows: int, start: NDArray[np.int32], row: NDArray[np.int32], value: NDArray[np.float64]
    ) -> None: ...
