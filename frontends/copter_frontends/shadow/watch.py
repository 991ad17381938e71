"""Watching: a session and a tape that go on from round to round, sums over time, and blindness that ends by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any

from copter import Settings
from copter.tape import recorded
from copter_frontends.queues import QueueError
from copter_frontends.queues.admission_model import AdmissionModel
from copter_frontends.queues.quota_tree import QuotaTree
from copter_frontends.shadow.findings import Findings, find
from copter_frontends.views import ClusterView

MOST_ROUNDS = 2000  # of history that is kept
MOST_JOBS = 50  # in the list of those that waited longest for nothing
Read = Callable[[], ClusterView]


class Shadow:
    """Watches one cluster and changes nothing in it.

    Parameters
    ----------
    read : callable
        Gives the cluster as it is now; its QueueError makes the shadow blind until it succeeds again.
    tape : str, optional
        File to record the rounds in.
    grace_s : float
        A job that waits for less is on its way, and is not counted.
    clock : callable
        Unix time.
    settings : Settings, optional

    Attributes
    ----------
    findings : Findings or None
        Of the last round that could see.
    blind_since_s : float or None
    why_blind : str
    """

    def __init__(
        self, read: Read, tape: str | None = None, grace_s: float = 30.0, clock: Callable[[], float] = time.time,
        settings: Settings | None = None,
    ) -> None:  # fmt: skip
        self.read, self.tape, self.grace_s, self.clock = read, tape, grace_s, clock
        self.settings = settings or Settings(threads=1)
        self.findings: Findings | None = None
        self.blind_since_s: float | None = None
        self.why_blind = ""
        self.blind_s = 0.0
        self.rounds = 0
        self.history: list[tuple[float, float, float, float]] = []  # time, used, plan, bound
        self.lost: dict[str, float] = {}  # seconds that jobs waited though they could have run
        self.sums = dict.fromkeys(("watched_s", "quota_s", "used_s", "could_s", "bound_s", "waited_s"), 0.0)
        self._model: AdmissionModel | None = None
        self._shape: Any = None
        self._last_s: float | None = None

    def __enter__(self) -> Shadow:
        """Record from here on, if there is a tape."""
        self._taping: AbstractContextManager[object] = nullcontext() if self.tape is None else recorded(self.tape)
        self._taping.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """End the tape."""
        self._taping.__exit__(*error)

    def look(self) -> str | None:
        """One round; a line for what has changed about seeing, or None."""
        now = self.clock()
        self._add_up(now)
        try:
            view = self.read()
            found = find(view, self._model_of(view.tree), now)
        except QueueError as error:
            self.why_blind = str(error)
            if self.blind_since_s is None:
                self.blind_since_s = now
                return f"blind since {stamp(now)}: {error}"
            return None
        was, self.blind_since_s, self.why_blind = self.blind_since_s, None, ""
        self.findings = found
        self.rounds += 1
        late = [each for each in found.starts if each["waits_s"] >= self.grace_s]
        self.history.append((now, found.used, sum(each["units"] for each in late), found.bound))
        del self.history[:-MOST_ROUNDS]
        return None if was is None else f"sees again at {stamp(now)}; was blind for {now - was:.0f} s"

    def _add_up(self, now: float) -> None:
        """Count the time since the last round as the last round found it; time that was blind apart."""
        last, self._last_s = self._last_s, now
        if last is None:
            return
        passed = max(0.0, now - last)
        if self.blind_since_s is not None or self.findings is None:
            self.blind_s += passed
            return
        found, sums = self.findings, self.sums
        late = [each for each in found.starts if each["waits_s"] >= self.grace_s]
        for name, value in (
            ("watched_s", 1.0), ("quota_s", found.quota), ("used_s", found.used),
            ("could_s", sum(each["units"] for each in late)), ("bound_s", found.bound if late else 0.0),
            ("waited_s", float(len(late))),
        ):  # fmt: skip
            sums[name] += value * passed
        for each in late:
            self.lost[each["job"]] = self.lost.get(each["job"], 0.0) + passed

    def _model_of(self, tree: QuotaTree) -> AdmissionModel:
        """The session: the old one where queues and quotas are as they were, with the usage of now."""
        shape = [
            (node.name, node.parent, node.is_queue, node.quotas)
            for node in [*tree.queues.values(), *tree.cohorts.values()]
        ]
        if self._model is None or shape != self._shape:
            self._model, self._shape = AdmissionModel(tree, self.settings), shape
        else:
            self._model.see(tree)
        return self._model

    def summary(self) -> dict[str, Any]:
        """All that was found, as plain values."""
        sums, found = self.sums, self.findings
        hours = {name.removesuffix("_s"): value / 3600.0 for name, value in sums.items()}
        longest = sorted(self.lost.items(), key=lambda each: -each[1])[:MOST_JOBS]
        return {
            "rounds": self.rounds,
            "blind_since": None if self.blind_since_s is None else stamp(self.blind_since_s),
            "why_blind": self.why_blind,
            "blind_s": self.blind_s,
            "watched_hours": hours["watched"],
            "unit_hours": {"quota": hours["quota"], "used": hours["used"]},
            "unused_unit_hours": {"at_least": hours["could"], "at_most": max(hours["bound"], hours["could"])},
            "job_hours_waited_for_nothing": hours["waited"],
            "jobs": [{"job": name, "waited_for_nothing_s": seconds} for name, seconds in longest],
            "now": None if found is None else asdict(found) | {"stranded": found.stranded},
        }


def stamp(time_s: float) -> str:
    """A time in words."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time_s))
