"""Reading of a text file line by line, plain or gzipped, with size limits and errors that name file and line."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any, TypeVar

from copter.runtime.errors import InvalidDataError
from copter.storage.files import PathLike
from copter.storage.inputs import opened

T = TypeVar("T")

BLOCK = 1_000_000  # bytes read at a time
GZIP = b"\x1f\x8b"  # first bytes of a gzip file
# A packed file may hold so many times its own bytes, and so many in any case: text of a program packs to a tenth or
# less, and a reader needs some twenty times the memory of the text.
TIMES, FREELY = 50, 1 << 22
LONGEST = 400  # most characters of an error message, because it may quote long text of the file


class LineError(InvalidDataError):
    """An error in a line of a file: path, line number (0 for the whole file), reason, and remedy."""

    def __init__(self, path: str, line_number: int, message: str) -> None:
        where = f"{path}, line {line_number}" if line_number else path
        if len(message) > LONGEST:
            message = f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
        super().__init__(f"{where}: {message}")
        self.line_number = line_number


Fail = Callable[[str, int, str], LineError]


def with_lines(path: PathLike, fail: Fail, what: str, longest: int, use: Callable[[Iterable[tuple[int, str]]], T]) -> T:
    """Call `use` with the (number, line) pairs of a file; errors are made by `fail` if the file cannot be read.

    Parameters
    ----------
    path : path
        Compression is told by content.
    fail : callable
        Makes an error of path, line number and message.
    what : str
        The kind of file, for messages.
    longest : int
        Most bytes of a line.
    use : callable
    """
    name = os.fspath(path)
    try:
        with opened(path) as file:
            packed = file.peek(2)[:2] == GZIP
            most = max(FREELY, TIMES * os.fstat(file.fileno()).st_size) if packed else None
            with gzip.open(file) if packed else nullcontext(file) as stream:
                return use(lines_of(name, stream, fail, what, longest, most))
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise fail(name, 0, f"cannot be read: {reason}") from None


def lines_of(
    path: str, stream: Any, fail: Fail, what: str, longest: int, most: int | None = None
) -> Iterator[tuple[int, str]]:
    """Yield (number, line without its end) from a stream, one block at a time, so that blank lines take no memory.

    A stream of more than `most` bytes is refused.
    """

    def decoded(number: int, line: bytes) -> str:
        if b"\0" in line:
            raise fail(path, number, f"the line holds a NUL byte: this is no {what} file, or it is damaged")
        if len(line) > longest:
            raise fail(path, number, f"the line is longer than {longest:,} bytes: this is no {what} file")
        try:
            return line.decode()
        except UnicodeDecodeError:
            return line.decode("latin-1")

    rest, number, size, first = b"", 0, 0, True
    while block := stream.read(BLOCK):
        size += len(block)
        if most is not None and size > most:
            raise fail(path, 0, f"it unpacks to more than {most:,} bytes, {TIMES} times its own: unpack it first")
        if first:
            block, first = block.removeprefix(codecs.BOM_UTF8), False
            if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise fail(path, 1, "the file is written in UTF-16: save it as UTF-8")
        if not rest and not block.strip():
            number += block.count(b"\n")
            continue
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            number += 1
            yield number, decoded(number, line)
        if len(rest) > longest:
            decoded(number + 1, rest)
    yield number + 1, decoded(number + 1, rest)
