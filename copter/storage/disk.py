"""All calls to the file system, in one place, so that a simulation can replace them."""

from __future__ import annotations

import os
import stat
import tempfile
from contextvars import ContextVar
from pathlib import Path
from typing import Literal, Protocol

from copter.storage.disk_thread import DiskThread

try:
    import fcntl
except ImportError:  # this system has no locks: two processes that write one file go unnoticed
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]
Kind = Literal["file", "folder", "link", "other"]


class Writer(Protocol):
    """Appends to files and syncs them, usually in another thread; holds one order at a time (:class:`.DiskThread`)."""

    def fileno(self) -> int:
        """Return a file descriptor that becomes readable when an order is done."""

    def put(self, file: int, data: bytes, sync: bool, room_from: int = 0, room_by: int = 0) -> None:
        """Give an order: append the data, sync if asked, and reserve space."""

    def outcome(self) -> tuple[int, bool, bool]:
        """Return (errno or 0, whether space was reserved, whether the file system can reserve space at all)."""

    def close(self) -> None:
        """Stop after the current order."""


class Disk(Protocol):
    """File system calls of journals, snapshots and the service's folders; all raise OSError."""

    makes_room: bool
    """Whether space can be reserved beyond the end of the data."""

    def open(self, path: PathLike, flags: int, mode: int = 0o666) -> int:
        """Open a file and return its descriptor."""

    def temporary(self, folder: PathLike, prefix: str, suffix: str) -> tuple[int, str]:
        """Create a file with a unique name; returns (descriptor, path)."""

    def write(self, file: int, data: bytes | memoryview) -> int:
        """Write at the file's current position; returns the number of bytes written."""

    def sync(self, file: int) -> None:
        """Wait until the file's data and metadata are on the disk."""

    def sync_data(self, file: int) -> None:
        """Wait until the file's data, and the metadata needed to read it, are on the disk."""

    def truncate(self, file: int, length: int) -> None:
        """Cut the file to a length."""

    def seek(self, file: int, place: int) -> None:
        """Move to a position in the file."""

    def size(self, file: int) -> int:
        """Return the file's size in bytes."""

    def make_room(self, file: int, start: int, by: int) -> None:
        """Extend the file by zeros."""

    def lock(self, file: int) -> None:
        """Lock the file against other descriptors until it is closed; raises BlockingIOError if another one holds the
        lock.
        """

    def close(self, file: int) -> None:
        """Close the file."""

    def read(self, path: PathLike, most: int = -1) -> bytes:
        """Return the first bytes of a file, or the whole file."""

    def kind(self, path: PathLike) -> Kind | None:
        """Return the kind of the file at a path, without following a link; None if there is no file."""

    def target(self, path: PathLike) -> Path:
        """Return the path with all links resolved."""

    def names(self, folder: PathLike) -> list[str]:
        """Return the sorted names in a folder."""

    def make_folder(self, path: PathLike) -> None:
        """Create a folder."""

    def replace(self, path: PathLike, to: PathLike) -> None:
        """Rename a file; an existing file of the new name is replaced."""

    def remove(self, path: PathLike) -> None:
        """Remove a file."""

    def remove_folder(self, path: PathLike) -> None:
        """Remove an empty folder."""

    def sync_folder(self, path: PathLike) -> None:
        """Wait until a folder's entries are on the disk, if the system supports this."""

    def writer(self) -> Writer:
        """Return a writer that appends in its own thread."""


class SystemDisk:
    """The operating system's file system."""

    makes_room = hasattr(os, "posix_fallocate")
    writer = DiskThread

    @staticmethod
    def open(path: PathLike, flags: int, mode: int = 0o666) -> int:
        """Open a file and return its descriptor."""
        return os.open(path, flags, mode)

    @staticmethod
    def write(file: int, data: bytes | memoryview) -> int:
        """Write at the file's current position."""
        return os.write(file, data)

    @staticmethod
    def sync(file: int) -> None:
        """Wait until the file's data and metadata are on the disk."""
        os.fsync(file)

    @staticmethod
    def sync_data(file: int) -> None:
        """Wait until the file's data, and the metadata needed to read it, are on the disk."""
        getattr(os, "fdatasync", os.fsync)(file)

    @staticmethod
    def truncate(file: int, length: int) -> None:
        """Cut the file to a length."""
        os.ftruncate(file, length)

    @staticmethod
    def close(file: int) -> None:
        """Close the file."""
        os.close(file)

    @staticmethod
    def make_folder(path: PathLike) -> None:
        """Create a folder."""
        os.mkdir(path)

    @staticmethod
    def replace(path: PathLike, to: PathLike) -> None:
        """Rename a file; an existing file of the new name is replaced."""
        os.replace(path, to)

    @staticmethod
    def remove(path: PathLike) -> None:
        """Remove a file."""
        os.unlink(path)

    @staticmethod
    def remove_folder(path: PathLike) -> None:
        """Remove an empty folder."""
        os.rmdir(path)

    @staticmethod
    def temporary(folder: PathLike, prefix: str, suffix: str) -> tuple[int, str]:
        """Create a file with a unique name; returns (descriptor, path)."""
        return tempfile.mkstemp(prefix=prefix, suffix=suffix, dir=folder)

    @staticmethod
    def seek(file: int, place: int) -> None:
        """Move to a position in the file."""
        os.lseek(file, place, os.SEEK_SET)

    @staticmethod
    def size(file: int) -> int:
        """Return the file's size in bytes."""
        return os.fstat(file).st_size

    @staticmethod
    def make_room(file: int, start: int, by: int) -> None:
        """Extend the file by zeros."""
        os.posix_fallocate(file, start, by)

    @staticmethod
    def lock(file: int) -> None:
        """Lock the file, if the system supports locks."""
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @staticmethod
    def read(path: PathLike, most: int = -1) -> bytes:
        """Return the first bytes of a file, or the whole file."""
        with open(path, "rb") as file:
            return file.read(most)

    @staticmethod
    def kind(path: PathLike) -> Kind | None:
        """Return the kind of the file at a path; None if there is no file."""
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: no file has a null byte in its path
            return None
        if stat.S_ISLNK(mode):
            return "link"
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    @staticmethod
    def target(path: PathLike) -> Path:
        """Return the path with all links resolved."""
        return Path(os.path.realpath(path))

    @staticmethod
    def names(folder: PathLike) -> list[str]:
        """Return the sorted names in a folder."""
        return sorted(os.listdir(folder))

    @staticmethod
    def sync_folder(path: PathLike) -> None:
        """Wait until a folder's entries are on the disk."""
        if not hasattr(os, "O_DIRECTORY"):
            return
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


DISK: ContextVar[Disk] = ContextVar("disk", default=SystemDisk())  # noqa: B039 (it has no state)
"""The current file system; a simulated process sets its own in its context."""
