"""Shared output of all commands: input errors, messages on stderr, JSON on stdout."""

from __future__ import annotations

import ctypes
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import click


class InputError(click.ClickException):
    """Bad input: one line on stderr, exit code 2."""

    exit_code = 2


def complain(message: str) -> None:
    """Print a message on stderr as one line."""
    print(f"copter: {' '.join(message.split())}", file=sys.stderr, flush=True)


def print_json(summary: Mapping[str, Any]) -> None:
    """Print one JSON object as the last line of stdout; NaN and infinities become null."""
    print(json.dumps(_finite(summary), allow_nan=False), flush=True)


def _finite(value: Any) -> Any:
    """Return the value with None in place of NaN and infinities."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class FiniteRange(click.FloatRange):
    """A range that excludes NaN and infinity; comparisons alone would let NaN pass."""

    def _describe_range(self) -> str:
        """Return the range for a help text; nothing where there is none (click would write "x<=None")."""
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or raise a usage error."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


@contextmanager
def foreign_prints_on_stderr() -> Iterator[None]:
    """Send compiled libraries' prints on stdout to stderr, so that ``--json`` leaves one object on stdout."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is no stdout
        yield
        return
    try:
        os.dup2(2, 1)
        yield
    finally:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).fflush(None)  # empties C's own buffer before stdout is restored
        os.dup2(kept, 1)
        os.close(kept)
