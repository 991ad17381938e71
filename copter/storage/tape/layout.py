"""The bytes of a tape: a head, then records, each with its length before and its checksum after it.

``head``: magic (8 bytes), format (2), zero (2), CRC-32 of these 12 bytes (4). A record: front (24 bytes) and its CRC-32
(4); the stored payload; a checksum (16), BLAKE2b of the previous checksum, the front and the stored payload, so that
missing or exchanged records are noticed. The front: kind (4), stream (4), length as stored (8), length as read (8). The
stored payload is a sequence of pieces, each with its length (4) before it. A piece has 1 MiB when read, the last one
less. If the top bit of its length is set, the piece is stored plain, otherwise compressed by zlib. The payload is one
value of :mod:`copter.storage.encoding`.

Streams are the sessions that one tape records. Kinds of record:

BASE   a session begins: the values of a snapshot (model, iterate, settings)
ROUN   a round: the list of its edits; its last item holds the solve's arguments and answer
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
DIGEST = 16  # bytes of the digest of a record
# Bytes of an uncompressed piece: pieces are compressed one by one, so a reader needs memory for one at a time.
PIECE = 1 << 20
PLAIN = 1 << 31  # bit of a piece's length: the piece is not compressed
SAMPLE = 1 << 11  # bytes compressed at each of four places of a piece, to decide whether compressing the rest pays
SHORT = 1 << 14  # bytes; a piece below is compressed without looking at a sample, which would take as long
# A piece is compressed if its sample shrinks below this share of its length. Costs shrink to two thirds only, and
# compressing them takes as long as the LP of a round of Sia; with an answer behind them their sample is above a half.
WORTH = 0.5
# A stored piece has at least this share of its length, filled up by zeros, which zlib leaves out: a reader can refuse a
# small file that would take much memory.
LEAST_SHARE = 64
VALUES_FREELY = 1 << 20  # values that a record may hold in any case; one more for each of its bytes in the file
FREELY = 1 << 25  # bytes that a record may have in any case: tapes before this rule had no least share
LEVEL = 1  # zlib's level of compression: level 6 takes four times as long and saves a tenth
MOST = 1 << 33  # most bytes of an uncompressed record: 8 GiB, some twenty times a model of 13 million columns
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
        if len(piece) < SHORT or len(zlib.compress(sample, LEVEL)) < WORTH * len(sample):
            small = zlib.compress(piece, LEVEL)
        if len(small) < len(piece):
            small += bytes(max(len(piece) // LEAST_SHARE - len(small), 0))
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
