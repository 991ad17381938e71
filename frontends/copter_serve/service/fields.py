"""Readers of JSON documents, field by field; every error names the position."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any

from copter_serve.service.problems import Problem, invalid

LONGEST_ID = 253  # most characters of an id, as in Kubernetes
MOST_GPUS = 1_000_000  # most GPUs of one option, node or type
compact = json.JSONEncoder(separators=(",", ":")).encode
"""Encode a value as JSON without spaces, by one encoder: json.dumps would make a new one at each call."""

SHOWN = 60  # most characters of a value in a message


def parse_json(body: bytes) -> Any:
    """Return the parsed document; raises Problem 400 for invalid JSON, including NaN and infinities."""
    with parsing_problems():
        return DECODER.decode(body.decode("utf-8-sig"))


@contextmanager
def parsing_problems() -> Iterator[None]:
    """Turn errors of a parser into Problem 400."""
    try:
        yield
    except RecursionError:
        raise Problem(
            400, "the document is nested too deep", fix="send the document that /openapi.json describes"
        ) from None
    except UnicodeDecodeError as error:
        raise Problem(400, f"the body is not UTF-8, at byte {error.start}", fix="encode it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise Problem(
            400,
            f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            fix="send valid JSON",
        ) from None
    except ValueError as error:
        raise Problem(400, f"the body is not JSON: {error}", fix="send valid JSON") from None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


DECODER = json.JSONDecoder(parse_constant=_no_number)


def shown(value: Any) -> str:
    """Return a value as shortened text for a message."""
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def mapping(
    where: str, value: Any, known: Collection[str] | None = None, needed: Collection[str] = ()
) -> dict[str, Any]:
    """Return an object without unknown fields and with all required ones."""
    if not isinstance(value, dict):
        raise invalid(where or "/", f"is {shown(value)}, must be an object")
    if known is not None:
        for name in value:
            if name not in known:
                raise invalid(
                    f"{where}/{name}", "is not known", f"take it out; the known fields are {', '.join(sorted(known))}"
                )
    for name in needed:
        if name not in value:
            raise invalid(f"{where}/{name}", "is missing", "give it")
    return value


def listing(where: str, value: Any) -> list[Any]:
    """Return the value if it is an array; raises Problem 422 otherwise, naming the field `where`."""
    if not isinstance(value, list):
        raise invalid(where, f"is {shown(value)}, must be an array")
    return value


def identifier(where: str, value: Any) -> str:
    """Return a name of 1 to 253 printable characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_ID or not value.isprintable():
        raise invalid(where, f"is {shown(value)}, must be a text of 1 to {LONGEST_ID} printable characters")
    return value


def number(where: str, value: Any, *, above: float | None = None, least: float | None = None) -> float:
    """Return the value if it is a finite number and above (or at least) a bound."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(where, f"is {shown(value)}, must be a number")
    try:
        found = float(value)
    except OverflowError:
        found = float("inf")
    if not isfinite(found):
        raise invalid(where, "is beyond the range of numbers", "give a finite number")
    if above is not None and not found > above:
        raise invalid(where, f"is {value}, must be above {above:g}")
    if least is not None and not found >= least:
        raise invalid(where, f"is {value}, must be at least {least:g}")
    return found


def count(where: str, value: Any, least: int = 1) -> int:
    """Return a whole number from `least` to a million."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_GPUS:
        raise invalid(where, f"is {shown(value)}, must be a whole number from {least} to {MOST_GPUS}")
    return value


def flag(where: str, value: Any) -> bool:
    """Return a value that must be true or false."""
    if not isinstance(value, bool):
        raise invalid(where, f"is {shown(value)}, must be true or false")
    return value


def at(where: str, name: str | int) -> str:
    """Return the JSON pointer of a part (RFC 6901)."""
    return f"{where}/{str(name).replace('~', '~0').replace('/', '~1')}"
