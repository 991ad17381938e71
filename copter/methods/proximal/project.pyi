import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]
_Bytes = NDArray[np.uint8]

def project(
    start: _Ints,
    limit: _Floats,
    cost: _Floats,
    lower: _Floats,
    upper: _Floats,
    entry_start: _Ints,
    row: _Ints,
    coefficient: _Floats,
    center: _Floats,
    sigma: float,
    y: _Floats,
    x: _Floats,
    free: _Bytes,
    multiplier: _Floats,
    activity: _Floats,
    value: _Floats,
    n_threads: int = 0,
) -> None: ...
def newton_matrix(
    start: _Ints,
    free: _Bytes,
    multiplier: _Floats,
    entry_start: _Ints,
    row: _Ints,
    coefficient: _Floats,
    sigma: float,
    matrix: _Floats,
) -> None: ...
def jacobian_product(
    start: _Ints,
    free: _Bytes,
    multiplier: _Floats,
    entry_start: _Ints,
    row: _Ints,
    coefficient: _Floats,
    sigma: float,
    direction: _Floats,
    product: _Floats,
) -> None: ...
def block_minimum(
    start: _Ints,
    limit: _Floats,
    reduced: _Floats,
    lower: _Floats,
    upper: _Floats,
    order: NDArray[np.int64],
    least: _Floats,
) -> None: ...
