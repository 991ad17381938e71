"""Tokeniser of LP files (CPLEX's LP format): words by section, with their line numbers."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from copter.model.formats.refused import refusal
from copter.model.formats.text_lines import LineError, with_lines
from copter.storage.files import PathLike, require_path

LONGEST_LINE = 16_000_000  # most bytes of a line; some writers put a whole row on one line


STACK = 5  # frames from a warning here to the caller of read_lp


class LpError(LineError):
    """An error in an LP file: path, line number (0 for the whole file), reason, and remedy."""


class Token(NamedTuple):
    """A word: its kind (name, number, sense, sign, colon or other), its text, its line."""

    kind: str
    text: str
    line: int


@dataclass(slots=True)
class LpText:
    """The words of a file by section.

    Attributes
    ----------
    path : str
    sections : dict
        The words of each section that the file has: "objective", "rows", "bounds", "general", "binary", "semi".
    sense : str
        "min" or "max".
    name : str
        Name of the program, from a comment ``\\Problem name:``.
    """

    path: str
    sections: dict[str, list[Token]] = field(default_factory=dict)
    sense: str = ""
    name: str = ""

    def error(self, line_number: int, message: str) -> LpError:
        """Return an error for a line of this file."""
        return LpError(self.path, line_number, message)


WORD = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<sense><=|=<|>=|=>|<|>|=)
    | (?P<sign>[+-](?!>))
    | (?P<colon>:)
    | (?P<name>[A-Za-z!"#$%&(),;?@_'`{}~|\u0080-\U0010ffff][^\s+\-*^<>=:\\/]*)
    | (?P<other>\S)
    )""",
    re.VERBOSE,
)
OBJECTIVE = re.compile(r"\s*(minimi[sz]e|minimum|min|maximi[sz]e|maximum|max)\b(?!\s*[<>=])", re.IGNORECASE)
ROWS = re.compile(r"\s*(subject\s+to|such\s+that|s\.\s?t\.|st\.?)(?=\s|$)", re.IGNORECASE)
WHOLE_LINE = {
    **dict.fromkeys(("bounds", "bound"), "bounds"),
    **dict.fromkeys(("general", "generals", "gen", "integer", "integers", "int"), "general"),
    **dict.fromkeys(("binary", "binaries", "bin"), "binary"),
    **dict.fromkeys(("semi-continuous", "semi", "semis"), "semi"),
    "end": "end",
}
FOREIGN = {
    **dict.fromkeys(("sos", "sos1", "sos2"), "special ordered sets"),
    "pwlobj": "a piecewise linear objective",
    "lazy constraints": "lazy constraints",
    "user cuts": "user cuts",
    "general constraints": "general constraints",
    "multi-objectives": "several objectives",
    "scenario": "scenarios",
}
TITLE = re.compile(r"\\\s*problem\s+name:\s*(.*)", re.IGNORECASE)


def read_words(path: PathLike) -> LpText:
    """Read a file and split it into sections of words; raises LpError if it cannot be read or is no LP file."""
    require_path(path)
    return with_lines(path, LpError, "LP", LONGEST_LINE, partial(split, os.fspath(path)))


def split(path: str, lines: Iterable[tuple[int, str]]) -> LpText:
    """Split an LP file's numbered lines into sections."""
    found = LpText(path)
    section: list[Token] | None = None
    number = 0
    for number, line in lines:
        words, comment, said = line.partition("\\")
        if comment and not found.name and (title := TITLE.match(comment + said)):
            found.name = title[1].strip()
        if not words.strip():
            continue
        keyword = " ".join(words.split()).lower()
        if keyword in FOREIGN:
            raise found.error(number, f"{words.strip()}: {refusal(FOREIGN[keyword])}")
        if keyword == "multi-objectives" or keyword.endswith("multi-objectives"):
            raise found.error(number, "several objectives cannot be part of a linear program")
        if WHOLE_LINE.get(keyword) == "end":
            return complete(found, number)
        at = 0
        if keyword in WHOLE_LINE:
            section = opened(found, WHOLE_LINE[keyword], number)
            continue
        if not found.sections and (begins := OBJECTIVE.match(words)):
            section, at = opened(found, "objective", number), begins.end()
            found.sense = begins[1][:3].lower()
        elif begins := ROWS.match(words):
            section, at = opened(found, "rows", number), begins.end()
        if section is None:
            raise found.error(number, f"{words.split()[0]!r}: the file must begin with Minimize or Maximize")
        add_words(found, section, words, at, number)
    if "rows" not in found.sections:
        raise found.error(number, "the file ends without Subject To and End: it is cut short, or no LP file")
    warnings.warn(
        f"{path}: the file ends without End: it may be cut short; end it with a line End if not", stacklevel=STACK
    )
    return complete(found, number)


def complete(found: LpText, number: int) -> LpText:
    """Return the parsed file at its End; raises LpError if it has no objective."""
    if "objective" not in found.sections:
        raise found.error(number, "there is no objective: the file must begin with Minimize or Maximize")
    return found


def opened(found: LpText, name: str, number: int) -> list[Token]:
    """Return a section's token list; sections of bounds and kinds may occur several times."""
    if name in ("objective", "rows") and name in found.sections:
        raise found.error(number, f"a second section of {'rows' if name == 'rows' else 'the objective'}")
    if not found.sections and name != "objective":
        raise found.error(number, "there is no objective before it: the file must begin with Minimize or Maximize")
    return found.sections.setdefault(name, [])


def add_words(found: LpText, section: list[Token], line: str, at: int, number: int) -> None:
    """Append the words of a line to a section."""
    end = len(line.rstrip())
    while at < end:
        word = WORD.match(line, at, end)
        if word is None or word.lastgroup is None:
            raise found.error(number, f"{line[at : at + 20].strip()!r} is no word of an LP file")
        kind, text = word.lastgroup, word[word.lastgroup]
        if kind == "other":
            raise found.error(number, f"{text!r}: {reason_of(text)}")
        section.append(Token(kind, text, number))
        at = word.end()


def reason_of(text: str) -> str:
    """Return why a character cannot be read."""
    if text in "[]^*/":
        return "a quadratic term cannot be part of a linear program"
    return refusal("indicator constraints") if text == "-" else "no word of an LP file begins so"
