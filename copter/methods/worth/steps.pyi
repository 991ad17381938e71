import numpy as np
from numpy.typing import NDArray

class Steps:
    slope: NDArray[np.float64]
    step: NDArray[np.float64]
    new: NDArray[np.float64]
    still: NDArray[np.int8]
    decrement: float
    loose: float
    steepest: float
    def __init__(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None: ...
    def direct(
        self,
        y: NDArray[np.float64],
        used: NDArray[np.float64],
        hessian: NDArray[np.float64],
        size: float,
        damping: float,
    ) -> None: ...
    def go(self, y: NDArray[np.float64], share: float) -> float: ...
    def rise(self, y: NDArray[np.float64], used: NDArray[np.float64]) -> float: ...
