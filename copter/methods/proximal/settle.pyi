import numpy as np
from numpy.typing import NDArray

from copter.methods.proximal.groups import Groups

_Floats = NDArray[np.float64]

def settled_radius(columns: Groups, x: _Floats, reduced: _Floats, weight: _Floats, radius: _Floats) -> None: ...
