"""Reader of tapes, record by record, up to the last complete one."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from copter.runtime.errors import SnapshotError
from copter.storage.encoding import Reader
from copter.storage.files import PathLike
from copter.storage.tape.layout import (
    BASE,
    DIGEST,
    FORMAT,
    FREELY,
    FRONT,
    HEAD,
    KINDS,
    LEAST_SHARE,
    MAGIC,
    MOST,
    PIECE,
    PLAIN,
    ROUND,
    VALUES_FREELY,
    WORD,
    chained,
)


@dataclass(frozen=True)
class Record:
    """A record of a tape.

    Attributes
    ----------
    kind : bytes
        Kind of record, see :mod:`copter.storage.tape.layout`.
    stream : int
        The session's number.
    round : int
        Number of rounds before it on the tape, of all streams.
    begin, end : int
        First byte of the record in the file, and the byte after it.
    payload : bytes
    where : str
        File, round and byte, for error messages.
    """

    kind: bytes
    stream: int
    round: int
    begin: int
    end: int
    payload: bytes
    where: str

    def value(self) -> Any:
        """Return the record's value; raises SnapshotError if it does not have the form of its kind."""
        value = Reader(self.payload, self.where, VALUES_FREELY + self.end - self.begin).whole()
        good = True
        if self.kind == ROUND:
            good = isinstance(value, list) and len(value) > 0 and isinstance(value[-1], dict)
            good = good and all(isinstance(each, tuple) and len(each) == 2 for each in value[:-1])
        elif self.kind == BASE:
            good = isinstance(value, dict)
        if not good:
            raise SnapshotError(f"{self.where} does not hold what its kind says")
        return value


class TapeReader:
    """A tape open for reading; one record at a time is in memory.

    A last record that is cut short is left out, because a tape under recording ends so; :attr:`torn` then says where.
    Any other damage raises SnapshotError.

    Parameters
    ----------
    path : path

    Raises
    ------
    SnapshotError
        If the file cannot be read, is no tape, or is from a newer copter.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = os.fspath(path)
        self.what = f"the tape {self.path}"
        self.torn: int | None = None
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise SnapshotError(f"{self.path} cannot be read: it is no regular file, and may have no end")
        try:
            with open(self.path, "rb") as file:
                front = file.read(HEAD.size)
        except OSError as error:
            raise SnapshotError(f"{self.path} cannot be read: {error.strerror or error}") from error
        if front[: len(MAGIC)] != MAGIC:
            raise SnapshotError(f"{self.path} is not a copter tape" if front else f"{self.path} is empty")
        if len(front) < HEAD.size:
            raise SnapshotError(f"{self.what} is cut short: {len(front)} bytes, its head alone has {HEAD.size}")
        _, version, _, checksum = HEAD.unpack(front)
        if checksum != zlib.crc32(front[:12]):
            raise SnapshotError(f"{self.what} is damaged in its head")
        if version != FORMAT:
            newer = "use a newer copter" if version > FORMAT else "record it again"
            raise SnapshotError(f"{self.what} has format {version}, this copter reads {FORMAT}: {newer}")

    def __iter__(self) -> Iterator[Record]:
        """Yield all complete records."""
        self.torn = None
        try:
            with open(self.path, "rb") as file:
                yield from self._records(file)
        except OSError as error:
            raise SnapshotError(f"{self.path} cannot be read: {error.strerror or error}") from error

    def _records(self, file: BinaryIO) -> Iterator[Record]:
        at = file.seek(HEAD.size)
        before, rounds = bytes(DIGEST), 0
        while True:
            front = file.read(FRONT.size + WORD.size)
            if len(front) < FRONT.size + WORD.size:
                self.torn = at if front else None
                return
            where = f"{self.what}, round {rounds}, byte {at}"
            kind, stream, stored, length = FRONT.unpack(front[: FRONT.size])
            if WORD.unpack(front[FRONT.size :])[0] != zlib.crc32(front[: FRONT.size]) or kind not in KINDS:
                raise SnapshotError(f"{where} is damaged in the head of a record")
            end = at + len(front) + stored + DIGEST
            if end > os.fstat(file.fileno()).st_size:
                self.torn = at
                return
            if length > MOST or stored > length + (length // PIECE + 1) * WORD.size:
                raise SnapshotError(f"{where}: a record of {length} bytes, {stored} stored, is not one of a tape")
            if length > max(FREELY, LEAST_SHARE * stored):
                raise SnapshotError(f"{where}: a record of {stored} bytes would take {length}: this is no tape's")
            content = file.read(stored)
            digest = file.read(DIGEST)
            if len(digest) < DIGEST:
                self.torn = at
                return
            if chained(before, front, content) != digest:
                raise SnapshotError(f"{where} is damaged (bytes {at} to {end})")
            yield Record(kind, stream, rounds, at, end, unsqueezed(content, length, where), where)
            before, at, rounds = digest, end, rounds + (kind == ROUND)


def unsqueezed(content: bytes, length: int, where: str) -> bytes:
    """Return a payload from its pieces; raises SnapshotError unless it has this length."""
    pieces, at, left = [], 0, length
    while left:
        want = min(left, PIECE)
        if at + WORD.size > len(content):
            raise SnapshotError(f"{where} is damaged: its pieces end before its length")
        size = WORD.unpack_from(content, at)[0]
        at += WORD.size
        piece = content[at : at + (size & ~PLAIN)]
        at += size & ~PLAIN
        if not size & PLAIN:
            try:
                piece = zlib.decompressobj().decompress(piece, want + 1)
            except zlib.error as error:
                raise SnapshotError(f"{where} is damaged: {error}") from None
        if len(piece) != want:
            raise SnapshotError(f"{where} is damaged: a piece has {len(piece)} bytes, not {want}")
        pieces.append(piece)
        left -= want
    if at != len(content):
        raise SnapshotError(f"{where} is damaged: there is more than its length")
    return b"".join(pieces)
