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
        entry_start: _Ints,
        row: _Ints,
        coefficient: _Floats,
        price: _Floats,
        left: _Floats,
        room: _Floats,
        most: _Floats,
        give: _Floats,
        slack: _Floats,
    ) -> None: ...
    def search(self, budget: float, most_nodes: int) -> bool: ...
    def choice(self) -> _Ints: ...
