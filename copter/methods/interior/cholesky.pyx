"""Multifrontal Cholesky factorisation of A diag(theta) A' + delta I, for one pattern and many theta (equation I5).

The elimination tree, the supernodes and the rows of each front depend on the pattern alone and are computed once. A
factorisation then visits the supernodes in postorder: it adds the children's updates to a dense front, eliminates the
front's own columns by BLAS, and passes the Schur complement to the parent.
"""

import numpy as np

from libc.math cimport sqrt
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove, memset
from scipy.linalg.cython_blas cimport dgemm, dgemv, dsyrk, dtrsm, dtrsv

cdef int BLOCK = 64  # columns of a front that are eliminated together
cdef int SMALL = 1024  # fronts with fewer entries use plain loops, which are faster there than BLAS calls
cdef double CHECK_FLOPS = 1e8  # floating-point operations between two looks at the clock
# A pivot that is too small becomes this many times the least one: the diagonal entry before elimination.
cdef double SKIP = 1e14


def elimination_tree(const int[::1] start, const int[::1] index, int[::1] parent):
    """Write the elimination tree of a symmetric pattern (both triangles, compressed columns); a root's parent is -1."""
    cdef Py_ssize_t n = parent.shape[0], j, p
    cdef int i, above
    ancestor_array = np.full(n, -1, dtype=np.int32)
    cdef int[::1] ancestor = ancestor_array
    with nogil:
        for j in range(n):
            parent[j] = -1
            for p in range(start[j], start[j + 1]):
                i = index[p]
                while i != -1 and i < j:  # ends: an ancestor has a larger number
                    above = ancestor[i]
                    ancestor[i] = <int>j
                    if above == -1:
                        parent[i] = <int>j
                    i = above


def postorder(const int[::1] parent, int[::1] order):
    """Write the nodes of a forest in postorder: every child before its parent."""
    cdef Py_ssize_t n = parent.shape[0], j, k = 0
    cdef int node, top
    head_array, next_array = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    stack_array = np.empty(n, dtype=np.int32)
    cdef int[::1] head = head_array, after = next_array, stack = stack_array
    with nogil:
        for j in range(n - 1, -1, -1):
            if parent[j] != -1:
                after[j] = head[parent[j]]
                head[parent[j]] = <int>j
        for j in range(n):
            if parent[j] != -1:
                continue
            top = 0
            stack[0] = <int>j
            while top >= 0:  # ends: every node is pushed once
                node = head[stack[top]]
                if node == -1:
                    order[k] = stack[top]
                    k += 1
                    top -= 1
                else:
                    head[stack[top]] = after[node]
                    top += 1
                    stack[top] = node


def column_counts(const int[::1] start, const int[::1] index, const int[::1] parent, int[::1] count):
    """Write the number of nonzeros of each column of the factor, the diagonal included."""
    cdef Py_ssize_t n = parent.shape[0], i, p
    cdef int k
    mark_array = np.full(n, -1, dtype=np.int32)
    cdef int[::1] mark = mark_array
    with nogil:
        for i in range(n):
            count[i] = 1
        for i in range(n):
            mark[i] = <int>i
            for p in range(start[i], start[i + 1]):
                k = index[p]
                while k < i and mark[k] != i:  # ends: a parent has a larger number
                    count[k] += 1
                    mark[k] = <int>i
                    k = parent[k]


