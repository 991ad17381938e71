import numpy as np
from numpy.typing import NDArray

from copter.kernels.block_basis import BlockBasis
from copter.kernels.breakpoints import Breakpoints

class BlockDual(BlockBasis):
    pivots: int
    flips: int
    passes: int
    by_rows: bool
    radii: NDArray[np.float64]
    ahead: Breakpoints
    def run(self, most: int) -> int: ...
    def look(self) -> None: ...
