"""What is asked of the disk: the system's calls, in one place, so that a simulation can stand in for them."""

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
except ImportError:  # not on this system: two processes that write one file are not noticed
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]
Kind = Literal["file", "folder", "link", "other"]


class Writer(Protocol):
    """Appends to files and waits for the disk, one order at a time: see :class:`.DiskThread`."""

    def fileno(self) -> int:
        """A descriptor that can be read when an order is done."""

    def put(self, file: int, data: bytes, sync: bool, room_from: int = 0, room_by: int = 0) -> None:
        """Give an order."""

    def outcome(self) -> tuple[int, bool, bool]:
        """(errno or 0, whether there is room as asked, whether the file system can make any)."""

    def close(self) -> None:
        """End, after the order that there is."""


class Disk(Protocol):
    """The calls that journals, snapshots and the service's folders are made with; all raise OSError."""

    makes_room: bool
    """Whether files can be told to grow ahead of what is written."""

    def open(self, path: PathLike, flags: int, mode: int = 0o666) -> int:
        """A descriptor."""

    def temporary(self, folder: PathLike, prefix: str, suffix: str) -> tuple[int, str]:
        """A new file of a name of its own: (descriptor, path)."""

    def write(self, file: int, data: bytes | memoryview) -> int:
        """Write at the file's place; how many bytes were taken."""

    def sync(self, file: int) -> None:
        """Wait until the disk has the file."""

    def sync_data(self, file: int) -> None:
        """Wait until the disk has what can be read of the file."""

    def truncate(self, file: int, length: int) -> None:
        """Cut off what is behind a length."""

    def seek(self, file: int, place: int) -> None:
        """Go to a place."""

    def size(self, file: int) -> int:
        """Bytes."""

    def make_room(self, file: int, start: int, by: int) -> None:
        """Let the file grow, by zeros."""

    def lock(self, file: int) -> None:
        """Hold the file against other descriptors until it is closed; BlockingIOError if one holds it."""

    def close(self, file: int) -> None:
        """Close."""

    def read(self, path: PathLike, most: int = -1) -> bytes:
        """The first bytes of a file, or all."""

    def kind(self, path: PathLike) -> Kind | None:
        """Kind of file at a path, without following a link; None without a file."""

    def target(self, path: PathLike) -> Path:
        """Where a path leads, through links."""

    def names(self, folder: PathLike) -> list[str]:
        """Names in a folder, in order."""

    def make_folder(self, path: PathLike) -> None:
        """Make a folder."""

    def replace(self, path: PathLike, to: PathLike) -> None:
        """Rename, over a file that is there."""

    def remove(self, path: PathLike) -> None:
        """Remove a file."""

    def remove_folder(self, path: PathLike) -> None:
        """Remove a folder that is empty."""

    def sync_folder(self, path: PathLike) -> None:
        """Wait until the disk has the names in a folder, where the system can."""

    def writer(self) -> Writer:
        """A writer that appends in a thread of its own."""


class SystemDisk:
    """The operating system's files."""

    makes_room = hasattr(os, "posix_fallocate")
    writer = DiskThread

    @staticmethod
    def open(path: PathLike, flags: int, mode: int = 0o666) -> int:
        """A descriptor."""
        return os.open(path, flags, mode)

    @staticmethod
    def write(file: int, data: bytes | memoryview) -> int:
        """Write at the file's place."""
        return os.write(file, data)

    @staticmethod
    def sync(file: int) -> None:
        """Wait until the disk has the file."""
        os.fsync(file)

    @staticmethod
    def sync_data(file: int) -> None:
        """Wait until the disk has what can be read of the file."""
        getattr(os, "fdatasync", os.fsync)(file)

    @staticmethod
    def truncate(file: int, length: int) -> None:
        """Cut off what is behind a length."""
        os.ftruncate(file, length)

    @staticmethod
    def close(file: int) -> None:
        """Close."""
        os.close(file)

    @staticmethod
    def make_folder(path: PathLike) -> None:
        """Make a folder."""
        os.mkdir(path)

    @staticmethod
    def replace(path: PathLike, to: PathLike) -> None:
        """Rename, over a file that is there."""
        os.replace(path, to)

    @staticmethod
    def remove(path: PathLike) -> None:
        """Remove a file."""
        os.unlink(path)

    @staticmethod
    def remove_folder(path: PathLike) -> None:
        """Remove a folder that is empty."""
        os.rmdir(path)

    @staticmethod
    def temporary(folder: PathLike, prefix: str, suffix: str) -> tuple[int, str]:
        """A new file of a name of its own."""
        return tempfile.mkstemp(prefix=prefix, suffix=suffix, dir=folder)

    @staticmethod
    def seek(file: int, place: int) -> None:
        """Go to a place."""
        os.lseek(file, place, os.SEEK_SET)

    @staticmethod
    def size(file: int) -> int:
        """Bytes."""
        return os.fstat(file).st_size

    @staticmethod
    def make_room(file: int, start: int, by: int) -> None:
        """Let the file grow."""
        os.posix_fallocate(file, start, by)

    @staticmethod
    def lock(file: int) -> None:
        """Hold the file, where the system can."""
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @staticmethod
    def read(path: PathLike, most: int = -1) -> bytes:
        """The first bytes of a file, or all."""
        with open(path, "rb") as file:
            return file.read(most)

    @staticmethod
    def kind(path: PathLike) -> Kind | None:
        """Kind of file at a path."""
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(mode):
            return "link"
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    @staticmethod
    def target(path: PathLike) -> Path:
        """Where a path leads."""
        return Path(os.path.realpath(path))

    @staticmethod
    def names(folder: PathLike) -> list[str]:
        """Names in a folder, in order."""
        return sorted(os.listdir(folder))

    @staticmethod
    def sync_folder(path: PathLike) -> None:
        """Wait until the disk has the names in a folder."""
        if not hasattr(os, "O_DIRECTORY"):
            return
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


DISK: ContextVar[Disk] = ContextVar("disk", default=SystemDisk())  # noqa: B039 (it has no state)
"""The disk in force: a simulated process sets its own in its context."""
