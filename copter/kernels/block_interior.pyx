"""The passes of the interior-point method over a block program (docs/blocks.md).

The variables are the columns in the layout's order, then one slack a row (coupling rows first, then private ones by
block), with A x - s = 0. The entries are walked over in `usage` and `product` alone; every other pass walks over
vectors. What is summed is summed a piece.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from copter.kernels.eliminate cimport Elimination

cdef enum:
    SUMS = 8  # numbers that a pass adds up, a cache line of its own for every piece


cdef class BlockInterior(Elimination):
    """A point of the method, its direction, and the passes over both.

    Parameters
    ----------
    *layout
        As for :class:`.Elimination`.
    cost : ndarray (columns,)
    lower, upper : ndarray (columns + rows,)
        Bounds of the columns and of the rows' activities; equal ones hold a variable fixed.
    """

    cdef readonly object x, z, v, y, dx, dz, dv, dy, weight, target_lower, target_upper, primal, right, left
    cdef readonly int size, n_all_rows
    cdef const double[::1] cost, lower, upper
    cdef double[::1] x_, z_, v_, y_, dx_, dz_, dv_, dy_, weight_, low_, high_, primal_, right_, wrong_, private_weight
    cdef double[::1] of_columns, scaled_, left_
    cdef bint plain
    cdef double[:, ::1] activity, sums_
    cdef public double proximal

    def __init__(self, *layout, cost, lower, upper):
        Elimination.__init__(self, *layout)
        cdef int n = self.n_columns, rows = self.n_rows + self.n_private
        self.size, self.n_all_rows = n + rows, rows
        self.cost, self.lower, self.upper = cost, lower, upper
        self.x = self.x_ = np.zeros(self.size)
        self.z = self.z_ = np.zeros(self.size)
        self.v = self.v_ = np.zeros(self.size)
        self.dx = self.dx_ = np.zeros(self.size)
        self.dz = self.dz_ = np.zeros(self.size)
        self.dv = self.dv_ = np.zeros(self.size)
        self.weight = self.weight_ = np.zeros(self.size)
        self.target_lower = self.low_ = np.zeros(self.size)
        self.target_upper = self.high_ = np.zeros(self.size)
        self.y = self.y_ = np.zeros(rows)
        self.dy = self.dy_ = np.zeros(rows)
        self.primal = self.primal_ = np.zeros(rows)
        self.right = self.right_ = np.zeros(rows)
        self.left, self.scaled_ = np.zeros(rows), np.zeros(rows)
        self.left_ = self.left
        self.plain = bool((np.asarray(self.value) == 1.0).all())
        self.wrong_, self.of_columns = np.zeros(self.size), np.zeros(n)
        self.activity = np.zeros((self.n_pieces, max(self.n_rows, 1)))
        self.sums_ = np.zeros((self.n_pieces, SUMS))
        self.private_weight = np.zeros(max(self.n_private, 1))
        self.proximal = 1e-13

    cdef inline int part(self, int piece) noexcept nogil:
        """First variable of a piece of a pass over vectors."""
        return <int>((<long long>self.size * piece) // self.n_pieces)

    # Residuals ----------------------------------------------------------------------------------------------------

    def measure(self):
        """Residuals and weights of the point: (mu sum, |dual|^2, primal objective, dual objective, |primal|^2).

        Fills `weight` (theta), `primal` (s - A x) and the reduced costs that are wrong by how much.
        """
        cdef int piece, n = self.n_pieces, i
        cdef double squares = 0.0
        self.usage(self.y_, self.of_columns)
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.measure_piece(piece)
        self.product(self.x_, self.primal_)
        with nogil:
            for i in range(self.n_private):
                self.private_weight[i] = self.weight_[self.n_columns + self.n_rows + i]
            for i in range(self.n_all_rows):
                self.primal_[i] = self.x_[self.n_columns + i] - self.primal_[i]
                squares += self.primal_[i] * self.primal_[i]
        found = np.asarray(self.sums_).sum(axis=0)
        return float(found[0]), float(found[1]), float(found[2]), float(found[3]), squares

    cdef void measure_piece(self, int piece) noexcept nogil:
        cdef int j, n = self.n_columns
        cdef double* sums = &self.sums_[piece, 0]
        memset(sums, 0, SUMS * sizeof(double))
        for j in range(self.part(piece), self.part(piece + 1)):
            if j < n:
                sums[2] += self.cost[j] * self.x_[j]
                self.measure_one(j, self.cost[j] - self.of_columns[j], sums)
            else:
                self.measure_one(j, self.y_[j - n], sums)

    cdef inline void measure_one(self, int j, double reduced, double* sums) noexcept nogil:
        """Weight, wrong reduced cost and sums of one variable."""
        cdef double lower = self.lower[j], upper = self.upper[j], x = self.x_[j], inverse = self.proximal, wrong
        if lower == upper:
            self.weight_[j] = 0.0
            self.wrong_[j] = 0.0
            sums[3] += reduced * lower
            return
        wrong = reduced - self.z_[j] + self.v_[j]
        if lower > -INFINITY:
            inverse += self.z_[j] / (x - lower)
            sums[0] += self.z_[j] * (x - lower)
            sums[3] += self.z_[j] * lower
        if upper < INFINITY:
            inverse += self.v_[j] / (upper - x)
            sums[0] += self.v_[j] * (upper - x)
            sums[3] -= self.v_[j] * upper
        if lower == -INFINITY and upper == INFINITY:
            inverse += 1e-8
        self.weight_[j] = 1.0 / inverse
        self.wrong_[j] = wrong
        sums[1] += wrong * wrong

    # Directions ---------------------------------------------------------------------------------------------------

    def aim(self, int stage, double target, double ahead, double behind):
        """Right sides of the complementarity equations; stage 0 affine, 1 Mehrotra's corrector, 2 one of centrality."""
        cdef int j, n = self.n_pieces
        for j in prange(self.size, nogil=True, num_threads=n, schedule="static"):
            self.aim_one(j, stage, target, ahead, behind)

    cdef inline void aim_one(self, int j, int stage, double target, double ahead, double behind) noexcept nogil:
        cdef double lower = self.lower[j], upper = self.upper[j], gap, product
        if lower == upper:
            return
        if lower > -INFINITY:
            gap = self.x_[j] - lower
            if stage == 0:
                self.low_[j] = -gap * self.z_[j]
            elif stage == 1:
                self.low_[j] = target - gap * self.z_[j] - self.dx_[j] * self.dz_[j]
            else:
                product = (gap + ahead * self.dx_[j]) * (self.z_[j] + behind * self.dz_[j])
                self.low_[j] += centred(product, target)
        if upper < INFINITY:
            gap = upper - self.x_[j]
            if stage == 0:
                self.high_[j] = -gap * self.v_[j]
            elif stage == 1:
                self.high_[j] = target - gap * self.v_[j] + self.dx_[j] * self.dv_[j]
            else:
                product = (gap - ahead * self.dx_[j]) * (self.v_[j] + behind * self.dv_[j])
                self.high_[j] += centred(product, target)

    cdef inline double known(self, int j) noexcept nogil:
        """h of a variable: wrong reduced cost less what the complementarity equations ask for."""
        cdef double value = self.wrong_[j]
        if self.lower[j] > -INFINITY:
            value -= self.low_[j] / (self.x_[j] - self.lower[j])
        if self.upper[j] < INFINITY:
            value += self.high_[j] / (self.upper[j] - self.x_[j])
        return value

    def reduced_right(self):
        """Fill `right`, primal + A theta h - theta_s h_s: private rows as they are, coupling rows reduced by them (K2).

        One pass over the entries.
        """
        cdef int piece, n = self.n_pieces, i
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.reduced_right_piece(piece)
        for i in range(self.n_rows):
            self.right_[i] = self.row_right(i)
            for piece in range(n):
                self.right_[i] += self.activity[piece, i]

    cdef inline double row_right(self, int i) noexcept nogil:
        """What a row's own slack gives to its right side."""
        cdef int j = self.n_columns + i
        if self.weight_[j] == 0.0:
            return self.primal_[i]
        return self.primal_[i] - self.weight_[j] * self.known(j)

    cdef void reduced_right_piece(self, int piece) noexcept nogil:
        cdef int g, j, e, base, first, last, p
        cdef double weight
        cdef double* activity = &self.activity[piece, 0]
        memset(activity, 0, self.n_rows * sizeof(double))
        for g in range(self.cuts[piece], self.last_block(piece)):
            first, last = self.column_start[g], self.last_column(g)
            base, p = self.n_rows, 0
            if g < self.n_blocks:
                base += self.private_start[g]
                p = self.private_start[g + 1] - self.private_start[g]
            for e in range(base, base + p):
                self.right_[e] = self.row_right(e)
            for j in range(first, last):
                weight = self.weight_[j] * self.known(j) if self.weight_[j] != 0.0 else 0.0
                self.of_columns[j] = weight
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    self.right_[base + self.own_row[e]] += self.own_value[e] * weight
            if p:
                self.solve_private(g, p, &self.right_[base], &self.scaled_[base])
            for j in range(first, last):
                weight = 0.0
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    weight = weight + self.own_value[e] * self.scaled_[base + self.own_row[e]]
                weight = self.of_columns[j] - self.weight_[j] * weight
                if weight != 0.0:
                    self.add_column(j, weight, activity)

    def reduced_direction(self):
        """Fill dy of the private rows, dx, dz, dv from dy of the coupling rows and `right`; `left`, what the rows lack.

        One pass over the entries. The longest primal and dual steps, at most 1, that stay inside.
        """
        cdef int piece, n = self.n_pieces, i, j
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.reduced_direction_piece(piece)
        for i in range(self.n_rows):
            j = self.n_columns + i
            self.direction_one(j, -self.dy_[i], &self.sums_[0, 0])
            self.left_[i] = self.primal_[i] + self.dx_[j]
            for piece in range(n):
                self.left_[i] -= self.activity[piece, i]
        return self.lengths()

    cdef void reduced_direction_piece(self, int piece) noexcept nogil:
        cdef int g, j, e, base, first, last, p
        cdef double usage
        cdef double* activity = &self.activity[piece, 0]
        cdef double* sums = &self.sums_[piece, 0]
        memset(activity, 0, self.n_rows * sizeof(double))
        sums[4] = sums[5] = 0.0
        for g in range(self.cuts[piece], self.last_block(piece)):
            first, last = self.column_start[g], self.last_column(g)
            base, p = self.n_rows, 0
            if g < self.n_blocks:
                base += self.private_start[g]
                p = self.private_start[g + 1] - self.private_start[g]
            for e in range(base, base + p):
                self.dy_[e] = self.right_[e]
            for j in range(first, last):
                usage = self.used(j, self.dy_)
                self.of_columns[j] = usage
                usage = usage * self.weight_[j]
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    self.dy_[base + self.own_row[e]] -= usage * self.own_value[e]
            if p:
                self.solve_private(g, p, &self.dy_[base], &self.dy_[base])
            for e in range(base, base + p):
                self.direction_one(self.n_columns + e, -self.dy_[e], sums)
                self.left_[e] = self.primal_[e] + self.dx_[self.n_columns + e]
            for j in range(first, last):
                usage = self.of_columns[j]
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    usage = usage + self.own_value[e] * self.dy_[base + self.own_row[e]]
                self.direction_one(j, usage, sums)
                usage = self.dx_[j]
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    self.left_[base + self.own_row[e]] -= self.own_value[e] * usage
                if usage != 0.0:
                    self.add_column(j, usage, activity)

    cdef inline int last_block(self, int piece) noexcept nogil:
        """Past the last block of a piece; the columns of no block are one more in the last piece."""
        return self.n_blocks + 1 if piece == self.n_pieces - 1 else self.cuts[piece + 1]

    cdef inline int last_column(self, int g) noexcept nogil:
        """Past the last column of a block, or of no block."""
        return self.n_columns if g == self.n_blocks else self.column_start[g + 1]

    cdef inline void add_column(self, int j, double weight, double* activity) noexcept nogil:
        """activity += weight a_j."""
        cdef int e
        if self.plain:
            for e in range(self.start[j], self.start[j + 1]):
                activity[self.row[e]] += weight
        else:
            for e in range(self.start[j], self.start[j + 1]):
                activity[self.row[e]] += self.value[e] * weight

    cdef inline double used(self, int j, const double[::1] y) noexcept nogil:
        """a_j'y over the coupling rows."""
        cdef int e
        cdef double usage = 0.0
        if self.plain:
            for e in range(self.start[j], self.start[j + 1]):
                usage = usage + y[self.row[e]]
        else:
            for e in range(self.start[j], self.start[j + 1]):
                usage = usage + self.value[e] * y[self.row[e]]
        return usage

    def direction(self):
        """Fill dx, dz, dv from dy; the longest primal and dual steps, at most 1, that stay inside."""
        cdef int piece, n = self.n_pieces
        self.usage(self.dy_, self.of_columns)
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.direction_piece(piece)
        return self.lengths()

    cdef lengths(self):
        """The longest primal and dual steps, at most 1, by the pieces' steepest ratios."""
        steepest = np.asarray(self.sums_).max(axis=0)
        return min(1.0, 1.0 / max(steepest[4], 1e-300)), min(1.0, 1.0 / max(steepest[5], 1e-300))

    cdef void direction_piece(self, int piece) noexcept nogil:
        cdef int j, n = self.n_columns
        cdef double* sums = &self.sums_[piece, 0]
        sums[4] = sums[5] = 0.0
        for j in range(self.part(piece), self.part(piece + 1)):
            self.direction_one(j, self.of_columns[j] if j < n else -self.dy_[j - n], sums)

    cdef inline void direction_one(self, int j, double usage, double* sums) noexcept nogil:
        cdef double step, gap
        if self.weight_[j] == 0.0:
            self.dx_[j] = 0.0
            return
        step = self.weight_[j] * (usage - self.known(j))
        self.dx_[j] = step
        if self.lower[j] > -INFINITY:
            gap = self.x_[j] - self.lower[j]
            self.dz_[j] = (self.low_[j] - self.z_[j] * step) / gap
            if -step > sums[4] * gap:
                sums[4] = -step / gap
            if -self.dz_[j] > sums[5] * self.z_[j]:
                sums[5] = -self.dz_[j] / self.z_[j]
        if self.upper[j] < INFINITY:
            gap = self.upper[j] - self.x_[j]
            self.dv_[j] = (self.high_[j] + self.v_[j] * step) / gap
            if step > sums[4] * gap:
                sums[4] = step / gap
            if -self.dv_[j] > sums[5] * self.v_[j]:
                sums[5] = -self.dv_[j] / self.v_[j]

    def complementarity(self, double ahead, double behind):
        """Sum of the complementarity products after a step."""
        cdef int j, n = self.n_pieces
        cdef double total = 0.0
        for j in prange(self.size, nogil=True, num_threads=n, schedule="static"):
            if self.weight_[j] != 0.0:
                if self.lower[j] > -INFINITY:
                    total += (self.x_[j] + ahead * self.dx_[j] - self.lower[j]) * (self.z_[j] + behind * self.dz_[j])
                if self.upper[j] < INFINITY:
                    total += (self.upper[j] - self.x_[j] - ahead * self.dx_[j]) * (self.v_[j] + behind * self.dv_[j])
        return total

    def move(self, double ahead, double behind):
        """Take the step; values and multipliers stay positive by at least a rounding unit."""
        cdef int j, n = self.n_pieces, i
        for j in prange(self.size, nogil=True, num_threads=n, schedule="static"):
            self.move_one(j, ahead, behind)
        for i in range(self.n_all_rows):
            self.y_[i] += behind * self.dy_[i]

    cdef inline void move_one(self, int j, double ahead, double behind) noexcept nogil:
        cdef double x, lower = self.lower[j], upper = self.upper[j], z, v
        if self.weight_[j] == 0.0:
            return
        x = self.x_[j] + ahead * self.dx_[j]
        if lower > -INFINITY:
            if x <= lower:  # rounding: a value cannot leave its bound by less than its own unit
                x = lower + max(1e-2 * (self.x_[j] - lower), 1e-15 * fabs(lower) + 1e-30)
            z = self.z_[j] + behind * self.dz_[j]
            self.z_[j] = z if z > 0.0 else 1e-2 * self.z_[j]
        if upper < INFINITY:
            if x >= upper:
                x = upper - max(1e-2 * (upper - self.x_[j]), 1e-15 * fabs(upper) + 1e-30)
                if lower > -INFINITY and x <= lower:
                    x = 0.5 * (lower + upper)
            v = self.v_[j] + behind * self.dv_[j]
            self.v_[j] = v if v > 0.0 else 1e-2 * self.v_[j]
        self.x_[j] = x

    # What the normal equations need -------------------------------------------------------------------------------

    def form_reduced(self):
        """Fill the reduced matrix for the weights of the point."""
        self.form(self.weight_, self.private_weight)

    def set_weight(self, double[::1] weight):
        """Take other weights (columns, then rows)."""
        cdef int i
        for i in range(self.size):
            self.weight_[i] = weight[i]
        for i in range(self.n_private):
            self.private_weight[i] = weight[self.n_columns + self.n_rows + i]

    def usage(self, const double[::1] y, double[::1] out):
        """out (columns,) = A'y."""
        cdef int piece, n = self.n_pieces
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.usage_piece(piece, y, out)

    cdef void usage_piece(self, int piece, const double[::1] y, double[::1] out) noexcept nogil:
        cdef int g, j, e, base, first, last
        cdef double usage
        for g in range(self.cuts[piece], self.last_block(piece)):
            first, last = self.column_start[g], self.last_column(g)
            base = self.n_rows + (self.private_start[g] if g < self.n_blocks else 0)
            for j in range(first, last):
                usage = self.used(j, y)
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    usage = usage + self.own_value[e] * y[base + self.own_row[e]]
                out[j] = usage

    def product(self, const double[::1] x, double[::1] out):
        """out (rows,) = A x."""
        cdef int piece, n = self.n_pieces, i
        cdef double total
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.product_piece(piece, x, out)
        for i in range(self.n_rows):
            total = 0.0
            for piece in range(n):
                total += self.activity[piece, i]
            out[i] = total

    cdef void product_piece(self, int piece, const double[::1] x, double[::1] out) noexcept nogil:
        cdef int g, j, e, base, first, last
        cdef double* activity = &self.activity[piece, 0]
        memset(activity, 0, self.n_rows * sizeof(double))
        for g in range(self.cuts[piece], self.last_block(piece)):
            first, last = self.column_start[g], self.last_column(g)
            base = self.n_rows
            if g < self.n_blocks:
                base += self.private_start[g]
                for e in range(base, self.n_rows + self.private_start[g + 1]):
                    out[e] = 0.0
            for j in range(first, last):
                self.add_column(j, x[j], activity)
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    out[base + self.own_row[e]] += self.own_value[e] * x[j]


cdef inline double centred(double product, double target) noexcept nogil:
    """What brings a complementarity product back into [0.1, 10] targets."""
    if product < 0.1 * target:
        return 0.1 * target - product
    if product > 10.0 * target:
        return max(10.0 * target - product, -10.0 * target)
    return 0.0
