"""File framing: a payload after a header with a magic number, a format number, its length and a checksum."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import blake2b

from copter.runtime.errors import SnapshotError
from copter.storage.encoding import Buffers

HEADER = struct.Struct("<8sHHQ")  # magic, format, zero, length of the payload; then the digest of these and the payload
DIGEST = 32  # bytes of the digest of header and payload


@dataclass(frozen=True)
class Seal:
    """The header of one kind of file.

    Attributes
    ----------
    magic : bytes
        Magic number, 8 bytes.
    format : int
        The newest format that this copter reads, and the format that it writes.
    what : str
        What the file is, as errors name it ("a copter snapshot").
    """

    magic: bytes
    format: int
    what: str

    def close(self, payload: Buffers) -> Buffers:
        """Return a payload with its header and checksum."""
        front = HEADER.pack(self.magic, self.format, 0, sum(len(part) for part in payload))
        checksum = blake2b(front, digest_size=DIGEST)
        for part in payload:
            checksum.update(part)
        return [front, checksum.digest(), *payload]

    def open(self, data: bytes, where: str) -> memoryview:
        """Return the payload of a file after checking header and checksum.

        Raises
        ------
        SnapshotError
            If it is another kind of file, is newer, cut short or damaged.
        """
        view = memoryview(data)
        if bytes(view[: len(self.magic)]) != self.magic:
            raise SnapshotError(f"{where} is not {self.what}" if data else f"{where} is empty")
        begin = HEADER.size + DIGEST
        if len(view) < begin:
            raise SnapshotError(f"{where} is cut short: {len(view)} bytes, its head alone has {begin}")
        _, version, _, length = HEADER.unpack(view[: HEADER.size])
        if version > self.format:
            raise SnapshotError(
                f"{where} has format {version}, this copter reads up to {self.format}: use a newer copter"
            )
        if len(view) != begin + length:
            raise SnapshotError(f"{where} is cut short or damaged: {len(view)} bytes, its head says {begin + length}")
        checksum = blake2b(view[: HEADER.size], digest_size=DIGEST)
        checksum.update(view[begin:])
        if checksum.digest() != bytes(view[HEADER.size : begin]):
            raise SnapshotError(f"{where} is damaged: its checksum does not hold")
        return view[begin:]
