"""What each constant of the tree road is worth: halved and doubled, beside the road as it is, in turns.

    python benchmarks/plan_ablation.py --write docs/results/plans_ablation.md

The child process gets a changed constant before its first task. Figures depend on the time, so a change of a per cent
is none: what tells is a plan that is missing, or worse by far.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import own_clock
from plan_families import FAMILIES
from plan_families_unseen import UNSEEN
from plans import GAP

import copter
from copter.highs import tree

# name of the module, constant, what it holds
CONSTANTS = (
    ("copter.highs.configurations", "KEPT", "configurations that the next round begins with"),
    ("copter.highs.configurations", "HOLDS", "guard of rounding"),
    ("copter.highs.configurations", "RAISED", "factor on penalties of broken rows; half: they never rise"),
    ("copter.highs.search", "SEVERAL", "configurations among which choices are made"),
    ("copter.highs.search", "FIRST_TRIES", "changes of penalties, for the first choice"),
    ("copter.highs.search", "TRIES", "and for those that follow"),
    ("copter.highs.search", "WEAK", "gap of an LP that says little"),
    ("copter.highs.search", "CUTS_SHARE", "time for cuts then"),
    ("copter.highs.search", "SMALL_INTEGERS", "size of programs that get cuts"),
    ("copter.highs.search", "LEAST_GAIN", "what cuts must close of the gap"),
    ("copter.highs.search", "CUT_DIVE_SHARE", "time of a dive with cuts"),
    ("copter.highs.search", "TREE_ROOTS", "time below which branch and bound would come too late"),
    ("copter.highs.search", "CUT_BETWEEN_SHARE", "time of the search between plan and LP in its place"),
    ("copter.highs.search", "CUT_ROUNDS", "rounds of cuts at new prices"),
    ("copter.highs.search", "LEAST_CUT_GAIN", "what one of them must close of the gap"),
    ("copter.highs.search", "TREE_NODES", "LPs of a small tree"),
    ("copter.highs.search", "TREE_SIZE", "integer columns of the first small tree"),
    ("copter.highs.search", "TREE_IDLE", "small trees without a gain until they get more nodes"),
    ("copter.highs.search", "FIRST_LP_SHARE", "time of the LP before branch and bound"),
    ("copter.shims.tree_road", "FIRST_OVER", "guard of the clock: an LP's end, in the first round"),
    ("copter.shims.tree_road", "FADE", "guard of the clock: how fast a slow round is forgotten"),
)
# family, deadline, rounds of churn before the first one: rows of replicas are tight after many
TASKS = (
    ("replicas-30", 0.1, 35), ("replicas-60", 0.1, 0), ("lots-20", 1.0, 0), ("lots-40", 1.0, 0),
    ("assignment-120", 1.0, 0), ("units-20", 0.3, 0),
)  # fmt: skip
PLAIN = tree.CHILD
LATE_S = 0.01  # seconds over the deadline that count as late
PLAIN_NOISE = 0.005  # a change worse by more is measured twice: a machine that stood still for a moment is no effect


def outcome(task: tuple[str, float, int], rounds: int, seed: int, change: tuple[str, str, Any] | None) -> list[float]:
    """Return the objectives of a family's rounds (NaN without a plan), as minimised, and how late the latest was."""
    name, deadline_s, before_first = task
    family = (FAMILIES | UNSEEN)[name](seed)
    for _ in range(before_first):
        family.churn(0.01)
    sign = 1.0 if family.model.sense == "min" else -1.0
    before: Any = None
    tree.CHILD = PLAIN
    if change is not None:
        module, constant, value = change
        loaded = import_module(module)
        before = getattr(loaded, constant)
        setattr(loaded, constant, value)
        tree.CHILD = PLAIN.replace("main()\n", f"import {module} as changed\nchanged.{constant} = {value!r}\nmain()\n")
    found, late = [], 0.0
    try:
        session = copter.Session(family.model, copter.Settings(threads=1))
        session.prepare()
        for at in range(rounds):
            if at:
                family.churn(0.01)
            began = time.perf_counter()
            plan = session.solve_integer(deadline_s=deadline_s, gap=GAP)
            late = max(late, time.perf_counter() - began - deadline_s)
            found.append(sign * plan.objective)
        session._tree_road.close()  # type: ignore[union-attr]
    finally:
        if change is not None:
            setattr(import_module(change[0]), change[1], before)
    return [*found, late]


