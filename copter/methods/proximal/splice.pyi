from typing import Any

import numpy as np
from numpy.typing import NDArray

def spliced(first: Any, second: Any, place: NDArray[np.int32], target: Any) -> None: ...
