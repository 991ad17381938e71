"""Normal equations of a block program, reduced to its coupling rows: private rows are eliminated block by block.

Columns are sorted by block; columns of no block come last. The entries of a column are split: those in coupling rows
(`start`, `row`, `value`) and those in the private rows of its block (`own_start`, `own_row`, `own_value`, with row
numbers counted within the block). Equation numbers are those of docs/method/blocks.md.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport sqrt
from libc.string cimport memset
from scipy.linalg.cython_blas cimport ddot, dgemm
from scipy.linalg.cython_lapack cimport dpotrs

from copter.methods.blocks cimport arrow
from copter.methods.blocks.tiled_cholesky cimport TILE, factor_square

from copter.methods.blocks.arrow import arrows as _arrows

cdef int PANEL = 48  # rank-one terms of dense rows that are collected before one BLAS call adds them all
cdef int WIDE = 4  # an arrow's rows are collected in the panel if they touch more than 1 / WIDE of the coupling rows
cdef enum:
    PAIRED = 16  # most columns of a block whose entries are paired directly, if no two of them share a coupling row

cdef double LEAST_PIVOT = 1e-300  # least pivot of a private row: keeps divisions finite
cdef double CHUNK = 2e7  # multiplications of each thread between two looks at the clock


cdef class Elimination:
    """The reduced matrix S = A (T - T B' K^-1 B T) A', K = B T B' + delta, for column weights T (K1-K2).

    A holds the coupling rows, B the private rows, delta the weights of the private rows' slacks.

    Parameters
    ----------
    program : BlockProgram
        Its bounds and costs are not read; rows ascend within a column.
    n_pieces : int
        Number of pieces, runs of consecutive blocks; each thread works on one piece.
    """

    def __init__(self, program, int n_pieces):
        cdef int m = program.n_rows, r, p
        rows = np.diff(program.private_start).astype(np.int64)
        self.n_rows, self.n_blocks = m, len(program.column_start) - 1
        self.n_columns, self.n_private = len(program.start) - 1, int(rows.sum())
        self.column_start, self.private_start = program.column_start, program.private_start
        self.start, self.row, self.value = program.start, program.row, program.value
        self.own_start, self.own_row, self.own_value = program.own_start, program.own_row, program.own_value
        self._find_touched()
        entries, touched = np.diff(program.start).astype(np.float64), np.diff(self.touched_start).astype(np.float64)
        self.work = float((entries * entries).sum() + (touched * touched * np.maximum(rows, 1)).sum())
        self.most_private = int(rows.max(initial=0))
        self.factor_start = np.concatenate(([0], np.cumsum(rows * rows)))
        self.factor_start_view = self.factor_start
        self.border_start, self.border_row, self.border_place, self.group_start, self.group_column = _arrows(
            program.column_start, program.private_start, program.own_start, program.own_row)
        r, p = max(self.most_touched, 1), max(self.most_private, 1)
        self.n_pieces = n_pieces
        self.cuts = self._pieces(n_pieces)
        self.sums = np.zeros((n_pieces, m, m))
        self.reduced = np.asarray(self.sums)[0]
        self.panel = np.zeros((n_pieces, PANEL, m))
        self.dense = np.zeros((n_pieces, r))
        self.paired = np.zeros((n_pieces, (PAIRED + 1) * r))
        self.paired_column = np.zeros((n_pieces, r), dtype=np.int32)
        if self.most_private <= 1:
            r = p = 1
        self.met, self.seen = np.zeros((2, n_pieces, max(self.most_touched, 1)), dtype=np.int32)
        self.square, self.wide = np.zeros((n_pieces, r, r)), np.zeros((n_pieces, r * p))
        self.factor = np.zeros(max(int((rows * rows).sum()), 1))

    def _find_touched(self):
        """List the coupling rows that each block touches, ascending, and each entry's position in its block's list."""
        cdef int g, e, n = 0, at
        last = self.column_start[self.n_blocks]
        touched = np.empty(self.start[last], dtype=np.int32)
        first = np.zeros(self.n_blocks + 1, dtype=np.int32)
        local = np.zeros(max(len(self.row), 1), dtype=np.int32)
        mark = np.full(self.n_rows, -1, dtype=np.int32)
        place = np.zeros(self.n_rows, dtype=np.int32)
        cdef int[::1] touched_view = touched, first_view = first, local_view = local, mark_view = mark
        cdef int[::1] place_view = place
        for g in range(self.n_blocks):
            at = n
            for e in range(self.start[self.column_start[g]], self.start[self.column_start[g + 1]]):
                if mark_view[self.row[e]] != g:
                    mark_view[self.row[e]] = g
                    touched_view[n] = self.row[e]
                    n += 1
            first_view[g + 1] = n
            touched[at:n].sort()
            for e in range(at, n):
                place_view[touched_view[e]] = e - at
            for e in range(self.start[self.column_start[g]], self.start[self.column_start[g + 1]]):
                local_view[e] = place_view[self.row[e]]
        self.touched, self.touched_start, self.local = touched[:max(n, 1)].copy(), first, local
        self.touched_view, self.touched_start_view, self.local_view = self.touched, first, local
        self.most_touched = int(np.diff(first).max(initial=0))

    def _pieces(self, int count):
        """Return the first blocks of `count` pieces with about equal numbers of entries, (count + 1,) int32."""
        weight = np.asarray(self.start)[np.asarray(self.column_start)].astype(np.float64)
        cuts = np.searchsorted(weight, np.linspace(0.0, weight.max(initial=0.0), count + 1)[1:count])
        return np.concatenate(([0], cuts, [self.n_blocks])).astype(np.int32)

    def form(self, double[::1] theta, double[::1] private, must_stop=None):
        """Compute :attr:`reduced` (lower triangle) for weights of the columns and of the private rows' slacks.

        Returns False if `must_stop`, asked between pieces, has ended the work.
        """
        cdef int piece, i, j, m = self.n_rows, n = self.n_pieces, parts = 1 + <int>(self.work / (CHUNK * n)), part
        cdef long long first, count
        self.theta, self.slack = theta, private
        for part in range(parts):
            for piece in prange(n, nogil=True, num_threads=n, schedule="static", chunksize=1):
                if part == 0:
                    memset(&self.sums[piece, 0, 0], 0, <size_t>m * m * sizeof(double))
                    memset(&self.seen[piece, 0], 0xff, self.seen.shape[1] * sizeof(int))
                first, count = self.cuts[piece], self.cuts[piece + 1] - self.cuts[piece]
                self.piece(piece, <int>(first + count * part // parts), <int>(first + count * (part + 1) // parts),
                           part == parts - 1)
            if must_stop is not None and must_stop():
                return False
        for piece in range(1, n):
            for i in prange(m, nogil=True, num_threads=n, schedule="static"):
                for j in range(i + 1):
                    self.sums[0, i, j] += self.sums[piece, i, j]
        return True

    cdef void piece(self, int piece, int first, int last, bint ends) noexcept nogil:
        cdef int g, filled = 0, p, j
        cdef double* total = &self.sums[piece, 0, 0]
        for g in range(first, last):
            p = self.private_start[g + 1] - self.private_start[g]
            if p == 1:
                filled = self.one_row(piece, g, self.slack[self.private_start[g]], total, filled)
            elif self.border_start[g + 1] > self.border_start[g]:
                filled = self.arrow_rows(piece, g, p, total, filled)
            else:
                filled = self.many_rows(piece, g, p, total, filled)
        self.add_panel(piece, filled, total)
        if ends and piece == self.n_pieces - 1:
            for j in range(self.column_start[self.n_blocks], self.n_columns):
                self.outer(j, total, self.theta[j])

    cdef void outer(self, int j, double* total, double weight) noexcept nogil:
        """Add weight a_j a_j' to `total`, lower triangle."""
        cdef int e, f, m = self.n_rows
        cdef double scaled
        for e in range(self.start[j], self.start[j + 1]):
            scaled = weight * self.value[e]
            for f in range(self.start[j], e + 1):
                total[<size_t>self.row[e] * m + self.row[f]] += scaled * self.value[f]

    cdef int one_row(self, int piece, int g, double delta, double* total, int filled) noexcept nogil:
        """Add a block with one private row, its column of largest weight as key: no large terms cancel (K2)."""
        cdef int first = self.column_start[g], last = self.column_start[g + 1], j, key = -1, e, m = self.n_rows, r, i
        cdef double most = -1.0, weight, b, ratio, kappa = 0.0, key_weight, divisor, scaled, share
        cdef double* z = &self.dense[piece, 0]
        cdef const int* touched = &self.touched_view[0] + self.touched_start_view[g]
        r = self.touched_start_view[g + 1] - self.touched_start_view[g]
        if last - first <= PAIRED and r == self.start[last] - self.start[first]:
            self.disjoint(piece, g, delta, total)
            return filled
        for j in range(first, last):
            if self.own_start[j + 1] > self.own_start[j]:
                b = self.own_value[self.own_start[j]]
                weight = self.theta[j] * b * b
                if weight > most:
                    most, key = weight, j
        for i in range(r):
            z[i] = 0.0
        if key < 0:  # no column of the block is in its row
            self.factor[self.factor_start_view[g]] = delta if delta > LEAST_PIVOT else 1.0
            for j in range(first, last):
                self.outer(j, total, self.theta[j])
            return filled
        b = self.own_value[self.own_start[key]]
        key_weight = self.theta[key]
        for j in range(first, last):
            if j == key:
                continue
            weight = self.theta[j]
            if weight == 0.0:
                continue
            self.outer(j, total, weight)
            if self.own_start[j + 1] > self.own_start[j]:
                ratio = self.own_value[self.own_start[j]] / b
                kappa += weight * ratio * ratio
                weight *= ratio
                for e in range(self.start[j], self.start[j + 1]):
                    z[self.local_view[e]] += weight * self.value[e]
        divisor = key_weight + kappa + delta / (b * b)
        self.factor[self.factor_start_view[g]] = divisor * b * b
        if divisor <= LEAST_PIVOT:
            self.factor[self.factor_start_view[g]] = 1.0
            return filled
        # With q = sum of weight * ratio * a over the others, z = q - kappa a, a the key column, w its weight, d = delta
        # / b^2 and s = w + kappa + d, the exact matrix w a a' + Q - (w a + q)(w a + q)' / s is
        # Q + ((w + kappa) d / s - kappa) a a' - (1 - d / s)(z a' + a z') - z z' / s.
        for e in range(self.start[key], self.start[key + 1]):
            z[self.local_view[e]] -= kappa * self.value[e]
        share = delta / (b * b) / divisor
        self.outer(key, total, share * (key_weight + kappa) - kappa)
        self.cross(key, z, r, touched, share - 1.0, total)
        scaled = 1.0 / divisor
        if 8 * r > m:
            weight = sqrt(scaled)
            memset(&self.panel[piece, filled, 0], 0, m * sizeof(double))
            for i in range(r):
                self.panel[piece, filled, touched[i]] = weight * z[i]
            filled += 1
            if filled == PANEL:
                self.add_panel(piece, filled, total)
                filled = 0
            return filled
        for i in range(r):
            weight = scaled * z[i]
            for e in range(i + 1):
                total[<size_t>touched[i] * m + touched[e]] -= weight * z[e]
        return filled

    cdef void disjoint(self, int piece, int g, double delta, double* total) noexcept nogil:
        """Add a block with one private row whose columns share no coupling row: each pair of entries once (K2).

        Nothing cancels: the weight of a column is a sum over the other columns and the slack, and the weight of a pair
        of columns is a single negative product.
        """
        cdef int first = self.column_start[g], count = self.column_start[g + 1] - first, c, d, e, i, k, m = self.n_rows
        cdef int r = self.touched_start_view[g + 1] - self.touched_start_view[g]
        cdef const int* touched = &self.touched_view[0] + self.touched_start_view[g]
        cdef double* value = &self.paired[piece, 0]
        cdef double* weights
        cdef double* row
        cdef int* column = &self.paired_column[piece, 0]
        cdef double[PAIRED] own, share
        cdef double divisor = delta, others, scaled
        for c in range(count):
            own[c] = 0.0
            if self.own_start[first + c + 1] > self.own_start[first + c]:
                own[c] = self.own_value[self.own_start[first + c]]
            divisor += self.theta[first + c] * own[c] * own[c]
            for e in range(self.start[first + c], self.start[first + c + 1]):
                value[self.local_view[e]] = self.value[e]
                column[self.local_view[e]] = c
        self.factor[self.factor_start_view[g]] = divisor if divisor > LEAST_PIVOT else 1.0
        if divisor <= LEAST_PIVOT:
            return
        for c in range(count):
            others = delta
            for d in range(count):
                if d != c:
                    others += self.theta[first + d] * own[d] * own[d]
                    share[d] = -self.theta[first + c] * own[c] * (self.theta[first + d] * own[d] / divisor)
            share[c] = self.theta[first + c] * (others / divisor)
            weights = value + (c + 1) * r
            for i in range(r):
                weights[i] = share[column[i]] * value[i]
        for i in range(r):
            row = total + <size_t>touched[i] * m
            weights = value + (column[i] + 1) * r
            scaled = value[i]
            for k in range(i + 1):
                row[touched[k]] += scaled * weights[k]

    cdef void cross(self, int j, const double* z, int r, const int* touched, double weight,
                    double* total) noexcept nogil:
        """Add weight (a_j z' + z a_j') to `total`, lower triangle; z is over the r touched rows, ascending."""
        cdef int e, i, lo, hi, m = self.n_rows
        cdef double scaled
        for e in range(self.start[j], self.start[j + 1]):
            scaled = weight * self.value[e]
            for i in range(r):
                lo, hi = self.row[e], touched[i]
                if lo == hi:
                    total[<size_t>lo * m + lo] += 2.0 * scaled * z[i]
                elif lo < hi:
                    total[<size_t>hi * m + lo] += scaled * z[i]
                else:
                    total[<size_t>lo * m + hi] += scaled * z[i]

    cdef void add_panel(self, int piece, int filled, double* total) noexcept nogil:
        """Subtract P'P, with P the filled rows of the panel, from `total`, lower triangle."""
        cdef int m = self.n_rows, i, j, a, b, rows, columns, depth = filled
        cdef double minus = -1.0, one = 1.0
        cdef double* panel = &self.panel[piece, 0, 0]
        if filled == 0:
            return
        for a in range((m + TILE - 1) // TILE):
            i, rows = a * TILE, min(TILE, m - a * TILE)
            for b in range(a + 1):
                j = b * TILE
                columns = min(TILE, m - j)
                # Row-major C (rows x columns) = column-major C' : P_j' P_i with P row-major (depth x m).
                dgemm("N", "T", &columns, &rows, &depth, &minus, panel + j, &m, panel + i, &m, &one,
                      total + <size_t>i * m + j, &m)

    cdef int many_rows(self, int piece, int g, int p, double* total, int filled) noexcept nogil:
        """Add a block with any number of private rows: factorise K = L L', subtract W'W with W = L^-1 B T A' (K2)."""
        cdef int first = self.column_start[g], last = self.column_start[g + 1], j, e, f, i, k, m = self.n_rows, r
        cdef int step = 1, rows, columns, a, b
        cdef double weight, scaled, one = 1.0, zero = 0.0
        cdef double* factor
        cdef double* wide = &self.wide[piece, 0]
        cdef double* square
        cdef const int* touched
        for j in range(first, last):
            if self.theta[j] != 0.0:
                self.outer(j, total, self.theta[j])
        if p == 0:
            return filled
        r = self.touched_start_view[g + 1] - self.touched_start_view[g]
        factor = &self.factor[self.factor_start_view[g]]
        memset(factor, 0, p * p * sizeof(double))
        memset(wide, 0, p * r * sizeof(double))
        for j in range(first, last):
            weight = self.theta[j]
            if weight == 0.0:
                continue
            for e in range(self.own_start[j], self.own_start[j + 1]):
                scaled = weight * self.own_value[e]
                for f in range(self.own_start[j], e + 1):
                    factor[self.own_row[e] * p + self.own_row[f]] += scaled * self.own_value[f]
                for f in range(self.start[j], self.start[j + 1]):
                    wide[self.local_view[f] * p + self.own_row[e]] += scaled * self.value[f]
        for i in range(p):
            factor[i * p + i] += self.slack[self.private_start[g] + i]
            if factor[i * p + i] <= LEAST_PIVOT:
                factor[i * p + i] = 1.0
        factor_square(factor, p, p, NULL)
        if r == 0:
            return filled
        touched = &self.touched_view[0] + self.touched_start_view[g]
        for i in range(r):  # W = L^-1 V, one touched row after the other
            for k in range(p):
                scaled = wide[i * p + k] - ddot(&k, factor + k * p, &step, wide + i * p, &step)
                wide[i * p + k] = scaled / factor[k * p + k]
        square = &self.square[piece, 0, 0]
        for a in range((r + TILE - 1) // TILE):
            i, rows = a * TILE, min(TILE, r - a * TILE)
            for b in range(a + 1):
                k = b * TILE
                columns = min(TILE, r - k)
                dgemm("T", "N", &columns, &rows, &p, &one, wide + k * p, &p, wide + i * p, &p, &zero,
                      square + i * r + k, &r)
        for i in range(r):
            for k in range(i + 1):
                total[<size_t>touched[i] * m + touched[k]] -= square[i * r + k]
        return filled

    cdef inline int border_of(self, int g, const int** border) noexcept nogil:
        """Return the number of rows in an arrow's border, and write where they are listed."""
        border[0] = &self.border_row[0] + self.border_start[g]
        return 0 if border[0][0] < 0 else self.border_start[g + 1] - self.border_start[g]

    cdef int arrow_rows(self, int piece, int g, int p, double* total, int filled) noexcept nogil:
        """Add a block whose K is an arrow: eliminate each diagonal row from its own columns, then the border (K2)."""
        cdef int first = self.column_start[g], last = self.column_start[g + 1], base = self.private_start[g]
        cdef int j, e, f, i, k
        cdef int r = self.touched_start_view[g + 1] - self.touched_start_view[g]
        cdef const int* border
        cdef int b = self.border_of(g, &border)
        cdef const int* touched = &self.touched_view[0] + self.touched_start_view[g]
        cdef double* factor = &self.factor[self.factor_start_view[g]]
        cdef double* rows = factor + p
        cdef double* square = rows + b * p
        cdef double* wide = &self.wide[piece, 0]
        cdef double weight, scaled
        cdef double[arrow.MOST_BORDER] before
        cdef BlockWork block = BlockWork(p, b, r, touched, factor, wide, total)
        memset(factor, 0, (p + b * p + b * b) * sizeof(double))
        memset(wide, 0, b * r * sizeof(double))
        for j in range(first, last):
            weight = self.theta[j]
            if weight == 0.0:
                continue
            self.outer(j, total, weight)
            for e in range(self.own_start[j], self.own_start[j + 1]):
                k = self.border_place[base + self.own_row[e]]
                if k < 0:
                    continue
                scaled = weight * self.own_value[e]
                for f in range(self.start[j], self.start[j + 1]):
                    wide[k * r + self.local_view[f]] += scaled * self.value[f]
                for f in range(self.own_start[j], self.own_start[j + 1]):
                    i = self.border_place[base + self.own_row[f]]
                    if i < 0:
                        rows[k * p + self.own_row[f]] += scaled * self.own_value[f]
                    elif i <= k:
                        square[k * b + i] += scaled * self.own_value[f]
        for i in range(p):
            factor[i] = 1.0
            if self.border_place[base + i] < 0:
                self.diagonal_row(piece, base + i, i, &block)
        for k in range(b):
            square[k * b + k] += self.slack[base + border[k]]
            if square[k * b + k] <= LEAST_PIVOT:
                square[k * b + k] = 1.0
            before[k] = square[k * b + k]
        arrow.factorise(factor, before, p, border, b)
        for k in range(b):  # W = L^-1 V
            for i in range(k):
                scaled = square[k * b + i]
                for e in range(r):
                    wide[k * r + e] -= scaled * wide[i * r + e]
            scaled = 1.0 / square[k * b + k]
            for e in range(r):
                wide[k * r + e] *= scaled
        return self.subtract_rows(piece, b, r, touched, total, filled)

    cdef void diagonal_row(self, int piece, int row, int i, BlockWork* block) noexcept nogil:
        """Eliminate one diagonal row from its columns and from the border's rows of V; store its pivot."""
        cdef int c, j, e, f, k, count = 0, m = self.n_rows, one, other
        cdef int b = block.border, p = block.rows, r = block.touched
        cdef const int* touched = block.places
        cdef double* factor = block.factor
        cdef double* wide = block.wide
        cdef double* total = block.total
        cdef double pivot = self.slack[row], weight, scaled
        cdef double* z = &self.dense[piece, 0]
        cdef int* met = &self.met[piece, 0]
        for c in range(self.group_start[row], self.group_start[row + 1]):
            j = self.group_column[c]
            weight = self.theta[j]
            if weight == 0.0:
                continue
            for e in range(self.own_start[j], self.own_start[j + 1]):
                if self.own_row[e] == i:
                    pivot += weight * self.own_value[e] * self.own_value[e]
                    for f in range(self.start[j], self.start[j + 1]):
                        if self.seen[piece, self.local_view[f]] != row:
                            self.seen[piece, self.local_view[f]] = row
                            met[count] = self.local_view[f]
                            z[met[count]] = 0.0
                            count += 1
                        z[self.local_view[f]] += weight * self.own_value[e] * self.value[f]
        if pivot <= LEAST_PIVOT:
            pivot = 1.0
        factor[i] = pivot
        for c in range(count):
            one = met[c]
            scaled = z[one] / pivot
            for k in range(b):
                wide[k * r + one] -= scaled * factor[p + k * p + i]
            for e in range(c + 1):
                other = met[e]
                if other <= one:
                    total[<size_t>touched[one] * m + touched[other]] -= scaled * z[other]
                else:
                    total[<size_t>touched[other] * m + touched[one]] -= scaled * z[other]

    cdef int subtract_rows(self, int piece, int b, int r, const int* touched, double* total,
                           int filled) noexcept nogil:
        """Subtract W'W from `total` for rows W (b, r) over the touched rows; dense rows are gathered in the panel."""
        cdef int k, i, e, m = self.n_rows
        cdef double weight
        cdef double* row
        cdef const double* wide = &self.wide[piece, 0]
        if WIDE * r > m:
            for k in range(b):
                memset(&self.panel[piece, filled, 0], 0, m * sizeof(double))
                for i in range(r):
                    self.panel[piece, filled, touched[i]] = wide[k * r + i]
                filled += 1
                if filled == PANEL:
                    self.add_panel(piece, filled, total)
                    filled = 0
            return filled
        for i in range(r):
            row = total + <size_t>touched[i] * m
            for k in range(b):
                weight = wide[k * r + i]
                if weight != 0.0:
                    for e in range(i + 1):
                        row[touched[e]] -= weight * wide[k * r + e]
        return filled

    # Solving ------------------------------------------------------------------------------------------------------

    def eliminate(self, const double[::1] private, double[::1] coupling, double[::1] scaled):
        """Subtract A T B' K^-1 private from `coupling`; write K^-1 private to `scaled`."""
        cdef int g, j, e, p
        cdef double weight
        with nogil:
            for g in range(self.n_blocks):
                p = self.private_start[g + 1] - self.private_start[g]
                self.solve_private(g, p, &private[0] + self.private_start[g], &scaled[0] + self.private_start[g])
                for j in range(self.column_start[g], self.column_start[g + 1]):
                    weight = 0.0
                    for e in range(self.own_start[j], self.own_start[j + 1]):
                        weight = weight + self.own_value[e] * scaled[self.private_start[g] + self.own_row[e]]
                    weight = weight * self.theta[j]
                    if weight != 0.0:
                        for e in range(self.start[j], self.start[j + 1]):
                            coupling[self.row[e]] -= weight * self.value[e]

    def restore(self, const double[::1] price, const double[::1] private, double[::1] own):
        """Write K^-1 (private - B T A' price), the private rows' part of a solution, to `own`."""
        cdef int g, threads = self.n_pieces, piece
        for piece in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
            for g in range(self.cuts[piece], self.cuts[piece + 1]):
                self.restore_block(g, price, private, own)

    cdef void restore_block(self, int g, const double[::1] price, const double[::1] private,
                            double[::1] own) noexcept nogil:
        cdef int j, e, base = self.private_start[g], p = self.private_start[g + 1] - base
        cdef double usage
        if p == 0:
            return
        for e in range(p):
            own[base + e] = private[base + e]
        for j in range(self.column_start[g], self.column_start[g + 1]):
            if self.own_start[j] == self.own_start[j + 1] or self.theta[j] == 0.0:
                continue
            usage = 0.0
            for e in range(self.start[j], self.start[j + 1]):
                usage = usage + self.value[e] * price[self.row[e]]
            usage = usage * self.theta[j]
            for e in range(self.own_start[j], self.own_start[j + 1]):
                own[base + self.own_row[e]] -= usage * self.own_value[e]
        self.solve_private(g, p, &own[base], &own[base])

    cdef void solve_private(self, int g, int p, const double* right, double* solution) noexcept nogil:
        cdef int i, one = 1, info = 0, b
        cdef const int* border
        cdef double* factor = &self.factor[self.factor_start_view[g]]
        if p == 1:
            solution[0] = right[0] / factor[0]
            return
        if p == 0:
            return
        if self.border_start[g + 1] > self.border_start[g]:
            b = self.border_of(g, &border)
            arrow.solve(factor, p, border, b, right, solution)
            return
        if solution != right:
            for i in range(p):
                solution[i] = right[i]
        dpotrs("U", &p, &one, factor, &p, solution, &p, &info)
