"""The order in which slots ascend."""

import numpy as np


cdef inline ascending(const int[::1] slots):
    """Return the numbers of these slots in ascending order of the slots, (n,) int32."""
    cdef Py_ssize_t i
    for i in range(1, slots.shape[0]):
        if slots[i] < slots[i - 1]:
            return np.argsort(slots, kind="stable").astype(np.int32)
    return np.arange(slots.shape[0], dtype=np.int32)
