"""A JSON parser that pauses, so that a large document does not keep the service from answering others."""

from __future__ import annotations

import re
from collections.abc import Generator
from json import JSONDecodeError, decoder
from typing import Any, cast

from copter_serve.service.fields import DECODER, parsing_problems
from copter_serve.service.problems import Problem

PAUSE_ENTRIES = 500  # entries read before other tasks get the processor
DEEPEST = 6  # most containers inside each other; a delta has five
BLANKS = re.compile(r"[ \t\n\r]*")

SCAN = cast(Any, DECODER).scan_once  # (text, place) -> (value, place after it)
STRING = cast(Any, decoder).scanstring  # (text, place, strict) -> (string, place after it)

Steps = Generator[None, None, Any]


class Parser:
    """One parse of a text, with a pause after some entries of its arrays and objects."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.entries = text, 0, 0

    def document(self) -> Steps:
        """Parse the whole text; raises JSONDecodeError, or Problem 400 for one that is nested too deep."""
        self._skip()
        found = yield from self._value(0)
        self._skip()
        if self.at < len(self.text):
            raise JSONDecodeError("Extra data", self.text, self.at)
        return found

    def _skip(self) -> str:
        """Move past blanks; returns the next character, or an empty string at the end."""
        blanks = BLANKS.match(self.text, self.at)
        if blanks is not None:
            self.at = blanks.end()
        return self.text[self.at : self.at + 1]

    def _value(self, depth: int) -> Steps:
        begins = self.text[self.at : self.at + 1]
        if begins not in ("{", "["):
            try:
                found, self.at = SCAN(self.text, self.at)
            except StopIteration as error:
                raise JSONDecodeError("Expecting value", self.text, error.value) from None
            return found
        if depth == DEEPEST:
            raise Problem(400, "the document is nested too deep", fix="send the document that /openapi.json describes")
        self.at += 1
        return (yield from self._object(depth) if begins == "{" else self._array(depth))

    def _array(self, depth: int) -> Steps:
        found: list[Any] = []
        if self._skip() == "]":
            self.at += 1
            return found
        while True:
            found.append((yield from self._value(depth + 1)))
            if (yield from self._after("]")):
                return found

    def _object(self, depth: int) -> Steps:
        found: dict[str, Any] = {}
        if self._skip() == "}":
            self.at += 1
            return found
        while True:
            if self.text[self.at : self.at + 1] != '"':
                raise JSONDecodeError("Expecting property name enclosed in double quotes", self.text, self.at)
            name, self.at = STRING(self.text, self.at + 1, True)
            if self._skip() != ":":
                raise JSONDecodeError("Expecting ':' delimiter", self.text, self.at)
            self.at += 1
            self._skip()
            found[name] = yield from self._value(depth + 1)
            if (yield from self._after("}")):
                return found

    def _after(self, end: str) -> Generator[None, None, bool]:
        """Move past a comma or the end of a container; returns whether it was the end. Pauses now and then."""
        self.entries += 1
        if self.entries % PAUSE_ENTRIES == 0:
            yield
        found = self._skip()
        if found not in (",", end) or not found:
            raise JSONDecodeError("Expecting ',' delimiter", self.text, self.at)
        self.at += 1
        if found == ",":
            self._skip()
        return found == end


def parse_in_steps(body: bytes) -> Steps:
    """Do :func:`.fields.parse_json` with pauses."""
    with parsing_problems():
        return (yield from Parser(body.decode("utf-8-sig")).document())
