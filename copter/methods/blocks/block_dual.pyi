import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.block_items import BlockItems
from copter.methods.blocks.breakpoints import Breakpoints
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.working_inverse import WorkingInverse

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bytes = NDArray[np.uint8]

class BlockDual(BlockItems):
    pivots: int
    flips: int
    passes: int
    ahead: Breakpoints
    def __init__(self, program: BlockProgram, scale: _Floats, cost: _Floats, alone: bool = False) -> None: ...
    def run(self, most: int) -> int: ...
    def renew(
        self,
        least: _Floats,
        most: _Floats,
        row_lower: _Floats,
        row_upper: _Floats,
        changed: _Bytes | None = None,
    ) -> bool: ...
    def begin(self, y: _Floats) -> bool: ...
    def take(self, inverse: WorkingInverse, y: _Floats, heads: _Ints, keys: _Ints, at_upper: _Bytes) -> bool: ...
