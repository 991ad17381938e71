"""Measurement of the time spent in edits between two plans."""

from __future__ import annotations

from time import perf_counter


class EditClock:
    """Sums the seconds spent in ``with clock:``; nested edits count once.

    Attributes
    ----------
    seconds : float
        Seconds since the last :meth:`reset`.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._begun = 0.0

    def __enter__(self) -> EditClock:
        if self._depth == 0:
            self._begun = perf_counter()
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += perf_counter() - self._begun

    def reset(self) -> None:
        """Count from zero again."""
        self.seconds = 0.0
