from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.groups import Groups

_Floats = NDArray[np.float64]

class Walk:
    activity: memoryview
    row_tight: memoryview
    room: memoryview
    limit_tight: memoryview
    n_tight: int

    def __init__(
        self, columns: Groups, x: _Floats, row_lower: _Floats, row_upper: _Floats, row_scale: _Floats
    ) -> None: ...
    def run(self, max_steps: int, must_stop: Callable[[], bool]) -> int: ...
    def settle(self) -> None: ...
