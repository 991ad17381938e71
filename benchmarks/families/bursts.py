"""Sia rounds with bursts: many arrivals at once, a rack lost and returned, all values changed at once."""

from __future__ import annotations

import numpy as np

from families.sia import GPUS_PER_NODE, SiaRounds

BURST = 0.2  # of the jobs arrive at once
RACK_NODES = 8
RACK_AWAY = 10  # rounds
KINDS = ("burst", "rack_lost", "costs")


class BurstyRounds(SiaRounds):
    """Sia's rounds with an event every so many: 20 % new jobs, a rack away for ten rounds, or new values for all jobs.

    After a burst more jobs leave than arrive until there are as many as before.

    Parameters
    ----------
    gpus, mode, churn, seed
        As for :class:`SiaRounds`.
    every : int
        Rounds from one event to the next; 0 for none.

    Attributes
    ----------
    event : str
        Of the coming round: "burst", "rack_lost", "rack_back", "costs" or "plain".
    """

    def __init__(self, gpus: int, mode: str, churn: float, seed: int, every: int) -> None:
        super().__init__(gpus, mode, churn, seed)
        self.every, self.round, self.event = every, 0, "plain"
        self.usual = len(self.waiting)
        self.rack_change = 0.0
        self.back_in: int | None = None  # rounds until the rack returns
        self.rack = float(min(RACK_NODES, int(self.capacity[0]) // GPUS_PER_NODE // 2) * GPUS_PER_NODE)

    def prepare(self) -> None:
        """Draw the round's changes, and the event if one is due."""
        super().prepare()
        self.round += 1
        self.event = "plain"
        if self.every and self.round % self.every == 0:
            self.event = KINDS[self.round // self.every % len(KINDS)]
        self.rack_change = 0.0
        if self.back_in is not None:
            self.back_in -= 1
            self.event = "plain" if self.event == "rack_lost" else self.event
            if self.back_in == 0:
                self.rack_change, self.back_in = self.rack, None
                self.event = "rack_back" if self.event == "plain" else self.event
        elif self.event == "rack_lost":
            self.rack_change, self.back_in = -self.rack, RACK_AWAY
        surplus = len(self.jobs) - self.usual
        if self.event == "burst":
            self.waiting += [self.new_base() for _ in range(round(BURST * len(self.jobs)))]
        elif surplus > 0:
            extra = min(surplus, max(1, len(self.doomed)))
            others = np.setdiff1d(np.arange(len(self.jobs)), self.doomed)
            self.doomed = np.concatenate((self.doomed, self.rng.choice(others, extra, replace=False)))
        if self.event == "costs":
            doomed = set(self.jobs[self.doomed].tolist())
            self.fresh = {job: self.new_base() for job in self.jobs.tolist() if job not in doomed}

    def edit(self) -> None:
        """Apply the event, then the usual edits."""
        if self.rack_change < 0:
            self.model.remove_units(0, -self.rack_change)
        elif self.rack_change > 0:
            self.model.add_resource(0, self.rack_change)
        self.capacity[0] += self.rack_change
        if self.event == "costs":
            for at, job in enumerate(self.jobs.tolist()):
                if job in self.fresh:
                    self.base[job] = self.fresh[job]
                    self.model.update_cost(job, self.fresh[job])
                    if self.column[at] >= 0:
                        self.own_base[at] = self.fresh[job][self.column[at]]
        super().edit()
