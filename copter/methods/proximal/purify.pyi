from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.groups import Groups

_Floats = NDArray[np.float64]
_Bytes = NDArray[np.uint8]

class WalkRows:
    def __init__(self, activity: _Floats, lower: _Floats, upper: _Floats, scale: _Floats, tight: _Bytes) -> None: ...

class Walk:
    def __init__(
        self, columns: Groups, x: _Floats, span: _Floats, rows: WalkRows, room: _Floats, limit_tight: _Bytes
    ) -> None: ...
    def run(self, max_steps: int, must_stop: Callable[[], bool]) -> int: ...

def cut_excess(columns: Groups, room: _Floats, x: _Floats) -> None: ...
