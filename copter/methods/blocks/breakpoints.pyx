"""Breakpoints of a ratio test in a binary heap of (step, variable), smallest step on top."""

import numpy as np


cdef class Breakpoints:
    """A heap with room for a given number of breakpoints.

    Parameters
    ----------
    capacity : int
        The most that it ever holds at once.
    """

    def __init__(self, int capacity):
        self.step, self.variable = np.zeros(max(capacity, 1)), np.zeros(max(capacity, 1), dtype=np.int32)
        self.size = self.most = 0

    def push(self, int variable, double step):
        """Add a breakpoint."""
        self.add(variable, step)

    def pop(self):
        """Remove the breakpoint of the smallest step and return (variable, step)."""
        cdef double step = self.step[0]
        if self.size == 0:
            raise IndexError("there are no breakpoints")
        return self.take(), step

    cdef void add(self, int variable, double step) noexcept nogil:
        cdef int at = self.size, parent
        self.size += 1
        self.most = max(self.most, self.size)
        while at > 0:  # ends: at is halved
            parent = (at - 1) // 2
            if self.step[parent] <= step:
                break
            self.step[at], self.variable[at] = self.step[parent], self.variable[parent]
            at = parent
        self.step[at], self.variable[at] = step, variable

    cdef int take(self) noexcept nogil:
        """Remove the breakpoint of the smallest step and return its variable."""
        cdef int first = self.variable[0], at = 0, child, variable
        cdef double step
        self.size -= 1
        step, variable = self.step[self.size], self.variable[self.size]
        while 2 * at + 1 < self.size:  # ends: at is doubled
            child = 2 * at + 1
            if child + 1 < self.size and self.step[child + 1] < self.step[child]:
                child += 1
            if self.step[child] >= step:
                break
            self.step[at], self.variable[at] = self.step[child], self.variable[child]
            at = child
        self.step[at], self.variable[at] = step, variable
        return first
