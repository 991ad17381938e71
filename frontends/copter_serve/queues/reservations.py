"""When jobs that wait could start: each gets the earliest place that delays none before it (conservative backfill).

The rule is that of Mu'alem and Feitelson (IEEE TPDS 12(6), 2001): jobs are taken in the order of their queue, and each
reserves the earliest time from which what it needs is free for as long as it runs. A later job may start before an
earlier one, in a hole that no reservation uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to run a job: so many units of a kind, for so many seconds; infinite if nobody knows how long."""

    kind: str
    units: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is reserved for a job.

    Attributes
    ----------
    choice : Choice
    start_s : float
        Seconds from now.
    backfills : bool
        Whether it starts before a job that came earlier.
    """

    choice: Choice
    start_s: float
    backfills: bool


class Profile:
    """The units of one kind that are free from each time on.

    Parameters
    ----------
    free : float
        Units that are free now.
    ends : iterable of (float, float)
        Seconds from now at which running jobs end, and their units.
    """

    def __init__(self, free: float, ends: Iterable[tuple[float, float]] = ()) -> None:
        given: dict[float, float] = {0.0: float(free)}
        for seconds, units in ends:
            if isfinite(seconds):
                at = max(seconds, 0.0)
                given[at] = given.get(at, 0.0) + units
        self.times = np.array(sorted(given))
        self.free = np.cumsum([given[at] for at in sorted(given)])

    def earliest(self, units: float, seconds: float) -> float:
        """Return the earliest time from which units are free for so long; infinity if there is none."""
        short = self.free < units
        # the first time from each on at which too few are free
        until = np.minimum.accumulate(np.where(short, self.times, inf)[::-1])[::-1]
        fits = np.flatnonzero(~short & (until >= self.times + seconds))
        return float(self.times[fits[0]]) if len(fits) else inf

    def take(self, units: float, start_s: float, seconds: float) -> None:
        """Reserve units from a time on, for so long."""
        first, last = self._time(start_s), self._time(start_s + seconds)
        self.free[first:last] -= units

    def _time(self, at: float) -> int:
        """Return the number of a time, which is put in if it is not there."""
        if not isfinite(at):
            return len(self.times)
        place = int(np.searchsorted(self.times, at))
        if place == len(self.times) or self.times[place] != at:
            self.times = np.insert(self.times, place, at)
            self.free = np.insert(self.free, place, self.free[place - 1])
        return place


def reserved(
    free: Mapping[str, float], ends: Iterable[tuple[str, float, float]], waiting: Iterable[tuple[str, Sequence[Choice]]]
) -> dict[str, Reservation | None]:
    """Return the reservations of waiting jobs, in the order of their queue.

    Of a job's choices the one that ends first is taken, of equal ones the one that starts first.

    Parameters
    ----------
    free : mapping of kind to float
        Units that are free now.
    ends : iterable of (kind, units, seconds)
        What running jobs give back, and in how many seconds; infinity where nobody knows.
    waiting : iterable of (job, sequence of Choice)

    Returns
    -------
    dict of job to Reservation or None
        None for a job that never starts, as far as is known.
    """
    given = list(ends)
    profiles = {
        kind: Profile(units, [(seconds, back) for which, back, seconds in given if which == kind])
        for kind, units in free.items()
    }
    found: dict[str, Reservation | None] = {}
    latest = 0.0
    for job, choices in waiting:
        starts = [
            (profiles[each.kind].earliest(each.units, each.seconds) if each.kind in profiles else inf, each)
            for each in choices
        ]
        able = [(start + each.seconds, start, at) for at, (start, each) in enumerate(starts) if isfinite(start)]
        if not able:
            found[job], latest = None, inf
            continue
        _, start, at = min(able)
        choice = choices[at]
        profiles[choice.kind].take(choice.units, start, choice.seconds)
        found[job] = Reservation(choice, start, backfills=start < latest)
        latest = max(latest, start)
    return found


def wait_words(seconds: float | None) -> str:
    """Return a wait as people say it."""
    if seconds is None:
        return "not known"
    return (
        f"{seconds / 3600:.1f} h"
        if seconds >= 5400
        else f"{seconds / 60:.0f} min"
        if seconds >= 90
        else f"{seconds:.0f} s"
    )
