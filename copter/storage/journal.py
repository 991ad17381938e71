"""The journal: every acknowledged edit is appended to a file, so that a killed process loses none."""

from __future__ import annotations

import errno
import os
import struct
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, get_args

from copter.runtime.errors import EditNotAllowedError, SettingsError, SnapshotError
from copter.storage.disk import DISK, PathLike
from copter.storage.encoding import COUNT, Buffers, Reader, encode
from copter.storage.files import read_file, write_atomically

Sync = Literal["always", "batch", "never"]

MAGIC = b"\x89COPTERJ"
FORMAT = 2  # format 1 had no private rows
# magic, format, whether a base follows, number of the first edit, lineage, digest before the first edit
HEADER = struct.Struct("<8sHHQ16s16s")
RECORD = struct.Struct("<4sQQ")  # mark, number of the edit, length; then a CRC-32 of these and the chain
MARK = b"EDIT"
DIGEST = 16  # bytes of the chained digest of the records
CRC = 4  # bytes of a record's CRC-32
JOINED = 1 << 20  # bytes; records shorter than this are collected into one write
ATTEMPTS = 1000  # to take a write back, each ended by a signal
SECTOR = 512  # bytes that a disk writes whole or not at all


@dataclass(frozen=True)
class History:
    """A position in a sequence of edits: which sequence, how many edits, and a digest of them all."""

    lineage: bytes = field(default_factory=lambda: os.urandom(DIGEST))
    edits: int = 0
    chain: bytes = bytes(DIGEST)


@dataclass(frozen=True)
class Contents:
    """Contents of a journal file: its start, the model it starts with (if any), and the records."""

    first: History
    base: memoryview | None
    records: list[tuple[History, int, memoryview]]  # (history after the record, its offset, its payload)
    length: int  # bytes of the file without an incomplete last record

    @property
    def last(self) -> History:
        """The position after the last record."""
        return self.records[-1][0] if self.records else self.first


def digest(*parts: bytes | memoryview) -> bytes:
    """Return a checksum of the concatenated parts."""
    state = blake2b(digest_size=DIGEST)
    for part in parts:
        state.update(part)
    return state.digest()


def checked_sync(sync: str) -> Sync:
    """Return the sync policy; raises SettingsError for an unknown one."""
    for policy in get_args(Sync):
        if isinstance(sync, str) and sync == policy:
            return policy  # type: ignore[no-any-return]
    raise SettingsError(f"sync is {sync!r}, must be one of {', '.join(get_args(Sync))}")


@dataclass(frozen=True)
class Record:
    """A record's bytes and the position after it."""

    data: bytes
    after: History


