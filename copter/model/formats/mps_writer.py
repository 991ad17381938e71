"""Writer of MPS files that read back as the same program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.model.formats.file_bounds import require_finite_sizes
from copter.model.formats.lines import write_lines
from copter.problem.linear_program import LinearProgram, require_program
from copter.runtime.errors import InvalidDataError
from copter.storage.files import PathLike

Floats = NDArray[np.float64]
Line = Callable[..., str]

FREE_ROW = "-1e+30"  # right-hand side of a G row without bounds; N rows would be dropped on reading


def write_mps(lp: LinearProgram, path: PathLike) -> None:
    """Write a program as MPS: free layout with all digits, gzipped if the path ends in .gz.

    Parameters
    ----------
    lp : LinearProgram
        Rows and columns without names are called r0, r1, ... and c0, c1, ...
    path : path
        Written completely or not at all.

    Raises
    ------
    InvalidDataError
        For a finite bound of 1e20 or more, which readers take as infinite. For a name with blanks (which only the
        fixed layout can hold) if another name is longer than 8 characters or a number needs more than 12.
    SnapshotError
        If the file cannot be written.

    Notes
    -----
    :func:`copter.read_mps` reads back the same program, bit for bit, with one exception: if the difference of a row's
    two finite bounds is no double, one bound changes by a rounding error.

    Examples
    --------
    >>> import copter, tempfile
    >>> lp = copter.LinearProgram([-1.0], [[2.0]], row_upper=3.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     copter.write_mps(lp, folder + "/lp.mps")
    ...     copter.read_mps(folder + "/lp.mps").c.tolist()
    [-1.0]
    """
    require_program(lp)
    require_finite_sizes(lp, "MPS")
    write_lines(path, lines_of(lp))


def lines_of(lp: LinearProgram) -> Iterator[str]:
    """Yield the lines of the file."""
    m, n = lp.shape
    rows = lp.row_names or tuple(f"r{i}" for i in range(m))
    columns = lp.col_names or tuple(f"c{j}" for j in range(n))
    line = fixed_line if any(len(name.split()) != 1 for name in (*rows, *columns)) else free_line
    objective = unused(rows, "obj")
    yield f"NAME {lp.name}".rstrip()
    if lp.sense == "max":
        yield "OBJSENSE"
        yield "    MAX"
    kinds = row_kinds(lp)
    yield "ROWS"
    yield line("N", objective)
    for kind, name in zip(kinds.tolist(), rows, strict=True):
        yield line(kind, name)
    yield "COLUMNS"
    yield from column_lines(lp, line, rows, columns, objective)
    rhs, ranges = right_hand_sides(lp, kinds)
    yield "RHS"
    if lp.offset != 0.0:
        yield line("", "RHS", objective, -lp.offset)
    for i in np.flatnonzero((rhs != 0.0) | np.signbit(rhs)):
        yield line("", "RHS", rows[i], FREE_ROW if np.isinf(rhs[i]) else rhs[i])
    if (ranges > 0.0).any():
        yield "RANGES"
        for i in np.flatnonzero(ranges > 0.0):
            yield line("", "RANGE", rows[i], ranges[i])
    bounds = list(bound_lines(lp, line, columns))
    if bounds:
        yield "BOUNDS"
        yield from bounds
    yield "ENDATA"


def free_line(kind: str, first: str, second: str = "", value: Any = "") -> str:
    """Return the fields separated by blanks, numbers with all their digits."""
    text = value if isinstance(value, str) else repr(float(value))
    return f" {kind:<2} {first:<8}  {second:<8}  {text}".rstrip()


def fixed_line(kind: str, first: str, second: str = "", value: Any = "") -> str:
    """Return the fields in their fixed columns; raises InvalidDataError for a field that is too long."""
    for name in (first, second):
        if len(name) > 8 or name != name.strip() or "\t" in name or "\n" in name:
            raise InvalidDataError(
                f"name {name!r} cannot be written: where a name holds blanks, MPS has room for 8 characters a name; "
                "rename rows and columns"
            )
    text = value if isinstance(value, str) else short(float(value))
    return f" {kind:<2} {first:<8}  {second:<8}  {text}".rstrip()


def short(value: float) -> str:
    """Return a number as text of at most 12 characters that reads back as the same number."""
    for text in (repr(value), f"{value:.12g}", f"{value:.6e}"):
        if len(text) <= 12 and float(text) == value:
            return text
    raise InvalidDataError(
        f"{value!r} cannot be written in 12 characters, all that MPS has where a name holds blanks; "
        "rename rows and columns so that names have no blanks"
    )


def unused(names: tuple[str, ...], wish: str) -> str:
    """Return a name for the objective that no row has."""
    taken, candidate, count = set(names), wish, 0
    while candidate in taken:
        count += 1
        candidate = f"{wish}{count}"
    return candidate


def row_kinds(lp: LinearProgram) -> NDArray[np.str_]:
    """Return every row's type; a row with two bounds gets the type that gives both bounds exactly."""
    lower, upper = lp.row_lower, lp.row_upper
    kinds = np.where(np.isinf(lower) & np.isfinite(upper), "L", "G")
    kinds[lower == upper] = "E"
    for i in np.flatnonzero(np.isfinite(lower) & np.isfinite(upper) & (lower < upper)):
        kinds[i] = "L" if span(lower[i], upper[i], "G") is None else "G"
    return kinds


def span(lower: float, upper: float, kind: str) -> float | None:
    """Return the range value that reproduces both bounds exactly, or None."""
    with np.errstate(over="ignore"):
        middle = upper - lower
    for value in (middle, np.nextafter(middle, np.inf), np.nextafter(middle, 0.0)):
        if np.isfinite(value) and (lower + value == upper if kind == "G" else upper - value == lower):
            return float(value)
    return None


def right_hand_sides(lp: LinearProgram, kinds: NDArray[np.str_]) -> tuple[Floats, Floats]:
    """Return (right-hand side, range value or 0) of every row."""
    rhs = np.where(kinds == "L", lp.row_upper, lp.row_lower)
    ranges = np.zeros(len(rhs))
    for i in np.flatnonzero(np.isfinite(lp.row_lower) & np.isfinite(lp.row_upper) & (kinds != "E")):
        exact = span(lp.row_lower[i], lp.row_upper[i], str(kinds[i]))
        ranges[i] = lp.row_upper[i] - lp.row_lower[i] if exact is None else exact
    return rhs, ranges


def column_lines(
    lp: LinearProgram, line: Line, rows: tuple[str, ...], columns: tuple[str, ...], objective: str
) -> Iterator[str]:
    """Yield the lines of COLUMNS, with markers around runs of integer columns; an empty column gets a cost of 0."""
    start, index, data = lp.A.indptr.tolist(), lp.A.indices.tolist(), lp.A.data.tolist()
    cost, integer = lp.c.tolist(), lp.integrality.tolist()
    inside = False
    for j, name in enumerate(columns):
        if integer[j] != inside:
            inside = integer[j]
            yield marker(inside)
        if cost[j] != 0.0 or start[j] == start[j + 1]:
            yield line("", name, objective, cost[j])
        for at in range(start[j], start[j + 1]):
            yield line("", name, rows[index[at]], data[at])
    if inside:
        yield marker(False)


def marker(begins: bool) -> str:
    """Return a line that begins or ends a run of integer columns, valid in both layouts."""
    return f"    MARKER    'MARKER'                 '{'INTORG' if begins else 'INTEND'}'"


def bound_lines(lp: LinearProgram, line: Line, columns: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of BOUNDS; continuous columns from zero to infinity have none, integer columns always have
    one.
    """
    some = lp.semicontinuous > 0.0
    special = some | (lp.col_lower != 0.0) | np.signbit(lp.col_lower) | np.isfinite(lp.col_upper) | lp.integrality
    for j in np.flatnonzero(special):
        lower, upper, name = lp.col_lower[j], lp.col_upper[j], columns[j]
        if some[j]:
            yield line("SI" if lp.integrality[j] else "SC", "BND", name, upper)
            yield line("LO", "BND", name, lp.semicontinuous[j])
        elif lower == upper:
            yield line("FX", "BND", name, lower)
        elif np.isinf(lower) and np.isinf(upper):
            yield line("FR", "BND", name)
        else:
            if np.isinf(lower):
                yield line("MI", "BND", name)
            elif lower != 0.0 or np.signbit(lower):
                yield line("LO", "BND", name, lower)
            if np.isfinite(upper):
                yield line("UP", "BND", name, upper)
            elif lower == 0.0:
                yield line("PL", "BND", name)
