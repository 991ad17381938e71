"""Measurement of the stages of a plan."""

from __future__ import annotations

from time import perf_counter


class StageClock:
    """Measures stages that follow each other without a break.

    Attributes
    ----------
    seconds : dict of str to float
        Wall-clock seconds by stage, in the order in which they ended.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begun = perf_counter()

    def end(self, stage: str) -> None:
        """End a stage, which began at the end of the previous stage or when the clock was made."""
        now = perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._begun
        self._begun = now

    @property
    def total_s(self) -> float:
        """Seconds of all stages that have ended."""
        return sum(self.seconds.values())
