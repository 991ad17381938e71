"""A saved run's program solved again, and one job's explanation."""

from __future__ import annotations

from collections.abc import Hashable
from difflib import get_close_matches

from copter import Explanation, Session, Status
from copter_frontends.policy_kit.lp_policy import LpPolicy
from copter_frontends.simulator import load_run

SHOWN = 5  # names in a message


def explanation_of(path: str, job: str) -> Explanation:
    """The explanation; LookupError where the run has no program, or no such job in it."""
    policy = load_run(path).policy
    if not isinstance(policy, LpPolicy):
        raise LookupError(
            f"{path}: the policy {type(policy).__name__} solves no linear program that could explain a job"
        )
    model = policy.model
    names: dict[str, Hashable] = {str(request): request for request in model.requests}
    if job not in names:
        near = get_close_matches(job, names, SHOWN) or list(names)[:SHOWN]
        raise LookupError(f"{path}: there is no job {job!r} in the program; there are {len(names)}, among them {near}")
    solution = Session(model).solve()
    if solution.status is not Status.OPTIMAL:
        raise LookupError(f"{path}: the program ended {solution.status.value}, so there are no prices to explain with")
    return solution.explain(names[job])
