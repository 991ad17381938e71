"""Messages between the service and a scheduler's process: one byte of kind, a length, the content."""

from __future__ import annotations

import asyncio
import struct
from typing import BinaryIO

HEAD = struct.Struct("<cI")

START, DELTA, QUESTION = b"S", b"D", b"Q"  # kinds of messages to the process
READY, PLAN, ANSWER, FAILED, BUSY = b"R", b"P", b"A", b"F", b"B"  # kinds of messages from the process


def frame(kind: bytes, content: bytes = b"") -> bytes:
    """Return an encoded message."""
    return HEAD.pack(kind, len(content)) + content


def read_frame(stream: BinaryIO) -> tuple[bytes, bytes] | None:
    """Return the next message; None at the end of the stream."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    kind, length = HEAD.unpack(head)
    content = stream.read(length)
    return None if len(content) < length else (kind, content)


async def receive_frame(stream: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
    """Do :func:`read_frame` asynchronously."""
    try:
        kind, length = HEAD.unpack(await stream.readexactly(HEAD.size))
        return kind, await stream.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
