"""Binary encoding of plain values: numbers, text, tuples, arrays. Decoding never executes code.

Every value is a tag of one byte and its content, little-endian; arrays are written without a copy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from copter.runtime.errors import InvalidDataError, SnapshotError
from copter.storage.encoder import ARRAYS, DEEPEST, Encoder

Buffers = list[bytes | memoryview]
COUNT = struct.Struct("<Q")
NUMBER = struct.Struct("<d")


def encode(value: Any) -> Buffers:
    """Encode a value: None, bool, int, float, str, bytes, tuples, lists and dicts of these, NumPy arrays.

    Large arrays are not copied: write them before they change.

    Raises
    ------
    InvalidDataError
        For other types; they could not be read back safely.
    """
    try:
        return Encoder(False, refused).pieces(value)
    except RecursionError:
        raise too_deep() from None


def too_deep() -> InvalidDataError:
    """Return the error for a value that has too many levels."""
    return InvalidDataError(f"a value is nested more than {DEEPEST} levels deep")


def refused(value: Any) -> Any:
    """Raise InvalidDataError for a value of a type that cannot be written."""
    raise InvalidDataError(
        f"{value!r} is a {type(value).__name__}, which cannot be saved: ids must be str, int, float, bool, None, bytes "
        "or tuples of these"
    )


class Reader:
    """Decoder that checks every length against the remaining data.

    Parameters
    ----------
    data : bytes or memoryview
    where : str
        Name of the data in errors.
    most : int, optional
        Most values that it may hold: an empty list of nine bytes takes six times its size in memory.
    """

    def __init__(self, data: bytes | memoryview, where: str, most: int | None = None) -> None:
        self.data, self.where, self.at = memoryview(data), where, 0
        self.left = len(self.data) if most is None else most

    def value(self, depth: int = 0) -> Any:
        """Decode the next value."""
        tag = bytes(self.take(1))
        if depth > DEEPEST or tag not in READERS:
            self.refuse(f"no value begins with {tag!r}" if depth <= DEEPEST else "values are nested too deep")
        return READERS[tag](self, depth)

    def whole(self) -> Any:
        """Decode the only value in the data; raises SnapshotError if more bytes follow."""
        value = self.value()
        if self.at != len(self.data):
            self.refuse("there is more than one value")
        return value

    def refuse(self, why: str) -> None:
        """Raise SnapshotError with the reason and the byte position."""
        raise SnapshotError(f"{self.where} is not readable at byte {self.at}: {why}")

    def take(self, count: int) -> memoryview:
        """Return the next `count` bytes."""
        if count > len(self.data) - self.at:
            self.refuse(f"{count} bytes are needed, {len(self.data) - self.at} are there")
        self.at += count
        return self.data[self.at - count : self.at]

    def count(self) -> int:
        """Decode a count of items, which take at least a byte each."""
        number: int = COUNT.unpack(self.take(8))[0]
        if number > len(self.data):
            self.refuse(f"a length of {number} is beyond the data")
        return number

    def text(self) -> str:
        """Decode a string."""
        content = bytes(self.take(self.count()))
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            self.refuse("text is not UTF-8")
            raise

    def values(self, each: int) -> int:
        """Decode a count of items of so many values each; raises SnapshotError if the data may not hold so many."""
        number = self.count()
        self.left -= each * number
        if self.left < 0:
            self.refuse("it holds more values than its bytes in the file allow")
        return number

    def items(self, depth: int) -> list[Any]:
        """Decode a count and that many values."""
        return [self.value(depth + 1) for _ in range(self.values(1))]

    def pairs(self, depth: int) -> dict[Any, Any]:
        """Decode a dictionary."""
        try:
            return {self.value(depth + 1): self.value(depth + 1) for _ in range(self.values(2))}
        except TypeError:
            self.refuse("a key is not hashable")
            raise

    def array(self) -> np.ndarray[Any, Any]:
        """Decode an array, copied from the buffer."""
        code = bytes(self.take(1))
        if code not in ARRAYS:
            self.refuse(f"no array has type {code!r}")
        dtype = np.dtype(ARRAYS[code])
        shape = tuple(COUNT.unpack(self.take(8))[0] for _ in range(self.take(1)[0]))
        size = 1
        for length in shape:
            size *= length
        content = self.take(size * dtype.itemsize)
        try:
            return np.frombuffer(content, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="))
        except ValueError:
            self.refuse(f"an array has shape {shape}")
            raise


READERS: dict[bytes, Callable[[Reader, int], Any]] = {
    b"N": lambda reader, depth: None,
    b"T": lambda reader, depth: True,
    b"F": lambda reader, depth: False,
    b"I": lambda reader, depth: int.from_bytes(reader.take(reader.count()), "little", signed=True),
    b"D": lambda reader, depth: NUMBER.unpack(reader.take(8))[0],
    b"S": lambda reader, depth: reader.text(),
    b"Y": lambda reader, depth: bytes(reader.take(reader.count())),
    b"(": lambda reader, depth: tuple(reader.items(depth)),
    b"[": lambda reader, depth: reader.items(depth),
    b"{": lambda reader, depth: reader.pairs(depth),
    b"A": lambda reader, depth: reader.array(),
}
