"""One tape for every session in a ``with`` block: policies may use several sessions or create new ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from copter.runtime.errors import SnapshotError
from copter.storage.files import PathLike
from copter.storage.tape.writer import TapeWriter

_OPEN: ContextVar[TapeWriter | None] = ContextVar("copter tape", default=None)


def begun() -> TapeWriter | None:
    """Return the tape on which this thread's sessions record, or None."""
    return _OPEN.get()


@contextmanager
def recorded(path: PathLike) -> Iterator[TapeWriter]:
    """Record every session that solves within a ``with`` block on one tape, each from its first solve in the block.

    Raises
    ------
    SnapshotError
        If there is a file already, or it cannot be written; at the end of the block, if a write failed.
    """
    if _OPEN.get() is not None:
        raise SnapshotError("sessions are recorded already: one tape at a time")
    writer = TapeWriter(path)
    token = _OPEN.set(writer)
    try:
        yield writer
    finally:
        _OPEN.reset(token)
        writer.close()
    if writer.failed is not None:
        raise SnapshotError(writer.failed)
