"""The order in which slots ascend."""

import numpy as np


cdef inline ascending(const int[::1] slots):
    """Return the numbers of these slots in ascending order of the slots, (n,) int32; no slot comes twice."""
    cdef Py_ssize_t i, n = slots.shape[0]
    cdef bint permuted = True, sorts = True
    order = np.empty(n, dtype=np.int32)
    cdef int[::1] at = order
    for i in range(n):
        sorts = sorts and (i == 0 or slots[i] > slots[i - 1])
        permuted = permuted and slots[i] < n
        at[i] = <int>i
    if not sorts and permuted:
        for i in range(n):
            at[slots[i]] = <int>i
    elif not sorts:
        order = np.argsort(slots).astype(np.int32)
    return order
