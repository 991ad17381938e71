"""An MPS file as text: its sections, each with its lines and their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from copter.model.formats.mps_fields import MpsError
from copter.model.formats.refused import refusal
from copter.model.formats.text_lines import with_lines
from copter.storage.files import PathLike, require_path

LONGEST_LINE = 65_536  # most bytes of a line
SECTIONS = ("NAME", "OBJSENSE", "OBJNAME", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")
SETS = ("RHS", "RANGES", "BOUNDS")  # also common names of vectors, so data lines may start with these words
FOREIGN = {
    "QUADOBJ": "a quadratic objective",
    "QMATRIX": "a quadratic objective",
    "QSECTION": "a quadratic objective",
    "QCMATRIX": "quadratic constraints",
    "CSECTION": "cone constraints",
    "SOS": "special ordered sets",
    "SOS1": "special ordered sets",
    "SOS2": "special ordered sets",
    "SETS": "special ordered sets",
    "INDICATORS": "indicator constraints",
    "LAZYCONS": "lazy constraints",
    "USERCUTS": "user cuts",
    "GENCONS": "general constraints",
    "PWLOBJ": "a piecewise linear objective",
}


@dataclass(slots=True)
class Section:
    """Data lines of one section, without comments and empty lines."""

    line_number: int
    lines: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


@dataclass(slots=True)
class MpsText:
    """A file's sections by name, and the data on its header lines."""

    path: str
    sections: dict[str, Section]
    name: str = ""

    def error(self, line_number: int, message: str) -> MpsError:
        """Return an error at a line of this file."""
        return MpsError(self.path, line_number, message)


def read_text(path: PathLike) -> MpsText:
    """Read a file and split it into sections; raises MpsError if it cannot be read or is no MPS file."""
    require_path(path)
    return with_lines(path, MpsError, "MPS", LONGEST_LINE, partial(split, os.fspath(path)))


def split(path: str, lines: Iterable[tuple[int, str]]) -> MpsText:
    """Split an MPS file's numbered lines into sections."""
    found = MpsText(path, {})
    section: Section | None = None
    number, rows = 0, set[str]()
    for number, line in lines:
        if not line or line[0] == "*" or line.isspace():
            continue
        if line[0] not in " \t\r":
            keyword = header_of(line, found)
            if keyword in FOREIGN:
                raise found.error(number, f"section {keyword}: {refusal(FOREIGN[keyword])}")
            if keyword == "ENDATA":
                return found
            if keyword is not None:
                if keyword in found.sections:
                    raise found.error(number, f"a second section {keyword}: put its lines into the first one")
                section = found.sections[keyword] = begin(found, keyword, line, number)
                continue
            if section is None:
                raise found.error(number, f"{line.split()[0]!r} is no section: the file must begin with NAME or ROWS")
        if section is None:
            raise found.error(number, "a data line before the first section: the file must begin with NAME or ROWS")
        if section is found.sections.get("ROWS"):
            if line in rows:  # checked here, before repeated lines fill the memory
                name = line.split(maxsplit=1)[-1].strip()
                raise found.error(number, f"row {name!r} is there twice: names must be different")
            rows.add(line)
        section.lines.append(line)
        section.numbers.append(number)
    raise found.error(number, "the file ends without ENDATA: it may be cut short; end it with a line ENDATA if not")


def header_of(line: str, found: MpsText) -> str | None:
    """Return the section that a line with text in column 1 begins; None if it is a data line."""
    words = line.split()
    keyword = words[0].upper()
    if keyword in SETS and (len(words) > 2 or (len(words) == 2 and keyword in found.sections)):
        return None
    return keyword if keyword in SECTIONS or keyword in FOREIGN else None


def begin(found: MpsText, keyword: str, line: str, number: int) -> Section:
    """Begin a section; further words on its header line are its first datum or the program's name."""
    section = Section(number)
    rest = line.split(maxsplit=1)[1:]
    if keyword == "NAME":
        found.name = rest[0].strip() if rest else ""
    elif keyword in ("OBJSENSE", "OBJNAME") and rest:
        section.lines.append(rest[0].strip())
        section.numbers.append(number)
    return section
