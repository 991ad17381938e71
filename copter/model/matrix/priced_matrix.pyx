"""Pricing passes over all slabs: reduced costs, their smallest by slab, and the dual value that they prove."""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY, NAN, fabs, isinf, isnan
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memmove, memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from copter.model.matrix.fetch cimport fetch_cost, fetch_head, fetch_near, fetch_pattern
from copter.model.matrix.layout cimport MAX_SEGMENTS, Block, Near, Pattern, cost_of, exception_at, exception_cost_at
from copter.model.matrix.list_of_lists cimport ListOfLists
from copter.model.matrix.price cimport price_block, price_pattern
from copter.model.matrix.screen cimport hold_rest, is_screened, is_settled, near_columns, ratio_of
from copter.model.matrix.template cimport Template

from copter.runtime import threads as _threads

cdef enum:
    OFTEN = 16  # patterns priced between two looks at the clock
    FEW = 16  # slots priced between two looks at the clock
    AHEAD = 2  # patterns that are prefetched before they are priced
    EARLIER = 256  # passes whose prices are kept, because near columns were found at them
    LEAST_COLUMNS = 256  # columns below which a slab is priced as fast as its near columns
    LEAST_OF_MANY = 48  # the same where the costs of all columns do not stay in the processor's memory
    MANY_COLUMNS = 4_000_000
    LENT = 2  # a search for near columns lends this many times the slabs; each slab screened pays one back
    NEAR_WORK = 200  # a slab's near columns take as long as a pass over so many columns
    SETTLED_WORK = 20  # the same of a slab whose best column is known
    RESTED = 32  # a pass without a search pays one slab in this many back

cdef double HALF_ULP = 2.0 ** -53  # largest relative error of one rounded operation in float64


cdef inline double now_s() noexcept nogil:
    """Return the seconds of a monotonic clock."""
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec + 1e-9 * moment.tv_nsec


cdef inline double offset_size(const Block* block) noexcept nogil:
    """Return |offset| of a block's costs, plus |most| if it has one, to which a cost's rounding error is relative."""
    return fabs(block.offset) + (fabs(block.most) if block.most < INFINITY else 0.0)


cdef inline int with_column(int* listed, int count, int column) noexcept nogil:
    """Insert a column into an ascending list, unless it is there; returns the list's new length."""
    cdef int at = count
    while at > 0 and listed[at - 1] > column:  # ends: at falls to 0
        at -= 1
    if at > 0 and listed[at - 1] == column:
        return count
    memmove(listed + at + 1, listed + at, (count - at) * sizeof(int))
    listed[at] = column
    return count + 1


