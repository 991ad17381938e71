"""Re-solve of a saved run's program, and the explanation of one job."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol, runtime_checkable

from copter import Explanation, Session, Status
from copter.storage.tape.layout import MAGIC
from copter_frontends.policy_kit.lp_policy import LpPolicy
from copter_frontends.replay.what_if.change import Change, WhatIfError
from copter_frontends.replay.what_if.round import Answer
from copter_frontends.replay.what_if.run import ask_hours, ask_run
from copter_frontends.replay.what_if.tape import NO_JCT, TapeAnswer, ask_tape
from copter_frontends.simulator import load_run
from copter_frontends.simulator.paired import Paired

SHOWN = 5  # most names in a message


@runtime_checkable
class Explaining(Protocol):
    """Interface of a policy that explains its jobs itself."""

    jobs: Mapping[str, Any]

    def explained(self, job_id: str) -> Mapping[str, Any]:
        """Facts about a job, by name."""


@dataclass(frozen=True, slots=True)
class Told:
    """A policy's own facts about a job."""

    facts: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the facts for ``--json``."""
        return dict(self.facts)

    def as_text(self, most: int) -> str:
        """Return one line per fact; lists are limited to `most` lines."""
        lines = []
        for name, value in self.facts.items():
            if isinstance(value, list):
                shown = [str(each) for each in value[:most]]
                more = [f"... and {len(value) - most} more"] if len(value) > most else []
                lines += [f"{name.replace('_', ' ')}:", *(f"  {each}" for each in [*shown, *more])]
            elif isinstance(value, Mapping):
                lines.append(
                    f"{name.replace('_', ' ')}: " + ", ".join(f"{kind} {_text(at)}" for kind, at in value.items())
                )
            else:
                lines.append(f"{name.replace('_', ' ')}: {_text(value)}")
        return "\n".join(lines)


def _text(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(getattr(value, "value", value))


def explanation_of(path: str, job: str) -> Explanation | Told:
    """Explain a job's allocation in a saved run: by the policy's own facts, or by the re-solved LP's prices.

    Parameters
    ----------
    path : str
        File of the saved run.
    job : str

    Raises
    ------
    LookupError
        If there is no such job, the policy solves no LP, or the LP has no optimum.
    """
    policy = load_run(path).policy
    if isinstance(policy, Explaining):
        if job not in policy.jobs:
            near = get_close_matches(job, policy.jobs, SHOWN) or list(policy.jobs)[:SHOWN]
            raise LookupError(
                f"{path}: there is no job {job!r} in the run; there are {len(policy.jobs)}, among them {near}"
            )
        return Told(policy.explained(job))
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


@dataclass(frozen=True, slots=True)
class Asked:
    """Effect of a change on the next round of a run and, if requested, on its next hours."""

    answer: Answer
    hours: float | None
    paired: Paired | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        jobs = None if self.paired is None else {"hours": self.hours, **self.paired.as_dict()}
        return {**self.answer.as_dict(), "jobs": jobs}

    def as_text(self, most: int) -> str:
        """Return the effect as lines of text."""
        told = self.answer.as_text(most)
        return told if self.paired is None else f"{told}\n{self.hours:g} more hours:\n{self.paired.as_text()}"


def asked(path: str, what_if: str, hours: float | None) -> Asked | TapeAnswer:
    """Compute the effect of a change on a saved run or a tape.

    Parameters
    ----------
    path : str
        File of the run or the tape; it is not changed.
    what_if : str
        See :meth:`.Change.read`.
    hours : float or None
        Simulated hours for which a run is continued.

    Raises
    ------
    CopterError
        If the file cannot be used, or the change does not fit it.
    """
    change = Change.read(what_if)
    if is_tape(path):
        if hours is not None:
            raise WhatIfError(f"{path}: --hours: {NO_JCT}")
        return ask_tape(change, path)
    return Asked(ask_run(change, path), hours, None if hours is None else ask_hours(change, path, hours))


def is_tape(path: str) -> bool:
    """Whether a file begins as a tape does."""
    try:
        if not os.path.isfile(path):  # a pipe may have no writer, and a tape is read more than once
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
