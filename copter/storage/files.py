"""Atomic file writes and helpers for paths."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from copter.runtime.errors import InvalidDataError, SnapshotError
from copter.storage.disk import DISK, Disk
from copter.storage.disk import PathLike as PathLike

OURS = b"\x89COPTER"  # first bytes of all files that this project writes
FRONT = 4096  # bytes read first to recognise a file
# By name, because compiled code does not look whether a test against a tuple that is written out was interrupted.
PATHS = (str, os.PathLike)
TOGETHER = 1 << 16  # bytes; pieces of a file smaller than this are collected into one write


def write_atomically(path: PathLike, buffers: Iterable[bytes | memoryview]) -> None:
    """Write a file so that at any instant its path holds either the complete old file or the complete new one.

    Temporary file in the same folder, fsync, rename, fsync of the folder. A symbolic link is followed: it stays, and
    the file that it leads to is replaced.

    Raises
    ------
    SnapshotError
        If the file system refuses, or the path is no ordinary file (a pipe, a device, a folder). The old file is then
        unchanged.
    """
    target, disk = writable_target(path), DISK.get()
    temporary = None
    try:
        file, temporary = disk.temporary(target.parent, f".{target.name}.", ".part")
        try:
            write_all(disk, file, buffers)
            disk.sync(file)
        finally:
            disk.close(file)
        disk.replace(temporary, target)
        temporary = None
        disk.sync_folder(target.parent)
    except OSError as error:
        raise SnapshotError(f"{os.fspath(path)} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                disk.remove(temporary)


def require_path(path: object) -> None:
    """Raise InvalidDataError unless a value is a path."""
    if not isinstance(path, PATHS):
        raise InvalidDataError(f"path is {path!r}, must be a path: a str or a pathlib.Path")


def write_all(disk: Disk, file: int, buffers: Iterable[bytes | memoryview]) -> None:
    """Write all buffers at the file's position, joining small ones."""
    pieces: list[bytes | memoryview] = []
    waiting = 0
    for buffer in buffers:
        pieces.append(buffer)
        waiting += len(buffer)
        if waiting >= TOGETHER:
            _write(disk, file, pieces)
            pieces, waiting = [], 0
    _write(disk, file, pieces)


def _write(disk: Disk, file: int, pieces: list[bytes | memoryview]) -> None:
    left = memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces)).cast("B")
    while len(left):
        left = left[disk.write(file, left) :]


def writable_target(path: PathLike) -> Path:
    """Return the ordinary file that a path leads to through links, whether it exists yet or not.

    Raises
    ------
    SnapshotError
        If the path is not an ordinary file and so must not be replaced.
    """
    try:
        target = DISK.get().target(path)
        ordinary = DISK.get().kind(target) in ("file", None)
    except (OSError, ValueError) as error:
        raise SnapshotError(
            f"{os.fspath(path)} cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from error
    if not ordinary:
        raise SnapshotError(f"{os.fspath(path)} cannot be written: it is no ordinary file")
    return target


def require_writable(path: PathLike) -> None:
    """Raise SnapshotError unless :func:`write_atomically` works here; tries it with a temporary file."""
    target, disk = writable_target(path), DISK.get()
    try:
        handle, temporary = disk.temporary(target.parent, f".{target.name}.", ".part")
        disk.close(handle)
        disk.remove(temporary)
    except OSError as error:
        raise SnapshotError(f"{os.fspath(path)} cannot be written: {error.strerror or error}") from error


def make_folders(path: PathLike) -> None:
    """Create a folder and its missing parents; raises OSError."""
    disk = DISK.get()
    if disk.kind(disk.target(path)) == "folder":
        return
    if Path(path).parent != Path(path):
        make_folders(Path(path).parent)
    disk.make_folder(path)


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable, if the system supports this."""
    DISK.get().sync_folder(folder)


def read_file(path: PathLike) -> bytes:
    """Return a file's contents, or only its first bytes if it is not one of copter's; raises SnapshotError."""
    disk = DISK.get()
    try:
        if disk.kind(disk.target(path)) not in ("file", None):
            raise SnapshotError(f"{os.fspath(path)} cannot be read: it is no regular file, and may have no end")
        front = disk.read(path, FRONT)
        return disk.read(path) if front.startswith(OURS) and len(front) == FRONT else front
    except OSError as error:
        raise SnapshotError(f"{os.fspath(path)} cannot be read: {error.strerror or error}") from error
