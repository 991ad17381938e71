from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.model.matrix import BlockMatrix

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def integer_slots(matrix: BlockMatrix) -> NDArray[np.bool_]: ...
def survey(matrix: BlockMatrix) -> tuple[_Ints, NDArray[np.bool_], _Ints, bool]: ...
def carried(
    sizes: _Ints, free: NDArray[np.uint8], generation: NDArray[np.int64], column: _Ints, then: NDArray[np.int64]
) -> tuple[_Ints, _Ints]: ...
def takeable(matrix: BlockMatrix, slots: _Ints, columns: _Ints) -> NDArray[np.bool_]: ...
def offer(
    matrix: BlockMatrix,
    slots: _Ints,
    columns: _Ints,
    order: NDArray[np.intp],
    left: _Floats,
    room: _Floats,
    column_of_slot: _Ints,
) -> None: ...
def fill(
    matrix: BlockMatrix,
    slots: _Ints,
    columns: list[_Ints],
    left: _Floats,
    room: _Floats,
    row_scale: _Floats,
    column_of_slot: _Ints,
    stop: Callable[[], bool],
) -> None: ...
