"""Approximate minimum degree ordering of a symmetric pattern (docs/method/interior.md, I7).

The quotient graph of Amestoy, Davis and Duff, "An approximate minimum degree ordering algorithm" (1996): an eliminated
variable becomes an element, which stands for the clique of the variables that it was next to; elements that a new one
covers are absorbed; variables with the same neighbours become one.
"""

import numpy as np

from libc.string cimport memmove

# Equation I7.
cdef long long CHECK_STEPS = 2_000_000  # list entries visited between two looks at the clock
cdef int NONE = -1  # stands for no node: the end of a list, or the mark of an absorbed element


cdef class QuotientGraph:
    """The quotient graph during the elimination.

    Each node is a variable or an element. A variable's list holds its elements first, then its variables; an element's
    list holds variables. `weight` of a variable is the number of original variables that it stands for: zero once it
    is eliminated or merged, negative while it is in the list of the current pivot.
    """

    cdef int n
    cdef long long[::1] begin
    cdef int[::1] length, elements, weight, degree, mark, merged_into
    cdef int[::1] head, after, before, store, outside, bucket, chain, order, last_member, next_member
    cdef long long used, steps
    cdef int stamp, least, placed

    def __init__(self, const int[::1] start, const int[::1] index):
        cdef Py_ssize_t n = start.shape[0] - 1, j, p
        cdef long long k = 0
        self.n = <int>n
        self.begin = np.zeros(n, dtype=np.int64)
        (self.length, self.elements, self.degree, self.mark, self.outside) = np.zeros((5, n), dtype=np.int32)
        self.weight = np.ones(n, dtype=np.int32)
        self.merged_into, self.after, self.before, self.chain, self.order, self.next_member = (
            np.full((6, n), NONE, dtype=np.int32)
        )
        self.last_member = np.arange(n, dtype=np.int32)
        self.head, self.bucket = np.full((2, n), NONE, dtype=np.int32)
        self.store = np.empty(start[n] + start[n] // 5 + 2 * n + 1, dtype=np.int32)
        with nogil:
            for j in range(n):
                self.begin[j] = k
                for p in range(start[j], start[j + 1]):
                    if index[p] != j:
                        self.store[k] = index[p]
                        k += 1
                self.length[j] = <int>(k - self.begin[j])
                self.degree[j] = self.length[j]
        self.used, self.steps, self.stamp, self.least, self.placed = k, 0, 1, 0, 0
        for j in range(n - 1, -1, -1):
            self.enter(<int>j)

    cdef void enter(self, int i) noexcept nogil:
        """Insert a variable into the list of its degree."""
        cdef int d = self.degree[i]
        self.before[i], self.after[i] = NONE, self.head[d]
        if self.head[d] != NONE:
            self.before[self.head[d]] = i
        self.head[d] = i
        if d < self.least:
            self.least = d

    cdef void leave(self, int i) noexcept nogil:
        """Remove a variable from the list of its degree."""
        if self.before[i] != NONE:
            self.after[self.before[i]] = self.after[i]
        else:
            self.head[self.degree[i]] = self.after[i]
        if self.after[i] != NONE:
            self.before[self.after[i]] = self.before[i]

    cdef void place(self, int i) noexcept nogil:
        """Give a variable, and the variables merged into it, the next places of the order."""
        while i != NONE:  # ends: a member has one next one, and none twice
            self.order[self.placed] = i
            self.placed += 1
            i = self.next_member[i]

    def run(self, must_stop=None):
        """Return the order, (n,); None if `must_stop`, asked every few hundredths of a second, has ended the work."""
        cdef long long looked_at = 0
        cdef bint stopped = False
        with nogil:
            while self.placed < self.n and not stopped:  # ends: each elimination places a variable
                self.eliminate()
                if self.steps - looked_at > CHECK_STEPS:
                    looked_at = self.steps
                    with gil:
                        stopped = must_stop is not None and bool(must_stop())
        return None if stopped else np.asarray(self.order)

    cdef void eliminate(self) noexcept nogil:
        """Eliminate a variable of least approximate degree."""
        cdef int pivot
        while self.head[self.least] == NONE:  # ends: a variable is left, of a degree below n
            self.least += 1
        pivot = self.head[self.least]
        self.leave(pivot)
        self.make_element(pivot)
        self.count_outside(pivot)
        self.update(pivot)
        self.merge(pivot)
        self.close(pivot)

    cdef void make_room(self, long long needed) noexcept nogil:
        """Compact all lists if the new element's list would not fit."""
        cdef long long to = 0, p
        cdef int i
        if self.used + needed <= self.store.shape[0]:
            return
        # The first entry of every list becomes its owner, and `begin` keeps the entry.
        for i in range(self.n):
            if self.length[i] > 0:
                p = self.begin[i]
                self.begin[i] = self.store[p]
                self.store[p] = -i - 2
        p = 0
        while p < self.used:  # ends: p grows to the end of the store
            if self.store[p] <= -2:
                i = -self.store[p] - 2
                self.store[p] = <int>self.begin[i]
                self.begin[i] = to
                if to != p:
                    memmove(&self.store[to], &self.store[p], self.length[i] * sizeof(int))
                to += self.length[i]
                p += self.length[i]
            else:
                p += 1
        self.steps += self.used
        self.used = to

    cdef void make_element(self, int pivot) noexcept nogil:
        """Turn the pivot into the element of all variables next to it, and absorb the elements next to it."""
        cdef long long q, first
        cdef int e, k, d = 0
        self.make_room(self.degree[pivot] + 1)
        first = self.used
        self.place(pivot)
        self.weight[pivot] = 0
        for k in range(self.length[pivot]):
            e = self.store[self.begin[pivot] + k]
            if k < self.elements[pivot]:
                for q in range(self.begin[e], self.begin[e] + self.length[e]):
                    d += self.take(self.store[q])
                self.steps += self.length[e]
                self.length[e] = 0
                self.mark[e] = NONE  # absorbed
            else:
                d += self.take(e)
        self.steps += self.length[pivot] + 1
        self.begin[pivot], self.length[pivot] = first, <int>(self.used - first)
        self.elements[pivot] = 0
        self.degree[pivot] = d

    cdef int take(self, int i) noexcept nogil:
        """Move a live variable into the new element unless it is there already; return its weight, else 0."""
        cdef int weight = self.weight[i]
        if weight <= 0:
            return 0
        self.weight[i] = -weight
        self.store[self.used] = i
        self.used += 1
        self.leave(i)
        return weight

    cdef void count_outside(self, int pivot) noexcept nogil:
        """For each element next to the new one, compute the weight of its variables outside the new one."""
        cdef long long p, q
        cdef int i, e
        self.stamp += 1
        for p in range(self.begin[pivot], self.begin[pivot] + self.length[pivot]):
            i = self.store[p]
            for q in range(self.begin[i], self.begin[i] + self.elements[i]):
                e = self.store[q]
                if self.mark[e] == NONE:
                    continue
                if self.mark[e] != self.stamp:
                    self.mark[e] = self.stamp
                    self.outside[e] = self.degree[e]
                self.outside[e] += self.weight[i]  # which is negative
            self.steps += self.elements[i] + 1

    cdef void update(self, int pivot) noexcept nogil:
        """Rebuild the lists and approximate degrees of the new element's variables."""
        cdef long long p, q, to, first, split
        cdef int i, e, j, d
        cdef unsigned long long key
        for p in range(self.begin[pivot], self.begin[pivot] + self.length[pivot]):
            i = self.store[p]
            d, key, first = 0, <unsigned long long>pivot, self.begin[i]
            to = first
            for q in range(first, first + self.elements[i]):
                e = self.store[q]
                if self.mark[e] == NONE:
                    continue
                if self.outside[e] <= 0:  # it is covered by the new element
                    self.absorb(e)
                    continue
                d += self.outside[e]
                self.store[to] = e
                to += 1
                key += <unsigned long long>e
            split = to
            for q in range(first + self.elements[i], first + self.length[i]):
                j = self.store[q]
                if self.weight[j] > 0:  # neither eliminated nor in the new element
                    d += self.weight[j]
                    self.store[to] = j
                    to += 1
                    key += <unsigned long long>j
            self.steps += self.length[i] + 1
            if d == 0:  # its only neighbour is the new element: it is eliminated together with the pivot
                self.degree[pivot] += self.weight[i]
                self.weight[i] = 0
                self.length[i] = self.elements[i] = 0
                self.place(i)
                continue
            # The entries that linked it to the pivot have left the list, so there is room: the new element comes first,
            # the former first element after the other elements, the former first variable at the end.
            self.store[to] = self.store[split]
            self.store[split] = self.store[first]
            self.store[first] = pivot
            self.elements[i] = <int>(split - first) + 1
            self.length[i] = <int>(to - first) + 1
            self.degree[i] = min(self.degree[i], d)
            self.outside[i] = <int>(key % <unsigned long long>self.n)
            self.chain[i] = self.bucket[self.outside[i]]
            self.bucket[self.outside[i]] = i

    cdef void absorb(self, int e) noexcept nogil:
        """Remove an element that another one covers."""
        self.mark[e] = NONE
        self.length[e] = 0

    cdef void merge(self, int pivot) noexcept nogil:
        """Merge variables of the new element that have the same neighbours."""
        cdef long long p, q
        cdef int i, j, k, previous
        cdef bint same
        for p in range(self.begin[pivot], self.begin[pivot] + self.length[pivot]):
            i = self.store[p]
            if self.weight[i] == 0 or self.bucket[self.outside[i]] == NONE:
                continue
            i = self.bucket[self.outside[i]]
            self.bucket[self.outside[i]] = NONE
            while i != NONE and self.chain[i] != NONE:  # ends: the chain of a bucket, a variable once
                self.stamp += 1
                for q in range(self.begin[i], self.begin[i] + self.length[i]):
                    k = self.store[q]
                    if self.mark[k] != NONE:
                        self.mark[k] = self.stamp
                previous, j = i, self.chain[i]
                while j != NONE:  # ends: the rest of that chain
                    same = self.length[j] == self.length[i] and self.elements[j] == self.elements[i]
                    q = self.begin[j]
                    while same and q < self.begin[j] + self.length[j]:  # ends: q grows to the end of the list
                        same = self.mark[self.store[q]] == self.stamp
                        q += 1
                    self.steps += q - self.begin[j] + 1
                    if same:
                        self.weight[i] += self.weight[j]
                        self.weight[j] = 0
                        self.length[j] = self.elements[j] = 0
                        self.next_member[self.last_member[i]] = j
                        self.last_member[i] = self.last_member[j]
                        self.chain[previous] = self.chain[j]
                    else:
                        previous = j
                    j = self.chain[j]
                i = self.chain[i]

    cdef void close(self, int pivot) noexcept nogil:
        """Set the degrees of the new element's variables, and drop merged and eliminated ones from its list."""
        cdef long long p, to = self.begin[pivot]
        cdef int i, weight, left = self.n - self.placed
        for p in range(self.begin[pivot], self.begin[pivot] + self.length[pivot]):
            i = self.store[p]
            weight = -self.weight[i]
            if weight <= 0:
                continue
            self.weight[i] = weight
            self.degree[i] = min(self.degree[i] + self.degree[pivot] - weight, left - weight)
            self.enter(i)
            self.store[to] = i
            to += 1
        self.length[pivot] = <int>(to - self.begin[pivot])
        self.used = to
