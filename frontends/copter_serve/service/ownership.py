"""Ownership of folders: the service marks the folders it creates, and deletes no others.

A cluster's folder is made under a temporary name, marked, filled, and renamed to the cluster's id when it is complete.
To delete it, the service first renames it to a trash name. Then it removes the files that it wrote, one by one, and the
folder if nothing else is in it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from copter.runtime.clock import CLOCK
from copter.runtime.errors import SnapshotError
from copter.storage.disk import DISK
from copter.storage.files import sync_folder, write_atomically

MARK = ".copter-cluster"
"""File in every folder that the service makes; folders without it belong to somebody else."""

WORDS = b"This folder is a cluster of copter's service: it writes and deletes the files in it.\n"

MAKING, TRASH = ".copter-making-", ".copter-trash-"
"""Prefixes of the names of folders under construction and under deletion."""

SNAPSHOT_MAGIC = b"\x89COPTERV"
"""First bytes of a cluster's snapshot, by which folders of version 0.1 are recognised, because that wrote no mark."""

WRITTEN = re.compile(r"snapshot|journal-\d{8}|\.(snapshot|journal-\d{8}|\.copter-cluster)\.[^/]*\.part")
"""Names of the files, other than the mark, that the service writes in a cluster's folder."""


def is_owned(folder: Path) -> bool:
    """Whether the service created a folder: it contains the mark or a snapshot of the service."""
    if DISK.get().kind(folder) != "folder":
        return False
    return begins_with(folder / MARK, WORDS) or begins_with(folder / "snapshot", SNAPSHOT_MAGIC)


def begins_with(path: Path, words: bytes) -> bool:
    """Whether an ordinary, readable file exists and begins with these bytes."""
    try:
        return DISK.get().kind(path) == "file" and DISK.get().read(path, len(words)) == words
    except OSError:
        return False


def claim(folder: Path) -> None:
    """Mark a folder that version 0.1 created; raises SnapshotError if it cannot be written."""
    if DISK.get().kind(folder / MARK) is None:
        write_atomically(folder / MARK, [WORDS])


def begin(data: Path, name: str) -> Path:
    """Create a marked folder beside the clusters, for a cluster under construction; raises OSError."""
    folder = data / f"{MAKING}{name}-{now_ns()}"
    DISK.get().make_folder(folder)
    claim(folder)
    return folder


def finish(made: Path, folder: Path) -> None:
    """Rename `made`, whose files are complete, to the cluster's folder.

    Raises
    ------
    SnapshotError
        If there is something at `folder` already.
    OSError
        If the rename fails.
    """
    if DISK.get().kind(folder) is not None:
        raise SnapshotError(f"{folder} is there already and is no cluster of this service: take another id, or move it")
    DISK.get().replace(made, folder)
    sync_folder(folder.parent)


def take_away(folder: Path) -> bool:
    """Delete a folder of the service; returns whether it is gone. Foreign files are kept in the trash."""
    if not is_owned(folder):
        return False
    disk, doomed = DISK.get(), folder
    if not folder.name.startswith(TRASH):
        doomed = folder.parent / f"{TRASH}{folder.name}-{now_ns()}"
        disk.replace(folder, doomed)
        sync_folder(doomed.parent)
    for name in disk.names(doomed):
        if WRITTEN.fullmatch(name) and disk.kind(doomed / name) == "file":
            disk.remove(doomed / name)
    if disk.names(doomed) == [MARK]:
        disk.remove(doomed / MARK)
    with suppress(OSError):  # not empty: it contains foreign files
        disk.remove_folder(doomed)
    return disk.kind(doomed) is None


def sweep(data: Path) -> list[Path]:
    """Remove the folders of unfinished creations and deletions of a killed service; returns those that could not be
    removed.
    """
    disk, left = DISK.get(), []
    for name in disk.names(data):
        path = data / name
        if not name.startswith((MAKING, TRASH)) or disk.kind(path) != "folder":
            continue
        if is_owned(path):
            gone = take_away(path)
        else:  # killed before the mark was written or after it was removed: either empty or not the service's
            with suppress(OSError):
                disk.remove_folder(path)
            gone = disk.kind(path) is None
        if not gone:
            left.append(path)
    return left


def now_ns() -> int:
    """Return a number for unique names."""
    return int(CLOCK.get().now() * 1e9)
