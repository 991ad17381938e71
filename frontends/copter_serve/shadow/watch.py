"""Watches a cluster round by round: one session, one tape, sums over time, and recovery from failed reads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from typing import Any

from copter import Settings
from copter.storage.tape import recorded
from copter_serve.queues import QueueError
from copter_serve.queues.quota_tree import QuotaTree
from copter_serve.shadow.findings import Findings, find
from copter_serve.shadow.start_model import StartModel
from copter_serve.views import ClusterView

MOST_ROUNDS = 2000  # most rounds of history that are kept
MOST_JOBS = 50  # most listed jobs that waited longest without need
OLD_ROUNDS = 2.0  # documents that are older than so many rounds are no longer those of the present
LEAST_OLD_S = 10.0  # whatever a round is, younger documents are of the present
Read = Callable[[], ClusterView]


class Shadow:
    """Watches one cluster and changes nothing in it.

    Parameters
    ----------
    read : callable
        Returns the present view of the cluster; after a QueueError the shadow is blind until a read succeeds.
    tape : str, optional
        File to record the rounds in.
    grace_s : float
        Jobs that have waited less than this are not counted, because they may be about to start.
    clock : callable
        Function that returns Unix time.
    settings : Settings, optional
    every_s : float
        Seconds between rounds. The shadow is blind since the documents were written if that is more than two rounds
        ago; what it found in them is then of that time.

    Attributes
    ----------
    findings : Findings or None
        Findings of the last documents that could be read.
    blind_since_s : float or None
    why_blind : str
    """

    def __init__(
        self,
        read: Read,
        tape: str | None = None,
        grace_s: float = 30.0,
        clock: Callable[[], float] = time.time,
        settings: Settings | None = None,
        every_s: float = 30.0,
    ) -> None:
        self.every_s = every_s
        self.read, self.tape, self.grace_s, self.clock = read, tape, grace_s, clock
        self.settings = settings or Settings(threads=1)
        self.findings: Findings | None = None
        self.blind_since_s: float | None = None
        self.why_blind = ""
        self.blind_s = 0.0
        self.rounds = 0
        self.history: list[tuple[float, float, float, float]] = []  # time, used, plan, bound
        self.lost: dict[str, float] = {}  # seconds that each job waited although it could have run
        self.sums = dict.fromkeys(("watched_s", "quota_s", "used_s", "could_s", "bound_s", "waited_s"), 0.0)
        self._model: StartModel | None = None
        self._shape: Any = None
        self._last_s: float | None = None

    def __enter__(self) -> Shadow:
        """Start recording, if there is a tape."""
        self._taping: AbstractContextManager[object] = nullcontext() if self.tape is None else recorded(self.tape)
        self._taping.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """End the tape; one without a round is taken away, so that the command can be given again."""
        self._taping.__exit__(*error)
        if self.tape is not None and not self.rounds:
            with suppress(OSError):
                os.unlink(self.tape)

    def look(self) -> str | None:
        """Make one round; return a line if the shadow has become blind or can see again, else None."""
        now = self.clock()
        self._add_up(now)
        try:
            view = self.read()
            old = now - view.read_s > max(OLD_ROUNDS * self.every_s, LEAST_OLD_S)
            found = find(view, self._model_of(view.tree), view.read_s if old else now)
        except QueueError as error:
            self.why_blind = str(error)
            if self.blind_since_s is None:
                self.blind_since_s = now
                return f"blind since {stamp(now)}: {error}"
            return None
        was, self.blind_since_s, self.why_blind = self.blind_since_s, None, ""
        self.findings = found
        self.rounds += 1
        if old:
            self.blind_since_s = view.read_s
            self.why_blind = f"the documents were written {now - view.read_s:.0f} s ago, and not since"
            return None if was is not None else f"blind since {stamp(view.read_s)}: {self.why_blind}"
        late = [each for each in found.starts if each["waits_s"] >= self.grace_s]
        self.history.append((now, found.used, sum(each["units"] for each in late), found.bound))
        del self.history[:-MOST_ROUNDS]
        return None if was is None else f"sees again at {stamp(now)}; was blind for {now - was:.0f} s"

    def _add_up(self, now: float) -> None:
        """Add the time since the last round to the sums, by the last round's findings; blind time is summed
        separately.
        """
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
            ("watched_s", 1.0),
            ("quota_s", found.quota),
            ("used_s", found.used),
            ("could_s", sum(each["units"] for each in late)),
            ("bound_s", found.bound if late else 0.0),
            ("waited_s", float(len(late))),
        ):
            sums[name] += value * passed
        for each in late:
            self.lost[each["job"]] = self.lost.get(each["job"], 0.0) + passed

    def _model_of(self, tree: QuotaTree) -> StartModel:
        """Return the model with the present usage: the old one if queues and quotas are unchanged, else a new one."""
        shape = [
            (node.name, node.parent, node.is_queue, node.quotas)
            for node in [*tree.queues.values(), *tree.cohorts.values()]
        ]
        if self._model is None or shape != self._shape:
            self._model, self._shape = StartModel(tree, self.settings), shape
        else:
            self._model.see(tree)
        return self._model

    def summary(self) -> dict[str, Any]:
        """Return everything found so far as plain values."""
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
    """Return a time as text."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time_s))
