import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.block_basis import BlockBasis
from copter.methods.blocks.breakpoints import Breakpoints
from copter.methods.blocks.program import BlockProgram
from copter.methods.simplex.middle_factor import MiddleFactor

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bytes = NDArray[np.uint8]

class SparseDual(BlockBasis):
    pivots: int
    flips: int
    factorisations: int
    stale: bool
    ahead: Breakpoints
    factor: MiddleFactor
    def __init__(self, program: BlockProgram, scale: _Floats, cost: _Floats) -> None: ...
    @property
    def work(self) -> float: ...
    @property
    def norms(self) -> _Floats: ...
    def begin_at(self, y: _Floats, x: _Floats | None = None) -> bool: ...
    def enter(self, y: _Floats, heads: _Ints, keys: _Ints, at_upper: _Bytes, norms: _Floats | None = None) -> bool: ...
    def rewrite(self, changed: _Bytes, program: BlockProgram, scale: _Floats, cost: _Floats) -> None: ...
    def renew(
        self,
        least: _Floats,
        most: _Floats,
        row_lower: _Floats,
        row_upper: _Floats,
        changed: _Bytes | None = None,
    ) -> bool: ...
    def run(self, most: int) -> int: ...
    def renewed(self) -> bool: ...
    def true_prices(self, cost: _Floats) -> _Floats: ...
