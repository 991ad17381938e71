"""How many threads a parallel loop may use here: one in a forked process, whose copy of the pool is dead."""

from __future__ import annotations

import os

_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def safe_threads(requested: int) -> int:
    """The number of threads that a parallel loop may ask OpenMP for.

    The threads of the OpenMP pool do not survive a fork, and GNU's runtime waits for them without end in the child. A
    loop of one thread does not touch the pool. Results do not depend on the number of threads.
    """
    return 1 if _forked else requested
