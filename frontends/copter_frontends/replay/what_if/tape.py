"""The rounds of a tape, solved with and without a change of capacity."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from copter import Model, Session, Solution, Status
from copter.session.playback import Playback
from copter_frontends.replay.what_if.change import Change, WhatIfError
from copter_frontends.replay.what_if.round import change_between, interval

NO_JCT = (
    "a tape holds programs, not how jobs train: for JCT take `copter explain RUN --hours`, "
    "or `copter simulate --what-if`"
)


@dataclass(frozen=True, slots=True)
class TapeAnswer:
    """Effect of a change of capacity on the rounds of a tape.

    Attributes
    ----------
    text : str
    rounds : list of dict
        ``round``, ``before``, ``after`` (objectives) and ``change`` (least and largest; None without a certified
        bound).
    passed : int
        Number of rounds left out because their programs have none of the resources.
    """

    text: str
    rounds: list[dict[str, Any]]
    passed: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        total = self.total
        return {
            "what_if": self.text,
            "rounds": self.rounds,
            "passed": self.passed,
            "total_change": None if total is None else list(total),
        }

    @property
    def total(self) -> tuple[float, float] | None:
        """Least and largest change over all rounds; None if a round has no bound."""
        changes = [each["change"] for each in self.rounds]
        if not changes or any(each is None for each in changes):
            return None
        return sum(low for low, _ in changes), sum(high for _, high in changes)

    def as_text(self, most: int = 8) -> str:
        """Return the comparison as lines of text."""
        lines = [f"what if: {self.text}", f"  {'round':>6} {'before':>12} {'after':>12}  change of the optimum"]
        lines += [
            f"  {each['round']:>6} {each['before']:>12.6g} {each['after']:>12.6g}  {interval(each['change'])}"
            for each in self.rounds[:most]
        ]
        if len(self.rounds) > most:
            lines.append(f"  ... and {len(self.rounds) - most:,} more rounds (--json has all)")
        middle = float(np.median([each["after"] - each["before"] for each in self.rounds]))
        lines.append(f"  {len(self.rounds):,} rounds, together {interval(self.total)}; median {middle:+.6g} a round")
        if self.passed:
            lines.append(f"  {self.passed:,} rounds left out: their programs have none of these resources")
        lines.append("  each round is as it was recorded, but for the change: what runs in one does not move the next")
        return "\n".join([*lines, f"  {NO_JCT}"])


def ask_tape(change: Change, path: str) -> TapeAnswer:
    """Solve every round of a tape as recorded and with a change of capacity.

    Two sessions get the rounds' edits. In one of them the capacity is changed for each solve and restored before the
    next edits, so that both follow the recorded model.

    Raises
    ------
    WhatIfError
        If no round's program has the resources, or more units are removed than a resource has.
    SnapshotError
        If the tape cannot be used.
    """
    change.require_only_gpus("a tape", quotas=True)
    wanted = dict(change.gpus)
    rounds: list[dict[str, Any]] = []
    passed, seen = 0, dict[str, None]()
    for recorded, changed in zip(Playback(path), Playback(path), strict=True):
        model = changed.session.model
        seen.update(dict.fromkeys(str(each) for each in model.resources))
        limits: dict[Hashable, float] = {
            kind: model.count(kind) + by for kind, by in wanted.items() if kind in model.resources
        }
        quotas: dict[Hashable, float] = {("quota", team): float(n) for team, n in change.quotas.items()}
        limits |= {name: count for name, count in quotas.items() if name in model.resources}
        if len(limits) < len(wanted) + len(quotas):
            passed += 1
            recorded.session.solve()
            changed.session.solve()
            continue
        before = recorded.session.solve()
        after = _solved_with(changed.session, model, limits)
        known = all(each.status is Status.OPTIMAL and each.bound_is_certified for each in (before, after))
        found = change_between((before.objective, before.bound), (after.objective, after.bound)) if known else None
        rounds.append({"round": recorded.number, "before": before.objective, "after": after.objective, "change": found})
    if not rounds:
        some = ", ".join(list(seen)[:8]) or "none"
        raise WhatIfError(f"what-if: {change.text}: no program on {path} has these resources; there are {some}")
    return TapeAnswer(change.text, rounds, passed)


def _solved_with(session: Session, model: Model, limits: dict[Hashable, float]) -> Solution:
    """Solve with other capacities, and restore them."""
    before = {name: model.count(name) for name in limits}
    for name, count in limits.items():
        if count < 0:
            raise WhatIfError(f"what-if: there are only {before[name]:g} {name} to take away from")
        model.set_count(name, count)
    try:
        return session.solve()
    finally:
        for name, count in before.items():
            model.set_count(name, count)