def supernodes(const int[::1] parent, const int[::1] count, int[::1] first):
    """Write the first column of each supernode and return the number of supernodes.

    Neighbours in postorder are merged if the front gains no row, or so few explicit zeros that one larger dense block
    is cheaper than two small ones.
    """
    cdef Py_ssize_t n = parent.shape[0], j
    cdef int groups = 0
    cdef double own, upper, both, zeros
    cdef int columns, above
    width_array, zero_array = np.empty(n + 1, dtype=np.int32), np.zeros(n + 1)
    front_array = np.empty(n + 1, dtype=np.int32)
    cdef int[::1] width = width_array, front = front_array
    cdef double[::1] zero = zero_array
    with nogil:
        for j in range(n):
            first[groups] = <int>j
            width[groups] = 1
            front[groups] = count[j]
            zero[groups] = 0.0
            groups += 1
            while groups > 1 and parent[first[groups - 1] - 1] == first[groups - 1]:  # ends: groups fall to one
                # The last column of the group before is a child of this group's first.
                columns, above = width[groups - 2], width[groups - 1]
                own = entries(columns, front[groups - 2])
                upper = entries(above, front[groups - 1])
                both = entries(columns + above, columns + front[groups - 1])
                zeros = both - own - upper + zero[groups - 2] + zero[groups - 1]
                if not worth_joining(columns + above, zeros / both):
                    break
                width[groups - 2] = columns + above
                front[groups - 2] = columns + front[groups - 1]
                zero[groups - 2] = zeros
                groups -= 1
        first[groups] = <int>n
    return groups


cdef inline double entries(double columns, double rows) noexcept nogil:
    """Return the number of entries in the lower trapezium of a front's own columns."""
    return columns * rows - columns * (columns - 1) / 2


cdef inline bint worth_joining(int columns, double share_of_zeros) noexcept nogil:
    return (share_of_zeros <= 0.0 or columns <= 4 or (columns <= 16 and share_of_zeros < 0.6)
            or (columns <= 48 and share_of_zeros < 0.15) or share_of_zeros < 0.05)


def front_rows(const int[::1] start, const int[::1] index, const int[::1] first, int groups):
    """Return (start, rows, parent): the rows below each supernode's own columns, and its parent supernode."""
    cdef Py_ssize_t n = first[groups], total = 0, capacity = 4 * n + 64, p, q, begin
    cdef int s, j, i, child
    mark_array, group_array = np.full(n, -1, dtype=np.int32), np.empty(n, dtype=np.int32)
    head_array, next_array = np.full(groups, -1, dtype=np.int32), np.full(groups, -1, dtype=np.int32)
    parent_array, begin_array = np.full(groups, -1, dtype=np.int32), np.zeros(groups + 1, dtype=np.int64)
    row_array = np.empty(capacity, dtype=np.int32)
    cdef int[::1] mark = mark_array, group_of = group_array, head = head_array, after = next_array
    cdef int[::1] parent = parent_array, row = row_array
    cdef long long[::1] begins = begin_array
    for s in range(groups):
        for j in range(first[s], first[s + 1]):
            group_of[j] = s
    for s in range(groups):
        begin = total
        if capacity < total + n:
            capacity = 2 * capacity + n
            row_array = np.resize(row_array, capacity)
            row = row_array
        with nogil:
            for j in range(first[s], first[s + 1]):
                for p in range(start[j], start[j + 1]):
                    i = index[p]
                    if i >= first[s + 1] and mark[i] != s:
                        mark[i] = s
                        row[total] = i
                        total += 1
            child = head[s]
            while child != -1:  # ends: children of one node, each once
                for q in range(begins[child], begins[child + 1]):
                    i = row[q]
                    if i >= first[s + 1] and mark[i] != s:
                        mark[i] = s
                        row[total] = i
                        total += 1
                child = after[child]
        begins[s + 1] = total
        if total > begin:
            row_array[begin:total].sort()
            parent[s] = group_of[row[begin]]
            after[s] = head[parent[s]]
            head[parent[s]] = s
    return begin_array, row_array[:total].copy(), parent_array


