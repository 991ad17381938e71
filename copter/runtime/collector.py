"""Control of Python's garbage collector, so that it does not traverse a large model during a short deadline."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected(wanted: bool = True) -> Iterator[None]:
    """Postpone cyclic garbage collection to the end of a ``with`` block, if `wanted` and if it is enabled."""
    if not (wanted and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
