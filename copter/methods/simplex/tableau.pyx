"""A basis of a small program, with its values, its reduced costs and rows of its tableau.

The program is min c'x subject to A x + s = 0 and bounds on all of (x, s): variable columns + i is the logical variable
of row i. A basic variable is assigned to the row of its pivot; a nonbasic variable is at one of its bounds, or at zero
if it has none (equations D1 to D3).
"""

import numpy as np

from libc.math cimport fabs, isfinite
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from copter.methods.simplex.basis_factor cimport TINY, BasisFactor

cdef double LISTED = 1e-100  # stands for an entry that has cancelled to zero, so that it is not listed twice
cdef int MOST_SPOILT = 3  # flips are taken back if they newly violate more than this many rows each
cdef double DENSE = 1.0  # entries for each variable from which a row of the tableau is computed as a dense one
cdef double LEAST_ENTRY = 1e-9  # least |entry| of a row or column of the tableau that may be a pivot
cdef double AGREEMENT = 1e-7  # largest relative difference of a pivot computed by row and by column
cdef int MOST_TROUBLE = 60  # pivots in a row that disagree before a run ends STUCK


cdef class _Store:
    """One array that is cut into named pieces, which are noted in `arrays`, if there is such a dict."""

    def __init__(self, whole, dict arrays):
        self.whole, self.arrays, self.used = whole, arrays, 0

    cdef Py_ssize_t take(self, str name, Py_ssize_t size):
        """Return where the next piece begins; a piece has at least one number."""
        cdef Py_ssize_t begin = self.used
        self.used = begin + max(size, 1)
        if self.arrays is not None:
            self.arrays[name] = self.whole[begin:self.used]
        return begin


