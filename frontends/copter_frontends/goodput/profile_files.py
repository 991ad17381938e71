"""Reader of a profile file's columns, with checks."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import InvalidDataError
from copter.storage.inputs import contents

Column = NDArray[np.float64] | NDArray[np.str_]


def read_columns(path: Path, names: Sequence[str]) -> dict[str, Column]:
    """Read named columns of a CSV file in any order; ``placement`` as text, others as numbers.

    Raises
    ------
    InvalidDataError
        If the file cannot be read, lacks a column or a row, or has a cell that is not a finite number.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(contents(path).decode("utf-8"), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidDataError(f"{path}: cannot be read: {error}") from error
    if not rows:
        raise InvalidDataError(f"{path}: holds no rows")
    missing = [name for name in names if name not in rows[0]]
    if missing:
        raise InvalidDataError(f"{path}: lacks the column {', '.join(missing)}")
    return {name: _column(path, name, [row[name] for row in rows]) for name in names}


def _column(path: Path, name: str, cells: Sequence[str | None]) -> Column:
    if name == "placement":
        for i, cell in enumerate(cells):
            if not (cell and cell.isdigit() and "0" not in cell):
                raise InvalidDataError(f"{path}, line {i + 2}: placement is {cell!r}, must be a digit 1 to 9 a node")
        return np.array(cells, dtype=np.str_)
    values = np.empty(len(cells))
    for i, cell in enumerate(cells):
        try:
            values[i] = float(cell or "")
        except ValueError:
            values[i] = np.nan
        if not np.isfinite(values[i]):
            raise InvalidDataError(f"{path}, line {i + 2}: {name} is {cell!r}, must be a finite number")
    return values
