import numpy as np
from numpy.typing import NDArray

from copter.model.matrix import BlockMatrix

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Tally = tuple[_Floats, _Floats, NDArray[np.int64], NDArray[np.bool_]]

def tally(row: _Ints, coefficient: _Floats, value: _Floats, rows: int) -> _Tally: ...
def tally_columns(matrix: BlockMatrix, column_of_slot: _Ints) -> _Tally: ...
def tally_plain(matrix: BlockMatrix, column_of_slot: _Ints) -> _Tally | None: ...
