"""A Selector that proves, whenever promises are broken, how many had to be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from copter import Status, solve, solve_integer
from copter_frontends.chronus.compact import compact_form
from copter_frontends.chronus.job_book import Standing
from copter_frontends.chronus.options import Ints, Options
from copter_frontends.chronus.selector import Cycle, Selector

TOLERANCE = 1e-4  # of a bound on a number of jobs


@dataclass(frozen=True, slots=True)
class Broken:
    """Promises that one cycle broke.

    Attributes
    ----------
    time_s : float
    promised, demoted : int
        Jobs with a promise before the cycle, and those that lost it.
    forced : int
        At least so many any plan must break, proven by the linear program, or by the integer one.
    """

    time_s: float
    promised: int
    demoted: int
    forced: int


class AuditedSelector(Selector):
    """As :class:`.Selector`; for every cycle that demotes jobs it notes how many no plan could have kept.

    Attributes
    ----------
    audit : list of Broken
    """

    time_limit_s = 20.0  # of an integer program

    def __init__(self, *args: Any, **knobs: Any) -> None:
        super().__init__(*args, **knobs)
        self.audit: list[Broken] = []

    def cycle(self, now_s: float, first: int, gpus: Ints, fixed: Ints, *args: Any, **knobs: Any) -> Cycle:
        """As :meth:`.Selector.cycle`."""
        begins = bool(knobs.get("begins", args[2] if len(args) > 2 else True))
        aside = knobs.get("aside", args[6] if len(args) > 6 else None)
        records = [record for record in self.book.planned(first, begins) if record.promised >= 0]
        horizon = self.book.most_leases(first)
        capacity = self._capacity(gpus, aside, self.book.promised_gpus(len(gpus), first, horizon))
        capacity[:, 0] = np.maximum(capacity[:, 0] - fixed, 0)
        options, told = self.book.options(records, first, horizon, begins), len(self.notices)
        found = super().cycle(now_s, first, gpus, fixed, *args, **knobs)
        demoted = sum(notice.standing is Standing.DEMOTED for notice in self.notices[told:])
        if demoted:
            forced = len(records) - most_kept(options, capacity, len(records) - demoted, self.time_limit_s)
            self.audit.append(Broken(now_s, len(records), demoted, forced))
        return found


def most_kept(options: Options, capacity: Ints, known: int, time_limit_s: float) -> int:
    """An upper bound on how many of these jobs can get one of their options; `known` of them can."""
    if not len(options.job):
        return 0
    equal = replace(options, value=np.ones(len(options.job)), must=np.zeros_like(options.must))
    program = compact_form(equal, capacity, whole=True, vub=True)
    linear = solve(program)
    bound = int(np.floor(linear.bound + TOLERANCE)) if linear.status is Status.OPTIMAL else options.jobs
    if bound > known:
        whole = solve_integer(program, deadline_s=time_limit_s)
        bound = min(bound, int(np.floor(whole.bound + TOLERANCE)))
    return bound
