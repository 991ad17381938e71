"""Distances of the nonbasic variables to their breakpoints, kept from pivot to pivot (method/blocks.md, K13).

An item is a column or a block's sum, numbered as the variables are. An item's distance is its reduced cost, with the
sign that must stay positive. The distance is stored once; later it is the stored one less the moves of two classes of
columns since then: that of the item and that of its block's key. Items of the same pair of classes move alike, so a
ratio test looks at pairs of classes, and at the items of a pair only if its nearest item is within reach.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.string cimport memset

from copter.methods.blocks.block_basis cimport RATE
from copter.methods.blocks.column_classes cimport ColumnClasses

cdef class BlockItems(BlockBasis):
    """A block basis with distances to breakpoints, item by item.

    Parameters
    ----------
    As :class:`BlockBasis`.
    alone : bool
        As for :class:`ColumnClasses`. Items then have no pair of classes in common: ratio tests look at all of them.
    """

    def __init__(self, program, scale, cost, bint alone=False):
        cdef int size = 4
        BlockBasis.__init__(self, program, scale, cost)
        self.classes = ColumnClasses(self.n_rows, self.start, self.row, self.value, alone)
        self.n_items = self.n_columns + self.n_blocks
        cdef int v, n = max(self.n_items, 1), blocks = max(self.n_blocks, 1)
        cdef double[::1] real = np.empty(2 * n + self.n_columns + 1)
        cdef int[::1] whole = np.zeros(6 * n + 4 * blocks + self.n_items + 2, dtype=np.int32)
        cdef unsigned char[::1] marks = np.zeros(3 * blocks, dtype=np.uint8)
        self.base, self.least, self.now = real[:n], real[n:2 * n], real[2 * n:]
        for v in range(n):
            self.base[v] = INFINITY
        self.plus, self.minus = whole[:n], whole[n:2 * n]
        self.pair_of, self.item = whole[2 * n:3 * n], whole[3 * n:4 * n]
        self.plus_of, self.minus_of, whole = whole[4 * n:5 * n], whole[5 * n:6 * n], whole[6 * n:]
        self.changed, self.late_blocks = whole[:blocks], whole[blocks:2 * blocks]
        self.loose, self.stamp = whole[2 * blocks:3 * blocks], whole[3 * blocks:4 * blocks]
        self.pair_start = whole[4 * blocks:]
        self.is_changed, self.is_late, self.is_loose = marks[:blocks], marks[blocks:2 * blocks], marks[2 * blocks:]
        self.n_pairs = self.n_changed = self.n_late_blocks = self.n_loose = self.visits = 0
        self.work = 0
        if alone:
            return
        while size < 2 * self.n_items:  # ends: size doubles
            size *= 2
        self.table = np.empty(size, dtype=np.int32)

    # Storing distances
    # --------------------------------------------------------------------------------------------------

    cdef void fill(self) noexcept nogil:
        """Compute the reduced costs of all columns."""
        cdef int j, e
        cdef double total
        cdef const int* start = &self.start[0]
        cdef const int* row = &self.row[0] if self.n_entries else NULL
        cdef const double* value = &self.value[0] if self.n_entries else NULL
        cdef const double* y = &self.y[0]
        cdef double* now = &self.now[0]
        for j in range(self.n_columns):
            total = self.cost[j]
            for e in range(start[j], start[j + 1]):
                total -= value[e] * y[row[e]]
            now[j] = total

    cdef void lay(self) noexcept nogil:
        """Store the distances of all items from the reduced costs just computed; moves restart at zero."""
        cdef int g, t
        for t in range(self.n_changed):
            self.is_changed[self.changed[t]] = 0
        for t in range(self.n_late_blocks):
            self.is_late[self.late_blocks[t]] = 0
        for t in range(self.n_loose):
            self.is_loose[self.loose[t]] = 0
        self.n_changed = self.n_late_blocks = self.n_loose = 0
        self.classes.forget()
        for g in range(self.n_blocks):
            self.lay_block(g)
        if not self.classes.alone:
            self.pair()
        self.work += self.n_items

    cdef void restart(self) noexcept nogil:
        """Store the distances of all items as they are after the moves so far; these restart at zero."""
        cdef int v, t
        cdef const double* moved = &self.classes.moved[0]
        for v in range(self.n_items):
            self.base[v] -= moved[self.plus[v]] - moved[self.minus[v]]
        for t in range(self.n_loose):
            self.is_loose[self.loose[t]] = 0
        self.n_loose = 0
        self.classes.forget()
        self.pair()
        self.work += self.n_items

    cdef void pair(self) noexcept nogil:
        """Sort the items by their pair of classes: those of pair c are item[pair_start[c]:pair_start[c + 1]]."""
        cdef int v, c, mask = <int>len(self.table) - 1, used = mask + 1
        if <long long>self.classes.n_classes * self.classes.n_classes <= used:  # then pairs are not hashed
            mask, used = -1, self.classes.n_classes * self.classes.n_classes
        memset(&self.table[0], 0xff, used * sizeof(int))
        self.n_pairs = self.pair_start[0] = self.pair_start[1] = 0
        for v in range(self.n_items):
            self.pair_of[v] = -1
            if self.base[v] < INFINITY and self.plus[v] != self.minus[v] and self.count[self.block(v)] == 0:
                c = self.find_pair(v, mask)
                self.pair_of[v] = c
                self.pair_start[c + 2] += 1
                self.least[c] = min(self.least[c], self.base[v])
        for c in range(self.n_pairs):
            self.pair_start[c + 2] += self.pair_start[c + 1]
        for v in range(self.n_items):
            c = self.pair_of[v]
            if c >= 0:
                self.item[self.pair_start[c + 1]] = v
                self.pair_start[c + 1] += 1

    cdef int find_pair(self, int v, int mask) noexcept nogil:
        """Return the number of an item's pair of classes; register the pair if it is new.

        A negative mask says that the table has a place for every pair of classes.
        """
        cdef int c, at = self.plus[v] * self.classes.n_classes + self.minus[v]
        cdef unsigned int hashed = <unsigned int>self.plus[v] * 2654435761u ^ <unsigned int>self.minus[v] * 2246822519u
        if mask >= 0:
            at = <int>((hashed ^ (hashed >> 15)) & <unsigned int>mask)
        while self.table[at] >= 0:  # ends: half of the table is free
            c = self.table[at]
            if self.plus_of[c] == self.plus[v] and self.minus_of[c] == self.minus[v]:
                return c
            at = (at + 1) & mask
        c = self.n_pairs
        self.table[at], self.plus_of[c], self.minus_of[c] = c, self.plus[v], self.minus[v]
        self.least[c], self.pair_start[c + 2] = INFINITY, 0
        self.n_pairs += 1
        return c

    cdef void lay_block(self, int g) noexcept nogil:
        """Store the distances of a block's items from the reduced costs just computed."""
        cdef int j, c, k = self.key[g], s = self.n_columns + g, key_class = 0
        cdef const double* moved = &self.classes.moved[0]
        cdef double key_cost = 0.0
        self.base[s] = INFINITY
        if k < self.n_columns:
            key_cost, key_class = self.now[k], self.classes.class_of[k]
            if self.place[s] < 0 and self.low[s] < self.high[s]:
                if self.at_upper[s]:
                    self.plus[s], self.minus[s], self.base[s] = key_class, 0, -key_cost + moved[key_class]
                else:
                    self.plus[s], self.minus[s], self.base[s] = 0, key_class, key_cost - moved[key_class]
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if j == k or self.place[j] >= 0 or self.low[j] == self.high[j]:
                self.base[j] = INFINITY
                continue
            c = self.classes.class_of[j]
            if self.at_upper[j]:
                self.plus[j], self.minus[j] = c, key_class
                self.base[j] = key_cost - self.now[j] + (moved[c] - moved[key_class])
            else:
                self.plus[j], self.minus[j] = key_class, c
                self.base[j] = self.now[j] - key_cost + (moved[key_class] - moved[c])

    cdef void change(self, int g) noexcept nogil:
        """Mark a block's items as out of date."""
        if not self.is_changed[g]:
            self.is_changed[g] = 1
            self.changed[self.n_changed] = g
            self.n_changed += 1

    cdef void relay(self) noexcept nogil:
        """Store the distances of out-of-date blocks anew; they become loose: not listed under their pairs any more."""
        cdef int t, g, j
        for t in range(self.n_changed):
            g = self.changed[t]
            self.is_changed[g] = 0
            if not (self.is_loose[g] or self.classes.alone):
                self.is_loose[g] = 1
                self.loose[self.n_loose] = g
                self.n_loose += 1
            for j in range(self.column_start[g], self.column_start[g + 1]):
                self.now[j] = self.cost[j] - self.dot(j, &self.y[0])
            self.lay_block(g)
        self.n_changed = 0

    # Along a row of the tableau -----------------------------------------------------------------------------------

    cdef void spread(self) noexcept nogil:
        """Compute the classes' slopes along rho, and list the blocks with columns in late rows."""
        cdef int t, e, g, r
        for t in range(self.n_late_blocks):
            self.is_late[self.late_blocks[t]] = 0
        self.n_late_blocks = 0
        self.work += self.n_items if self.classes.alone else self.n_pairs + self.n_loose
        if not self.classes.spread(&self.rho[0]):
            return
        for t in range(self.classes.n_late):
            r = self.classes.late[t]
            self.work += self.classes.row_start[r + 1] - self.classes.row_start[r]
            for e in range(self.classes.row_start[r], self.classes.row_start[r + 1]):
                g = self.block_of[self.classes.column[e]]
                if not self.is_late[g]:
                    self.is_late[g] = 1
                    self.late_blocks[self.n_late_blocks] = g
                    self.n_late_blocks += 1

    cdef void advance(self, double step) noexcept nogil:
        """Move all items by a step along the slopes; blocks with columns in late rows become out of date."""
        cdef int t
        self.classes.move(step)
        for t in range(self.n_late_blocks):
            self.change(self.late_blocks[t])

    cdef int first_within(self, int first, int last, double side, double* end) noexcept nogil:
        """Return the item among first to last - 1 that meets its breakpoint first, at a step below `end`; else -1.

        `end` becomes its step; no class may be looked ahead of less than `end`.
        """
        cdef int v, best = -1
        cdef const double* slope = &self.classes.slope[0]
        cdef const double* moved = &self.classes.moved[0]
        cdef const double* ahead = &self.classes.ahead[0]
        cdef const double* base = &self.base[0]
        cdef const int* plus = &self.plus[0]
        cdef const int* minus = &self.minus[0]
        cdef double price, rate, step = end[0]
        for v in range(first, last):
            if not base[v] < ahead[plus[v]] - ahead[minus[v]]:
                continue
            rate = side * (slope[plus[v]] - slope[minus[v]])
            price = base[v] - (moved[plus[v]] - moved[minus[v]])
            if (rate > RATE) & (price < step * rate):
                best, step = v, max(price, 0.0) / rate
        end[0] = step
        return best
