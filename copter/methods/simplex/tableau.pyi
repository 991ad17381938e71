from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.simplex.basis_factor import BasisFactor

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

class Tableau:
    rows: int
    columns: int
    total: int
    iterations: int
    dual_misfits: int
    idle: int
    factor: BasisFactor
    arrays: dict[str, NDArray[Any]]
    def __init__(
        self,
        start: _Ints,
        index: _Ints,
        value: _Floats,
        cost: _Floats,
        lower: _Floats,
        upper: _Floats,
        primal_tolerance: float,
        dual_tolerance: float,
    ) -> None: ...
    def restart(self) -> None: ...
    def renew(self) -> None: ...
    def settle(self, shift: bool) -> int: ...
    def resume(self) -> None: ...
    def put_back(self, cost: _Floats) -> bool: ...
    def move_bounds(self, lower: _Floats, upper: _Floats) -> None: ...
    def worst_violation(self) -> float: ...
    def misfits(self) -> int: ...
    def sharpen(self, primal_tolerance: float, dual_tolerance: float) -> None: ...
    def unit_weights(self) -> None: ...
    def prices(self) -> _Floats: ...
