"""A thread that writes files and waits for the disk without Python's lock; it reports through pipes.

A Python thread takes the lock again after each system call: the thread that holds it must give it up, and then waits
to get it back. On busy processors each such exchange takes milliseconds. This thread never takes the lock.
"""

import os as _os
from threading import Thread as _Thread

from libc.errno cimport EINTR, EINVAL, EIO, EOPNOTSUPP, errno
from libc.string cimport memcpy

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int file, void* buffer, size_t count)
    ssize_t write(int file, const void* buffer, size_t count)

cdef extern from * nogil:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <unistd.h>
    #ifdef __linux__
    #define copter_sync_data fdatasync
    #define copter_make_room posix_fallocate
    #else
    #define copter_sync_data fsync
    static int copter_make_room(int file, off_t from, off_t by) { return EOPNOTSUPP; }
    #endif
    """
    ctypedef long long off_t
    int copter_sync_data(int file)
    int copter_make_room(int file, off_t start, off_t by)

cdef struct Order:
    int file
    int sync
    const char* data
    size_t length
    off_t room_from
    off_t room_by

cdef struct Outcome:
    int error  # errno of the write or of the wait for the disk
    int room  # 0 if space was reserved or none was requested, otherwise the errno


cdef bint transfer(int file, char* buffer, size_t count, bint out) noexcept nogil:
    """Read or write a whole buffer through a pipe; return whether all bytes passed. Pipes pass so few bytes at once."""
    cdef ssize_t done
    while count > 0:  # ends: count falls, but for calls that a signal cut short
        done = write(file, buffer, count) if out else read(file, buffer, count)
        if done < 0 and errno == EINTR:
            continue
        if done <= 0:
            return False
        buffer += done
        count -= <size_t>done
    return True


cdef int carry_out(const Order* order) noexcept nogil:
    """Write an order's data and wait for the disk; return 0 or an errno."""
    cdef const char* left = order.data
    cdef size_t count = order.length
    cdef ssize_t done
    while count > 0:  # ends: count falls, but for calls that a signal cut short
        done = write(order.file, left, count)
        if done < 0 and errno == EINTR:
            continue
        if done <= 0:
            return errno if done < 0 else EIO
        left += done
        count -= <size_t>done
    while order.sync and copter_sync_data(order.file) != 0:  # ends: once, but for calls that a signal cut short
        if errno != EINTR:
            return errno
    return 0


cdef void carry_out_all(int orders, int outcomes) noexcept nogil:
    """Carry out orders as they come, until the pipe of orders or that of outcomes is closed."""
    cdef Order order
    cdef Outcome outcome
    while transfer(orders, <char*>&order, sizeof(Order), False):  # ends: the pipe closes with its owner
        outcome.room = copter_make_room(order.file, order.room_from, order.room_by) if order.room_by > 0 else 0
        outcome.error = carry_out(&order)
        if not transfer(outcomes, <char*>&outcome, sizeof(Outcome), True):
            return


cdef class DiskThread:
    """A thread that appends to files, one order at a time.

    Attributes
    ----------
    waiting : bool
        Whether the outcome of the last order has not been read yet.
    """

    cdef int orders_in, orders_out, outcomes_in, outcomes_out
    cdef bytes data
    cdef object thread
    cdef readonly bint waiting

    def __cinit__(self):
        self.orders_in = self.orders_out = self.outcomes_in = self.outcomes_out = -1

    def __init__(self):
        self.orders_out, self.orders_in = _os.pipe()
        self.outcomes_out, self.outcomes_in = _os.pipe()
        self.waiting = False
        self.thread = _Thread(target=_carry_out_all, args=(self.orders_out, self.outcomes_in), name="disk", daemon=True)
        self.thread.start()

    def fileno(self):
        """Return a descriptor that is readable once an order is done: for an event loop or a selector."""
        return self.outcomes_out

    def put(self, int file, bytes data, bint sync, long long room_from=0, long long room_by=0):
        """Order the thread to append `data` to a file, and with `sync` to wait until the disk has it.

        Parameters
        ----------
        file : int
            Descriptor; open until the order is done.
        data : bytes
        sync : bool
        room_from, room_by : int
            First reserve `room_by` bytes of the file from offset `room_from` on; 0 bytes for none.
        """
        cdef Order order
        if self.waiting or self.orders_in < 0:
            raise RuntimeError("the thread has ended" if self.orders_in < 0 else "an order is being carried out")
        self.data = data  # kept until the order is done
        order.file, order.sync = file, sync
        order.data, order.length = data, <size_t>len(data)
        order.room_from, order.room_by = room_from, room_by
        self.waiting = True
        _os.write(self.orders_in, (<char*>&order)[:sizeof(Order)])

    def outcome(self):
        """Wait until the order is done; return (errno or 0, whether room was reserved, whether it ever can be).

        The last item is False if the file system cannot reserve space at all.
        """
        cdef Outcome outcome
        cdef bytes told
        if not self.waiting:
            raise RuntimeError("there is no order")
        told = _os.read(self.outcomes_out, sizeof(Outcome))
        if len(told) != sizeof(Outcome):
            raise RuntimeError("the thread has ended")
        memcpy(&outcome, <const char*>told, sizeof(Outcome))
        self.waiting = False
        self.data = None
        return outcome.error, outcome.room == 0, outcome.room not in (EOPNOTSUPP, EINVAL)

    def close(self):
        """End the thread after its present order."""
        if self.orders_in >= 0:
            _os.close(self.orders_in)
            self.orders_in = -1
            self.thread.join()
            for file in (self.orders_out, self.outcomes_in, self.outcomes_out):
                _os.close(file)


def _carry_out_all(int orders, int outcomes):
    with nogil:
        carry_out_all(orders, outcomes)
