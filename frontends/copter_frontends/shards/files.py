"""Loads, sizes and memory from text files of numbers separated by commas or blanks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from copter_frontends.shards.cluster import Floats
from copter_frontends.shards.errors import ShardError


def read_rows(path: str | Path, what: str, length: int) -> list[Floats]:
    """Return the lines of a file, each with `length` numbers; empty lines and comments (#) are skipped.

    Parameters
    ----------
    path : path
    what : str
        Name of the numbers in messages, such as "loads".
    length : int
        Numbers per line: the number of shards or of servers.

    Raises
    ------
    ShardError
        If the file cannot be read or is not text, or a line has another length or a word that is not a number. The
        message names file and line.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ShardError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ShardError(f"{path}: not a text file of {what}: {error}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        words = line.replace(",", " ").split()
        if not words or words[0].startswith("#"):
            continue
        try:
            row = np.array([float(word) for word in words])
        except ValueError as error:
            raise ShardError(f"{path}, line {number}: {what} must be numbers: {error}") from error
        if len(row) != length:
            raise ShardError(f"{path}, line {number}: {len(row)} numbers, there must be {length}")
        rows.append(row)
    if not rows:
        raise ShardError(f"{path}: no {what} in it")
    return rows


def read_column(path: str | Path, what: str, length: int) -> Floats:
    """Return numbers from a file of one line, or of one number per line; raises ShardError."""
    try:
        lines = [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError):
        lines = []  # read_rows reports the error
    if len([line for line in lines if not line.startswith("#")]) <= 1:
        return read_rows(path, what, length)[0]
    rows = read_rows(path, what, 1)
    if len(rows) != length:
        raise ShardError(f"{path}: {len(rows)} {what}, there must be {length}")
    return np.concatenate(rows)
