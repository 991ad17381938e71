"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from copter.errors import SnapshotError

PathLike = str | os.PathLike[str]


def write_atomically(path: PathLike, buffers: Iterable[bytes | memoryview]) -> None:
    """Write a file so that at any instant the path leads to the whole old one or the whole new one.

    Temporary file in the same folder, fsync, rename, fsync of the folder.

    Raises
    ------
    SnapshotError
        If the file system refuses; what was there before is still there.
    """
    target = Path(path)
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
        raise SnapshotError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


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
    """All of a file; SnapshotError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SnapshotError(f"{os.fspath(path)} cannot be read: {error.strerror or error}") from error
