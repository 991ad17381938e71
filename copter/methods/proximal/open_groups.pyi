import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.groups import Groups
from copter.methods.proximal.project import Dual, Slacks

_Floats = NDArray[np.float64]

class OpenGroups(Dual):
    def __init__(self) -> None: ...
    def begin_at(
        self,
        columns: Groups,
        point: _Floats,
        slacks: Slacks,
        prices: _Floats,
        sigma: float,
        idle: float,
        pieces: int,
        all_open: bool,
    ) -> int: ...
