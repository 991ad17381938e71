"""Writing of lines to a text file, compressed if its name ends in .gz."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable

from copter.storage.files import PathLike, write_atomically


def write_lines(path: PathLike, lines: Iterable[str]) -> None:
    """Write a file completely or not at all; gzipped if the path ends in .gz."""
    data = "\n".join(lines).encode() + b"\n"
    if os.fspath(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    write_atomically(path, [data])
