"""What a Hadar policy does to each job in each round: whether its GPUs change, and how much of the round it loses."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.vocabulary import Allocation, Plan


@dataclass(slots=True)
class JobRounds:
    """The rounds in which a job ran, in order.

    Attributes
    ----------
    application : str
    changed : list of bool
        Whether its GPUs were not those of the round before; true of the first.
    lost : list of float
        Share of the round in which it did nothing, by what it got done; NaN for the round in which it ended.
    """

    application: str
    changed: list[bool] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)


class Watched:
    """A Hadar policy that is watched (a SchedulingPolicy); other attributes are the policy's.

    Parameters
    ----------
    policy : HadarPolicy
    anew : bool
        Forget before each plan which GPUs jobs have, so that all are given out anew.

    Attributes
    ----------
    jobs : dict of job id to JobRounds
    changes : list of int
        Jobs whose GPUs changed in each round.
    """

    def __init__(self, policy: HadarPolicy, anew: bool = False) -> None:
        self.policy, self.anew = policy, anew
        self.jobs: dict[str, JobRounds] = {}
        self.changes: list[int] = []
        self._ran: dict[str, tuple[Allocation, float]] = {}

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """As :meth:`.HadarPolicy.plan`; what the last round came to is written down first."""
        policy, book = self.policy, self.policy.book
        for job_id, (held, before) in self._ran.items():
            if job_id in book.index:
                self.jobs[job_id].lost[-1] = self._lost(job_id, held, before)
        if self.anew:
            for job_id in [job_id for job_id in policy.held if job_id not in policy.pins]:
                policy.holdings.release(job_id)
        plan = policy.plan(now_s, deadline_s)
        ran, count = {}, 0
        for job_id, held in plan.allocations.items():
            row = book.row(job_id)
            rounds = self.jobs.setdefault(job_id, JobRounds(book.jobs[row].application))
            changed = job_id not in self._ran or self._ran[job_id][0] != held
            rounds.changed.append(changed)
            rounds.lost.append(float("nan"))
            ran[job_id] = (held, float(book.progress[row]))
            count += changed
        self._ran = ran
        self.changes.append(count)
        return plan

    def _lost(self, job_id: str, held: Allocation, before: float) -> float:
        policy, book = self.policy, self.policy.book
        row = book.row(job_id)
        rate = float(book.rates[row, policy.servers.types.index(held.gpu_type)])
        rate *= 1.0 - policy.spread_cost if policy.servers.is_spread(held) else 1.0
        done = float((book.progress[row] - before) * book.total[row])
        return round(1.0 - done / (rate * policy.round_s), 9)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    # Figures ------------------------------------------------------------------------------------------------------

    def changed_shares(self) -> dict[str, float]:
        """Share of rounds with a change: of all jobs' together, of each job's on average, and of the cluster's."""
        each = [np.array(job.changed) for job in self.jobs.values()]
        later = [rounds[1:] for rounds in each if len(rounds) > 1]
        return {
            "together": float(np.concatenate(each).mean()),
            "by job": float(np.mean([rounds.mean() for rounds in each])),
            "by job, after its first": float(np.mean([rounds.mean() for rounds in later])) if later else 0.0,
            "of the cluster": float(np.mean(np.array(self.changes) > 0)),
        }

    def lost_shares(self) -> dict[str, tuple[float, float, float, float]]:
        """Of the rounds of each application, jobs' last left out: lost with a change, without, in all; and changed."""
        lost: dict[str, list[float]] = defaultdict(list)
        changed: dict[str, list[bool]] = defaultdict(list)
        for job in self.jobs.values():
            known = ~np.isnan(job.lost)
            lost[job.application] += np.array(job.lost)[known].tolist()
            changed[job.application] += np.array(job.changed)[known].tolist()
        found = {}
        for name, values in lost.items():
            share, moved = np.array(values), np.array(changed[name], dtype=bool)
            parts = [part.mean() if len(part) else 0.0 for part in (share[moved], share[~moved], share, moved)]
            found[name] = tuple(map(float, parts))
        return found  # type: ignore[return-value]
