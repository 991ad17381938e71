"""Rounds until the time is up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TypeVar

Each = TypeVar("Each")


def within(rounds: Iterator[Each], budget_s: float) -> Iterator[Each]:
    """The rounds, up to the one that ends after so many seconds."""
    started = time.perf_counter()
    for each in rounds:
        yield each
        if time.perf_counter() - started > budget_s:
            return
