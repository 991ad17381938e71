from typing import Any

import numpy as np
from numpy.typing import NDArray

def useful_columns(program: Any) -> tuple[NDArray[np.uint8], NDArray[np.int32]]: ...
