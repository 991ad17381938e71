"""Python's garbage collector, kept from walking through a large model in the middle of a short deadline."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected(wanted: bool = True) -> Iterator[None]:
    """Put cyclic garbage collection off until the end, if that is wanted and it is on."""
    if not (wanted and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
