"""A disk that keeps only what was synced, tears what was not, fills up and fails; and a process's view of it.

What the operating system holds (the cache) survives the death of a process. A loss of power leaves of what was not
synced any sectors, new or old, and any first part of what was done to the names in a folder.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from copter.storage.disk import Kind, PathLike
from tests.faults.sim_loop import Killed, SimLoop, SimProcess

SECTOR = 512


class Node:
    """A file: what the system holds, what the disk has, and what is on its way."""

    def __init__(self) -> None:
        self.cache = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes] | int] = []
        self.holder: int | None = None  # descriptor with the lock

    def lay(self) -> None:
        """The disk has all of it now."""
        for each in self.pending:
            if isinstance(each, int):
                resize(self.durable, each)
            else:
                put(self.durable, *each)
        self.pending.clear()

    def lose_power(self, random: Random) -> None:
        """What is left: every sector that was on its way is there or not."""
        size = len(self.durable)
        reached = random.randrange(len(self.pending) + 1) if random.random() < 0.5 else len(self.pending)
        for each in self.pending[:reached]:
            if isinstance(each, int):
                if random.random() < 0.7:
                    resize(self.durable, each)
                continue
            at, data = each
            whole = random.random() < 0.4
            end = at + len(data)
            while at < end:
                cut = min(end, at - at % SECTOR + SECTOR)
                if whole or random.random() < 0.5:
                    put(self.durable, at, data[len(data) - (end - at) : len(data) - (end - cut)])
                at = cut
            size = max(size, len(self.durable))
        self.pending.clear()
        self.cache = bytearray(self.durable)
        self.holder = None


def put(content: bytearray, at: int, data: bytes) -> None:
    """Write, with zeros before what lies beyond the end."""
    if at > len(content):
        content.extend(bytes(at - len(content)))
    content[at : at + len(data)] = data


def resize(content: bytearray, size: int) -> None:
    """Cut, or grow by zeros."""
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


Names = dict[str, Any]
"""Name -> Node or Folder."""


class Folder:
    """A folder: names as the system has them and as the disk has them."""

    def __init__(self) -> None:
        self.names: Names = {}
        self.durable: Names = {}
        self.steps: list[Names] = []  # names after each change since the last sync

    def changed(self) -> None:
        """Note a change."""
        self.steps.append(dict(self.names))


class SimDisk:
    """The disk of one machine.

    Attributes
    ----------
    full : bool
        Whether there is no room.
    failing : bool
        Whether syncs fail.
    counts : Counter
        Of faults that calls met.
    """

    def __init__(self, random: Random) -> None:
        self.random, self.root = random, Folder()
        self.full = self.failing = False
        self.counts: Counter[str] = Counter()
        self.temporaries = 0
        self.descriptors = 100
        self.foreign: dict[str, bytes] = {}

    def folder(self, path: PathLike) -> Folder:
        """The folder at a path; OSError."""
        here: Any = self.root
        for name in Path(path).parts[1:]:
            here = here.names.get(name) if isinstance(here, Folder) else None
            if here is None:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        if not isinstance(here, Folder):
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory")
        return here

    def find(self, path: PathLike) -> Any:
        """The file or folder at a path, or None."""
        path = Path(path)
        if path == path.parent:
            return self.root
        try:
            return self.folder(path.parent).names.get(path.name)
        except OSError:
            return None

    def lose_power(self) -> None:
        """All that is not on the disk is lost or torn."""
        self._lose(self.root, set())

    def _lose(self, folder: Folder, seen: set[int]) -> None:
        if folder.steps:
            kept = self.random.randrange(len(folder.steps) + 1)
            if kept:
                folder.durable = folder.steps[kept - 1]
            folder.steps.clear()
        folder.names = dict(folder.durable)
        for each in folder.names.values():
            if id(each) in seen:
                continue
            seen.add(id(each))
            if isinstance(each, Folder):
                self._lose(each, seen)
            else:
                each.lose_power(self.random)

    def unlock(self, folder: Folder, files: set[int]) -> None:
        """A process ended: its locks are free."""
        for each in folder.names.values():
            if isinstance(each, Folder):
                self.unlock(each, files)
            elif each.holder in files:
                each.holder = None


class DiskOf:
    """One process's calls; any of them may be the one in which it is killed.

    Parameters
    ----------
    disk : SimDisk
    process : SimProcess
    loop : SimLoop
    """

    makes_room = True

    def __init__(self, disk: SimDisk, process: SimProcess, loop: SimLoop) -> None:
        self.disk, self.process, self.loop = disk, process, loop
        self.open_files: dict[int, list[Any]] = {}  # [node, place, appends]
        self.dies_in = -1  # calls, until the process is killed
        self.calls = 0

    def _call(self) -> None:
        self.calls += 1
        if self.process.dead:
            raise Killed
        if self.dies_in >= 0:
            self.dies_in -= 1
            if self.dies_in < 0:
                self.process.dead = True
                self.disk.counts["killed inside a disk call"] += 1
                raise Killed

    def _changes(self) -> None:
        """A call that takes room."""
        self._call()
        if self.disk.full:
            self.disk.counts["calls that found the disk full"] += 1
            raise OSError(errno.ENOSPC, "No space left on device")

    def end(self) -> None:
        """The process is gone."""
        self.disk.unlock(self.disk.root, set(self.open_files))

    def open(self, path: PathLike, flags: int, mode: int = 0o666) -> int:
        folder, name = self.disk.folder(Path(path).parent), Path(path).name
        node = folder.names.get(name)
        if node is None:
            if not flags & os.O_CREAT:
                self._call()
                raise FileNotFoundError(errno.ENOENT, "No such file or directory")
            self._changes()
            node = folder.names[name] = Node()
            folder.changed()
        else:
            self._call()
        self.disk.descriptors += 1
        self.open_files[self.disk.descriptors] = [node, 0, bool(flags & os.O_APPEND)]
        return self.disk.descriptors

    def temporary(self, folder: PathLike, prefix: str, suffix: str) -> tuple[int, str]:
        self.disk.temporaries += 1
        path = os.path.join(folder, f"{prefix}{self.disk.temporaries:06d}{suffix}")
        return self.open(path, os.O_CREAT), path

    def write(self, file: int, data: bytes | memoryview) -> int:
        entry = self.open_files[file]
        node, place, appends = entry
        if self.disk.full:  # as a disk that fills up in the middle does
            self._call()
            take = self.disk.random.randrange(len(data)) if len(data) > 1 and self.disk.random.random() < 0.5 else 0
            if not take:
                self._changes()
            data = bytes(data)[:take]
        else:
            self._call()
        at = len(node.cache) if appends else place
        given = bytes(data)
        put(node.cache, at, given)
        node.pending.append((at, given))
        entry[1] = at + len(given)
        return len(given)

    def sync(self, file: int) -> None:
        self._call()
        node = self.open_files[file][0]
        if self.disk.failing:
            self.disk.counts["syncs that failed"] += 1
            if self.disk.random.random() < 0.5:
                node.lay()  # the disk has it, and said that it had not
            raise OSError(errno.EIO, "Input/output error")
        node.lay()

    sync_data = sync

    def truncate(self, file: int, length: int) -> None:
        if self.process.dead:
            raise OSError(errno.EIO, "the process is gone")  # a journal that is collected closes itself
        self._call()
        node = self.open_files[file][0]
        resize(node.cache, length)
        node.pending.append(length)

    def seek(self, file: int, place: int) -> None:
        self.open_files[file][1] = place

    def size(self, file: int) -> int:
        return len(self.open_files[file][0].cache)

    def make_room(self, file: int, start: int, by: int) -> None:
        self._changes()
        node = self.open_files[file][0]
        if start + by > len(node.cache):
            resize(node.cache, start + by)
            node.pending.append(start + by)

    def lock(self, file: int) -> None:
        node = self.open_files[file][0]
        if node.holder is not None and node.holder != file:
            self.disk.counts["files found locked"] += 1
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        node.holder = file

    def close(self, file: int) -> None:
        if self.process.dead:
            return
        entry = self.open_files.pop(file, None)
        if entry is not None and entry[0].holder == file:
            entry[0].holder = None

    def read(self, path: PathLike, most: int = -1) -> bytes:
        self._call()
        node = self.disk.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        return bytes(node.cache) if most < 0 else bytes(node.cache[:most])

    def kind(self, path: PathLike) -> Kind | None:
        found = self.disk.find(path)
        return None if found is None else "folder" if isinstance(found, Folder) else "file"

    def target(self, path: PathLike) -> Path:
        return Path(path)

    def names(self, folder: PathLike) -> list[str]:
        self._call()
        return sorted(self.disk.folder(folder).names)

    def make_folder(self, path: PathLike) -> None:
        self._changes()
        above = self.disk.folder(Path(path).parent)
        if Path(path).name in above.names:
            raise FileExistsError(errno.EEXIST, "File exists")
        above.names[Path(path).name] = Folder()
        above.changed()

    def replace(self, path: PathLike, to: PathLike) -> None:
        self._call()
        above, there = self.disk.folder(Path(path).parent), self.disk.folder(Path(to).parent)
        there.names[Path(to).name] = above.names.pop(Path(path).name)
        there.changed()
        if above is not there:
            above.changed()

    def remove(self, path: PathLike) -> None:
        self._call()
        above, name = self.disk.folder(Path(path).parent), Path(path).name
        if name not in above.names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        del above.names[name]
        above.changed()

    def remove_folder(self, path: PathLike) -> None:
        self._call()
        above, name = self.disk.folder(Path(path).parent), Path(path).name
        if self.disk.folder(path).names:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        del above.names[name]
        above.changed()

    def sync_folder(self, path: PathLike) -> None:
        self._call()
        folder = self.disk.folder(path)
        if self.disk.failing:
            self.disk.counts["syncs that failed"] += 1
            raise OSError(errno.EIO, "Input/output error")
        folder.durable = dict(folder.names)
        folder.steps.clear()

    def writer(self) -> SimWriter:
        return SimWriter(self)


class SimWriter:
    """In the place of :class:`copter.storage.disk_thread.DiskThread`: an order takes its time, and is done in an
    instant.
    """

    def __init__(self, disk: DiskOf) -> None:
        self.disk = disk
        disk.disk.descriptors += 1
        self._number = disk.disk.descriptors
        self._outcome: tuple[int, bool, bool] | None = None

    def fileno(self) -> int:
        return self._number

    def put(self, file: int, data: bytes, sync: bool, room_from: int = 0, room_by: int = 0) -> None:
        loop = self.disk.loop
        slow = loop.random.random() < 0.02
        loop.call_later(
            loop.random.expovariate(1.0 if slow else 1000.0), self._do, file, data, sync, room_from, room_by
        )

    def _do(self, file: int, data: bytes, sync: bool, room_from: int, room_by: int) -> None:
        code, grew = 0, True
        if room_by:
            try:
                self.disk.make_room(file, room_from, room_by)
            except OSError:
                grew = False
        try:
            left = memoryview(data)
            while len(left):
                left = left[self.disk.write(file, left) :]
            if sync:
                self.disk.sync_data(file)
        except OSError as error:
            code = error.errno or errno.EIO
        self._outcome = code, grew, True
        self.disk.loop.readable(self._number)

    def outcome(self) -> tuple[int, bool, bool]:
        found, self._outcome = self._outcome, None
        if found is None:
            raise RuntimeError("there is no order")
        return found

    def close(self) -> None:
        pass