cdef class NormalMatrix:
    """The lower triangle of A diag(theta) A', in a fixed pattern by columns.

    Parameters
    ----------
    rows, columns : (start, index, value)
        A by rows and by columns, each in ascending order.
    start, index : ndarray
        The pattern.
    """

    cdef const int[::1] row_start, row_index, column_start, column_index, start, index
    cdef const double[::1] row_value, column_value

    def __init__(self, tuple rows, tuple columns, start, index):
        self.row_start, self.row_index, self.row_value = rows
        self.column_start, self.column_index, self.column_value = columns
        self.start, self.index = start, index

    def write(self, const double[::1] theta, double[::1] value, double[::1] work, Py_ssize_t begin, Py_ssize_t end):
        """Write columns `begin` to `end` - 1 to `value`.

        `work` has one zero for each row of A, and is all zero again on return.
        """
        cdef const int[::1] column_start = self.column_start, column_index = self.column_index
        cdef const double[::1] column_value = self.column_value
        cdef Py_ssize_t i, p, q
        cdef int k, r
        cdef double scaled
        with nogil:
            for i in range(begin, end):
                for p in range(self.row_start[i], self.row_start[i + 1]):
                    k = self.row_index[p]
                    scaled = self.row_value[p] * theta[k]
                    for q in range(column_start[k + 1] - 1, column_start[k] - 1, -1):
                        r = column_index[q]
                        if r < i:
                            break
                        work[r] += scaled * column_value[q]
                for p in range(self.start[i], self.start[i + 1]):
                    value[p] = work[self.index[p]]
                    work[self.index[p]] = 0.0


cdef double *packed(double *square, int size) noexcept nogil:
    """Pack the lower triangle of a square by columns in the square's own memory; release the rest of the memory."""
    cdef size_t j, to = 0, count = <size_t>size
    cdef double *smaller
    for j in range(count):
        memmove(square + to, square + j * count + j, (count - j) * sizeof(double))
        to += count - j
    smaller = <double *>realloc(square, to * sizeof(double))
    return square if smaller == NULL else smaller


cdef inline void forward(const double *front, double *own, double *b, const int *row, int width,
                         int below) noexcept nogil:
    """Forward substitution with a small front's own columns; subtracts their contribution from the rows below."""
    cdef Py_ssize_t i, j, height = width + below
    cdef const double *column
    cdef double value
    for j in range(width):
        column = front + j * height
        value = own[j] / column[j]
        own[j] = value
        for i in range(j + 1, width):
            own[i] -= column[i] * value
        column += width
        for i in range(below):
            b[row[i]] -= column[i] * value


cdef inline void backward(const double *front, double *own, const double *b, const int *row, int width,
                          int below) noexcept nogil:
    """Back substitution with a small front's own columns; reads the solution of the rows below."""
    cdef Py_ssize_t i, j, height = width + below
    cdef const double *column
    cdef double value
    for j in range(width - 1, -1, -1):
        column = front + j * height
        value = own[j]
        for i in range(j + 1, width):
            value -= column[i] * own[i]
        for i in range(below):
            value -= column[width + i] * b[row[i]]
        own[j] = value / column[j]


