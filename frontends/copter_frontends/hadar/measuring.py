"""A Hadar policy that measures its jobs' rates as they run (docs/hadar.md, H16)."""

from __future__ import annotations

from typing import Any

from copter_frontends.hadar.policy import HadarPolicy
from copter_frontends.policy_kit import Throughputs
from copter_frontends.vocabulary import Allocation, Plan


class Measuring:
    """A Hadar policy that is told, before each plan, how fast its jobs ran since the last one (a SchedulingPolicy).

    A round measures only the type that limited a job's speed. All other attributes are the policy's.

    Parameters
    ----------
    policy : HadarPolicy
    truth : Throughputs
        The true rates, which a real cluster would measure.
    """

    def __init__(self, policy: HadarPolicy, truth: Throughputs) -> None:
        self.policy, self.truth = policy, truth
        self._ran: dict[str, Allocation] = {}

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        """As :meth:`.HadarPolicy.plan`, the last round's measurements first."""
        book = self.policy.book
        for job_id, allocation in self._ran.items():
            if job_id in book.index:
                row = book.row(job_id)
                rate = self.truth.rate(book.jobs[row], allocation.gpu_type, int(book.gpus[row]))
                self.policy.update_job(job_id, rates={allocation.gpu_type: rate})
        plan = self.policy.plan(now_s, deadline_s)
        self._ran = dict(plan.allocations)
        return plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)
