"""One round planned twice, with and without a change, each on a copy of the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

from copter import Solution
from copter.storage.encoding import Reader, encode
from copter_frontends.policy_kit import LpPolicy
from copter_frontends.simulator.rebuilt_objects import Rebuilder
from copter_frontends.simulator.saved_classes import SavedClasses
from copter_frontends.simulator.saved_objects import Flattener
from copter_frontends.vocabulary import Allocation, Plan, SchedulingPolicy

MOST_NAMED = 1000  # most jobs named in a list of an answer
NOTHING = 1e-12  # part of the largest figure of an answer below which a figure is rounding

T = TypeVar("T")


def values_of(thing: object) -> bytes:
    """Return an object's complete state as bytes; two objects with equal bytes are equal to the last bit."""
    return b"".join(encode(Flattener(SavedClasses()).flatten(thing)))


def copied(thing: T) -> T:
    """Return a copy that shares nothing with the original, including sessions with their models and warm states.

    Raises SimulationError for an object that a saved run may not contain.
    """
    data = values_of(thing)
    made: T = Rebuilder(Reader(data, "the copy").whole(), SavedClasses(), len(data)).rebuild()
    return made


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with certified pairs (a reached value, a bound on all values), or None without one.

    `whole` is the pair of the plan, `lp` that of its linear program.
    """

    plan: Plan
    whole: tuple[float, float] | None
    lp: tuple[float, float] | None

    @classmethod
    def by(cls, policy: SchedulingPolicy, now_s: float, deadline_s: float) -> Planned:
        """Plan a round."""
        return cls.of(policy.plan(now_s, deadline_s), policy)

    @classmethod
    def of(cls, plan: Plan, policy: object) -> Planned:
        """Make it from a plan that a policy has just made."""
        return cls(plan, (plan.objective, plan.bound) if isinstance(policy, LpPolicy) else None, lp_of(policy))


def lp_of(policy: object) -> tuple[float, float] | None:
    """Return (objective, bound) of the policy's last program; None without a certified bound."""
    solution = policy.last_solution if isinstance(policy, LpPolicy) else None
    if not isinstance(solution, Solution) or not solution.bound_is_certified or not isfinite(solution.objective):
        return None
    return solution.objective, solution.bound


@dataclass(frozen=True, slots=True)
class Answer:
    """What a change does to one round.

    Attributes
    ----------
    text : str
        The change.
    objective : (float, float)
        The plan's value before and after.
    plan_change : (float, float) or None
        Lower and upper limit of the change of the best plan's value, from the values and bounds of both plans; None
        without bounds.
    lp_change : (float, float) or None
        The same for the linear program's optimum.
    starts, stops : list of str
        Jobs that run only with the change, and only without it.
    changes : dict of job to ((GPU type, GPUs) before, after)
        Jobs that run with other GPUs.
    waiting : (int, int)
        Number of jobs without GPUs, before and after.
    prices : (dict, dict)
        Value of one more GPU of each type, before and after.
    """

    text: str
    objective: tuple[float, float]
    plan_change: tuple[float, float] | None
    lp_change: tuple[float, float] | None
    starts: list[str]
    stops: list[str]
    changes: dict[str, tuple[tuple[str, int], tuple[str, int]]]
    waiting: tuple[int, int]
    prices: tuple[Mapping[str, float], Mapping[str, float]]

    @classmethod
    def of(cls, text: str, before: Planned, after: Planned, jobs: tuple[int, int]) -> Answer:
        """Compare two plans of one round; `jobs` has the numbers of jobs before and after."""
        old, new = before.plan.allocations, after.plan.allocations
        same = {name for name in old.keys() & new.keys() if _given(old[name]) == _given(new[name])}
        return cls(
            text,
            (before.plan.objective, after.plan.objective),
            change_between(before.whole, after.whole),
            change_between(before.lp, after.lp),
            [name for name in new if name not in old],
            [name for name in old if name not in new],
            {name: (_given(old[name]), _given(new[name])) for name in old if name in new and name not in same},
            (jobs[0] - len(old), jobs[1] - len(new)),
            (dict(before.plan.prices), dict(after.plan.prices)),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "what_if": self.text,
            "objective": list(self.objective),
            "plan_change": None if self.plan_change is None else list(self.plan_change),
            "lp_change": None if self.lp_change is None else list(self.lp_change),
            "starts": self.starts[:MOST_NAMED],
            "stops": self.stops[:MOST_NAMED],
            "changes": {name: list(each) for name, each in list(self.changes.items())[:MOST_NAMED]},
            "counts": {"starts": len(self.starts), "stops": len(self.stops), "changes": len(self.changes)},
            "waiting": list(self.waiting),
            "prices": [dict(each) for each in self.prices],
        }

    def as_text(self, most: int = 8) -> str:
        """Return the answer as lines of text, with at most `most` jobs in a list."""
        old, new = self.objective
        size = max(abs(new), abs(old))
        more = 0.0 if abs(new - old) <= NOTHING * size else new - old
        lines = [
            f"what if: {self.text}",
            f"  the plan's objective: {old:.6g} before, {new:.6g} after ({more:+.6g})",
            f"  the best plan's value changes by {interval(self.plan_change, size)}",
            f"  the linear program's optimum changes by {interval(self.lp_change, size)}",
            f"  jobs without GPUs: {self.waiting[0]:,} before, {self.waiting[1]:,} after",
        ]
        names = list(dict.fromkeys([*self.prices[0], *self.prices[1]]))
        scale = max((abs(price) for each in self.prices for price in each.values()), default=0.0)
        least = NOTHING * max(scale, size)
        prices = ", ".join(
            f"{name} {_priced(self.prices[0], name, least)} -> {_priced(self.prices[1], name, least)}" for name in names
        )
        lines += [f"  prices: {prices}"] if prices else []
        for word, found in (("start", self.starts), ("stop", self.stops)):
            lines.append(f"  {len(found):,} {'job' if len(found) == 1 else 'jobs'} would {word}{_named(found, most)}")
        moved = [f"{name} ({a[1]} {a[0]} -> {b[1]} {b[0]})" for name, (a, b) in self.changes.items()]
        lines.append(f"  {len(moved):,} would have other GPUs{_named(moved, most)}")
        return "\n".join([*lines, "  nothing is committed: both plans were made on copies"])


