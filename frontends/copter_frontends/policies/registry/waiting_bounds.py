"""What each policy guarantees about waiting: a bound, or that there is none."""

from __future__ import annotations

from copter_frontends.policies.registry.names import POLICY_NAMES

NO_BOUND = "none: new jobs may always come first"

BOUNDS = {
    "yarn-cs": "the running times of the jobs submitted before",
    "chronus": "the promised deadline of a job that was promised one; none for others",
    "hops": "none in hours; a job's priority grows with its wait",
}
"""The policies that say more than :data:`NO_BOUND`.

yarn-cs starts jobs strictly in order of submission. Chronus keeps the leases of admitted jobs. Hops takes the largest
latency ratio first, but a ratio is no bound in hours.
"""

NEVER_STOP = ("fifo", "yarn-cs")
"""Policies that stop no job, so that a turn must wait for GPUs to be free."""


def waiting_bound(policy: str, ageing_h: float | None = None) -> str:
    """Return a policy's bound on waiting in words; `ageing_h` are the hours of ``--ageing``."""
    if policy not in POLICY_NAMES:
        raise KeyError(policy)
    if ageing_h is None:
        return BOUNDS.get(policy, NO_BOUND)
    running = ", once running jobs end" if policy in NEVER_STOP else ""
    return f"{ageing_h:g} h, and a turn for each job that has waited longer{running}"
