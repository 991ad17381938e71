"""Fields of a trace's line, each checked as it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from math import inf
from typing import Any

NOTHING = frozenset({"", "none", "unknown", "nan", "null", "nat"})
"""What published logs write in place of a time that there was not."""


class BadFieldError(ValueError):
    """A line that cannot be used; the text says why. It does not leave this package."""


class Columns:
    """The columns of a file by name, in any order."""

    def __init__(self, header: Sequence[str]) -> None:
        self._index = {name.strip(): i for i, name in enumerate(header)}
        self._width = len(header)

    def check(self, row: Sequence[str]) -> None:
        """Raise BadFieldError unless the row has as many fields as the header."""
        if len(row) != self._width:
            raise BadFieldError(f"the line has {len(row)} fields, the header {self._width}")

    def text(self, row: Sequence[str], name: str) -> str:
        """Return a field as text; raises BadFieldError if it is empty."""
        value = row[self._index[name]].strip()
        if not value:
            raise BadFieldError(f"{name} is empty")
        return value

    def number(self, row: Sequence[str], name: str) -> float:
        """Return a field as a finite number >= 0; raises BadFieldError otherwise."""
        text = self.text(row, name)
        try:
            value = float(text)
        except ValueError:
            raise BadFieldError(f"{name} is {text!r}, not a number") from None
        if not 0 <= value < float("inf"):
            raise BadFieldError(f"{name} is {text}, must be finite and >= 0")
        return value

    def count(self, row: Sequence[str], name: str) -> int:
        """Return a field as a whole number >= 1 ("3.0" is one too); raises BadFieldError otherwise."""
        value = self.number(row, name)
        if value < 1 or value != int(value):
            raise BadFieldError(f"{name} is {value:g}, must be a whole number >= 1")
        return int(value)

    def positive(self, row: Sequence[str], name: str) -> float:
        """Return a field as a finite number > 0; raises BadFieldError otherwise."""
        value = self.number(row, name)
        if value == 0:
            raise BadFieldError(f"{name} is 0, must be > 0")
        return value

    def whole(self, row: Sequence[str], name: str) -> int:
        """Return a field as a whole number >= 0; raises BadFieldError otherwise."""
        value = self.number(row, name)
        if value != int(value):
            raise BadFieldError(f"{name} is {value:g}, must be a whole number >= 0")
        return int(value)

    def numbers(self, row: Sequence[str], name: str) -> list[float]:
        """Return a field of numbers >= 0 separated by dashes, at least one; raises BadFieldError otherwise."""
        text = self.text(row, name)
        try:
            values = [float(part) for part in text.split("-")]
        except ValueError:
            raise BadFieldError(f"{name} is {text!r}, not numbers with dashes between them") from None
        if not all(0 <= value < float("inf") for value in values):
            raise BadFieldError(f"{name} is {text!r}, must be finite and >= 0")
        return values

    def has(self, name: str) -> bool:
        """Return whether the file has this column."""
        return name in self._index

    def empty(self, row: Sequence[str], name: str) -> bool:
        """Return whether a field is empty, or says that there is nothing."""
        return row[self._index[name]].strip().lower() in NOTHING

    def further(self, row: Sequence[str]) -> dict[str, Any]:
        """Return the nonempty optional fields of a workload's line, which are those of :class:`.TraceJob`."""
        readers: dict[str, tuple[str, Callable[[Sequence[str], str], Any]]] = {
            "weight": ("weight", self.positive),
            "priority": ("priority", self.whole),
            "tenant": ("tenant", self.text),
            "preemptible": ("preemptible", self._yes),
            "reservation": ("reservation", self._held),
            "min_gpus": ("least_gpus", self.count),
            "max_gpus": ("most_gpus", self.count),
        }
        given = {
            field: read(row, name)
            for name, (field, read) in readers.items()
            if self.has(name) and not self.empty(row, name)
        }
        if given.get("most_gpus", inf) < given.get("least_gpus", 1):
            raise BadFieldError(f"max_gpus is {given['most_gpus']}, below min_gpus {given['least_gpus']}")
        return given

    def _yes(self, row: Sequence[str], name: str) -> bool:
        """Return a field that says yes or no as a bool."""
        text = self.text(row, name).lower()
        if text not in ("yes", "no"):
            raise BadFieldError(f"{name} is {text!r}, must be yes or no")
        return text == "yes"

    def _held(self, row: Sequence[str], name: str) -> tuple[str, int]:
        """Return (type, GPUs) of a field TYPE:GPUS."""
        kind, _, count = self.text(row, name).rpartition(":")
        if not kind or not count.isdecimal() or not int(count):
            raise BadFieldError(f"{name} is {self.text(row, name)!r}, must be TYPE:GPUS, such as a100:8")
        return kind, int(count)

    def clock(self, row: Sequence[str], name: str) -> float:
        """Return a date and time as seconds since 1970; without a time zone it is taken as UTC."""
        text = self.text(row, name)
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            raise BadFieldError(f"{name} is {text!r}, not a date and time such as 2020-04-01 07:01:55") from None
        return (value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)).timestamp()

    def time(self, row: Sequence[str], name: str) -> datetime:
        """Return a field as a date and time without a time zone; raises BadFieldError otherwise."""
        text = self.text(row, name)
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            raise BadFieldError(f"{name} is {text!r}, not a date and time such as 2017-10-09 07:01:55") from None
        if value.tzinfo is not None:
            raise BadFieldError(f"{name} is {text!r}, with a time zone; give local times without one")
        return value