cdef class Tableau:
    """A program in the form above; its first basis is that of the logical variables.

    `arrays` holds the working arrays by name: cost, lower, upper, x and d of all variables, head, place, ray. A caller
    may write them between runs and must then call `restart`.
    """

    def __init__(self, const int[::1] start, const int[::1] index, const double[::1] value, const double[::1] cost,
                 const double[::1] lower, const double[::1] upper, double primal_tolerance, double dual_tolerance):
        cdef Py_ssize_t n = start.shape[0] - 1, total = lower.shape[0], m = total - n, nnz = index.shape[0], k
        self.reals = np.zeros(2 * nnz + 9 * total + 6 * m + 16)
        self.wholes = np.zeros(n + 1 + 2 * nnz + 6 * m + 3 * total + 16, dtype=np.int32)
        self.rows, self.columns, self.total, self.entries = <int>m, <int>n, <int>total, <int>nnz
        self.iterations = self.dual_misfits = self.idle = 0
        self.primal_tolerance, self.dual_tolerance = primal_tolerance, dual_tolerance
        self.factor = BasisFactor(m)
        self.violated_count = self.spot_count = self.rho_count = 0
        self._lay(None)
        memcpy(self.start, &start[0], (n + 1) * sizeof(int))
        if nnz:
            memcpy(self.index, &index[0], nnz * sizeof(int))
            memcpy(self.value, &value[0], nnz * sizeof(double))
        memcpy(self.cost, &cost[0], total * sizeof(double))
        memcpy(self.lower, &lower[0], total * sizeof(double))
        memcpy(self.upper, &upper[0], total * sizeof(double))
        for k in range(total):
            self.weight[k], self.place[k] = 1.0, <int>(k - n) if k >= n else -1
        for k in range(m):
            self.edge[k], self.head[k] = 1.0, <int>(n + k)
        self._transpose()
        self.restart()

    cdef void _lay(self, dict arrays):
        """Lay the working arrays out in memory; `arrays` gets them by name, if it is given."""
        cdef Py_ssize_t m = self.rows, n = self.columns, total = self.total, nnz = self.entries
        cdef _Store reals = _Store(self.reals, arrays), whole = _Store(self.wholes, arrays)
        cdef double[::1] x = self.reals
        cdef int[::1] i = self.wholes
        self.start, self.index = &i[whole.take("start", n + 1)], &i[whole.take("index", nnz)]
        self.row_start, self.row_index = &i[whole.take("row_start", m + 1)], &i[whole.take("row_index", nnz)]
        self.touched, self.candidate = &i[whole.take("touched", total)], &i[whole.take("candidate", total)]
        self.head, self.place = &i[whole.take("head", m)], &i[whole.take("place", total)]
        self.spots, self.violated = &i[whole.take("spots", m)], &i[whole.take("violated", m)]
        self.is_listed, self.rho_spots = &i[whole.take("is_listed", m)], &i[whole.take("rho_spots", m)]
        self.value, self.row_value = &x[reals.take("value", nnz)], &x[reals.take("row_value", nnz)]
        self.cost, self.lower = &x[reals.take("cost", total)], &x[reals.take("lower", total)]
        self.upper = &x[reals.take("upper", total)]
        self.x, self.d = &x[reals.take("x", total)], &x[reals.take("d", total)]
        self.weight, self.row = &x[reals.take("weight", total)], &x[reals.take("row", total)]
        self.gap, self.size = &x[reals.take("gap", total)], &x[reals.take("size", total)]
        self.edge, self.squared = &x[reals.take("edge", m)], &x[reals.take("squared", m)]
        self.rho, self.alpha = &x[reals.take("ray", m)], &x[reals.take("alpha", m)]
        self.tau, self.moved = &x[reals.take("tau", m)], &x[reals.take("moved", m)]

    @property
    def arrays(self):
        """The working arrays by name."""
        if self._arrays is None:
            self._arrays = {}
            self._lay(self._arrays)
        return self._arrays

    cdef void _transpose(self):
        cdef int p, j, i, at
        for p in range(self.start[self.columns]):
            self.row_start[self.index[p] + 1] += 1
        for i in range(self.rows):
            self.row_start[i + 1] += self.row_start[i]
        for j in range(self.columns):
            for p in range(self.start[j], self.start[j + 1]):
                at = self.row_start[self.index[p]]
                self.row_index[at], self.row_value[at] = j, self.value[p]
                self.row_start[self.index[p]] += 1
        for i in range(self.rows, 0, -1):
            self.row_start[i] = self.row_start[i - 1]
        self.row_start[0] = 0

    def restart(self):
        """Put nonbasic variables at a bound, and compute everything that follows from the basis anew."""
        cdef int j
        for j in range(self.total):
            if self.place[j] < 0 and not (self.x[j] == self.lower[j] or self.x[j] == self.upper[j]):
                self.x[j] = nearest(self.x[j], self.lower[j], self.upper[j])
        self.stale = True

    def renew(self):
        """Refactorise, and compute values and reduced costs; raises ArithmeticError if fill-in is too large."""
        cdef int found = 0
        if self.stale or not self.fresh:
            with nogil:
                found = self.refactor()
        if found == -2:
            raise ArithmeticError(f"the factors of a basis of {self.rows} rows fill in")
        if found < 0:
            raise MemoryError(f"the factors of a basis of {self.rows} rows")
        with nogil:
            self.primal_values()
            self.dual_values()

    def settle(self, bint shift):
        """Put boxed variables at the bound that their reduced cost requires; return how many others have a wrong sign.

        With `shift`, the costs of these others change so that their reduced costs become zero.
        """
        self.renew()
        self.settle_duals(shift)
        self.primal_values()
        return self.dual_misfits

    def resume(self):
        """Make a kept basis dual feasible: boxed variables are flipped or, if that violates many rows, costs shifted.

        Each newly violated row takes a pivot of the dual method, each shifted cost some of the primal method later.
        """
        cdef int j, k, before
        self.renew()
        before = self.violations()
        self.settle_duals(False)
        if self.flip_count:
            self.primal_values()
            if self.violations() - before > MOST_SPOILT * self.flip_count:
                for k in range(self.flip_count):
                    j = self.candidate[k]
                    self.x[j] = self.lower[j] if self.x[j] == self.upper[j] else self.upper[j]
                self.primal_values()
        for j in range(self.total):
            if self.place[j] < 0 and self.misfit(j) != 0.0:
                self.cost[j] -= self.d[j]
                self.d[j] = 0.0

    def put_back(self, const double[::1] cost):
        """Restore the true costs after the dual method; return whether any cost was shifted: then prices change.

        The factors must be fresh, as they are where :func:`.dual_steps` ends.
        """
        cdef int j
        cdef bint moved = False
        with nogil:
            for j in range(self.total):
                if self.cost[j] != cost[j]:
                    self.cost[j] = cost[j]
                    moved = True
            if moved:
                self.dual_values()
        return moved

    def move_bounds(self, const double[::1] lower, const double[::1] upper):
        """Change bounds; a nonbasic variable stays at the same side of its range, and the factors stay."""
        cdef int j
        cdef bint above
        with nogil:
            for j in range(self.total):
                above = self.x[j] == self.upper[j] and self.lower[j] < self.upper[j]
                self.lower[j], self.upper[j] = lower[j], upper[j]
                if self.place[j] < 0:
                    self.x[j] = resting(lower[j], upper[j], above)

    cdef int violations(self) noexcept nogil:
        """Return the number of basic variables out of their bounds."""
        cdef int i, count = 0
        for i in range(self.rows):
            count += self.squared[i] != 0.0
        return count

    def worst_violation(self):
        """Return the largest violation of a bound."""
        cdef double worst = 0.0
        cdef int j
        for j in range(self.total):
            worst = max(worst, fabs(self.violation(j)))
        return worst

    def misfits(self):
        """Return the number of reduced costs with the wrong sign."""
        cdef int j, count = 0
        for j in range(self.total):
            count += self.place[j] < 0 and self.misfit(j) != 0.0
        return count

    def sharpen(self, double primal_tolerance, double dual_tolerance):
        """Set smaller tolerances: the sizes below which violations and reduced costs count as zero."""
        self.primal_tolerance, self.dual_tolerance = primal_tolerance, dual_tolerance

    def unit_weights(self):
        """Reset all pricing weights to one."""
        cdef int k
        for k in range(self.total):
            self.weight[k] = 1.0
        for k in range(self.rows):
            self.edge[k] = 1.0

    def point(self, const double[::1] column, const double[::1] lower, const double[::1] upper):
        """Return the columns' values at the basis times their scales, within these bounds, (n,)."""
        cdef int j
        found = np.empty(self.columns)
        cdef double[::1] x = found
        for j in range(self.columns):
            x[j] = min(max(self.x[j] * column[j], lower[j]), upper[j])
        return found

    def prices(self, const double[::1] row, double unit):
        """Return the prices of the basis times the scales of their rows and this unit, (m,)."""
        cdef int i
        found = np.empty(self.rows)
        cdef double[::1] y = found
        for i in range(self.rows):
            y[i] = (self.cost[self.columns + i] - self.d[self.columns + i]) * row[i] * unit
        return found

    # Quantities of a basis ----------------------------------------------------------------------------------------

    cdef int refactor(self) noexcept nogil:
        """Refactorise; return -1 if memory is short, -2 if fill-in is too large.

        Variables that leave the basis because their columns are dependent go to a bound.
        """
        cdef int i, j, found
        for i in range(self.rows):
            if self.head[i] >= 0:
                self.weight[self.head[i]] = self.edge[i]
        found = self.factor.factorise(self.start, self.index, self.value, self.columns, self.head)
        if found < 0:
            return found
        if found:
            for j in range(self.total):
                if self.place[j] >= 0:
                    self.place[j] = -2
        for i in range(self.rows):
            self.place[self.head[i]] = i
            self.edge[i] = self.weight[self.head[i]]
        if found:
            for j in range(self.total):
                if self.place[j] == -2:
                    self.place[j] = -1
                    self.x[j] = nearest(self.x[j], self.lower[j], self.upper[j])
        self.fresh, self.stale = True, False
        return 0

    cdef void primal_values(self) noexcept nogil:
        """Compute the values of the basic variables from those of the nonbasic ones."""
        cdef int i, j
        memset(self.moved, 0, self.rows * sizeof(double))
        for j in range(self.total):
            if self.place[j] < 0 and self.x[j] != 0.0:
                self.add(j, -self.x[j], self.moved)
        self.factor.ftran(self.moved)
        for i in range(self.rows):
            self.x[self.head[i]] = self.moved[i]
            self.measure(i)

    cdef void dual_values(self) noexcept nogil:
        """Compute the reduced costs of all variables."""
        cdef int i, j, p
        cdef double total
        cdef double *y = self.moved
        for i in range(self.rows):
            y[i] = self.cost[self.head[i]]
        self.factor.btran(y)
        for j in range(self.columns):
            total = self.cost[j]
            for p in range(self.start[j], self.start[j + 1]):
                total -= self.value[p] * y[self.index[p]]
            self.d[j] = total
        for i in range(self.rows):
            self.d[self.columns + i] = self.cost[self.columns + i] - y[i]
        for i in range(self.rows):
            if self.head[i] < self.columns:
                self.d[self.head[i]] = 0.0
        self.factor.work += self.start[self.columns]

    cdef inline double violation(self, int j) noexcept nogil:
        """Return how far a variable is outside its bounds: negative below the lower, positive above the upper."""
        if self.x[j] < self.lower[j] - self.primal_tolerance:
            return self.x[j] - self.lower[j]
        if self.x[j] > self.upper[j] + self.primal_tolerance:
            return self.x[j] - self.upper[j]
        return 0.0

    cdef inline void measure(self, int i) noexcept nogil:
        """Store the squared violation of a row's basic variable, for the pricing; `violated` lists such rows."""
        cdef double violation = self.violation(self.head[i])
        self.squared[i] = violation * violation
        if violation != 0.0 and not self.is_listed[i]:
            self.violated[self.violated_count] = i
            self.violated_count += 1
            self.is_listed[i] = True

    cdef inline double misfit(self, int j) noexcept nogil:
        """Return a nonbasic variable's reduced cost if it has the wrong sign for its bound, else zero."""
        cdef double d = self.d[j]
        if self.lower[j] == self.upper[j] or fabs(d) <= self.dual_tolerance:
            return 0.0
        if d < 0.0:
            return 0.0 if self.x[j] == self.upper[j] else d
        return 0.0 if self.x[j] == self.lower[j] else d

    cdef void settle_duals(self, bint shift) noexcept nogil:
        """Put boxed variables at the bound that their reduced cost requires; count the others, or shift their costs.

        `candidate` lists the `flip_count` boxed variables that moved.
        """
        cdef int j
        cdef double d
        self.dual_misfits = self.flip_count = 0
        for j in range(self.total):
            if self.place[j] >= 0:
                continue
            d = self.misfit(j)
            if d == 0.0:
                continue
            if isfinite(self.lower[j]) and isfinite(self.upper[j]):
                self.x[j] = self.upper[j] if d < 0.0 else self.lower[j]
                self.candidate[self.flip_count] = j
                self.flip_count += 1
            elif shift:
                self.cost[j] -= d
                self.d[j] = 0.0
                self.dual_misfits += 1
            else:
                self.dual_misfits += 1

    cdef inline void add(self, int j, double factor, double *into) noexcept nogil:
        """Add `factor` times a column to a vector."""
        cdef int p
        if j >= self.columns:
            into[j - self.columns] += factor
            return
        for p in range(self.start[j], self.start[j + 1]):
            into[self.index[p]] += factor * self.value[p]

    cdef void load(self, int j) noexcept nogil:
        """Write B^-1 a_j to `alpha`; `spots` lists the rows in which it is not zero."""
        cdef int k
        for k in range(self.spot_count):
            self.alpha[self.spots[k]] = 0.0
        self.add(j, 1.0, self.alpha)
        self.factor.ftran(self.alpha)
        self.spot_count = nonzeros(self.alpha, self.rows, self.spots)

    cdef void price_row(self, int p) noexcept nogil:
        """Compute rho = B^-T e_p, without its tiny entries, and its squared `norm`."""
        cdef int i, k
        for k in range(self.rho_count):
            self.rho[self.rho_spots[k]] = 0.0
        self.rho[p] = 1.0
        self.factor.btran(self.rho)
        self.norm, self.rho_count = 0.0, nonzeros(self.rho, self.rows, self.rho_spots)
        for k in range(self.rho_count):
            i = self.rho_spots[k]
            if fabs(self.rho[i]) <= TINY:
                self.rho[i] = 0.0
            else:
                self.norm += self.rho[i] * self.rho[i]

    cdef void pivot_row(self) noexcept nogil:
        """Compute the entries rho'a_j of nonbasic variables, in `touched`."""
        cdef int i, j, q, k, count = 0
        cdef double factor, entries = 0.0
        for k in range(self.touched_count):
            self.row[self.touched[k]] = 0.0
        for k in range(self.rho_count):
            i = self.rho_spots[k]
            entries += self.row_start[i + 1] - self.row_start[i]
        if entries > DENSE * self.total:
            self.dense_row(entries)
            return
        for k in range(self.rho_count):
            i = self.rho_spots[k]
            factor = self.rho[i]
            if factor == 0.0:
                continue
            j = self.columns + i
            if self.place[j] < 0:
                self.row[j] = factor
                self.touched[count] = j
                count += 1
            for q in range(self.row_start[i], self.row_start[i + 1]):
                j = self.row_index[q]
                if self.place[j] >= 0:
                    continue
                if self.row[j] == 0.0:
                    self.touched[count] = j
                    count += 1
                self.row[j] += factor * self.row_value[q]
                if self.row[j] == 0.0:
                    self.row[j] = LISTED
            self.factor.work += self.row_start[i + 1] - self.row_start[i]
        self.touched_count = count

    cdef void dense_row(self, double entries) noexcept nogil:
        """Compute the entries of :meth:`pivot_row` where most variables have one: of basic ones too, then wiped out."""
        cdef int i, j, q, k, count = 0
        cdef double factor
        for k in range(self.rho_count):
            i = self.rho_spots[k]
            factor = self.rho[i]
            self.row[self.columns + i] = factor
            for q in range(self.row_start[i], self.row_start[i + 1]):
                self.row[self.row_index[q]] += factor * self.row_value[q]
        for j in range(self.total):
            if self.place[j] >= 0:
                self.row[j] = 0.0
            elif self.row[j] != 0.0:
                self.touched[count] = j
                count += 1
        self.touched_count = count
        self.factor.work += entries

    cdef int exchange(self, int p, int q) noexcept nogil:
        """Replace the variable at row p by q, whose tableau column is `alpha`; return -1 if memory is short."""
        cdef int out = self.head[p]
        self.place[out] = -1
        self.head[p], self.place[q] = q, p
        self.d[q] = 0.0
        self.iterations += 1
        self.fresh = False
        if self.factor.update(self.alpha, self.spots, self.spot_count, p) < 0:
            return -1
        self.stale = self.factor.worn()
        return 0


