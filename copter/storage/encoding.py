"""Binary encoding of plain values: numbers, text, tuples, arrays. Decoding never executes code.

Every value is a tag of one byte and its content, little-endian; arrays are written without a copy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from copter.errors import InvalidDataError, SnapshotError

DEEPEST = 64  # most levels of nested tuples
TEXT = frozenset((str,))
SMALL = 4096  # bytes; larger arrays are written from their own memory, without a copy
ARRAYS = {b"d": "<f8", b"f": "<f4", b"i": "<i4", b"q": "<i8", b"B": "|u1", b"?": "|b1"}
CODES = {np.dtype(kind).newbyteorder("="): code for code, kind in ARRAYS.items()}

Buffers = list[bytes | memoryview]
COUNT = struct.Struct("<Q")
NUMBER = struct.Struct("<d")


def encode(value: Any) -> Buffers:
    """Encode a value: None, bool, int, float, str, bytes, tuples, lists and dicts of these, NumPy arrays.

    Raises
    ------
    InvalidDataError
        For other types; they could not be read back safely.
    """
    parts: Buffers = []
    pending = bytearray()
    _write(value, parts, pending, 0)
    parts.append(bytes(pending))
    return parts


def _write(value: Any, parts: Buffers, out: bytearray, depth: int) -> None:
    if depth > DEEPEST:
        raise InvalidDataError(f"a value is nested more than {DEEPEST} levels deep")
    kind = type(value)
    if value is None:
        out += b"N"
    elif kind is bool or isinstance(value, np.bool_):
        out += b"T" if value else b"F"
    elif kind is int or isinstance(value, np.integer):
        number = int(value)
        _counted(b"I", number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True), out)
    elif kind is float or isinstance(value, np.floating):
        out += b"D" + NUMBER.pack(float(value))
    elif kind is str or isinstance(value, np.str_):
        _counted(b"S", str(value).encode("utf-8", "surrogatepass"), out)
    elif kind is bytes:
        _counted(b"Y", value, out)
    elif kind in (tuple, list):
        out += (b"(" if kind is tuple else b"[") + COUNT.pack(len(value))
        if depth < DEEPEST and TEXT.issuperset(
            map(type, value)
        ):  # inlined for names of many requests, where a call per name would take most of the time
            texts = [item.encode("utf-8", "surrogatepass") for item in value]
            out += b"".join([b"S" + COUNT.pack(len(text)) + text for text in texts])
            return
        for item in value:
            _write(item, parts, out, depth + 1)
    elif kind is dict:
        out += b"{" + COUNT.pack(len(value))
        for key, item in value.items():
            _write(key, parts, out, depth + 1)
            _write(item, parts, out, depth + 1)
    elif kind is np.ndarray and value.dtype in CODES:
        _write_array(value, parts, out)
    else:
        raise InvalidDataError(
            f"{value!r} is a {kind.__name__}, which cannot be saved: ids must be str, int, float, bool, None, bytes or "
            "tuples of these"
        )


def _counted(tag: bytes, content: bytes, out: bytearray) -> None:
    out += tag
    out += COUNT.pack(len(content))
    out += content


def _write_array(array: np.ndarray[Any, Any], parts: Buffers, out: bytearray) -> None:
    code = CODES[array.dtype]
    out += b"A" + code + bytes([array.ndim])
    for length in array.shape:
        out += COUNT.pack(length)
    plain = np.ascontiguousarray(array, dtype=ARRAYS[code])
    if plain.nbytes <= SMALL:
        out += plain.tobytes()
        return
    parts.append(bytes(out))
    out.clear()
    parts.append(plain.data.cast("B"))


class Reader:
    """Decoder that checks every length against the remaining data.

    Parameters
    ----------
    data : bytes or memoryview
    where : str
        Name of the data in errors.
    """

    def __init__(self, data: bytes | memoryview, where: str) -> None:
        self.data, self.where, self.at = memoryview(data), where, 0

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

    def items(self, depth: int) -> list[Any]:
        """Decode a count and that many values."""
        return [self.value(depth + 1) for _ in range(self.count())]

    def pairs(self, depth: int) -> dict[Any, Any]:
        """Decode a dictionary."""
        try:
            return {self.value(depth + 1): self.value(depth + 1) for _ in range(self.count())}
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
