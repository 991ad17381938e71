import numpy as np
from numpy.typing import NDArray

from copter.model.matrix.block_matrix import BlockMatrix

def write_bounds(
    matrix: BlockMatrix,
    slots: NDArray[np.int32],
    column_start: NDArray[np.int32],
    private_start: NDArray[np.int32],
    places: NDArray[np.int32],
    own: int,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> bool: ...
