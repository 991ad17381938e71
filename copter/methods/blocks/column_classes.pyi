import numpy as np
from numpy.typing import NDArray

class ColumnClasses:
    n_rows: int
    n_columns: int
    n_classes: int
    n_moving: int
    n_late: int
    work: int
    alone: bool
    def __init__(
        self,
        n_rows: int,
        start: NDArray[np.int32],
        row: NDArray[np.int32],
        value: NDArray[np.float64],
        alone: bool = False,
    ) -> None: ...
