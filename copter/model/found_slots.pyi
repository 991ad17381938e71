from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

def found_slots(slot_of: dict[Hashable, int], requests: list[Hashable]) -> NDArray[np.int32]: ...
