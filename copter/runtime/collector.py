"""Control of Python's garbage collector, so that it does not traverse a large model during a short deadline."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class uncollected:
    """Postpones cyclic garbage collection to the end of a ``with`` block or of a function that it decorates.

    Parameters
    ----------
    wanted : bool
        False to change nothing. Nothing changes either while collection is disabled.
    """

    __slots__ = ("_paused", "_wanted")

    def __init__(self, wanted: bool = True) -> None:
        self._wanted, self._paused = wanted, False

    def __enter__(self) -> None:
        if self._wanted and gc.isenabled():
            gc.disable()
            self._paused = True

    def __exit__(self, *_: object) -> None:
        if self._paused:
            self._paused = False
            gc.enable()

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function with collection postponed to the end of each call."""
        wanted = self._wanted

        @wraps(function)
        def alone(*arguments: P.args, **named: P.kwargs) -> T:
            with uncollected(wanted):
                return function(*arguments, **named)

        return alone