def told(base: list[list[float]], other: list[list[float]]) -> tuple[float, str]:
    """Return how much worse the plans are in the mean, and cells: that, the worst task, plans lost, rounds late."""
    factors, lost, late, worst = [], 0, 0, (0.0, "")
    for (name, _, _), one, two in zip(TASKS, base, other, strict=True):
        own = []
        for a, b in zip(one[:-1], two[:-1], strict=True):
            lost += math.isnan(b) - math.isnan(a)
            if not (math.isnan(a) or math.isnan(b)):
                own.append((b - a) / max(abs(a), 1e-9))
        late += (two[-1] > LATE_S) - (one[-1] > LATE_S)
        factors += own
        mean = sum(own) / max(len(own), 1)
        worst = max(worst, (mean, name))
    mean = sum(factors) / max(len(factors), 1)
    return mean, f"{100.0 * mean:+.2f}% | {worst[1]} {100.0 * worst[0]:+.2f}% | {lost:+d} | {late:+d}"


def main() -> None:
    """Measure all, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--own-clock", action="store_true", help="leave out the time that other programs take")
    given = parser.parse_args()
    if given.own_clock and not own_clock.is_here():
        sys.exit(own_clock.again())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    lines = []
    for task in TASKS:  # the first runs of a process are slower, and all are compared with the base
        outcome(task, 1, given.seed, None)
    base = [outcome(task, given.rounds, given.seed, None) for task in TASKS]
    again = [outcome(task, given.rounds, given.seed, None) for task in TASKS]
    lines.append(f"| the road as it is, once more | – | {told(base, again)[1]} | noise |")
    print(lines[-1], flush=True)
    for module, constant, what in CONSTANTS:
        value = getattr(import_module(module), constant)
        for word, factor in (("half", 0.5), ("double", 2.0)):
            parts = value if isinstance(value, tuple) else (value,)
            parts = tuple(type(part)(part * factor) for part in parts)
            changed = parts if isinstance(value, tuple) else parts[0]
            tellings = []
            while len(tellings) < 2 and (not tellings or tellings[0][0] > PLAIN_NOISE):
                other = [outcome(task, given.rounds, given.seed, (module, constant, changed)) for task in TASKS]
                tellings.append(told(base, other))
            path = module.removeprefix("copter.").replace(".", "/") + ".py"
            lines.append(f"| `{path} {constant}` | {word} | {min(tellings)[1]} | {what} |")
            print(lines[-1], flush=True)
    tasks = ", ".join(f"{name} at {at:g} s" + f" after {before} rounds" * (before > 0) for name, at, before in TASKS)
    page = (
        "# Ablation of the tree road\n\n"
        f"Made by `python benchmarks/plan_ablation.py --rounds {given.rounds} --seed {given.seed}"
        f"{' --own-clock' if given.own_clock else ''}`: each constant "
        f"halved and doubled. Tasks: {tasks}; {given.rounds} rounds each with 1% churn, on one processor. All figures "
        "depend on the time; the first line is the road beside itself. A change that is worse by over half a per cent "
        "in the mean is measured twice, and the smaller figure stands.\n\n"
        "| constant | change | worse by (mean) | worst task | plans lost | tasks late by 0.01 s | what it holds |\n"
        "|---|---|---:|---|---:|---:|---|\n"
        + "\n".join(lines)
        + "\n\nHow plans are made: [plans.md](../method/plans.md). "
        "The solver's own constants: [ablation.md](ablation.md).\n"
    )
    if given.write is not None:
        given.write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
