import numpy as np
from numpy.typing import NDArray

from copter.model.matrix.list_of_lists import ListOfLists

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int32]

class PricedMatrix(ListOfLists):
    columns_priced: int
    slabs_screened: int
    def price(
        self,
        y: _Floats,
        threshold: _Floats,
        n_threads: int,
        weight: float = 1.0,
        seconds: float = ...,
        screen: bool = False,
        least: _Floats | None = None,
        best: _Ints | None = None,
    ) -> tuple[_Floats, _Ints, _Ints, _Floats]: ...
    def improving(self, slots: _Ints, y: _Floats, times: _Floats) -> tuple[_Ints, _Ints]: ...
    def work_of_pass(self, screen: bool) -> int: ...
    def dual_value(self, smallest: _Floats) -> tuple[float, float, float, int]: ...
    def price_errors(self) -> _Floats: ...
    def offsets(self) -> _Floats: ...