Pair = tuple[float, float]


def change_between(before: Pair | None, after: Pair | None) -> Pair | None:
    """Return the (least, largest) possible change of an optimum; each pair is a reached value and a bound on all
    values.

    In a maximisation a value is below its bound, in a minimisation above. None if a bound is not finite.
    """
    if before is None or after is None or not all(map(isfinite, (*before, *after))):
        return None
    low, high = sorted(after)
    least, most = sorted(before)
    return low - most, high - least


def interval(change: tuple[float, float] | None, scale: float = 0.0) -> str:
    """Return a certified change in words; `scale` is the size of the sums of which it is the difference."""
    if change is None:
        return "an amount that no bound certifies"
    # what is left of equal sums by rounding is no change
    low, high = (0.0 if abs(each) <= NOTHING * max(scale, *map(abs, change)) else each + 0.0 for each in change)
    return f"{low:+.6g}" if f"{low:.6g}" == f"{high:.6g}" else f"{low:+.6g} to {high:+.6g} (certified)"


def ask(
    text: str,
    policy: SchedulingPolicy,
    tell: Callable[[SchedulingPolicy], None],
    now_s: float,
    deadline_s: float,
    jobs: tuple[int, int],
) -> Answer:
    """Plan a round with and without a change, on copies of a policy.

    Parameters
    ----------
    text : str
        The change in words.
    policy : SchedulingPolicy
        A policy that is ready to plan; it is not changed.
    tell : callable
        Function that applies the change to a policy.
    now_s, deadline_s : float
        Arguments of ``plan``.
    jobs : (int, int)
        Number of jobs without and with the change.
    """
    before, after = copied(policy), copied(policy)
    tell(after)
    return Answer.of(text, Planned.by(before, now_s, deadline_s), Planned.by(after, now_s, deadline_s), jobs)


def _given(allocation: Allocation) -> tuple[str, int]:
    return allocation.gpu_type, allocation.gpus


def _priced(prices: Mapping[str, float], name: str, least: float) -> str:
    """Return a price as text; what is nothing beside the others is 0."""
    if name not in prices:
        return "none"
    return f"{prices[name]:.4g}" if abs(prices[name]) > least else "0"


def _named(names: list[str], most: int) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (": " + ", ".join(names[:most]) + more) if names else ""
