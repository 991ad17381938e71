import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.program import BlockProgram

_Floats = NDArray[np.float64]

def prove(
    program: BlockProgram, x: _Floats, y: _Floats, reduced: _Floats | None = None
) -> tuple[float, float, float, float, float, float, float, float, float]: ...
