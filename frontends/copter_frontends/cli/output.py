"""What every command shares: bad input, messages on stderr, JSON on stdout."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

import click


class InputError(click.ClickException):
    """Bad input: one line on stderr, exit code 2."""

    exit_code = 2


def complain(message: str) -> None:
    """One line on stderr, whatever the message."""
    print(f"copter: {' '.join(message.split())}", file=sys.stderr, flush=True)


def print_json(summary: Mapping[str, Any]) -> None:
    """One JSON object, the last line of stdout; null for what JSON has no number for."""
    print(json.dumps(_finite(summary), allow_nan=False), flush=True)


def _finite(value: Any) -> Any:
    """The same, with None for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
