import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.program import BlockProgram

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

def working_columns(
    program: BlockProgram,
    limit: _Floats,
    slots: _Ints,
    x: _Floats,
    y: _Floats,
    slack: float,
    reduced: _Floats | None = None,
) -> tuple[NDArray[np.int64], _Floats, _Ints]: ...
