import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.block_basis import BlockBasis

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Ages = NDArray[np.int64]

def moved_costs(cost: _Floats, column_start: _Ints, slots: _Ints, apart: float, least: float) -> _Floats: ...
def same_blocks(
    before: BlockBasis, now: BlockBasis, old_slots: _Ints, old_generation: _Ages, slots: _Ints, generation: _Ages
) -> _Ints: ...
def carried_basis(before: BlockBasis, now: BlockBasis, place: _Ints) -> tuple[_Ints, _Ints, NDArray[np.uint8]]: ...
def true_prices(basis: BlockBasis, cost: _Floats) -> _Floats: ...
def key_costs(
    key: _Ints, private_start: _Ints, start: _Ints, row: _Ints, value: _Floats, cost: _Floats, y: _Floats
) -> _Floats: ...