class Journal:
    """A journal open for appending, by one process at a time.

    Parameters
    ----------
    path : path
        An existing journal; :meth:`create` makes one.
    history : History
        The position after its last record.
    sync : {"always", "batch", "never"}
        When to wait for the disk: after every edit, after batches and snapshots, or never. In all three cases the
        operating system holds every acknowledged edit, so a killed process loses none.
    reserve : int
        Bytes that are reserved, as zeros, beyond the last record. A record then does not change the file's size, so the
        file system need not write its own metadata and the wait for the disk is shorter. :meth:`close` cuts the zeros
        off.
    """

    def __init__(self, path: PathLike, history: History, sync: Sync = "batch", reserve: int = 0) -> None:
        self.path = os.path.abspath(path)
        self.history, self.sync = history, sync
        self._disk = DISK.get()
        self.reserve = reserve if self._disk.makes_room else 0
        self._broken: str | None = None
        self._soiled: str | None = None  # why a failed write has not been taken back
        self._stale = False  # whether the file may have been replaced since it was opened
        self._file = -1
        self._length = self._room = 0
        self._open()
        OPEN.add(self)

    @classmethod
    def create(
        cls, path: PathLike, history: History, base: Buffers | None, sync: Sync = "batch", reserve: int = 0
    ) -> Journal:
        """Write a new journal atomically, replacing an existing file, and open it."""
        write_atomically(path, head(history, base))
        return cls(path, history, sync, reserve)

    @classmethod
    def resume(cls, path: PathLike, sync: Sync = "batch", reserve: int = 0) -> tuple[Journal, Contents]:
        """Open an existing journal, cut off an incomplete last record, and return journal and contents."""
        journal = cls(path, History(), sync, reserve)
        try:
            contents = read_journal(path)
            journal.history = contents.last
            if journal._length > contents.length:
                journal._disk.truncate(journal._file, contents.length)
                journal._length = journal._room = contents.length
                journal._disk.seek(journal._file, contents.length)
            if sync != "never":
                journal._disk.sync(journal._file)  # data written by a killed process may not be on the disk yet
        except OSError as error:
            journal.close()
            raise SnapshotError(f"the journal {journal.path} cannot be mended: {error.strerror}") from error
        except BaseException:
            journal.close()
            raise
        return journal, contents

    @property
    def file(self) -> int:
        """File descriptor, positioned at the end of the last record."""
        return self._file

    @property
    def soiled(self) -> bool:
        """Whether a failed write may still be on the disk."""
        return self._soiled is not None

    @property
    def length(self) -> int:
        """File size in bytes, without the reserved space."""
        return self._length

    def _open(self) -> None:
        try:
            self._file = self._disk.open(self.path, os.O_WRONLY | (0 if self.reserve else os.O_APPEND))
            self._disk.lock(self._file)
            self._length = self._room = self._disk.size(self._file)
            self._disk.seek(self._file, self._length)
        except BlockingIOError:
            self.close()
            raise SnapshotError(f"the journal {self.path} is in use by another session or process") from None
        except OSError as error:
            self.close()
            raise SnapshotError(f"the journal {self.path} cannot be opened: {error.strerror}") from error

    def close(self) -> None:
        """Cut off the reserved space and close the file."""
        if self._file >= 0 and self._room > self._length:
            with suppress(OSError):  # zeros at the end do no harm
                self._disk.truncate(self._file, self._length)
        self._release()

    def _release(self) -> None:
        if self._file >= 0:
            self._disk.close(self._file)
            self._file = -1

    __del__ = close

    def orphan(self) -> None:
        """Close the journal in a forked process; it still belongs to the parent."""
        self._release()
        self._broken = "it belongs to the process that this one was forked from; give this session one of its own"

    def restart(self) -> None:
        """Start again with an empty file, after a snapshot that contains all edits."""
        self._stale = True
        write_atomically(self.path, head(self.history, None))
        self._open_again()

    def _open_again(self) -> None:
        """Open the file that is at the path now."""
        self.close()
        self._open()
        self._stale = False

    @staticmethod
    def encode(name: str, arguments: Sequence[Any]) -> Buffers:
        """Return an operation as bytes."""
        return encode((name, tuple(arguments)))

    def append(self, operations: list[Buffers], batch: bool = False) -> None:
        """Append operations as one record.

        Raises
        ------
        SnapshotError
            If it cannot be written; the journal is then unchanged.
        """
        parts, after = self._framed(operations)
        self._soiled = "a write was interrupted"  # until it is whole
        try:
            written = self._write(parts)
            if self.sync == "always" or (self.sync == "batch" and batch):
                (self._disk.sync_data if self.reserve else self._disk.sync)(self._file)
        except OSError as error:
            self.take_back()
            raise SnapshotError(f"the journal {self.path} cannot be written: {error.strerror}") from error
        except BaseException:
            self._surely_take_back()
            raise
        self._length += written
        self.history, self._soiled = after, None

    def record(self, operations: list[Buffers]) -> Record:
        """Return the bytes that :meth:`append` would write, for a caller that writes them itself.

        The caller then calls :meth:`wrote`, or :meth:`take_back` if the writing failed.

        Raises
        ------
        EditNotAllowedError
            If the journal takes no edits.
        """
        parts, after = self._framed(operations)
        return Record(b"".join(parts), after)

    def growth(self, count: int) -> tuple[int, int]:
        """Return where and by how many bytes the file must grow for `count` bytes and the reserve; (0, 0) if there is
        space.
        """
        if not self.reserve or self._length + count <= self._room:
            return 0, 0
        return self._room, self._length + count + self.reserve - self._room

    def grown(self, by: int, ever: bool) -> None:
        """Record that the file has grown; if `ever` is false, the file system cannot reserve space and growth stops."""
        self._room += by
        if not ever:
            self.reserve = 0

    def wrote(self, record: Record) -> None:
        """Record that the file now ends with this record."""
        self._length += len(record.data)
        self.history = record.after

    def _framed(self, operations: list[Buffers]) -> tuple[Buffers, History]:
        """Return a record in pieces and the position after it."""
        if self._broken is not None:
            raise EditNotAllowedError(f"the journal {self.path} takes no edits: {self._broken}")
        if self._stale:
            self._open_again()
        if self._soiled is not None and not self.take_back():
            raise EditNotAllowedError(f"the journal {self.path} takes no edits: {self._soiled}")
        payload: Buffers = [b"[" + COUNT.pack(len(operations)), *(part for each in operations for part in each)]
        front = RECORD.pack(MARK, self.history.edits, sum(len(part) for part in payload))
        front += zlib.crc32(self.history.chain + front).to_bytes(CRC, "little")
        chain = digest(self.history.chain, front, *payload)
        return [front, *payload, chain], History(self.history.lineage, self.history.edits + 1, chain)

    def _write(self, parts: Buffers) -> int:
        """Append the parts; returns their number of bytes."""
        total = sum(len(part) for part in parts)
        if self.reserve and self._length + total > self._room:
            self._make_room(total)
        for part in [b"".join(parts)] if total <= JOINED else parts:
            left = memoryview(part)
            while len(left):
                left = left[self._disk.write(self._file, left) :]
        return total

    def _make_room(self, total: int) -> None:
        """Reserve space before a record of `total` bytes; if that fails, the record may still fit."""
        room, by = self.growth(total)
        try:
            self._disk.make_room(self._file, room, by)
            self.grown(by, True)
        except OSError as error:
            self.grown(0, error.errno not in (errno.EOPNOTSUPP, errno.EINVAL))

    def _surely_take_back(self) -> None:
        """Do :meth:`take_back`, though signals may end it: each time again."""
        for _ in range(ATTEMPTS):
            with suppress(BaseException):
                self.take_back()
                return

    def take_back(self) -> bool:
        """Cut off the remains of a failed write; returns whether the cut is on the disk.

        Until the cut is on the disk, a loss of power may restore the remains, so no edit is accepted; every edit tries
        the cut again.
        """
        try:
            self._disk.truncate(self._file, self._length)
            self._room = self._length
            self._disk.seek(self._file, self._length)
            if self.sync != "never":
                self._disk.sync(self._file)
        except OSError as error:
            self._soiled = f"a failed write could not be taken back ({error.strerror}); each edit tries it again"
            return False
        self._soiled = None
        return True


