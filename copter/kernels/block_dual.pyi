import numpy as np
from numpy.typing import NDArray

from copter.kernels.block_items import BlockItems
from copter.kernels.breakpoints import Breakpoints

_Floats = NDArray[np.float64]

class BlockDual(BlockItems):
    pivots: int
    flips: int
    passes: int
    ahead: Breakpoints
    def run(self, most: int) -> int: ...
    def renew(self, least: _Floats, most: _Floats, row_lower: _Floats, row_upper: _Floats) -> None: ...
