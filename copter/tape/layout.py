"""The bytes of a tape: a head, then records, each behind its length and before its checksum.

``head``: magic (8 bytes), format (2), zero (2), CRC-32 of these 12 bytes (4). A record: front (24 bytes) and its CRC-32
(4); the stored payload; a checksum (16), BLAKE2b of the checksum before it, the front and the stored payload, so that
records cannot be left out or change places. The front: kind (4), stream (4), length as stored (8), length as read (8).
The stored payload is a row of pieces, each behind its length (4), of 1 MiB when read, the last one shorter; the top bit
of the length says that the piece is as it is, else it is compressed by zlib. What is read is one value of
:mod:`copter.storage.encoding`.

Streams are the sessions that one tape records. Kinds of record:

BASE   a session begins: the values of a snapshot (model, iterate, settings)
ROUN   a round: the list of its edits, and, as its last item, what was asked and what was answered
PLAN   the integer plan of the round before it
ENDS   the session has ended
"""

from __future__ import annotations

import struct
import zlib
from hashlib import blake2b

from copter.storage.encoding import Buffers

MAGIC = b"\x89COPTERT"
FORMAT = 1
HEAD = struct.Struct("<8sHHI")
FRONT = struct.Struct("<4sIQQ")
WORD = struct.Struct("<I")
DIGEST = 16  # bytes
PIECE = 1 << 20  # bytes of a piece as read: what is compressed at once, and so what a reader needs beyond the record
PLAIN = 1 << 31  # bit of a piece's length: the piece is not compressed
SAMPLE = 1 << 12  # bytes at four places of a piece that are compressed to see whether the rest is worth it: 2% of it
WORTH = 0.6  # of its length: a piece whose sample shrinks less is stored as it is. Costs shrink to two thirds, and that
# takes as long as the LP of a round of Sia
LEVEL = 1  # of zlib: level 6 takes four times as long for a tenth less
MOST = 1 << 33  # bytes of one record as read: 8 GiB, some twenty times a model of 13 million columns
BASE, ROUND, PLAN, ENDS = b"BASE", b"ROUN", b"PLAN", b"ENDS"
KINDS = (BASE, ROUND, PLAN, ENDS)


def head() -> bytes:
    """Return the header of a file."""
    front = HEAD.pack(MAGIC, FORMAT, 0, 0)[:12]
    return front + WORD.pack(zlib.crc32(front))


def squeezed(payload: Buffers) -> tuple[int, list[bytes]]:
    """Return (length as read, the payload in stored pieces)."""
    plain = b"".join(payload)
    stored = []
    for at in range(0, len(plain), PIECE):
        piece = plain[at : at + PIECE]
        quarter = 1 + len(piece) // 4
        sample = b"".join(piece[place : place + SAMPLE] for place in range(0, len(piece), quarter))
        small = piece
        if len(zlib.compress(sample, LEVEL)) < WORTH * len(sample):
            small = zlib.compress(piece, LEVEL)
        if len(small) < len(piece):
            stored.append(WORD.pack(len(small)) + small)
        else:
            stored.append(WORD.pack(PLAIN | len(piece)))
            stored.append(piece)
    return len(plain), stored


def chained(before: bytes, *parts: bytes) -> bytes:
    """Return a record's checksum, computed from the previous record's."""
    state = blake2b(before, digest_size=DIGEST)
    for part in parts:
        state.update(part)
    return state.digest()


def record(kind: bytes, stream: int, payload: Buffers, before: bytes) -> tuple[list[bytes], bytes]:
    """Return (a record's bytes in parts, its checksum)."""
    length, stored = squeezed(payload)
    front = FRONT.pack(kind, stream, sum(map(len, stored)), length)
    front += WORD.pack(zlib.crc32(front))
    digest = chained(before, front, *stored)
    return [front, *stored, digest], digest
