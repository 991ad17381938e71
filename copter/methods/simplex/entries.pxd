"""Lists of entries that grow, for factors; and lists of items by count, for pivots."""

from libc.stdlib cimport free, realloc


cdef struct Entries:
    int *index
    double *value
    int size
    int capacity


cdef inline int ensure(Entries *entries, int more) noexcept nogil:
    """Make room for more entries; 0, or -1 without memory."""
    cdef int capacity = entries.capacity
    cdef void *grown
    if entries.size + more <= capacity:
        return 0
    capacity = 2 * (entries.size + more) + 64
    grown = realloc(entries.index, capacity * sizeof(int))
    if grown == NULL:
        return -1
    entries.index = <int *>grown
    grown = realloc(entries.value, capacity * sizeof(double))
    if grown == NULL:
        return -1
    entries.value = <double *>grown
    entries.capacity = capacity
    return 0


cdef inline void free_entries(Entries *entries) noexcept nogil:
    free(entries.index)
    free(entries.value)


cdef inline void append(Entries *entries, int index, double value) noexcept nogil:
    entries.index[entries.size] = index
    entries.value[entries.size] = value
    entries.size += 1


cdef inline void link(int *head, int *after, int *before, int item, int count) noexcept nogil:
    """Put an item first in the list of its count; what is before the first names the list."""
    after[item] = head[count]
    before[item] = -1 - count
    if head[count] >= 0:
        before[head[count]] = item
    head[count] = item


cdef inline void unlink(int *head, int *after, int *before, int item) noexcept nogil:
    if before[item] >= 0:
        after[before[item]] = after[item]
    else:
        head[-1 - before[item]] = after[item]
    if after[item] >= 0:
        before[after[item]] = before[item]


cdef inline int transpose(
    Entries *source, const int *start, const int *owner, int lines, Entries *target, int *target_start
) noexcept nogil:
    """Entries by their index instead of by line; owner[k] is what line k is called there."""
    cdef int k, p, at
    target.size = 0
    if ensure(target, source.size) < 0:
        return -1
    for k in range(lines + 1):
        target_start[k] = 0
    for p in range(source.size):
        target_start[source.index[p] + 1] += 1
    for k in range(lines):
        target_start[k + 1] += target_start[k]
    for k in range(lines):
        for p in range(start[k], start[k + 1]):
            at = target_start[source.index[p]]
            target.index[at] = owner[k]
            target.value[at] = source.value[p]
            target_start[source.index[p]] += 1
    for k in range(lines, 0, -1):
        target_start[k] = target_start[k - 1]
    target_start[0] = 0
    target.size = source.size
    return 0
