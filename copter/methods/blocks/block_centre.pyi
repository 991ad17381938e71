import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.program import BlockProgram

_Floats = NDArray[np.float64]

class Centre:
    def __init__(self, program: BlockProgram) -> None: ...
    def put(
        self, mu: float, y: _Floats, reduced: _Floats, x: _Floats, z: _Floats, v: _Floats, n_threads: int
    ) -> None: ...
