from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.eliminate import Elimination
from copter.methods.blocks.program import BlockProgram

_Floats = NDArray[np.float64]

class BlockInterior(Elimination):
    x: _Floats
    z: _Floats
    v: _Floats
    y: _Floats
    dx: _Floats
    dz: _Floats
    dv: _Floats
    dy: _Floats
    weight: _Floats
    target_lower: _Floats
    target_upper: _Floats
    primal: _Floats
    right: _Floats
    coupling: _Floats
    left: _Floats
    size: int
    n_all_rows: int
    proximal: float
    def __init__(self, program: BlockProgram, n_pieces: int) -> None: ...
    def measure(self) -> tuple[float, float, float, float, float]: ...
    def aim(self, stage: int, target: float, ahead: float, behind: float) -> None: ...
    def right_side(self) -> None: ...
    def direction(self) -> tuple[float, float, float]: ...
    def complementarity(self, ahead: float, behind: float) -> float: ...
    def move(self, ahead: float, behind: float) -> None: ...
    def form_reduced(self, must_stop: Callable[[], bool] | None = None) -> bool: ...
    def set_weight(self, weight: _Floats) -> None: ...
    def usage(self, y: _Floats, out: _Floats) -> None: ...
    def product(self, x: _Floats, out: _Floats) -> None: ...