cdef class PricedMatrix(ListOfLists):
    """A list of lists with its pricing passes.

    Attributes
    ----------
    columns_priced, slabs_screened : int
        Work of all passes: columns that were priced, and slabs of which only the near columns were.
    """

    def __cinit__(self):
        self.near, self.near_capacity, self.passes, self.debt = NULL, 0, 0, 0
        self.columns_priced = self.slabs_screened = self.last_work = 0
        self.earlier = np.zeros((EARLIER, 0))
        self.terms = np.zeros((0, 2))

    def __dealloc__(self):
        cdef int i
        for i in range(self.near_capacity):
            free(self.near[i])
        free(self.near)

    cdef int reserve_near(self) except -1:
        """Make room for the near columns of every slot."""
        cdef Near** grown
        if self.near_capacity < self.n_slots:
            grown = <Near**>realloc(self.near, self.capacity * sizeof(Near*))
            if grown == NULL:
                raise MemoryError("no memory for a pricing pass")
            memset(grown + self.near_capacity, 0, (self.capacity - self.near_capacity) * sizeof(Near*))
            self.near, self.near_capacity = grown, self.capacity
        return 0

    cdef double cost_at(self, const Block* block, int column) noexcept nogil:
        cdef int e
        for e in range(block.n_exceptions):
            if exception_at(block, e) == column:
                return exception_cost_at(block, e)
        return cost_of(block, column)

    def price(self, const double[::1] y, const double[::1] threshold, int n_threads, double weight=1.0,
              double seconds=INFINITY, bint screen=False, const double[::1] least=None, const int[::1] best=None):
        """Price each slab that is not resident at the row prices y (n_rows,).

        Parameters
        ----------
        y : ndarray (n_rows,) float64
        threshold : ndarray (n_slots,) float64
            Columns with a reduced cost below their slot's threshold are returned.
        n_threads : int
        weight : float
            Factor on all costs. With 0, y is a ray of the dual: the columns returned are those that contradict
            infeasibility.
        seconds : float
            Wall-clock time after which no further slab is priced.
        screen : bool
            Whether the next passes are likely to be at similar prices: near columns are looked for, and where an
            earlier pass has found some, only these are priced (equation A17). The results are the same, except that a
            smallest reduced cost above zero may be a lower one that is not negative.
        least, best : ndarray (n_slots,) float64 and int32, optional
            For slabs of which columns are known, the least reduced cost of these and its column, else -1. Where an
            earlier pass has shown that all others cost more, a screened pass takes it as the slab's smallest.

        Returns
        -------
        smallest : ndarray (n_slots,) float64
            Smallest reduced cost of each slab; the fixed column's for a fixed slab; inf for resident and empty slots;
            NaN for slabs not priced in time.
        slot, column : ndarray int32
            Best column of each segment below its slot's threshold, by slot.
        reduced_cost : ndarray float64
            Of these columns.
        """
        cdef int i, j, k, n = self.n_slots, n_patterns = 0, threads = _threads.safe_threads(n_threads)
        cdef Template template
        cdef Pattern** patterns
        smallest, found = np.empty(n), np.empty(n, dtype=np.int32)
        cdef double[::1] smallest_view = smallest
        cdef int[::1] found_view = found
        if n == 0:
            return smallest, found, found, smallest
        if len(y) < self.n_rows or len(threshold) < n:
            raise ValueError(f"{len(y)} prices for {self.n_rows} rows, {len(threshold)} thresholds for {n} slots")
        cdef const double* prices = &y[0] if y.shape[0] else NULL
        column, reduced = np.empty((n, MAX_SEGMENTS), dtype=np.int32), np.empty((n, MAX_SEGMENTS))
        cdef int[:, ::1] column_view = column
        cdef double[:, ::1] reduced_view = reduced
        screen = screen and weight == 1.0 and self.n_rows > 0
        cdef double[EARLIER] ratio
        cdef bint searches = screen and self.keeps(y, ratio), knows = screen and least is not None and best is not None
        if knows and (least.shape[0] < n or best.shape[0] < n):
            raise ValueError(f"{len(least)} least reduced costs and {len(best)} columns for {n} slots")
        patterns = <Pattern**>malloc((len(self.templates) + 1) * sizeof(Pattern*))
        if patterns == NULL:
            raise MemoryError("no memory for a pricing pass")
        for template in self.templates:
            if template.pattern.n_users:
                patterns[n_patterns] = &template.pattern
                n_patterns += 1
        if self.terms.shape[0] < n:
            self.terms = np.empty((n + n // 4, 2))
        cdef double end = now_s() + seconds
        cdef bint skipped = False
        cdef Done done
        cdef unsigned char* late = <unsigned char*>calloc(n_patterns // OFTEN + 1, 1)
        if late == NULL:
            free(patterns)
            raise MemoryError("no memory for a pricing pass")
        for i in prange(n_patterns, nogil=True, num_threads=threads, schedule="static", chunksize=OFTEN):
            if i % OFTEN == 0 and seconds < INFINITY and now_s() > end:
                late[i // OFTEN] = 1
            if late[i // OFTEN]:
                continue
            if i + 2 * AHEAD < n_patterns:
                fetch_head(patterns[i + 2 * AHEAD])
                fetch_pattern(patterns[i + AHEAD])
            price_pattern(patterns[i], prices)
        for i in range(n_patterns // OFTEN + 1):
            skipped |= late[i]
        free(late)
        free(patterns)
        if skipped:
            smallest[:] = np.nan
            return smallest, found[:0], found[:0], smallest[:0]
        cdef long long priced = 0, screened = 0, settled = 0, searched = 0, count = 0
        cdef Pass running
        running.weight, running.end, running.timed = weight, end, seconds < INFINITY
        running.screen, running.knows, running.searches = screen, knows, searches
        running.ratio, running.threshold = ratio, &threshold[0]
        running.least, running.best = NULL, NULL
        if knows:
            running.least, running.best = &least[0], &best[0]
        running.smallest, running.found = &smallest_view[0], &found_view[0]
        running.column, running.reduced = &column_view[0, 0], &reduced_view[0, 0]
        for i in prange((n + FEW - 1) // FEW, nogil=True, num_threads=threads, schedule="dynamic", chunksize=1):
            done = self.price_few(&running, i * FEW, min((i + 1) * FEW, n))
            priced += done.priced
            screened += done.screened
            settled += done.settled
            searched += done.searched
        if screen:
            self.last_work = priced + NEAR_WORK * screened + SETTLED_WORK * settled
            self.passes += 1
            self.debt += LENT * searched - screened - settled - (0 if searches else n // RESTED + 1)
            self.debt = max(self.debt, 0)
        self.columns_priced += priced
        self.slabs_screened += screened + settled
        for i in range(n):
            count += found_view[i]
        slots, columns, values = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32), np.empty(count)
        cdef int[::1] slot_of = slots, column_of = columns
        cdef double[::1] value_of = values
        k = 0
        for i in range(n):
            for j in range(found_view[i]):
                slot_of[k], column_of[k], value_of[k] = i, column_view[i, j], reduced_view[i, j]
                k += 1
        return smallest, slots, columns, values

    cdef Done price_few(self, const Pass* running, int begin, int end) noexcept nogil:
        """Price the slots begin .. end - 1, at most :data:`FEW`.

        First those of which the best column is known; the near columns of the others are asked for meanwhile.
        """
        cdef Done done
        cdef int[FEW] rest
        cdef int i, k, count = 0
        done.priced = done.screened = done.settled = done.searched = 0
        if running.timed and now_s() > running.end:
            for i in range(begin, end):
                running.smallest[i], running.found[i] = NAN, 0
            return done
        for i in range(begin, end):
            running.found[i] = 0
            if running.knows and running.best[i] >= 0 and self.is_known(i, running.ratio, running.least[i],
                                                                        running.best[i]):
                running.smallest[i] = running.least[i]
                self.note_term(i, running.least[i])
                done.settled += 1
                continue
            rest[count] = i
            count += 1
            if running.screen:
                fetch_near(self.near[i])
            else:
                fetch_cost(&self.blocks[i])
        for k in range(count):
            i = rest[k]
            if running.screen and self.is_near(
                    i, running.ratio, running.threshold[i], &running.smallest[i], &running.column[i * MAX_SEGMENTS],
                    &running.reduced[i * MAX_SEGMENTS], &running.found[i]):
                self.note_term(i, running.smallest[i])
                done.screened += 1
                continue
            self.price_slot(i, running.weight, running.threshold[i], &running.smallest[i],
                            &running.column[i * MAX_SEGMENTS], &running.reduced[i * MAX_SEGMENTS], &running.found[i])
            self.note_term(i, running.smallest[i])
            done.priced += self.blocks[i].n_columns
            if running.searches and self.find_near(i, running.smallest[i]):
                done.searched += 1
        return done

    def improving(self, const int[::1] slots, const double[::1] y, const double[::1] times):
        """Return (slot, column), int32, of the best columns of slabs at each of several multiples of row prices y.

        They are the best column of each segment, if its reduced cost is negative: each column once, by slot and
        ascending. Resident and fixed slabs have none.

        y, times : ndarray (n_rows,), (k,)
            The multiples are positive: costs over a multiple have at prices y the signs of costs at its prices.
        """
        cdef Py_ssize_t i, k, e, most = max(times.shape[0], 1) * MAX_SEGMENTS
        cdef int[MAX_SEGMENTS] column
        cdef double[MAX_SEGMENTS] reduced
        cdef int found, count, n = 0
        cdef double smallest
        cdef Block* block
        cdef Pattern* priced = NULL
        if y.shape[0] < self.n_rows:
            raise ValueError(f"{y.shape[0]} prices for {self.n_rows} rows")
        counts, columns = np.zeros(slots.shape[0], dtype=np.int32), np.empty((slots.shape[0], most), dtype=np.int32)
        cdef int[::1] count_of = counts
        cdef int[:, ::1] listed = columns
        for i in range(slots.shape[0] if self.n_rows else 0):
            block = self.block_at(slots[i])
            if block.resident or block.fixed >= 0:
                continue
            if block.pattern != priced:
                priced = block.pattern
                price_pattern(priced, &y[0])
            for k in range(times.shape[0]):
                found = 0
                price_block(block, 1.0 / times[k], 0.0, &smallest, column, reduced, &found)
                for e in range(found):
                    count_of[i] = with_column(&listed[i, 0], count_of[i], column[e])
        slot, flat = np.repeat(slots, counts), np.empty(counts.sum(), dtype=np.int32)
        cdef int[::1] view = flat
        for i in range(slots.shape[0]):
            count = count_of[i]
            for e in range(count):
                view[n + e] = listed[i, e]
            n += count
        return slot, flat

    def work_of_pass(self, bint screen):
        """Return the columns that the next pass is likely to price: all, or as many as the last screened pass."""
        return self.last_work if screen and 0 < self.last_work < self.n_columns else self.n_columns

    cdef bint keeps(self, const double[::1] y, double* ratio) except -1:
        """Compare prices with those of earlier passes; returns whether to look for near columns at these prices."""
        cdef int i, m = self.n_rows, now = (self.passes + 1) % EARLIER
        cdef double[:, ::1] earlier
        cdef bint searches = self.debt <= LENT * self.n_slots
        self.reserve_near()
        if self.earlier.shape[1] < m:
            self.earlier = np.zeros((EARLIER, 2 * m))
            self.passes += EARLIER  # the prices of all earlier passes are forgotten
            now = (self.passes + 1) % EARLIER
        earlier = self.earlier
        for i in range(EARLIER):
            ratio[i] = ratio_of(&y[0], &earlier[i, 0], m)
        for i in range(m):
            searches &= y[i] <= 0.0
            earlier[now, i] = y[i]
        return searches

    cdef bint is_near(self, int i, const double* ratio, double threshold, double* smallest, int* column,
                      double* reduced, int* found) noexcept nogil:
        """Price a slab by its near columns, if it has some that suffice."""
        cdef Block* block = &self.blocks[i]
        cdef Near* near = self.near[i]
        if near == NULL or block.fixed >= 0 or near.costs != block.stamp or block.resident or block.n_columns == 0:
            return False
        if near.usage != block.pattern.stamp or near.prices <= self.passes + 1 - EARLIER:
            return False
        if not is_screened(block, near, ratio[near.prices % EARLIER], threshold, smallest, column, reduced, found):
            return False
        hold_rest(block, near, ratio[near.prices % EARLIER], self.passes + 1)
        return True

    cdef bint is_known(self, int i, const double* ratio, double least, int best) noexcept nogil:
        """Return whether the known column `best` is surely the best one of a slab."""
        cdef Block* block = &self.blocks[i]
        if block.prices == 0 or block.prices <= self.passes + 1 - EARLIER:
            return False
        return is_settled(block, ratio[block.prices % EARLIER], least, best)

    cdef bint find_near(self, int i, double smallest) noexcept nogil:
        """Look for the near columns of a slab that has been priced; returns whether it was worth a try."""
        cdef Block* block = &self.blocks[i]
        cdef int least = LEAST_OF_MANY if self.n_columns > MANY_COLUMNS else LEAST_COLUMNS
        if (block.n_columns < least or block.resident or block.fixed >= 0 or block.n_exceptions > 1
                or not block.scale != 0.0 or not block.pattern.grows):
            return False
        self.near[i] = near_columns(block, self.near[i], smallest)
        if self.near[i] != NULL:
            self.near[i].prices = self.passes + 1
        return True

    cdef void price_slot(self, int i, double weight, double threshold, double* smallest, int* column,
                         double* reduced, int* found) noexcept nogil:
        cdef Block* block = &self.blocks[i]
        if block.n_columns == 0 or block.resident:
            smallest[0] = INFINITY
            return
        if block.fixed >= 0:
            smallest[0] = weight * self.cost_at(block, block.fixed) - block.pattern.priced_usage[block.fixed]
            return
        price_block(block, weight, threshold, smallest, column, reduced, found)

    def dual_value(self, const double[::1] smallest):
        """Return (value, size, error, terms) of the smallest reduced costs that the last :meth:`price` has returned.

        Returns
        -------
        value : float
            Least objective over the priced slabs: the sum of limit * min(0, smallest), without the minimum for a fixed
            slab. NaN if a slab was not priced in time.
        size : float
            Sum of the sizes of the terms.
        error : float
            Largest error of the value by the rounding of reduced costs, but for 8 half ulps of the size.
        terms : int
        """
        cdef Py_ssize_t i
        cdef long terms = 0
        cdef double value = 0.0, size = 0.0, error = 0.0
        with nogil:
            for i in range(smallest.shape[0]):
                if isinf(smallest[i]):
                    continue
                if isnan(smallest[i]):  # the slot may be an empty one
                    value = NAN
                    break
                value += self.terms[i, 0]
                size += fabs(self.terms[i, 0])
                error += self.terms[i, 1]
                terms += 1
        return value, size, error, terms

    cdef void note_term(self, int i, double smallest) noexcept nogil:
        """Note a slab's term of the dual value, and its rounding error, while its block is at hand."""
        cdef Block* block = &self.blocks[i]
        if block.n_columns > 0 and not block.resident:
            self.terms[i, 0] = block.limit * (smallest if block.fixed >= 0 or not smallest > 0.0 else 0.0)
            self.terms[i, 1] = block.limit * self.price_error(block)

    cdef double price_error(self, const Block* block) noexcept nogil:
        return 8.0 * HALF_ULP * (block.pattern.priced_size + 2.0 * offset_size(block))

    def price_errors(self):
        """Return the absolute part of a bound on each slab's rounding error in the last pricing, (n_slots,) float64.

        The exact reduced cost d of a column differs from the computed one by at most this plus 8 half ulps of |d|. The
        bound covers the rounding of costs, because |scale * cost| is at most the sum of |d|, the priced usage and the
        offset (or the slab's most and the offset, if the most replaces the cost). Zero for resident and empty slots.
        """
        cdef int i
        cdef Block* block
        errors = np.zeros(self.n_slots)
        cdef double[::1] view = errors
        for i in range(self.n_slots):
            block = &self.blocks[i]
            if block.n_columns and not block.resident:
                view[i] = self.price_error(block)
        return errors

    def offsets(self):
        """Return |offset| of every slot's costs, plus |most| if it has one, (n_slots,) float64."""
        cdef int i
        found = np.zeros(self.n_slots)
        cdef double[::1] view = found
        for i in range(self.n_slots):
            view[i] = offset_size(&self.blocks[i]) if self.blocks[i].n_columns else 0.0
        return found
