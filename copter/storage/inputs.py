"""Files that others wrote: opened without waiting for ever, read with a limit, and once for each command."""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader

from copter.storage.disk import PathLike

WRITER_S = 10.0  # seconds for which a pipe without a writer is waited for
LOOK_S = 0.02  # seconds between two looks at such a pipe
MOST_BYTES = 1 << 30  # most bytes of a file that is read whole
BLOCK = 1 << 20

_KEPT: ContextVar[dict[str, bytes] | None] = ContextVar("kept files", default=None)


def opened(path: PathLike) -> BufferedReader:
    """Open a file for reading, as bytes.

    A pipe's first byte is waited for as long as it has a writer, but a pipe without one only for :data:`WRITER_S`
    seconds. Devices other than a terminal are refused, because they have no end (/dev/zero).

    Raises
    ------
    OSError
        If the file cannot be opened, with the reason.
    """
    name = os.fspath(path)
    kind = os.stat(name).st_mode
    if stat.S_ISFIFO(kind):
        return _opened_pipe(name)
    file = open(name, "rb")  # noqa: SIM115 - the caller closes it
    if stat.S_ISCHR(kind) and not file.isatty():
        file.close()
        raise OSError(0, "it is a device, which has no end; give a file or a pipe", name)
    return file


def _opened_pipe(name: str | bytes) -> BufferedReader:
    """Open a pipe once it has a writer."""
    handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    try:
        until = time.monotonic() + WRITER_S
        while not select.select([handle], [], [], LOOK_S)[0]:
            if time.monotonic() > until and not _has_writer(handle):
                raise OSError(
                    0, f"it is a pipe to which nobody has written for {WRITER_S:g} s; start its writer first", name
                )
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _has_writer(handle: int) -> bool:
    """Whether a pipe without data has a writer: a read would then wait, and is at the pipe's end otherwise."""
    try:
        os.read(handle, 1)
    except BlockingIOError:
        return True
    return False


def contents(path: PathLike, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file, or what :func:`read_once` has kept of it.

    Raises
    ------
    OSError
        As :func:`opened`; also for a file of more than `most` bytes.
    """
    kept, place = _KEPT.get(), os.path.abspath(os.fsdecode(path))
    if kept is not None and place in kept:
        return kept[place]
    pieces, size = [], 0
    with opened(path) as file:
        while block := file.read(BLOCK):
            pieces.append(block)
            size += len(block)
            if size > most:
                raise OSError(0, f"it has more than {most:,} bytes, and may have no end", os.fspath(path))
    found = b"".join(pieces)
    if kept is not None:
        kept[place] = found
    return found


@contextmanager
def read_once() -> Iterator[None]:
    """Keep what :func:`contents` reads until the block ends, so that every part of a command sees the same files."""
    if _KEPT.get() is not None:
        yield
        return
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)
