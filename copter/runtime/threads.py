"""Number of threads that parallel loops and BLAS may use."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from scipy.linalg import cython_blas

_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def safe_threads(requested: int) -> int:
    """Return the number of threads that a parallel loop may request from OpenMP.

    OpenMP's threads do not survive a fork, and GNU's runtime would wait for them for ever in the child process, so a
    child gets 1: a loop of one thread does not use the pool. Results do not depend on the number of threads.
    """
    return 1 if _forked else requested


@cache
def _blas_threads() -> tuple[Any, Any] | None:
    """Return the functions of SciPy's OpenBLAS that set and get its number of threads; None for another BLAS."""
    library = ctypes.CDLL(cython_blas.__file__)
    for prefix in ("scipy_", ""):
        say, tell = (getattr(library, f"{prefix}openblas_{verb}_num_threads", None) for verb in ("get", "set"))
        if say is not None and tell is not None:
            return say, tell
    return None


@contextmanager
def one_blas_thread(wanted: bool = True) -> Iterator[None]:
    """Let BLAS use one thread during a ``with`` block, if `wanted`: in many small calls threads mostly wait for each
    other.
    """
    known = _blas_threads() if wanted else None
    before = known[0]() if known is not None else 1
    if known is None or before <= 1:
        yield
        return
    known[1](1)
    try:
        yield
    finally:
        known[1](before)
