"""Conversion of an MPS file's sections to a LinearProgram."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter.model.formats.file_bounds import INFINITE, least_values
from copter.model.formats.mps_fields import (
    FieldError,
    Layout,
    MpsError,
    Record,
    bound_record,
    column_record,
    number,
    row_record,
    vector_record,
)
from copter.model.formats.mps_text import MpsText, Section
from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import InvalidDataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
T = TypeVar("T")

OBJECTIVE, DROPPED, UNKNOWN = -1, -2, -3  # places of rows that are not constraints
MARKER = "'MARKER'"


def program_of(text: MpsText, layout: Layout) -> LinearProgram:
    """Return the program, reading every line in one layout; raises MpsError at the first line that does not fit."""
    return ProgramReader(text, layout).program()


class ProgramReader:
    """Reader of the sections, in the order of their dependencies."""

    def __init__(self, text: MpsText, layout: Layout) -> None:
        self.text, self.layout = text, layout
        self.row_of: dict[str, int] = {}
        self.row_names: list[str] = []
        self.row_types: list[str] = []
        self.col_of: dict[str, int] = {}

    def program(self) -> LinearProgram:
        """Read all sections."""
        for needed in ("ROWS", "COLUMNS"):
            if needed not in self.text.sections:
                raise self.text.error(0, f"there is no section {needed}")
        sense = self._sense()
        self._read_rows(self.text.sections["ROWS"])
        row, column, value, integer = self._read_columns(self.text.sections["COLUMNS"])
        m, n = len(self.row_names), len(self.col_of)
        cost = np.bincount(column[row == OBJECTIVE], weights=value[row == OBJECTIVE], minlength=n)
        kept = (row >= 0) & (value != 0.0)
        matrix = sp.coo_array((value[kept], (row[kept], column[kept])), shape=(m, n))
        rhs, offset = self._read_rhs(m)
        row_lower, row_upper = self._row_bounds(rhs)
        col_lower, col_upper, semicontinuous = self._read_bounds(integer)
        try:
            return LinearProgram(
                cost,
                matrix,
                row_lower,
                row_upper,
                col_lower,
                col_upper,
                integer,
                sense,
                offset,
                self.row_names,
                list(self.col_of),
                self.text.name,
                semicontinuous,
            )
        except InvalidDataError as error:
            raise self.text.error(0, str(error)) from None

    # Sections -----------------------------------------------------------------------------------------------------

    def _sense(self) -> Literal["min", "max"]:
        section = self.text.sections.get("OBJSENSE")
        if section is None or not section.lines:
            return "min"
        word = section.lines[0].split()[0].upper()
        if word in ("MAX", "MAXIMIZE", "MAXIMISE"):
            return "max"
        if word in ("MIN", "MINIMIZE", "MINIMISE"):
            return "min"
        raise self.text.error(section.numbers[0], f"OBJSENSE is {word!r}, must be MAX or MIN")

    def _read_rows(self, section: Section) -> None:
        chosen = self.text.sections.get("OBJNAME")
        objective = chosen.lines[0].split()[0] if chosen is not None and chosen.lines else None
        found = False
        for at, (kind, name) in self._records(section, row_record):
            kind = kind.upper()
            if name in self.row_of:
                raise self.text.error(section.numbers[at], f"row {name!r} is there twice: names must be different")
            if kind == "N":
                is_objective = not found if objective is None else name == objective
                self.row_of[name] = OBJECTIVE if is_objective else DROPPED
                found = found or is_objective
            elif kind in ("L", "G", "E"):
                self.row_of[name] = len(self.row_names)
                self.row_names.append(name)
                self.row_types.append(kind)
            else:
                raise self.text.error(section.numbers[at], f"row type {kind!r} is unknown: it must be N, L, G or E")
        if objective is not None and not found:
            raise self.text.error(section.line_number, f"OBJNAME names {objective!r}, which is no row of type N")

    def _read_columns(self, section: Section) -> tuple[Ints, Ints, Floats, NDArray[np.bool_]]:
        """Return (row, column, value) of every entry, and which columns are integer."""
        marked = [at for at, line in enumerate(section.lines) if MARKER in line]
        integer_line = self._between_markers(section, marked)
        plain = section
        if marked:
            skip = set(marked)
            keep = [at for at in range(len(section.lines)) if at not in skip]
            plain = Section(
                section.line_number, [section.lines[at] for at in keep], [section.numbers[at] for at in keep]
            )
            integer_line = integer_line[keep]
        records = [record for _, record in self._records(plain, column_record)]
        col_of = self.col_of
        column = np.array([col_of.setdefault(record[0], len(col_of)) for record in records], dtype=np.int64)
        integer = np.zeros(len(col_of), dtype=np.bool_)
        integer[column[integer_line]] = True
        line, row, value = self._entries(plain, records)
        infinite = np.flatnonzero(np.isinf(value))
        if len(infinite):
            raise self.text.error(
                plain.numbers[line[infinite[0]]], "the value is infinite: coefficients must be finite"
            )
        self._warn_of_duplicates(plain, row, column[line], line)
        return row, column[line], value, integer

    def _warn_of_duplicates(self, section: Section, row: Ints, column: Ints, line: Ints) -> None:
        """Warn if an entry occurs twice; the values are added."""
        kept = np.flatnonzero(row != DROPPED)
        key = column[kept] * (len(self.row_names) + 1) + row[kept] + 1
        order = np.lexsort((line[kept], key))
        again = order[1:][np.diff(key[order]) == 0]
        if len(again):
            at = int(kept[again[np.argmin(line[kept[again]])]])
            name = list(self.col_of)[int(column[at])]
            where = "the objective" if row[at] == OBJECTIVE else f"row {self.row_names[int(row[at])]!r}"
            warnings.warn(
                f"{self.text.path}, line {section.numbers[int(line[at])]}: column {name!r} has a second entry in "
                f"{where}; {len(again)} entries are given more than once, and are added up",
                stacklevel=6,
            )

    def _between_markers(self, section: Section, marked: list[int]) -> NDArray[np.bool_]:
        """Return which lines of COLUMNS are between INTORG and INTEND."""
        inside = np.zeros(len(section.lines), dtype=np.bool_)
        opened: int | None = None
        for at in marked:
            word = section.lines[at].split()[-1].strip("'").upper()
            if word == "INTORG" and opened is None:
                opened = at
            elif word == "INTEND" and opened is not None:
                inside[opened:at] = True
                opened = None
            elif word not in ("INTORG", "INTEND"):
                raise self.text.error(section.numbers[at], f"marker {word!r} is unknown: it must be INTORG or INTEND")
        if opened is not None:
            inside[opened:] = True
        return inside

    def _entries(self, section: Section, records: list[Record]) -> tuple[Ints, Ints, Floats]:
        """Return (record, row, value) of all pairs; raises MpsError for an unknown row or a value that is not a
        number.
        """
        second = [at for at, record in enumerate(records) if len(record) == 5]
        words = [record[2] for record in records] + [records[at][4] for at in second]
        names = [record[1] for record in records] + [records[at][3] for at in second]
        line = np.concatenate((np.arange(len(records)), np.array(second, dtype=np.int64)))
        row_of = self.row_of
        row = np.array([row_of.get(name, UNKNOWN) for name in names], dtype=np.int64)
        unknown = np.flatnonzero(row == UNKNOWN)
        if len(unknown):
            at = int(unknown[np.argmin(line[unknown])])
            raise self.text.error(
                section.numbers[line[at]], f"row {names[at]!r} is not in ROWS: add it there or mend the name"
            )
        try:
            value = np.array([float(word) for word in words], dtype=np.float64)
        except ValueError:
            value = np.array([self._at(section, int(line[at]), number, word) for at, word in enumerate(words)])
        odd = set(np.flatnonzero(~np.isfinite(value)).tolist())
        odd |= {at for at, word in enumerate(words) if "_" in word}
        for wrong in sorted(odd):
            self._at(section, int(line[wrong]), number, words[wrong])
        return line, row, value

    def _read_vector(self, keyword: str) -> tuple[Section, list[Record]]:
        """Return the records of RHS or RANGES that belong to the first set."""
        section = self.text.sections.get(keyword, Section(0))
        return self._first_set(keyword, section, list(self._records(section, vector_record)), 0)

    def _read_rhs(self, m: int) -> tuple[Floats, float]:
        """Return (right-hand side of every row, objective constant); the last of several values for a row is used."""
        section, records = self._read_vector("RHS")
        _, row, value = self._entries(section, records)
        rhs = np.zeros(m)
        rhs[row[row >= 0]] = beyond(value[row >= 0])
        constant = value[row == OBJECTIVE]
        return rhs, -float(constant[-1]) if len(constant) and constant[-1] != 0.0 else 0.0

    def _row_bounds(self, rhs: Floats) -> tuple[Floats, Floats]:
        """Return the rows' bounds from types, right-hand sides and RANGES."""
        kind = np.array(self.row_types, dtype="U1")
        lower = np.where(kind == "L", -np.inf, rhs)
        upper = np.where(kind == "G", np.inf, rhs)
        section, records = self._read_vector("RANGES")
        _, row, value = self._entries(section, records)
        row, span = row[row >= 0], beyond(value[row >= 0])
        kinds, size = kind[row], np.abs(span)
        down = (kinds == "L") | ((kinds == "E") & (span < 0))
        lower[row[down]] = rhs[row[down]] - size[down]
        upper[row[~down]] = rhs[row[~down]] + size[~down]
        return lower, upper

    def _read_bounds(self, integer: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Return the columns' bounds and the least values of semi-continuous columns; updates `integer` from the bound
        types.
        """
        n = len(self.col_of)
        lower, upper = np.zeros(n), np.full(n, np.inf)
        bounded, has_lower = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        section = self.text.sections.get("BOUNDS", Section(0))
        records = list(self._records(section, lambda line, layout: bound_record(line, layout, self.col_of)))
        section, chosen = self._first_set("BOUNDS", section, records, 1)
        semicontinuous: list[int] = []
        for at, (kind, _, name, word) in enumerate(chosen):
            j = self.col_of.get(name, UNKNOWN)
            if j == UNKNOWN:
                raise self.text.error(
                    section.numbers[at], f"column {name!r} is not in COLUMNS: add it there or mend the name"
                )
            bounded[j] = True
            value = float(beyond(self._at(section, at, number, word))) if word else 0.0
            if kind in ("UP", "UI", "SC", "SI"):
                upper[j] = value
                if kind in ("SC", "SI"):
                    semicontinuous.append(j)
                if value < 0 and not has_lower[j] and lower[j] == 0.0:
                    lower[j] = -np.inf
            elif kind in ("LO", "LI"):
                lower[j], has_lower[j] = value, True
            elif kind == "FX":
                lower[j], upper[j], has_lower[j] = value, value, True
            elif kind == "BV":
                lower[j], upper[j], has_lower[j] = 0.0, 1.0, True
            else:  # FR, MI, PL
                if kind != "PL":
                    lower[j], has_lower[j] = -np.inf, True
                if kind != "MI":
                    upper[j] = np.inf
            if kind in ("LI", "UI", "BV", "SI"):
                integer[j] = True
        upper[integer & ~bounded] = 1.0
        return lower, upper, self._least_values(semicontinuous, lower, upper)

    def _least_values(self, semicontinuous: list[int], lower: Floats, upper: Floats) -> Floats:
        """Return the least values of semi-continuous columns, whose bounds then include zero; raises if they cross."""
        crossed = next((j for j in semicontinuous if lower[j] > upper[j] and upper[j] < 0.0), None)
        if crossed is not None:
            name = list(self.col_of)[crossed]
            raise self.text.error(
                self.text.sections["BOUNDS"].line_number,
                f"semi-continuous column {name!r}: lower bound {lower[crossed]} is above upper bound {upper[crossed]}",
            )
        return least_values(semicontinuous, lower, upper, str(self.text.path))

    # Helpers ------------------------------------------------------------------------------------------------------

    def _records(self, section: Section, make: Callable[[str, Layout], Record]) -> Iterator[tuple[int, Record]]:
        """Yield (place, record) of every line of a section."""
        layout = self.layout
        for at, line in enumerate(section.lines):
            try:
                yield at, make(line, layout)
            except FieldError as error:
                raise self.text.error(section.numbers[at], str(error)) from None

    def _at(self, section: Section, at: int, make: Callable[[str], T], word: str) -> T:
        """Return make(word); a FieldError is raised again as an MpsError that names the line."""
        try:
            return make(word)
        except FieldError as error:
            raise self.text.error(section.numbers[at], str(error)) from None

    def _first_set(
        self, keyword: str, section: Section, records: list[tuple[int, Record]], place: int
    ) -> tuple[Section, list[Record]]:
        """Return the records of the first set, with their lines; warns if there are other sets."""
        first = records[0][1][place] if records else ""
        mine = [(at, record) for at, record in records if record[place] == first]
        if len(mine) < len(records):
            other = next(record[place] for _, record in records if record[place] != first)
            warnings.warn(
                f"{self.text.path}: of section {keyword} only the first set, {first!r}, is read, not {other!r}",
                stacklevel=6,
            )
        kept = Section(section.line_number, numbers=[section.numbers[at] for at, _ in mine])
        return kept, [record for _, record in mine]


def beyond(value: Any) -> Any:
    """Return the values with sizes of 1e20 and more replaced by infinity."""
    return np.where(np.abs(value) >= INFINITE, np.copysign(np.inf, value), value)


__all__ = ["MpsError", "program_of"]
