import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.groups import Groups

_Floats = NDArray[np.float64]

class Sweep:
    activity: _Floats
    price: _Floats
    def __init__(
        self,
        columns: Groups,
        row_lower: _Floats,
        row_upper: _Floats,
        penalty: _Floats,
        center: _Floats,
        sigma: float,
        x: _Floats,
    ) -> None: ...
    def begin(self, y: _Floats) -> None: ...
    def sweep(self) -> float: ...
    def sweep_and_keep(self, margin: float) -> float: ...
    def sweep_active(self) -> float: ...
