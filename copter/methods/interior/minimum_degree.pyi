from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

class QuotientGraph:
    def __init__(self, start: NDArray[np.int32], index: NDArray[np.int32]) -> None: ...
    def run(self, must_stop: Callable[[], bool] | None = ...) -> NDArray[np.int32] | None: ...
