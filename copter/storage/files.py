"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from copter.errors import SnapshotError

OURS = b"\x89COPTER"  # first bytes of all files that this project writes
FRONT = 4096  # bytes

PathLike = str | os.PathLike[str]


def write_atomically(path: PathLike, buffers: Iterable[bytes | memoryview]) -> None:
    """Write a file so that at any instant the path leads to the whole old one or the whole new one.

    Temporary file in the same folder, fsync, rename, fsync of the folder. A symbolic link is followed: it stays, and
    the file that it leads to is replaced.

    Raises
    ------
    SnapshotError
        If the file system refuses, or the path is no ordinary file (a pipe, a device, a folder); what was there before
        is still there.
    """
    target = writable_target(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            for buffer in buffers:
                file.write(buffer)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        temporary = None
        sync_folder(target.parent)
    except OSError as error:
        raise SnapshotError(f"{os.fspath(path)} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def writable_target(path: PathLike) -> Path:
    """The ordinary file that a path leads to, through links, whether it is there yet or not.

    Raises
    ------
    SnapshotError
        If something else is there, which a file must not be renamed over.
    """
    try:
        target = Path(os.path.realpath(path))
        if os.path.lexists(target) and not stat.S_ISREG(os.lstat(target).st_mode):
            raise SnapshotError(f"{os.fspath(path)} cannot be written: it is no ordinary file")
    except (OSError, ValueError) as error:
        raise SnapshotError(
            f"{os.fspath(path)} cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from error
    return target


def require_writable(path: PathLike) -> None:
    """SnapshotError unless :func:`write_atomically` can write here: it makes the temporary file, and removes it."""
    target = writable_target(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
        os.unlink(temporary)
    except OSError as error:
        raise SnapshotError(f"{os.fspath(path)} cannot be written: {error.strerror or error}") from error


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_file(path: PathLike) -> bytes:
    """All of a file of copter's, or the first bytes of another, which tell what it is; SnapshotError."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SnapshotError(f"{os.fspath(path)} cannot be read: it is no regular file, and may have no end")
        with Path(path).open("rb") as file:
            front = file.read(FRONT)
            return front + file.read() if front.startswith(OURS) else front
    except OSError as error:
        raise SnapshotError(f"{os.fspath(path)} cannot be read: {error.strerror or error}") from error
