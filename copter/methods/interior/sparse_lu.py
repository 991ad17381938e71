"""SciPy's sparse LU factorisation; large ones run in another process, so that a stop takes effect at once."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Callable
from queue import Empty
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.typing import NDArray

from copter.methods.interior.lu_process import DROP, ENDED, FACTORISE, SOLVE, LuProcess
from copter.methods.interior.stopping import SLICE_S, SMALL
from copter.runtime.watch import Stopped

Floats = NDArray[np.float64]

IDLE: list[LuProcess] = []  # at most one idle process, kept because starting Python takes long
ALIVE: weakref.WeakSet[LuProcess] = weakref.WeakSet()


class SparseLU:
    """A factorisation L U = A and its solves.

    Parameters
    ----------
    matrix : csc_matrix
    must_stop : callable, optional

    Raises
    ------
    RuntimeError
        If the matrix is singular to working precision, or there is no memory for its factor.
    Stopped
        If `must_stop` returns True; the process is then ended.
    """

    def __init__(self, matrix: sp.csc_matrix, must_stop: Callable[[], bool] | None = None) -> None:
        self._must_stop = must_stop
        self._process = None if must_stop is None or matrix.nnz < SMALL else lu_process()
        self._own: Any = spl.splu(matrix) if self._process is None else None
        if self._process is not None:
            self._give_back = weakref.finalize(self, give_back, self._process)
            self._give_back.atexit = False  # end_all ends the processes at exit
            self._ask(self._process, FACTORISE, matrix)

    def solve(self, right: Floats) -> Floats:
        """Return x with A x = right."""
        if self._process is not None:
            return self._ask(self._process, SOLVE, right)
        return np.asarray(self._own.solve(right))

    def _ask(self, process: LuProcess, what: str, content: object) -> Floats:
        """Return the process's answer; the process is ended if the solve must stop earlier."""
        if not process.alive:
            raise RuntimeError(ENDED)
        process.ask(what, content)
        try:
            while True:
                try:
                    result = process.answers.get(timeout=SLICE_S)
                    break
                except Empty:
                    if self._must_stop is not None and self._must_stop():
                        raise Stopped from None
        except BaseException:
            self._give_back.detach()
            process.end()
            raise
        if isinstance(result, BaseException):
            raise result
        return result


def lu_process() -> LuProcess | None:
    """Return an idle process; None if none can be started."""
    while IDLE:
        process = IDLE.pop()
        if process.alive:
            return process
        process.end()
    if not sys.executable:
        return None
    try:
        process = LuProcess()
    except OSError:
        return None
    ALIVE.add(process)
    return process


def give_back(process: LuProcess) -> None:
    """Keep a process for the next factorisation, without its factor; end it if one is kept already."""
    if IDLE or not process.alive:
        process.end()
        return
    process.ask(DROP)
    IDLE.append(process)


def end_all() -> None:
    """End every process."""
    IDLE.clear()
    for process in list(ALIVE):
        process.end()


atexit.register(end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=IDLE.clear)  # the processes belong to the parent
    os.register_at_fork(after_in_child=ALIVE.clear)
