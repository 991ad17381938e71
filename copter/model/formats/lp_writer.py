"""Writer of LP files that reads back as the same program."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from copter.model.formats.file_bounds import require_finite_sizes
from copter.model.formats.lines import write_lines
from copter.model.formats.lp_reader import INFINITY
from copter.problem.linear_program import LinearProgram, require_program
from copter.runtime.errors import InvalidDataError
from copter.storage.files import PathLike

NAME = re.compile(r"""[A-Za-z!"#$%&(),;?@_'`{}~|][^\s+\-*^<>=:\\/]{0,254}""")
RESERVED = {
    *("min", "max", "minimize", "maximize", "minimise", "maximise", "minimum", "maximum", "st", "s.t.", "st."),
    *("bounds", "bound", "general", "generals", "gen", "integer", "integers", "int", "binary", "binaries", "bin"),
    *("semi", "semis", "semi-continuous", "free", "end", "sos", "sos1", "sos2", "subject", "such", *INFINITY),
}
TERMS = 8  # terms written on one line
FREE_ROW = "-1e+30"  # right-hand side of a row without bounds


def write_lp(lp: LinearProgram, path: PathLike) -> None:
    """Write a program in CPLEX's LP format with all digits, gzipped if the path ends in .gz.

    Parameters
    ----------
    lp : LinearProgram
        Rows and columns without names are called r0, r1, ... and c0, c1, ...
    path : path
        Written completely or not at all.

    Raises
    ------
    InvalidDataError
        For a finite bound of 1e20 or more, which readers take as infinite; for a name that the format cannot hold
        (blanks, operators, a digit first, a keyword), and for rows without a column: MPS holds them all.
    SnapshotError
        If the file cannot be written.

    Notes
    -----
    :func:`copter.read_lp` reads back the same program, bit for bit.
    """
    require_program(lp)
    m, n = lp.shape
    rows = lp.row_names or tuple(f"r{i}" for i in range(m))
    columns = lp.col_names or tuple(f"c{j}" for j in range(n))
    for what, names in (("row", rows), ("column", columns)):
        for name in names:
            if NAME.fullmatch(name) is None or name.lower() in RESERVED:
                raise InvalidDataError(
                    f"the name of {what} {name[:100]!r} cannot stand in an LP file: rename it, or write MPS"
                )
    require_finite_sizes(lp, "LP")
    if m and not n:
        raise InvalidDataError("rows without a column cannot stand in an LP file: write MPS")
    write_lines(path, lines_of(lp, rows, columns))


def lines_of(lp: LinearProgram, rows: tuple[str, ...], columns: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of the file. The objective names every column, so that readers keep the column order."""
    if lp.name:
        yield f"\\Problem name: {' '.join(lp.name.split())}"
    yield "Maximize" if lp.sense == "max" else "Minimize"
    yield from wrapped(" obj:", [term(value, name) for value, name in zip(lp.c.tolist(), columns, strict=True)])
    if lp.offset:
        yield f"  {signed(lp.offset)}"
    yield "Subject To"
    yield from row_lines(lp, rows, columns)
    bounds = list(bound_lines(lp, columns))
    if bounds:
        yield "Bounds"
        yield from bounds
    whole = np.flatnonzero(lp.integrality).tolist()
    if whole:
        yield "General"
        yield from wrapped("", [columns[j] for j in whole])
    some = np.flatnonzero(lp.semicontinuous).tolist()
    if some:
        yield "Semi-Continuous"
        yield from wrapped("", [columns[j] for j in some])
    yield "End"


def row_lines(lp: LinearProgram, rows: tuple[str, ...], columns: tuple[str, ...]) -> Iterator[str]:
    """Yield the rows; a row with two bounds becomes a range."""
    by_row = sp.csr_array(lp.A)
    by_row.sort_indices()
    start, index, data = by_row.indptr.tolist(), by_row.indices.tolist(), by_row.data.tolist()
    for i, name in enumerate(rows):
        lower, upper = float(lp.row_lower[i]), float(lp.row_upper[i])
        part = range(start[i], start[i + 1])
        terms = [term(data[at], columns[index[at]]) for at in part] or [term(0.0, columns[0])]
        head = f" {name}:"
        if np.isfinite(lower) and np.isfinite(upper) and lower < upper:
            head += f" {lower!r} <="
        *most, last = wrapped(head, terms)
        yield from most
        if lower == upper:
            yield f"{last} = {upper!r}"
        elif np.isfinite(upper):
            yield f"{last} <= {upper!r}"
        else:
            yield f"{last} >= {repr(lower) if np.isfinite(lower) else FREE_ROW}"


def bound_lines(lp: LinearProgram, columns: tuple[str, ...]) -> Iterator[str]:
    """Yield the bounds that differ from the default, zero to infinity."""
    special = (lp.col_lower != 0.0) | np.signbit(lp.col_lower) | np.isfinite(lp.col_upper)
    for j in np.flatnonzero(special).tolist():
        lower, upper, name = float(lp.col_lower[j]), float(lp.col_upper[j]), columns[j]
        if lp.semicontinuous[j]:
            lower = float(lp.semicontinuous[j])
        if lower == upper:
            yield f" {name} = {lower!r}"
        elif np.isinf(lower) and np.isinf(upper):
            yield f" {name} free"
        elif np.isinf(upper):
            yield f" {name} >= {lower!r}"
        else:
            yield f" {'-inf' if np.isinf(lower) else repr(lower)} <= {name} <= {upper!r}"


def term(value: float, name: str) -> str:
    """Return a signed coefficient and its column, as text."""
    return f"{signed(value)} {name}"


def signed(value: float) -> str:
    """Return a number as text, with its sign separated."""
    return f"{'-' if np.signbit(value) else '+'} {abs(value)!r}"


def wrapped(head: str, words: list[str]) -> Iterator[str]:
    """Yield the words on several lines, the first after `head`; no line starts with a plus, which some readers
    reject.
    """
    words = [words[0].removeprefix("+ "), *words[1:]] if words else words
    for at in range(0, max(len(words), 1), TERMS):
        yield f"{head if at == 0 else ' '} {' '.join(words[at : at + TERMS])}".rstrip()
