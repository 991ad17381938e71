"""Parser that turns the words of an LP file into a LinearProgram."""

from __future__ import annotations

from math import inf, isinf
from typing import Literal, cast

import numpy as np
import scipy.sparse as sp

from copter.model.formats.file_bounds import INFINITE, least_values
from copter.model.formats.lp_tokens import LpText, Token
from copter.problem.linear_program import LinearProgram
from copter.runtime.errors import InvalidDataError

INFINITY = ("inf", "infinity")
END = Token("end", "", 0)
Row = tuple[str, float, float]  # name, lower, upper


class LpReader:
    """Parser of an LP file's words."""

    def __init__(self, text: LpText) -> None:
        self.text = text
        self.col_of: dict[str, int] = {}
        self.row_names: dict[str, int] = {}
        self.entries: tuple[list[int], list[int], list[float]] = ([], [], [])
        self.words: list[Token] = []
        self.at = 0

    def program(self) -> LinearProgram:
        """Read all sections."""
        cost, offset = self._objective()
        rows = self._rows()
        bounds = self._bounds()
        whole, semi = self._kinds(bounds)
        n = len(self.col_of)
        lower, upper = np.zeros(n), np.full(n, inf)
        for column, (low, high) in bounds.items():
            lower[column], upper[column] = low, high
        least = least_values(semi, lower, upper, str(self.text.path))
        integer = np.zeros(n)
        integer[list(whole)] = 1.0
        c = np.zeros(n)
        for column, value in cost.items():
            c[column] = value
        row, column_of, value_of = self.entries
        matrix = sp.coo_array((value_of, (row, column_of)), shape=(len(rows), n)).tocsc()
        matrix.eliminate_zeros()
        sense = cast(Literal["min", "max"], self.text.sense)
        try:
            return LinearProgram(
                c,
                matrix,
                np.array([each[1] for each in rows]),
                np.array([each[2] for each in rows]),
                lower,
                upper,
                integer,
                sense,
                offset,
                [each[0] for each in rows],
                list(self.col_of),
                self.text.name,
                semicontinuous=least,
            )
        except InvalidDataError as error:
            raise self.text.error(0, str(error)) from None

    # Sections -----------------------------------------------------------------------------------------------------

    def _begin(self, section: str) -> None:
        self.words, self.at = self.text.sections.get(section, []), 0

    def _objective(self) -> tuple[dict[int, float], float]:
        self._begin("objective")
        self._label()
        terms, constant = self._expression()
        if self._peek().kind != "end":
            raise self._wrong(self._peek(), "is not part of the objective: an operator or Subject To is missing")
        return terms, constant

    def _rows(self) -> list[Row]:
        self._begin("rows")
        rows: list[Row] = []
        while self._peek().kind != "end":
            first = self._peek()
            label = self._label()
            terms, lower, upper = self._relation()
            name = label or free_name(len(rows), self.row_names)
            if name in self.row_names:
                raise self._wrong(first, "is the name of two rows: names must be different")
            self.row_names[name] = len(rows)
            for column, value in terms.items():
                self.entries[0].append(len(rows))
                self.entries[1].append(column)
                self.entries[2].append(value)
            rows.append((name, lower, upper))
        return rows

    def _relation(self) -> tuple[dict[int, float], float, float]:
        """Return (terms, lower, upper) of ``terms <= b``, ``b <= terms`` or ``a <= terms <= b``."""
        begins = self._peek()
        terms, constant = self._expression()
        low, high = -inf, inf
        if not terms:
            sense = self._sense(begins)
            low, high = sided(flipped(sense), constant)
            terms, constant = self._expression()
            if self._peek().kind != "sense":
                return self._shifted(begins, terms, constant, low, high)
        sense = self._sense(begins)
        also_low, also_high = sided(sense, self._number())
        self._require_constant()
        if sense != "=" and low == -inf and high == inf and self._peek().kind == "sense":
            raise self._wrong(self._peek(), "comes after a right-hand side: a range is written a <= terms <= b")
        return self._shifted(begins, terms, constant, max(low, also_low), min(high, also_high))

    def _shifted(
        self, begins: Token, terms: dict[int, float], constant: float, low: float, high: float
    ) -> tuple[dict[int, float], float, float]:
        """Move the constant among the terms to the bounds."""
        if low > high:
            raise self._wrong(begins, f"begins a row whose bounds are crossed: {low:g} > {high:g}")
        return terms, low - constant, high - constant

    def _bounds(self) -> dict[int, tuple[float, float]]:
        """Return bounds by column from ``a <= x <= b``, ``x >= a``, ``a <= x``, ``x = a``, ``x free``; missing sides
        keep defaults.
        """
        self._begin("bounds")
        found: dict[int, tuple[float, float]] = {}
        while self._peek().kind != "end":
            begins = self._peek()
            sides: list[tuple[str, float]] = []
            if not self._is_name(begins):
                value = self._number()
                sides.append((flipped(self._sense(begins)), value))
            name = self._take()
            if not self._is_name(name):
                raise self._wrong(name, "stands where a bound has the name of a column")
            column = self.col_of.setdefault(name.text, len(self.col_of))
            low, high = found.get(column, (0.0, inf))
            following = self._peek()
            if following.kind == "name" and following.text.lower() == "free" and not sides:
                self._take()
                low, high = -inf, inf
            elif following.kind == "sense":
                sides.append((self._take().text, self._number()))
            elif not sides:
                raise self._wrong(name, "has no bound behind it: write x <= 5, 1 <= x <= 5 or x free")
            for sense, value in sides:
                low = low if sense[0] == "<" or sense == "=<" else value
                high = high if sense[0] == ">" or sense == "=>" else value
            if not low <= high or low == inf or high == -inf:
                raise self._wrong(begins, f"begins a bound that crosses: {name.text} from {low:g} to {high:g}")
            found[column] = (low, high)
        return found

    def _kinds(self, bounds: dict[int, tuple[float, float]]) -> tuple[set[int], list[int]]:
        """Return (integer columns, semi-continuous columns); binary columns get their bounds."""
        found: dict[str, list[int]] = {"general": [], "binary": [], "semi": []}
        for section, columns in found.items():
            self._begin(section)
            while self._peek().kind != "end":
                name = self._take()
                if not self._is_name(name):
                    raise self._wrong(name, f"is no name of a column; section {section} holds names only")
                columns.append(self.col_of.setdefault(name.text, len(self.col_of)))
        for column in found["binary"]:
            low, high = bounds.get(column, (0.0, inf))
            bounds[column] = (max(low, 0.0), min(high, 1.0))
        return {*found["general"], *found["binary"]}, found["semi"]

    # Words --------------------------------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> Token:
        place = self.at + ahead
        return self.words[place] if place < len(self.words) else END

    def _take(self) -> Token:
        token = self._peek()
        self.at += 1
        return token

    def _wrong(self, token: Token, message: str) -> Exception:
        if token is END or token.kind == "end":
            line = self.words[-1].line if self.words else 0
            return self.text.error(line, "the section ends in the middle of a relation")
        return self.text.error(token.line, f"{token.text!r} {message}")

    def _misplaced(self, token: Token, missing: str, message: str) -> Exception:
        """Return the error for a word where another was needed, at the line before it if that line lacks the other."""
        before = self.words[self.at - 2] if self.at >= 2 else token
        if token.kind == "end" or before.line == token.line:
            return self._wrong(token, message)
        return self.text.error(
            before.line, f"the line ends with {before.text!r}, and {missing} is missing before {token.text!r}"
        )

    def _require_constant(self) -> None:
        """Raise for columns or sums behind the number on the right of a row, on the number's line."""
        number, following = self.words[self.at - 1], self._peek()
        if following.line != number.line or following.kind in ("sense", "end") or self._begins_label():
            return
        raise self._wrong(
            following,
            "stands behind a right-hand side: columns go to the left, x - 2 y >= 4, and constants are added up",
        )

    def _require_term(self) -> None:
        """Raise for a sign at the end of a line if the next line begins with a row's name instead of a term."""
        before, following = self._peek(), self._peek(1)
        is_name = following.kind in ("name", "number") and self._peek(2).kind == "colon"
        if before.kind == "sign" and is_name and following.line > before.line:
            self.at += 2
            raise self._misplaced(following, "a term", "is the name of a row, and a term must stand there")

    def _begins_label(self) -> bool:
        """Whether the next words are a row's name and a colon."""
        return self._peek().kind in ("name", "number") and self._peek(1).kind == "colon"

    @staticmethod
    def _is_name(token: Token) -> bool:
        return token.kind == "name" and token.text.lower() not in INFINITY

    def _label(self) -> str:
        """Return the name before a colon, or an empty string."""
        if self._begins_label():
            name = self._take().text
            self._take()
            return name
        return ""

    def _sense(self, begins: Token) -> str:
        token = self._take()
        if token.kind != "sense":
            message = f"stands where the relation that begins with {begins.text!r} needs <=, >= or ="
            raise self._misplaced(token, f"<=, >= or = of the relation that begins with {begins.text!r}", message)
        return token.text

    def _signs(self) -> float:
        """Return the product of the following signs."""
        sign = 1.0
        while self._peek().kind == "sign":
            sign = -sign if self._take().text == "-" else sign
        return sign

    def _number(self) -> float:
        """Read a number with its signs; values from 1e20 on are infinite."""
        sign, token = self._signs(), self._take()
        if token.kind == "name" and token.text.lower() in INFINITY:
            return sign * inf
        if token.kind != "number":
            message = "stands where a number must be: right-hand sides and bounds hold no columns"
            raise self._misplaced(token, "a number", message)
        value = float(token.text)
        return sign * (inf if value >= INFINITE else value)

    def _expression(self) -> tuple[dict[int, float], float]:
        """Read signed terms and return (coefficients by column, constant)."""
        terms: dict[int, float] = {}
        constant, first = 0.0, True
        while first or self._peek().kind == "sign":
            if first and self._peek().kind in ("sense", "end", "colon"):
                break
            first = False
            self._require_term()
            sign, token = self._signs(), self._take()
            if token.kind == "number":
                value = sign * float(token.text)
                following = self._peek()
                if following.kind == "name" and following.text.lower() not in INFINITY and self._continues(token):
                    column = self.col_of.setdefault(self._take().text, len(self.col_of))
                    terms[column] = terms.get(column, 0.0) + value
                else:
                    constant += inf * sign if abs(value) >= INFINITE else value
            elif self._is_name(token):
                column = self.col_of.setdefault(token.text, len(self.col_of))
                terms[column] = terms.get(column, 0.0) + sign
            elif token.kind == "name":
                constant += sign * inf
            else:
                raise self._wrong(token, "stands where a term must be: a number, a column, or both")
            if isinf(constant) and terms:
                raise self._wrong(token, "makes the expression infinite")
        for column, value in terms.items():
            if isinf(value):
                raise self.text.error(token.line, f"a coefficient of {list(self.col_of)[column]!r} is infinite")
        return terms, constant

    def _continues(self, number: Token) -> bool:
        """Whether the next name is this number's column, rather than the label of the next row."""
        return self._peek(1).kind != "colon" or self._peek().line == number.line


def sided(sense: str, value: float) -> tuple[float, float]:
    """Return (lower, upper) for ``... sense value``."""
    if sense == "=":
        return value, value
    return (-inf, value) if sense[0] == "<" or sense == "=<" else (value, inf)


def flipped(sense: str) -> str:
    """Return the sense of ``value sense ...`` read from the other side."""
    return {"<": ">", "<=": ">=", "=<": ">=", ">": "<", ">=": "<=", "=>": "<="}.get(sense, sense)


def free_name(place: int, taken: dict[str, int]) -> str:
    """Return an unused name for a row without one."""
    name = f"R{place + 1}"
    while name in taken:
        name += "_"
    return name
