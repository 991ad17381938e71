from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.program import BlockProgram

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

class Elimination:
    n_rows: int
    n_blocks: int
    n_columns: int
    n_private: int
    n_pieces: int
    most_touched: int
    most_private: int
    touched_start: _Ints
    touched: _Ints
    work: float
    factor_start: NDArray[np.int64]
    reduced: _Floats
    def __init__(self, program: BlockProgram, n_pieces: int) -> None: ...
    def form(self, theta: _Floats, private: _Floats, must_stop: Callable[[], bool] | None = None) -> bool: ...
    def eliminate(self, private: _Floats, coupling: _Floats, scaled: _Floats) -> None: ...
    def restore(self, price: _Floats, private: _Floats, own: _Floats) -> None: ...
