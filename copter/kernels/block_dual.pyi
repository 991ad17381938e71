import numpy as np
from numpy.typing import NDArray

from copter.kernels.block_basis import BlockBasis
from copter.kernels.breakpoints import Breakpoints

class BlockDual(BlockBasis):
    pivots: int
    flips: int
    passes: int
    by_rows: bool
    work_by_rows: float
    work_by_radii: float
    radii: NDArray[np.float64]
    ahead: Breakpoints
    def run(self, most: int) -> int: ...
    def look(self) -> None: ...
    def put_in_order(self) -> None: ...