OPEN: weakref.WeakSet[Journal] = weakref.WeakSet()


def _orphan_all() -> None:
    for journal in list(OPEN):
        journal.orphan()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_orphan_all)


def head(history: History, base: Buffers | None) -> Buffers:
    """Return the header of a journal file."""
    front = HEADER.pack(MAGIC, FORMAT, base is not None, history.edits, history.lineage, history.chain)
    parts: Buffers = [front, digest(front)]
    if base is not None:
        length = COUNT.pack(sum(len(part) for part in base))
        parts += [length, *base, digest(front, length, *base)]
    return parts


def read_journal(path: PathLike) -> Contents:
    """Read a complete journal; an incomplete last record is left out.

    Raises
    ------
    SnapshotError
        If it is not a journal, is newer than this copter, or is damaged; the error says at which byte.
    """
    data, where = memoryview(read_file(path)), f"the journal {os.fspath(path)}"
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise SnapshotError(f"{where} is not a copter journal")
    at = HEADER.size + DIGEST
    if len(data) < at:
        raise SnapshotError(f"{where} is cut short: {len(data)} bytes, its head alone has {at}")
    _, version, has_base, edits, lineage, chain = HEADER.unpack(data[: HEADER.size])
    if digest(data[: HEADER.size]) != bytes(data[HEADER.size : at]):
        newer = f", or from a newer copter (format {version}, this one reads {FORMAT})" if version > FORMAT else ""
        raise SnapshotError(f"{where} is damaged in its head{newer}")
    if version > FORMAT:
        raise SnapshotError(f"{where} has format {version}, this copter reads up to {FORMAT}: use a newer copter")
    base = None
    if has_base:
        base, at = _read_base(data, at, where)
    first = History(lineage, edits, chain)
    records: list[tuple[History, int, memoryview]] = []
    for place, begin, payload, end in _records(data, at, first, where):
        records.append((place, begin, payload))
        at = end
    return Contents(first, base, records, at)


