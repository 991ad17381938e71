from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.model.matrix.block_matrix import BlockMatrix

_Ints = NDArray[np.int32]
_Ages = NDArray[np.int64]
_Floats = NDArray[np.float64]

def write_bounds(
    matrix: BlockMatrix,
    slots: _Ints,
    column_start: _Ints,
    private_start: _Ints,
    places: _Ints,
    own: int,
    lower: _Floats,
    upper: _Floats,
) -> bool: ...
def block_program(matrix: BlockMatrix, slots: _Ints) -> dict[str, NDArray[Any]]: ...
def own_keys(matrix: BlockMatrix, slots: _Ints) -> _Ages: ...
def live_slots(matrix: BlockMatrix) -> _Ints: ...
def sizes_of_slots(matrix: BlockMatrix) -> tuple[_Ints, _Ints]: ...
def usual_size(sizes: _Ints, share: float) -> int: ...
def roomy_sizes(sizes: _Ints, columns: _Ints, usual: int, free: list[int], spare: _Ints) -> _Ints: ...
def gaps(n_rows: int, columns: _Ints, entries: _Ints) -> dict[str, NDArray[Any]]: ...
def count_sums_and_entries(matrix: BlockMatrix) -> tuple[int, int]: ...
def has_private_rows(matrix: BlockMatrix) -> bool: ...
def write_blocks(
    matrix: BlockMatrix,
    program: Any,
    slots: _Ints,
    block_of: _Ints,
    stamps: _Ages,
    generation: _Ages,
    changed: NDArray[np.uint8],
    edited: _Ints | None = None,
) -> bool: ...
