import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

def enclosed_sums(
    first: _Floats, start: NDArray[np.int64], one: _Floats, other: _Floats
) -> tuple[_Floats, _Floats]: ...
def exact_parts(values: _Floats) -> list[float]: ...