def _read_base(data: memoryview, at: int, where: str) -> tuple[memoryview, int]:
    """Return the model that a journal starts with, and the position of its first record."""
    if len(data) < at + COUNT.size:
        raise SnapshotError(f"{where} is cut short at byte {at}")
    begin = at + COUNT.size
    end = begin + COUNT.unpack(data[at:begin])[0]
    if end + DIGEST > len(data):
        raise SnapshotError(f"{where} is cut short or damaged: the model that it starts with would end at byte {end}")
    if digest(data[: HEADER.size], data[at:begin], data[begin:end]) != bytes(data[end : end + DIGEST]):
        raise SnapshotError(f"{where} is damaged in the model that it starts with (bytes {begin} to {end})")
    return data[begin:end], end + DIGEST


def _records(data: memoryview, at: int, place: History, where: str) -> Iterator[tuple[History, int, memoryview, int]]:
    """Yield (position after it, offset, payload, end) for every complete record.

    A loss of power can leave a last record that is cut short, or zeros up to the file's end, or a last record with
    sectors of zeros: such a record is incomplete and is left out. Any other mismatch is damage and raises
    SnapshotError.
    """
    while at < len(data):
        body = at + RECORD.size + CRC
        if body > len(data) or not any(data[at:]):
            return
        mark, edits, length = RECORD.unpack(data[at : at + RECORD.size])
        front = bytes(data[at : at + RECORD.size])
        if zlib.crc32(place.chain + front) != int.from_bytes(data[at + RECORD.size : body], "little"):
            if not any(data[body:]) or _unfinished(data, at, at + 1, place):
                return
            raise SnapshotError(f"{where} is damaged at byte {at}, in the head of edit {place.edits}")
        if mark != MARK or edits != place.edits:
            raise SnapshotError(f"{where} is damaged at byte {at}: edit {edits} where {place.edits} should be")
        end = body + length + DIGEST
        if end > len(data) or (end == len(data) and not any(data[end - DIGEST : end])):
            return
        chain = bytes(data[end - DIGEST : end])
        right = digest(place.chain, data[at:body], data[body : end - DIGEST])
        if right != chain:
            there = chain.rstrip(b"\0")  # written in two parts, of which the second is missing
            if right.startswith(there) and not any(data[end:]):
                return
            if _unfinished(data, at, end, place):
                return
            raise SnapshotError(f"{where} is damaged in edit {edits}, bytes {at} to {end}")
        place = History(place.lineage, place.edits + 1, chain)
        yield place, at, data[body : end - DIGEST], end
        at = end


def _unfinished(data: memoryview, at: int, end: int, place: History) -> bool:
    """Whether a crash cut the record from `at` to `end`: it is the last record and one of its disk sectors is all
    zeros.

    A record is written only after the one before it is on the disk, so at most one record can be cut.
    """
    if bytes(data[at:]).find(RECORD.pack(MARK, place.edits + 1, 0)[:-8]) >= 0:
        return False
    first = at - at % SECTOR
    return any(not any(data[max(begin, at) : begin + SECTOR]) for begin in range(first, end, SECTOR))


def operations_of(payload: memoryview, where: str) -> list[tuple[str, tuple[Any, ...]]]:
    """Decode the operations of a record."""
    result = Reader(payload, where).whole()
    if not isinstance(result, list) or not all(
        isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) and isinstance(each[1], tuple)
        for each in result
    ):
        raise SnapshotError(f"{where} does not hold operations")
    return result
