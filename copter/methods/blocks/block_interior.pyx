"""Passes of the interior-point method over a block program (docs/method/blocks.md).

The variables are the columns in the layout's order, then one slack for each row (coupling rows first, then private
rows by block), with A x - s = 0. A direction takes two passes over the blocks: the first eliminates the private rows,
the second restores them. Blocks are divided into pieces, one a thread, and each piece keeps sums of its own.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from copter.methods.blocks.eliminate cimport Elimination

cdef enum:
    SUMS = 8  # float64 numbers that a pass adds up in each piece: one cache line, so that threads do not share it


cdef class BlockInterior(Elimination):
    """A point of the method, its direction, and the passes over both.

    Parameters
    ----------
    program : BlockProgram
        Equal bounds hold a variable fixed.
    n_pieces : int
        See :class:`.Elimination`.
    """

    cdef readonly object x, z, v, y, dx, dz, dv, dy, weight, target_lower, target_upper, primal, right, left
    cdef readonly int size, n_all_rows
    cdef const double[::1] cost, lower, upper
    cdef double[::1] x_, z_, v_, y_, dx_, dz_, dv_, dy_, weight_, low_, high_, primal_, right_, wrong_, private_weight
    cdef double[::1] of_columns, known_, scaled_, coupling_, left_
    cdef bint plain  # all entries in coupling rows are one
    cdef double[:, ::1] activity, sums_
    cdef readonly object coupling
    cdef public double proximal

    def __init__(self, program, int n_pieces):
        Elimination.__init__(self, program, n_pieces)
        cdef int n = self.n_columns, rows = self.n_rows + self.n_private
        self.size, self.n_all_rows = n + rows, rows
        self.cost, self.lower, self.upper = program.cost, program.lower, program.upper
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
        self.plain = bool((np.asarray(self.value) == 1.0).all())
        self.wrong_, self.of_columns = np.zeros(self.size), np.zeros(n)
        self.known_, self.scaled_ = np.zeros(self.size), np.zeros(max(self.n_private, 1))
        self.coupling = self.coupling_ = np.zeros(self.n_rows)
        self.left = self.left_ = np.zeros(rows)
        self.activity = np.zeros((self.n_pieces, max(self.n_rows, 1)))
        self.sums_ = np.zeros((self.n_pieces, SUMS))
        self.private_weight = np.zeros(max(self.n_private, 1))
        self.proximal = 1e-13

    # Residuals ----------------------------------------------------------------------------------------------------

    def measure(self):
        """Compute residuals and weights of the point: (mu sum, |dual|^2, primal objective, dual objective, |primal|^2).

        Fills `weight` (theta), `primal` (s - A x) and the dual residuals.
        """
        cdef int piece, n = self.n_pieces, i
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.measure_piece(piece)
        with nogil:
            self.rest_of_rows(self.x_, self.primal_)
            for i in range(self.n_rows):
                self.sums_[0, 4] += self.primal_[i] * self.primal_[i]
        found = np.asarray(self.sums_).sum(axis=0)
        return float(found[0]), float(found[1]), float(found[2]), float(found[3]), float(found[4])

    cdef void measure_piece(self, int piece) noexcept nogil:
        cdef int g, j, e, i, first, last, base, at, n = self.n_columns, m = self.n_rows
        cdef double usage, x
        cdef double* sums = &self.sums_[piece, 0]
        cdef double* activity = &self.activity[piece, 0]
        cdef const double* y = &self.y_[0]
        memset(sums, 0, SUMS * sizeof(double))
        memset(activity, 0, m * sizeof(double))
        for g in range(self.cuts[piece], self.end_of(piece)):
            self.bounds_of(g, &first, &last, &base)
            for i in range(base, self.private_end(g)):
                self.measure_one(n + m + i, y[m + i], sums)
                self.private_weight[i] = self.weight_[n + m + i]
                self.primal_[m + i] = self.x_[n + m + i]
            for j in range(first, last):
                x, usage = self.x_[j], self.used(j, self.y_)
                self.add_column(j, x, activity)
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    at = m + base + self.own_row[e]
                    usage = usage + self.own_value[e] * y[at]
                    self.primal_[at] -= self.own_value[e] * x
                sums[2] += self.cost[j] * x
                self.measure_one(j, self.cost[j] - usage, sums)
            for i in range(base, self.private_end(g)):
                sums[4] += self.primal_[m + i] * self.primal_[m + i]
        if piece == 0:
            for i in range(m):
                self.measure_one(n + i, y[i], sums)

    cdef inline int end_of(self, int piece) noexcept nogil:
        """Return the end of a piece's blocks; columns outside blocks count as one last block."""
        return self.n_blocks + 1 if piece == self.n_pieces - 1 else self.cuts[piece + 1]

    cdef inline void bounds_of(self, int g, int* first, int* last, int* base) noexcept nogil:
        """Write the first and the last column of a block, and its first private row."""
        first[0], base[0] = self.column_start[g], self.private_start[g]
        last[0] = self.n_columns if g == self.n_blocks else self.column_start[g + 1]

    cdef inline int private_end(self, int g) noexcept nogil:
        return self.private_start[g] if g == self.n_blocks else self.private_start[g + 1]

    cdef void rest_of_rows(self, const double[::1] x, double[::1] out) noexcept nogil:
        """Write s - A x of the coupling rows to `out`, from the activities that the pieces have summed."""
        cdef int i, piece
        cdef double total
        for i in range(self.n_rows):
            total = x[self.n_columns + i]
            for piece in range(self.n_pieces):
                total -= self.activity[piece, i]
            out[i] = total

    cdef inline void measure_one(self, int j, double reduced, double* sums) noexcept nogil:
        """Compute one variable's weight and dual residual, and add its terms to the sums."""
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
        """Set the complementarity targets; stage 0: affine, 1: Mehrotra's corrector, 2: a centrality corrector."""
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
        """Return h of a variable: its dual residual less the right side of its complementarity equations."""
        cdef double value = self.wrong_[j]
        if self.lower[j] > -INFINITY:
            value -= self.low_[j] / (self.x_[j] - self.lower[j])
        if self.upper[j] < INFINITY:
            value += self.high_[j] / (self.upper[j] - self.x_[j])
        return value

    def right_side(self):
        """Compute the normal equations' right side, primal + A theta h - theta_s h_s.

        Writes the private rows to `right`, and the coupling rows, with the private rows eliminated, to `coupling`.
        """
        cdef int piece, n = self.n_pieces, i, j
        cdef double total
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.right_piece(piece)
        with nogil:
            for i in range(self.n_rows):
                j = self.n_columns + i
                total = self.primal_[i] - self.weighed(j)
                for piece in range(n):
                    total = total + self.activity[piece, i]
                self.coupling_[i] = total

    cdef inline double weighed(self, int j) noexcept nogil:
        """Return theta h of a variable and store h."""
        if self.weight_[j] == 0.0:
            return 0.0
        self.known_[j] = self.known(j)
        return self.weight_[j] * self.known_[j]

    cdef void right_piece(self, int piece) noexcept nogil:
        cdef int g, j, e, i, first, last, base, end, m = self.n_rows, slacks = self.n_columns + self.n_rows
        cdef double amount
        cdef double* activity = &self.activity[piece, 0]
        cdef double* own = &self.right_[0] + m
        cdef double* scaled = &self.scaled_[0]
        memset(activity, 0, m * sizeof(double))
        for g in range(self.cuts[piece], self.end_of(piece)):
            self.bounds_of(g, &first, &last, &base)
            end = self.private_end(g)
            for i in range(base, end):
                own[i] = self.primal_[m + i] - self.weighed(slacks + i)
            for j in range(first, last):
                amount = self.weighed(j)
                self.of_columns[j] = amount
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    own[base + self.own_row[e]] += self.own_value[e] * amount
            if end > base:
                self.solve_private(g, end - base, own + base, scaled + base)
            for j in range(first, last):
                amount = 0.0
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    amount = amount + self.own_value[e] * scaled[base + self.own_row[e]]
                amount = self.of_columns[j] - self.weight_[j] * amount
                if amount != 0.0:
                    self.add_column(j, amount, activity)

    cdef inline void add_column(self, int j, double weight, double* activity) noexcept nogil:
        """Add weight * a_j to `activity`."""
        cdef int e
        if self.plain:
            for e in range(self.start[j], self.start[j + 1]):
                activity[self.row[e]] += weight
        else:
            for e in range(self.start[j], self.start[j + 1]):
                activity[self.row[e]] += self.value[e] * weight

    cdef inline double used(self, int j, const double[::1] y) noexcept nogil:
        """Return a_j'y over the coupling rows."""
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
        """From the coupling rows' dy, compute the other dy, dx, dz, dv; return (primal step, dual step, |residual|^2).

        The steps are the longest ones, at most 1, that stay inside the bounds. Writes primal - A dx + ds to `left`.
        """
        cdef int piece, n = self.n_pieces, i
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.direction_piece(piece)
        with nogil:
            self.rest_of_rows(self.dx_, self.left_)
            for i in range(self.n_rows):
                self.left_[i] += self.primal_[i]
                self.sums_[0, 6] += self.left_[i] * self.left_[i]
        sums = np.asarray(self.sums_)
        steepest = sums.max(axis=0)
        ahead, behind = (min(1.0, 1.0 / max(float(each), 1e-300)) for each in steepest[4:6])
        return ahead, behind, float(sums[:, 6].sum())

    cdef void direction_piece(self, int piece) noexcept nogil:
        cdef int g, j, e, i, first, last, base, end, m = self.n_rows, slacks = self.n_columns + self.n_rows
        cdef double usage, step
        cdef double* sums = &self.sums_[piece, 0]
        cdef double* activity = &self.activity[piece, 0]
        cdef double* dy = &self.dy_[0]
        cdef double* own = &self.dy_[0] + m
        cdef double* left = &self.left_[0] + m
        memset(sums, 0, SUMS * sizeof(double))
        memset(activity, 0, m * sizeof(double))
        for g in range(self.cuts[piece], self.end_of(piece)):
            self.bounds_of(g, &first, &last, &base)
            end = self.private_end(g)
            for i in range(base, end):
                own[i] = self.right_[m + i]
            for j in range(first, last):
                usage = self.used(j, self.dy_)
                self.of_columns[j] = usage
                usage = usage * self.weight_[j]
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    own[base + self.own_row[e]] -= self.own_value[e] * usage
            if end > base:
                self.solve_private(g, end - base, own + base, own + base)
            for i in range(base, end):
                self.direction_one(slacks + i, -own[i], sums)
                left[i] = self.primal_[m + i] + self.dx_[slacks + i]
            for j in range(first, last):
                usage = self.of_columns[j]
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    usage = usage + self.own_value[e] * own[base + self.own_row[e]]
                self.direction_one(j, usage, sums)
                step = self.dx_[j]
                if step != 0.0:
                    self.add_column(j, step, activity)
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    left[base + self.own_row[e]] -= self.own_value[e] * step
            for i in range(base, end):
                sums[6] += left[i] * left[i]
        if piece == 0:
            for i in range(m):
                self.direction_one(self.n_columns + i, -dy[i], sums)

    cdef inline void direction_one(self, int j, double usage, double* sums) noexcept nogil:
        cdef double step, gap
        if self.weight_[j] == 0.0:
            self.dx_[j] = 0.0
            return
        step = self.weight_[j] * (usage - self.known_[j])
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
        """Return the sum of the complementarity products after steps of these lengths."""
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
        """Take the step; distances to bounds and multipliers stay above one unit of rounding."""
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

    def form_reduced(self, must_stop=None):
        """Form the reduced matrix for the point's weights; return False if `must_stop` has ended it."""
        return self.form(self.weight_, self.private_weight, must_stop)

    def set_weight(self, double[::1] weight):
        """Set the weights: columns first, then rows."""
        cdef int i
        for i in range(self.size):
            self.weight_[i] = weight[i]
        for i in range(self.n_private):
            self.private_weight[i] = weight[self.n_columns + self.n_rows + i]

    def usage(self, const double[::1] y, double[::1] out):
        """Write A'y to out (columns,)."""
        cdef int piece, n = self.n_pieces
        for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
            self.usage_piece(piece, y, out)

    cdef void usage_piece(self, int piece, const double[::1] y, double[::1] out) noexcept nogil:
        cdef int g, j, e, base, first, last
        cdef double usage
        for g in range(self.cuts[piece], self.end_of(piece)):
            self.bounds_of(g, &first, &last, &base)
            base += self.n_rows
            for j in range(first, last):
                usage = self.used(j, y)
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    usage = usage + self.own_value[e] * y[base + self.own_row[e]]
                out[j] = usage

    def product(self, const double[::1] x, double[::1] out):
        """Write A x to out (rows,)."""
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
        for g in range(self.cuts[piece], self.end_of(piece)):
            self.bounds_of(g, &first, &last, &base)
            base += self.n_rows
            for e in range(base, self.n_rows + self.private_end(g)):
                out[e] = 0.0
            for j in range(first, last):
                self.add_column(j, x[j], activity)
                for e in range(self.own_start[j], self.own_start[j + 1]):
                    out[base + self.own_row[e]] += self.own_value[e] * x[j]


cdef inline double centred(double product, double target) noexcept nogil:
    """Return the change that brings a complementarity product back into 0.1 to 10 times the target."""
    if product < 0.1 * target:
        return 0.1 * target - product
    if product > 10.0 * target:
        return max(10.0 * target - product, -10.0 * target)
    return 0.0
