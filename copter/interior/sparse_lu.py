"""SciPy's sparse LU factorisation, in a thread of its own so that a stop need not wait for it."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.typing import NDArray

from copter.interior.stopping import SLICE_S, SMALL, Stopped

Floats = NDArray[np.float64]
Question = SimpleQueue[Floats | None]
Answer = SimpleQueue[Floats | BaseException]

SERVING: weakref.WeakKeyDictionary[threading.Thread, Question] = weakref.WeakKeyDictionary()
PATIENCE_S = 1.0  # seconds that an abandoned thread has to finish its factorisation


class SparseLU:
    """L U = A, and its solves.

    SciPy gives a factor's memory back only in the thread that allocated it, so a large factor is made, used and let go
    in one thread.

    Parameters
    ----------
    matrix : csc_matrix
    must_stop : callable, optional

    Raises
    ------
    RuntimeError
        If the matrix is singular to working precision.
    Stopped
        If `must_stop` says so; the factorisation then ends later, in its thread.
    """

    def __init__(self, matrix: sp.csc_matrix, must_stop: Callable[[], bool] | None = None) -> None:
        self._must_stop = must_stop
        self._own = spl.splu(matrix) if must_stop is None or matrix.nnz < SMALL else None
        if self._own is None:
            self._ask: Question = SimpleQueue()
            self._told: Answer = SimpleQueue()
            queues = (self._ask, self._told)
            thread = threading.Thread(target=serve, args=(matrix, *queues), daemon=True, name="copter-lu")
            SERVING[thread] = self._ask
            thread.start()
            weakref.finalize(self, self._ask.put, None)
            self._answer()

    def solve(self, right: Floats) -> Floats:
        """x with A x = right."""
        if self._own is not None:
            return np.asarray(self._own.solve(right))
        self._ask.put(right)
        return self._answer()

    def _answer(self) -> Floats:
        result: Floats | BaseException | None = None
        while result is None:
            try:
                result = self._told.get(timeout=SLICE_S)
            except Empty:
                if self._must_stop is not None and self._must_stop():
                    raise Stopped from None
        if isinstance(result, BaseException):
            raise result
        return result


@atexit.register
def end_all() -> None:
    """Have every thread let its factor go: an interpreter that ends around one ends with an error of SciPy's."""
    serving = dict(SERVING)
    for asked in serving.values():
        asked.put(None)
    for thread in serving:
        thread.join(PATIENCE_S)


def serve(matrix: sp.csc_matrix, asked: Question, told: Answer) -> None:
    """Factorise, then solve for every right side that comes, until there is none."""
    try:
        factor = spl.splu(matrix)
        told.put(np.zeros(0))
        while (right := asked.get()) is not None:
            told.put(np.asarray(factor.solve(right)))
    except BaseException as error:
        told.put(error)
