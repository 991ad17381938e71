"""The contents of a template as arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

Private = tuple[Ints, Ints, Floats, Floats, Floats]  # private rows: column starts, rows, values; lower and upper bounds
Contents = tuple[Ints, Ints, Floats, Private | None]  # column starts, row slots, coefficients, private rows
