from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bytes = NDArray[np.uint8]

class Walk:
    def __init__(
        self,
        x: _Floats,
        lower: _Floats,
        upper: _Floats,
        cost: _Floats,
        span: _Floats,
        group: _Ints,
        start: _Ints,
        entry_start: _Ints,
        row: _Ints,
        coefficient: _Floats,
        activity: _Floats,
        row_lower: _Floats,
        row_upper: _Floats,
        row_scale: _Floats,
        row_tight: _Bytes,
        room: _Floats,
        limit_tight: _Bytes,
    ) -> None: ...
    def run(self, max_steps: int, must_stop: Callable[[], bool]) -> int: ...
