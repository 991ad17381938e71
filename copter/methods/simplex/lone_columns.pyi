from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def lone_columns(program: Any) -> tuple[_Ints, _Ints, _Floats, _Floats]: ...
def price_sums(program: Any, columns: _Ints, rows: _Ints, y: _Floats) -> None: ...
