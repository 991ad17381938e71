"""The clock of a simulated machine."""

from __future__ import annotations

from tests.faults.sim_loop import SimLoop


class SimClock:
    """The machine's clock: it may jump, and its monotonic one does not."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop, self.offset = loop, 1.7e9

    def now(self) -> float:
        return self.loop.at + self.offset

    def monotonic(self) -> float:
        return self.loop.at

    def sleep(self, seconds: float) -> None:
        self.loop.at += seconds