cdef class Factor:
    """The Cholesky factor of matrices of one pattern; :meth:`factorise` computes its values.

    Parameters
    ----------
    start, index : ndarray of int32
        Lower triangle of the matrix in compressed columns, sorted, diagonal first.
    first : ndarray of int32 (groups + 1,)
        First column of every supernode.
    row_start : ndarray of int64 (groups + 1,), row : ndarray of int32, parent : ndarray of int32 (groups,)
        As :func:`front_rows` returns them.
    """

    cdef const int[::1] start, index, first, row, parent
    cdef const long long[::1] row_start
    cdef long long[::1] panel_start
    cdef double[::1] panel
    cdef int[::1] position
    cdef double[::1] carried
    cdef readonly int groups, size, skipped
    cdef readonly long long nonzeros
    cdef readonly double flops
    cdef double since
    cdef object must_stop

    def __init__(self, start, index, first, row_start, row, parent):
        self.start, self.index, self.first, self.parent = start, index, first, parent
        self.row_start, self.row = row_start, row
        self.groups, self.size = len(first) - 1, first[len(first) - 1]
        width = np.diff(np.asarray(first)).astype(np.int64)
        height = width + np.diff(np.asarray(row_start))
        panel_start = np.concatenate(([0], np.cumsum(width * height)))
        self.panel_start = panel_start
        self.panel = np.empty(int((width * height).sum()))
        self.position = np.empty(self.size, dtype=np.int32)
        self.carried = np.empty(int(height.max(initial=1)))
        self.nonzeros = int((width * height - width * (width - 1) // 2).sum())
        high, wide = height.astype(float), width.astype(float)
        self.flops = float((wide * high * high - wide * wide * high + wide**3 / 3.0).sum())

    def factorise(self, const double[::1] value, const double[::1] least_pivot, must_stop=None):
        """Factorise; rows whose pivot is not above `least_pivot` drop out, and `skipped` counts them.

        `must_stop` is called every few hundredths of a second; if it returns True, the factor is left unfinished and
        the call returns False.
        """
        cdef int s, width, height, below, j, child, status = 0
        cdef Py_ssize_t p, i, k
        cdef double *front
        cdef double *update
        cdef double *other
        cdef double **updates = <double **>malloc(max(self.groups, 1) * sizeof(double *))
        head_array, next_array = np.full(self.groups, -1, dtype=np.int32), np.full(self.groups, -1, dtype=np.int32)
        cdef int[::1] head = head_array, after = next_array
        if updates == NULL:
            raise MemoryError("no memory for the updates of a factorisation")
        self.skipped, self.since, self.must_stop = 0, 0.0, must_stop
        with nogil:
            for s in range(self.groups):
                updates[s] = NULL
            for s in range(self.groups):
                width = self.first[s + 1] - self.first[s]
                below = <int>(self.row_start[s + 1] - self.row_start[s])
                height = width + below
                front = &self.panel[self.panel_start[s]]
                memset(front, 0, <size_t>width * height * sizeof(double))
                update = NULL
                if below:
                    update = <double *>malloc(<size_t>below * below * sizeof(double))
                    if update == NULL:
                        status = 1
                        break
                    memset(update, 0, <size_t>below * below * sizeof(double))
                    updates[s] = update
                for j in range(width):
                    self.position[self.first[s] + j] = j
                for i in range(below):
                    self.position[self.row[self.row_start[s] + i]] = <int>(width + i)
                for j in range(width):
                    k = self.first[s] + j
                    for p in range(self.start[k], self.start[k + 1]):
                        front[<size_t>j * height + self.position[self.index[p]]] = value[p]
                child = head[s]
                while child != -1:  # ends: children of one node, each once
                    other = updates[child]
                    self.extend_add(child, front, update, width, height, below, other)
                    free(other)
                    updates[child] = NULL
                    child = after[child]
                if not self.eliminate(s, front, update, width, height, below, least_pivot):
                    status = 2
                    break
                if below:
                    updates[s] = packed(update, below)
                if self.parent[s] != -1:
                    after[s] = head[self.parent[s]]
                    head[self.parent[s]] = s
            for s in range(self.groups):
                free(updates[s])
        free(updates)
        if status == 1:
            raise MemoryError("no memory for a front of the factorisation")
        return status == 0

    cdef void extend_add(self, int child, double *front, double *update, int width, int height, int below,
                         const double *other) noexcept nogil:
        """Add a child's packed update to the front and to the update for the parent."""
        cdef Py_ssize_t begin = self.row_start[child], i, j
        cdef Py_ssize_t count = self.row_start[child + 1] - begin
        cdef int at, to
        cdef double *column
        cdef const double *given = other
        for j in range(count):
            at = self.position[self.row[begin + j]]
            if at < width:
                column = front + <size_t>at * height
                for i in range(j, count):
                    column[self.position[self.row[begin + i]]] += given[i - j]
            else:
                column = update + <size_t>(at - width) * below
                for i in range(j, count):
                    to = self.position[self.row[begin + i]]
                    column[to - width] += given[i - j]
            given += count - j

    cdef bint goes_on(self, double flops) except? False nogil:
        """Count operations and ask the clock now and then; return False if the factorisation must stop."""
        self.since += flops
        if self.since < CHECK_FLOPS or self.must_stop is None:
            return True
        self.since = 0.0
        with gil:
            return not self.must_stop()

    cdef bint eliminate(self, int s, double *front, double *update, int width, int height, int below,
                        const double[::1] least_pivot) except? False nogil:
        """Eliminate a front's own columns and subtract their Schur complement from the update; False if stopped."""
        cdef int k, block, rest, inner
        cdef double one = 1.0, minus = -1.0
        cdef char *right = b"R"
        cdef char *lower = b"L"
        cdef char *transposed = b"T"
        cdef char *plain = b"N"
        cdef double *diagonal
        k = 0
        while k < width:  # ends: k grows by blocks to the width, and the clock is asked
            block = min(BLOCK, width - k)
            diagonal = front + <size_t>k * height + k
            self.eliminate_block(diagonal, block, height, self.first[s] + k, least_pivot)
            rest = height - k - block
            if rest:
                dtrsm(right, lower, transposed, plain, &rest, &block, &one, diagonal, &height, diagonal + block,
                      &height)
            inner = width - k - block
            if inner:
                dsyrk(lower, plain, &inner, &block, &minus, diagonal + block, &height, &one,
                      diagonal + <size_t>block * height + block, &height)
                if below:
                    dgemm(plain, transposed, &below, &inner, &block, &minus, diagonal + block + inner, &height,
                          diagonal + block, &height, &one, diagonal + <size_t>block * height + block + inner, &height)
            k += block
            if not self.goes_on(2.0 * block * rest * (inner + below)):
                return False
        k = 0
        while below and k < width:  # ends: k grows by blocks to the width, and the clock is asked
            block = min(4 * BLOCK, width - k)
            dsyrk(lower, plain, &below, &block, &minus, front + <size_t>k * height + width, &height, &one, update,
                  &below)
            k += block
            if not self.goes_on(<double>block * below * below):
                return False
        return True

    cdef void eliminate_block(self, double *block, int size, int stride, int column,
                              const double[::1] least_pivot) noexcept nogil:
        """Cholesky factorisation of a small diagonal block; a row whose pivot is too small drops out."""
        cdef int i, j, k
        cdef double pivot, factor
        for k in range(size):
            pivot = block[<size_t>k * stride + k]
            if not pivot > least_pivot[column + k]:
                self.skipped += 1
                pivot = SKIP * least_pivot[column + k]
            pivot = sqrt(pivot)
            block[<size_t>k * stride + k] = pivot
            for i in range(k + 1, size):
                block[<size_t>k * stride + i] /= pivot
            for j in range(k + 1, size):
                factor = block[<size_t>k * stride + j]
                for i in range(j, size):
                    block[<size_t>j * stride + i] -= factor * block[<size_t>k * stride + i]

    def solve(self, double[::1] b):
        """Overwrite b with the solution of L L' x = b."""
        cdef int s, width, height, below, step = 1
        cdef Py_ssize_t i
        cdef double one = 1.0, minus = -1.0, zero = 0.0
        cdef char *lower = b"L"
        cdef char *transposed = b"T"
        cdef char *plain = b"N"
        cdef double *front
        cdef double *own
        cdef double *carried = &self.carried[0]
        with nogil:
            for s in range(self.groups):
                width = self.first[s + 1] - self.first[s]
                below = <int>(self.row_start[s + 1] - self.row_start[s])
                height = width + below
                front = &self.panel[self.panel_start[s]]
                own = &b[self.first[s]]
                if width * height <= SMALL:
                    forward(front, own, &b[0], &self.row[self.row_start[s]] if below else NULL, width, below)
                    continue
                dtrsv(lower, plain, plain, &width, front, &height, own, &step)
                if below:
                    dgemv(plain, &below, &width, &one, front + width, &height, own, &step, &zero, carried, &step)
                    for i in range(below):
                        b[self.row[self.row_start[s] + i]] -= carried[i]
            for s in range(self.groups - 1, -1, -1):
                width = self.first[s + 1] - self.first[s]
                below = <int>(self.row_start[s + 1] - self.row_start[s])
                height = width + below
                front = &self.panel[self.panel_start[s]]
                own = &b[self.first[s]]
                if width * height <= SMALL:
                    backward(front, own, &b[0], &self.row[self.row_start[s]] if below else NULL, width, below)
                    continue
                if below:
                    for i in range(below):
                        carried[i] = b[self.row[self.row_start[s] + i]]
                    dgemv(transposed, &below, &width, &minus, front + width, &height, carried, &step, &one, own, &step)
                dtrsv(lower, transposed, plain, &width, front, &height, own, &step)
