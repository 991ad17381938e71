"""Fields of a trace's line, each checked as it is read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime


class BadFieldError(ValueError):
    """A line that cannot be used; its text is the reason that is recorded. Not raised outside this package."""


class Columns:
    """The columns of a file, by name, in whatever order it has them."""

    def __init__(self, header: Sequence[str]) -> None:
        self._index = {name.strip(): i for i, name in enumerate(header)}
        self._width = len(header)

    def check(self, row: Sequence[str]) -> None:
        """BadFieldError unless the row has as many fields as the header."""
        if len(row) != self._width:
            raise BadFieldError(f"the line has {len(row)} fields, the header {self._width}")

    def text(self, row: Sequence[str], name: str) -> str:
        """A field that is not empty."""
        value = row[self._index[name]].strip()
        if not value:
            raise BadFieldError(f"{name} is empty")
        return value

    def number(self, row: Sequence[str], name: str) -> float:
        """A finite number >= 0."""
        text = self.text(row, name)
        try:
            value = float(text)
        except ValueError:
            raise BadFieldError(f"{name} is {text!r}, not a number") from None
        if not 0 <= value < float("inf"):
            raise BadFieldError(f"{name} is {text}, must be finite and >= 0")
        return value

    def count(self, row: Sequence[str], name: str) -> int:
        """A whole number >= 1; "3.0" is one too."""
        value = self.number(row, name)
        if value < 1 or value != int(value):
            raise BadFieldError(f"{name} is {value:g}, must be a whole number >= 1")
        return int(value)

    def positive(self, row: Sequence[str], name: str) -> float:
        """A finite number > 0."""
        value = self.number(row, name)
        if value == 0:
            raise BadFieldError(f"{name} is 0, must be > 0")
        return value

    def whole(self, row: Sequence[str], name: str) -> int:
        """A whole number >= 0."""
        value = self.number(row, name)
        if value != int(value):
            raise BadFieldError(f"{name} is {value:g}, must be a whole number >= 0")
        return int(value)

    def numbers(self, row: Sequence[str], name: str) -> list[float]:
        """Numbers >= 0 with dashes between them, at least one."""
        text = self.text(row, name)
        try:
            values = [float(part) for part in text.split("-")]
        except ValueError:
            raise BadFieldError(f"{name} is {text!r}, not numbers with dashes between them") from None
        if not all(0 <= value < float("inf") for value in values):
            raise BadFieldError(f"{name} is {text!r}, must be finite and >= 0")
        return values

    def has(self, name: str) -> bool:
        """Whether the file has such a column."""
        return name in self._index

    def empty(self, row: Sequence[str], name: str) -> bool:
        """Whether a field is empty."""
        return not row[self._index[name]].strip()

    def time(self, row: Sequence[str], name: str) -> datetime:
        """A date and time, without a time zone."""
        text = self.text(row, name)
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            raise BadFieldError(f"{name} is {text!r}, not a date and time such as 2017-10-09 07:01:55") from None
        if value.tzinfo is not None:
            raise BadFieldError(f"{name} is {text!r}, with a time zone; give local times without one")
        return value
