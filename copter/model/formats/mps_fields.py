"""Splitting of MPS data lines into fields, for both layouts."""

from __future__ import annotations

from collections.abc import Callable, Container
from enum import Enum
from math import isinf

from copter.model.formats.text_lines import LineError

# 1-based columns of fixed MPS: 2-3, 5-12, 15-22, 25-36, 40-47, 50-61; what lies between must be blank.
FIELDS = (slice(1, 3), slice(4, 12), slice(14, 22), slice(24, 36), slice(39, 47), slice(49, 61))
BETWEEN = (slice(0, 1), slice(3, 4), slice(12, 14), slice(22, 24), slice(36, 39), slice(47, 49))

WITH_VALUE = ("UP", "LO", "FX", "LI", "UI", "SC", "SI")
WITHOUT_VALUE = ("FR", "MI", "PL", "BV")


class MpsError(LineError):
    """An error in an MPS file: path, line number (0 for the whole file), reason, and remedy."""


class Layout(Enum):
    """How the fields of a line are separated: by blanks (free) or by position (fixed)."""

    FREE = "free"
    FIXED = "fixed"


class FieldError(Exception):
    """An error in a line, without the line number; the caller adds the number and raises MpsError."""


Record = list[str]


def fixed_fields(line: str) -> Record:
    """Return the six stripped fields of a fixed line; raises FieldError if there is text between the fields."""
    line = line.rstrip("\r")
    if "\t" in line or any(line[gap].strip() for gap in BETWEEN) or line[61:].strip():
        raise FieldError(
            "neither layout fits: free MPS takes names without blanks, fixed MPS has its fields in columns "
            "2-3, 5-12, 15-22, 25-36, 40-47 and 50-61"
        )
    return [line[part].strip() for part in FIELDS]


def row_record(line: str, layout: Layout) -> Record:
    """Return [type, name] from a line of ROWS."""
    record = line.split() if layout is Layout.FREE else [part for part in fixed_fields(line)[:2] if part]
    if len(record) != 2:
        raise FieldError(f"{line.strip()!r}: a line of ROWS holds a type (N, L, G or E) and a name")
    return record


def column_record(line: str, layout: Layout) -> Record:
    """Return [column, row, value] or [column, row, value, row, value] from a line of COLUMNS."""
    record = line.split() if layout is Layout.FREE else pairs(fixed_fields(line)[1:])
    if len(record) not in (3, 5) or not record[0]:
        raise FieldError(f"{line.strip()!r}: a line of COLUMNS holds a column's name and one or two rows with values")
    return record


def vector_record(line: str, layout: Layout) -> Record:
    """Return [set, row, value] or [set, row, value, row, value] from a line of RHS or RANGES; the set may be empty."""
    record = line.split() if layout is Layout.FREE else pairs(fixed_fields(line)[1:])
    if len(record) in (2, 4):
        record.insert(0, "")
    if len(record) not in (3, 5):
        raise FieldError(f"{line.strip()!r}: such a line holds a set's name (or none) and one or two rows with values")
    return record


def pairs(fields: Record) -> Record:
    """Return [name, row, value] or [name, row, value, row, value] from fixed fields 2 to 6."""
    return fields if fields[3] or fields[4] else fields[:3]


def bound_record(line: str, layout: Layout, columns: Container[str]) -> Record:
    """Return [type, set, column, value] from a line of BOUNDS; set and value may be empty.

    Free lines may omit the set; the word that is a column's name then shows which field is which.
    """
    if layout is Layout.FIXED:
        kind, *rest = fixed_fields(line)[:4]
    else:
        kind, *rest = line.split()
    kind = kind.upper()
    if kind not in WITH_VALUE and kind not in WITHOUT_VALUE:
        raise FieldError(f"bound type {kind!r} is unknown: it must be one of {', '.join(WITH_VALUE + WITHOUT_VALUE)}")
    if layout is Layout.FREE:
        rest = free_bound(kind, rest, columns)
    if len(rest) != 3 or not rest[1] or (kind in WITH_VALUE and not rest[2]):
        needed = "a set's name (or none), a column" + (" and a value" if kind in WITH_VALUE else "")
        raise FieldError(f"{line.strip()!r}: a line of BOUNDS of type {kind} holds {needed}")
    return [kind, *rest]


def free_bound(kind: str, rest: Record, columns: Container[str]) -> Record:
    """Return [set, column, value] from the words after the type on a free line."""
    if kind in WITH_VALUE:
        return ["", *rest] if len(rest) == 2 else rest
    if len(rest) == 1:
        return ["", rest[0], ""]
    if len(rest) == 2:
        return [*rest, ""] if rest[1] in columns or rest[0] not in columns else ["", *rest]
    return rest


RecordMaker = Callable[[str, Layout], Record]


def number(word: str) -> float:
    """Return a field as a float; Fortran exponents (1.5D+03) are accepted."""
    try:
        value = float(word)
    except ValueError:
        try:
            value = float(word.upper().replace("D", "E"))
        except ValueError:
            raise FieldError(f"{word!r} is not a number") from None
    if "_" in word:  # float() would read 4_0 as 40
        raise FieldError(f"{word!r} is not a number")
    if value != value:
        raise FieldError(f"{word!r} is not a number that a program can have")
    if isinf(value) and any(letter in "0123456789" for letter in word):
        raise FieldError(f"{word!r} is beyond the largest number, 1.8e308: take other units, or inf for no bound")
    return value