cdef int nonzeros(const double *x, int size, int *found) noexcept nogil:
    """List the places of a vector that are not zero; return their number. Eight zeros in a row cost one test."""
    cdef const uint64_t *bits = <const uint64_t *>x
    cdef int i = 0, k, count = 0
    while i + 8 <= size:  # ends: i grows
        if bits[i] | bits[i + 1] | bits[i + 2] | bits[i + 3] | bits[i + 4] | bits[i + 5] | bits[i + 6] | bits[i + 7]:
            for k in range(i, i + 8):
                if x[k] != 0.0:
                    found[count] = k
                    count += 1
        i += 8
    for k in range(i, size):
        if x[k] != 0.0:
            found[count] = k
            count += 1
    return count


cdef inline double nearest(double x, double lower, double upper) noexcept nogil:
    """Return the bound nearer to a value; zero if there is none."""
    if not isfinite(lower):
        return upper if isfinite(upper) else 0.0
    if not isfinite(upper):
        return lower
    return lower if x - lower <= upper - x else upper


cdef double resting(double lower, double upper, bint above) noexcept nogil:
    """Return the bound at which a nonbasic variable rests: the upper one if `above` and finite, else the lower one."""
    if above and isfinite(upper):
        return upper
    if isfinite(lower):
        return lower
    return upper if isfinite(upper) else 0.0
