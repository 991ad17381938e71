"""Slots of many requests by their ids, in one compiled loop."""

import numpy as np

from cpython.dict cimport PyDict_Next
from cpython.object cimport Py_EQ, PyObject, PyObject_RichCompareBool

cdef enum:
    AHEAD = 4  # entries of the table that are compared with an id before it is looked up


cdef inline bint is_same(object one, object other):
    """Return whether two ids are surely equal; those of other types than int and str must be one object."""
    if one is other:
        return True
    if type(one) is not type(other) or (type(one) is not int and type(one) is not str):
        return False
    return PyObject_RichCompareBool(one, other, Py_EQ)


def found_slots(dict slot_of, list requests):
    """Return the slot of each request, (n,) int32; raises KeyError or TypeError for an id that the table does not have.

    Ids in the order of the table, as a caller lists them who adds and removes requests in turn, are found without a
    look-up.
    """
    cdef Py_ssize_t i, place = 0, ahead
    cdef PyObject* key = NULL
    cdef PyObject* value = NULL
    cdef int _entry
    cdef bint known
    slots = np.empty(len(requests), dtype=np.int32)
    cdef int[::1] view = slots
    for i in range(len(requests)):
        request, ahead, known = requests[i], place, False
        for _entry in range(AHEAD):
            if not PyDict_Next(slot_of, &ahead, &key, &value):
                break
            if is_same(<object>key, request):
                view[i], place, known = <object>value, ahead, True
                break
        if not known:
            view[i] = slot_of[request]
    return slots
