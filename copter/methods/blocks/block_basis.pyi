import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.working_inverse import WorkingInverse

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bytes = NDArray[np.uint8]

class BlockBasis:
    n_rows: int
    n_blocks: int
    n_columns: int
    n_entries: int
    tolerance: float
    bounds: _Floats
    values: _Floats
    prices: _Floats
    heads: _Ints
    keys: _Ints
    counts: _Ints
    at_uppers: _Bytes
    inverse: WorkingInverse
    def __init__(self, program: BlockProgram, scale: _Floats, cost: _Floats) -> None: ...
    def rewrite(self, changed: _Bytes, program: BlockProgram, scale: _Floats, cost: _Floats) -> None: ...
    def begin(self, y: _Floats) -> bool: ...
    def take(self, inverse: WorkingInverse, y: _Floats, heads: _Ints, keys: _Ints, at_upper: _Bytes) -> bool: ...
    def error(self) -> float: ...
