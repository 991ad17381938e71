"""A small tape that unpacks to millions of empty values is refused by both readers before the values are made."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from hashlib import blake2b
from pathlib import Path

import pytest

from copter.runtime.errors import SnapshotError
from copter.storage.tape.reader import TapeReader
from copter.verify import verify
from copter.verify.program import HEAD, Unusable

COUNT = 3_000_000


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A tape of one record, a list of empty lists: 60 kB."""
    payload = b"[" + struct.pack("<Q", COUNT) + (b"[" + bytes(8)) * COUNT
    pieces = b""
    for begin in range(0, len(payload), 1 << 20):
        piece = zlib.compress(payload[begin : begin + (1 << 20)], 9)
        pieces += len(piece).to_bytes(4, "little") + piece
    front = struct.pack("<4sIQQ", b"BASE", 0, len(pieces), len(payload))
    front += zlib.crc32(front).to_bytes(4, "little")
    path = tmp_path / "empty.tape"
    path.write_bytes(HEAD + front + pieces + blake2b(bytes(16) + front + pieces, digest_size=16).digest())
    assert path.stat().st_size < 100_000
    return path


def test_both_readers_refuse_it_in_little_memory(tape: Path) -> None:
    tracemalloc.start()
    with pytest.raises(Unusable, match="more values than its bytes in the file allow"):
        list(verify(tape))
    with pytest.raises(SnapshotError, match="more values than its bytes in the file allow"):
        next(iter(TapeReader(tape))).value()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
