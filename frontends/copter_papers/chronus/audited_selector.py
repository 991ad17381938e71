"""A selector that proves, for every cycle with broken promises, how many breaks were unavoidable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from copter_frontends.policies.chronus.options import Ints
from copter_frontends.policies.chronus.salvage import most_kept
from copter_frontends.policies.chronus.selector import Cycle, Selector
from copter_frontends.policies.chronus.slo_record import Standing


@dataclass(frozen=True, slots=True)
class Broken:
    """The promises broken in one cycle.

    Attributes
    ----------
    time_s : float
    promised, demoted : int
        Number of jobs with a promise before the cycle, and of those that lost it.
    forced : int
        Proven least number of promises that any plan breaks, by the linear or the integer program.
    """

    time_s: float
    promised: int
    demoted: int
    forced: int


class AuditedSelector(Selector):
    """A :class:`.Selector` that records, for cycles with demotions, how many demotions no plan could have avoided.

    Attributes
    ----------
    audit : list of Broken
    """

    # wall-clock limit of an integer program; generous, as it may get only a few per cent of a busy machine
    time_limit_s = 600.0

    def __init__(self, *args: Any, **knobs: Any) -> None:
        super().__init__(*args, **knobs)
        self.audit: list[Broken] = []

    def cycle(self, now_s: float, first: int, gpus: Ints, fixed: Ints, *args: Any, **knobs: Any) -> Cycle:
        """Do :meth:`.Selector.cycle` and record the broken promises."""
        begins = bool(knobs.get("begins", args[2] if len(args) > 2 else True))
        aside = knobs.get("aside", args[6] if len(args) > 6 else None)
        planned = self.book.table.at(self.book.planned(first, begins, self.book.ending()))
        records = [record for record in planned if record.promised >= 0]
        horizon = self.book.most_leases(first)
        capacity = self._capacity(gpus, horizon, aside, self.book.promised_gpus(len(gpus), first, horizon))
        capacity[:, 0] = np.maximum(capacity[:, 0] - fixed, 0)
        options, told = self.book.options(records, first, horizon, begins), len(self.notices)
        found = super().cycle(now_s, first, gpus, fixed, *args, **knobs)
        demoted = sum(notice.standing is Standing.DEMOTED for notice in self.notices[told:])
        if demoted:
            forced = len(records) - most_kept(options, capacity, len(records) - demoted, self.time_limit_s)
            self.audit.append(Broken(now_s, len(records), demoted, forced))
        return found
