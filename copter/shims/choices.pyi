import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

class Choices:
    worth: float
    nodes: int
    found: bool
    def __init__(
        self,
        start: _Ints,
        loss: _Floats,
        entries: tuple[_Ints, _Ints, _Floats],
        rows: tuple[_Floats, _Floats, _Floats],
        margin: float,
    ) -> None: ...
    def search(self, budget: float, most_nodes: int) -> bool: ...
    def choice(self) -> _Ints: ...
