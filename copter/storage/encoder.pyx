"""Writer of plain values as bytes: a tag of one byte and the content, little-endian; `encoding.py` lists the values.

Compiled, because a round of a tape or a batch of a journal has tens of thousands of small values.
"""

import numpy as np

cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

cnp.import_array()

DEEPEST = 64  # most levels of nested tuples
ARRAYS = {b"d": "<f8", b"f": "<f4", b"i": "<i4", b"q": "<i8", b"B": "|u1", b"?": "|b1"}
CODES = {np.dtype(kind).newbyteorder("="): code for code, kind in ARRAYS.items()}

cdef int DEEP = DEEPEST
cdef Py_ssize_t SMALL = 4096  # bytes of an array; larger ones are pieces of their own
cdef object ARRAY = np.ndarray, INTEGER = np.integer, FLOATING = np.floating, BOOL = np.bool_


cdef class Encoder:
    """Writes one value after the other.

    Parameters
    ----------
    copies : bool
        Whether the contents of large arrays are copied; else their memory is handed over as it is.
    instead : callable, optional
        Returns another value for one of a type that cannot be written, or raises.

    Attributes
    ----------
    wrong : Exception or None
        Why the last operation that could not be written could not.
    """

    cdef char* data
    cdef Py_ssize_t used, room
    cdef list done
    cdef bint copies
    cdef object instead
    cdef readonly object wrong

    def __cinit__(self, bint copies, instead):
        self.done, self.copies, self.instead = [], copies, instead

    def __dealloc__(self):
        free(self.data)

    def pieces(self, value):
        """Return a value's bytes, in pieces; raises what `instead` raises for one that cannot be written."""
        self.used, self.done = 0, []
        self.write(value, 0)
        self.flush()
        return self.done

    def whole(self, value):
        """Return a value's bytes in one piece."""
        self.used, self.done = 0, []
        self.write(value, 0)
        if not self.done:
            return PyBytes_FromStringAndSize(self.data, self.used)
        self.flush()
        return b"".join(self.done)

    def operation(self, str name, tuple arguments):
        """Return a named operation's bytes; empty, with the error in `wrong`, if it cannot be written."""
        try:
            return self.whole((name, arguments))
        except Exception as error:
            self.wrong = error
            return b""

    cdef int flush(self) except -1:
        if self.used:
            self.done.append(PyBytes_FromStringAndSize(self.data, self.used))
            self.used = 0
        return 0

    cdef int raw(self, const void* content, Py_ssize_t length) except -1:
        cdef Py_ssize_t room
        cdef char* data
        if self.used + length > self.room:
            room = 2 * (self.used + length) + 256
            data = <char*> realloc(self.data, room)
            if data == NULL:
                raise MemoryError
            self.data, self.room = data, room
        memcpy(self.data + self.used, content, length)
        self.used += length
        return 0

    cdef int tagged(self, char tag, unsigned long long count) except -1:
        cdef unsigned char front[9]
        cdef int k
        front[0] = <unsigned char> tag
        for k in range(8):
            front[1 + k] = <unsigned char> (count >> (8 * k) & 255)
        return self.raw(front, 9)

    cdef int write(self, value, int depth) except -1:
        cdef double number
        cdef const char* text
        cdef Py_ssize_t length
        cdef char tag
        if depth > DEEP:
            raise RecursionError
        kind = type(value)
        if kind is float:
            number, tag = value, 68  # "D"
            self.raw(&tag, 1)
            return self.raw(&number, 8)
        if kind is str:
            try:
                text = PyUnicode_AsUTF8AndSize(value, &length)
            except UnicodeEncodeError:
                return self.counted(83, value.encode("utf-8", "surrogatepass"))
            self.tagged(83, length)
            return self.raw(text, length)
        if kind is int:
            return self.integer(value)
        if value is None or kind is bool:
            tag = 78 if value is None else 84 if value else 70
            return self.raw(&tag, 1)
        if kind is tuple or kind is list:
            self.tagged(40 if kind is tuple else 91, len(value))
            for item in value:
                self.write(item, depth + 1)
            return 0
        if kind is ARRAY and code_of(value):
            return self.array(value)
        if kind is dict:
            self.tagged(123, len(value))
            for key, item in value.items():
                self.write(key, depth + 1)
                self.write(item, depth + 1)
            return 0
        if kind is bytes:
            return self.counted(89, value)
        return self.write(self.other(value), depth)

    cdef object other(self, value):
        """A value of a plain type that is equal to one of another type."""
        if isinstance(value, BOOL):
            return bool(value)
        if isinstance(value, INTEGER):
            return int(value)
        if isinstance(value, FLOATING):
            return float(value)
        if isinstance(value, np.str_):
            return str(value)
        return self.instead(value)

    cdef int counted(self, char tag, bytes content) except -1:
        self.tagged(tag, PyBytes_GET_SIZE(content))
        return self.raw(PyBytes_AS_STRING(content), PyBytes_GET_SIZE(content))

    cdef int integer(self, value) except -1:
        cdef int beyond = 0, length = 1
        cdef long long number = PyLong_AsLongLongAndOverflow(value, &beyond)
        cdef unsigned long long size = <unsigned long long> (-(number + 1) if number < 0 else number)
        if beyond or number < 0:  # rare: Python's own way
            return self.counted(73, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
        while length < 8 and size >> (8 * length - 1):  # ends: length counts to 8
            length += 1
        self.tagged(73, length)
        return self.raw(&number, length)

    cdef int array(self, cnp.ndarray value) except -1:
        cdef unsigned char front[3]
        cdef long long length
        cdef int k
        front[0], front[1], front[2] = 65, code_of(value), <unsigned char> cnp.PyArray_NDIM(value)
        self.raw(front, 3)
        for k in range(cnp.PyArray_NDIM(value)):
            length = cnp.PyArray_DIM(value, k)
            self.raw(&length, 8)
        if not cnp.PyArray_IS_C_CONTIGUOUS(value):
            value = np.ascontiguousarray(value)
        length = cnp.PyArray_NBYTES(value)
        if length <= SMALL:
            return self.raw(cnp.PyArray_DATA(value), length)
        self.flush()
        if self.copies:
            self.done.append(PyBytes_FromStringAndSize(<char*> cnp.PyArray_DATA(value), length))
        else:
            self.done.append(memoryview(value).cast("B"))
        return 0


cdef char code_of(cnp.ndarray array) noexcept:
    """The letter of an array's type; 0 for a type that cannot be written."""
    cdef char kind = array.descr.kind
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(array)
    if not cnp.PyArray_ISNOTSWAPPED(array):
        return 0
    if kind == 102:  # f
        return 100 if size == 8 else 102 if size == 4 else 0
    if kind == 105:  # i
        return 113 if size == 8 else 105 if size == 4 else 0
    return 66 if kind == 117 and size == 1 else 63 if kind == 98 else 0
