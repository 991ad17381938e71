"""Plans of many kinds of models beside HiGHS's: the same deadline, one thread each, warm rounds with churn.

    python benchmarks/plans.py --rounds 60 --deadlines 0.1,1,5 --json rounds.json --write docs/results/plans.md

Each round changes about 1% of a family's requests. Then three get the same program and deadline in turn, on one
processor: a session, HiGHS from nothing, and HiGHS from the last point that it found (in the same columns; new ones are
zero). HiGHS's better answer counts. A plan counts for either side if it was there by the deadline and GRACE: HiGHS runs
far over its limit on some programs, and what it finds then comes too late for a round. Processes and imports are ready
before the first round; everything else, such as building HiGHS's program from the model, is not counted for HiGHS, and
counted for the session. A run that was ended goes on from the rounds in its `--json` file.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import own_clock
from plan_families import FAMILIES, Family
from plan_families_unseen import UNSEEN

import copter
from copter.highs.lp import highs_lp, require_highspy, run_highs, silent_highs
from copter.problem.linear_program import LinearProgram
from copter.problem.residuals import plan_gap

GAP = 1e-4  # at which every solver may stop: HiGHS's own default
WORSE = 0.005  # share of the objective by which a plan may be worse than HiGHS's
MOST = 10.0  # largest factor of one round in a geometric mean; an objective of 0 has none of its own
GRACE = 0.05  # share of the deadline by which a plan may come late and still counts
NONE = float("nan")


class Answer(NamedTuple):
    """A solver's objective (NaN without a plan), bound and seconds in one round."""

    objective: float
    bound: float
    seconds: float
    values: Any = None


class Round(NamedTuple):
    """The answers of one round."""

    ours: Answer
    nothing: Answer
    start: Answer


def by_highs(lp: LinearProgram, deadline_s: float, start: np.ndarray[Any, Any] | None) -> Answer:
    """Return HiGHS's answer to a program."""
    highspy = require_highspy("the benchmark")
    program = highs_lp(lp, integer=True)
    began = time.perf_counter()
    solver = silent_highs()
    for name, value in (("threads", 1), ("mip_rel_gap", GAP), ("time_limit", deadline_s)):
        solver.setOptionValue(name, value)
    solver.passModel(program)
    if start is not None:
        known = highspy.HighsSolution()
        known.col_value = start.tolist()
        solver.setSolution(known)
    points: list[tuple[float, np.ndarray[Any, Any]]] = []

    def heard(event: Any, message: str, out: Any, answer: Any, data: Any) -> None:
        if time.perf_counter() - began <= (1.0 + GRACE) * deadline_s:
            points.append((float(out.objective_function_value), np.array(out.mip_solution)))

    solver.setCallback(heard, None)
    solver.startCallback(highspy.cb.HighsCallbackType.kCallbackMipImprovingSolution)
    run_highs(solver)
    seconds, info = time.perf_counter() - began, solver.getInfo()
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if feasible and seconds <= (1.0 + GRACE) * deadline_s:  # also what presolve alone solves
        points.append((float(info.objective_function_value), np.array(solver.getSolution().col_value)))
    if not points:
        return Answer(NONE, float(info.mip_dual_bound), seconds)
    return Answer(points[-1][0], float(info.mip_dual_bound), seconds, points[-1][1])


def in_columns(family: Family, last: dict[Hashable, Any] | None) -> np.ndarray[Any, Any] | None:
    """Return the last point in the model's present columns; None without one."""
    if last is None:
        return None
    model = family.model
    none = np.zeros(0)
    parts = []
    for request in model.requests:
        n, known = len(model.cost(request)), last.get(request, none)
        parts.append(known if len(known) == n else np.zeros(n))
    return np.concatenate(parts)


def by_request(family: Family, x: np.ndarray[Any, Any] | None) -> dict[Hashable, Any] | None:
    """Return a point's values by request; None without a point."""
    if x is None:
        return None
    requests = family.model.requests
    sizes = [len(family.model.cost(request)) for request in requests]
    return dict(zip(requests, np.split(x, np.cumsum(sizes)[:-1]), strict=True))


def rounds_of(name: str, deadline_s: float, rounds: int, churn: float, seed: int) -> list[Round]:
    """Play a family's rounds."""
    family = (FAMILIES | UNSEEN)[name](seed)
    session = copter.Session(family.model, copter.Settings(threads=1))
    session.prepare()
    last: dict[Hashable, Any] | None = None
    found = []
    for at in range(rounds):
        if at:
            family.churn(churn)
        began = time.perf_counter()
        plan = session.solve_integer(deadline_s=deadline_s, gap=GAP)
        seconds = time.perf_counter() - began
        ours = Answer(plan.objective if seconds <= (1.0 + GRACE) * deadline_s else NONE, plan.bound, seconds)
        time.sleep(0.02)  # so that the child has ended what it was at
        lp = family.model.to_linear_program()
        nothing = by_highs(lp, deadline_s, None)
        start = by_highs(lp, deadline_s, in_columns(family, last)) if last is not None else nothing
        better = min(
            (each for each in (nothing, start) if each.values is not None),
            key=lambda each: each.objective if lp.sense == "min" else -each.objective,
            default=None,
        )
        last = by_request(family, better.values) if better is not None else None
        found.append(Round(ours, nothing._replace(values=None), start._replace(values=None)))
    return found


class Row(NamedTuple):
    """A line of the table."""

    family: str
    deadline_s: float
    rounds: int
    ours: int  # rounds with a plan
    theirs: int
    only_theirs: int
    mean: float  # geometric mean of how much better the plan's objective is, as a factor; above 1 is better
    worst: float  # largest share by which a plan is worse
    behind: int  # rounds in which it is worse by more than WORSE
    gap: float  # median
    their_gap: float
    seconds: float  # median
    late: float  # longest time over the deadline


def row_of(name: str, deadline_s: float, sense: str, rounds: list[Round]) -> Row:
    """Return the line of a family at a deadline."""
    sign = 1.0 if sense == "min" else -1.0
    factors, worst, behind, ours, theirs, only, gaps, their_gaps = [], 0.0, 0, 0, 0, 0, [], []
    for each in rounds:
        known = [a for a in (each.nothing, each.start) if not math.isnan(a.objective)]
        best = min(known, key=lambda a: sign * a.objective) if known else None
        mine = not math.isnan(each.ours.objective)
        ours, theirs = ours + mine, theirs + (best is not None)
        only += best is not None and not mine
        gaps.append(plan_gap(each.ours.objective, each.ours.bound) if mine else math.inf)
        their_gaps.append(plan_gap(best.objective, best.bound) if best is not None else math.inf)
        if mine and best is not None:
            loss = sign * (each.ours.objective - best.objective) / max(abs(best.objective), 1e-9)
            worst, behind = max(worst, loss), behind + (loss > WORSE)
            pair = abs(best.objective), abs(each.ours.objective)
            factor = math.log(max(pair[0], 1e-9) / max(pair[1], 1e-9)) * sign
            factors.append(min(max(factor, -math.log(MOST)), math.log(MOST)))
    mean = math.exp(sum(factors) / len(factors)) if factors else NONE
    return Row(
        name, deadline_s, len(rounds), ours, theirs, only, mean, worst, behind, float(np.median(gaps)),
        float(np.median(their_gaps)), float(np.median([each.ours.seconds for each in rounds])),
        max(each.ours.seconds for each in rounds) - deadline_s,
    )  # fmt: skip


def share_of(row: Row) -> str:
    """Return by how much a row's plans are better; a dash where no round has both."""
    return "–" if math.isnan(row.mean) else f"{100.0 * (row.mean - 1.0):+.2f}%"


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| family | deadline, s | rounds | plans | HiGHS's plans | better by (geom. mean) | worst round | "
        "rounds worse by 0.5% | gap | HiGHS's gap | time, s | late by, s |",
        "|---|" + "---:|" * 11,
    ]
    for row in rows:
        lost = f" (**{row.only_theirs} only HiGHS's**)" if row.only_theirs else ""
        lines.append(
            f"| {row.family} | {row.deadline_s:g} | {row.rounds} | {row.ours}{lost} | {row.theirs} | "
            f"{share_of(row)} | {-100.0 * row.worst:+.2f}% | "
            f"{f'**{row.behind}**' if row.behind else 0} | {row.gap:.1e} | {row.their_gap:.1e} | {row.seconds:.2f} | "
            f"{max(row.late, 0.0):.2f} |"
        )
    return "\n".join(lines)


OWN_CLOCK = (
    "Other work ran on the machine. So time is that of a clock which stands still while another program has the "
    "processor (`benchmarks/own_clock.c`), for all three alike.\n\n"
)


def page(rows: list[Row], command: str, note: str) -> str:
    """Return the page with the table and what it sums up to."""
    compared = [row for row in rows if not math.isnan(row.mean)]
    weight = sum(min(row.ours, row.theirs) for row in compared)
    mean = math.exp(sum(math.log(row.mean) * min(row.ours, row.theirs) for row in compared) / max(weight, 1))
    behind, only = sum(row.behind for row in rows), sum(row.only_theirs for row in rows)
    more = sum(row.ours for row in rows) - sum(row.theirs for row in rows)
    return (
        f"# Plans {'for unseen families ' if ' --unseen' in command else ''}beside HiGHS's\n\n"
        f"Made by `{command}`. Each round changes about 1% of a family's requests; the session, HiGHS from nothing and "
        "HiGHS from its last point get the same program, deadline and gap (1e-4) in turn, one thread each, on one "
        "processor. HiGHS's better answer counts; no commercial solver was run. A plan of either side counts if it was "
        "there by 1.05 times the deadline. The full run, which takes hours, has "
        "`--rounds 60 --deadlines 0.1,1,5`. Losses are in bold.\n\n"
        f"{note}"
        f"Over all rounds: objectives better by {100.0 * (mean - 1.0):+.2f}% in the geometric mean of the rounds in "
        f"which both have a plan; worse than HiGHS's by more than 0.5% in {behind} of {sum(row.rounds for row in rows)}"
        f" rounds; {more:+d} plans more than HiGHS, and none where HiGHS has one in {only} rounds.\n\n"
        f"{table(rows)}\n\n"
        '"Better by": factor of the objectives, above zero where the session\'s plan is better, over the rounds in '
        f"which both have one; a round counts as {MOST:g} times better or worse at most. "
        '"Worst round": how much the session\'s plan was worse at most. "Gap": medians, '
        "|bound - objective| / |objective|. How plans are made: [plans.md](../method/plans.md).\n"
    )


def main() -> None:
    """Play all families and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", default="60", help="of each deadline, or one number for all")
    parser.add_argument("--deadlines", default="0.1,1,5")
    parser.add_argument("--families", default="", help="names, or their beginnings (default: all)")
    parser.add_argument("--unseen", action="store_true", help="the families that plans were not made for")
    parser.add_argument("--churn", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help="file of the page")
    parser.add_argument("--json", type=Path, help="file of all rounds; those that are in it are not played again")
    parser.add_argument("--own-clock", action="store_true", help="leave out the time that other programs take")
    given = parser.parse_args()
    if given.own_clock and not own_clock.is_here():
        sys.exit(own_clock.again())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    families = UNSEEN if given.unseen else FAMILIES
    names = [name for name in families if any(name.startswith(part) for part in given.families.split(","))]
    deadlines, counts = given.deadlines.split(","), given.rounds.split(",")
    counts = counts if len(counts) > 1 else counts * len(deadlines)
    rows = dict[tuple[str, str], Row]()
    every = json.loads(given.json.read_text("utf-8")) if given.json is not None and given.json.exists() else {}
    for deadline, count in zip(deadlines, counts, strict=True):
        for name in names:
            sense, key = families[name](given.seed).model.sense, f"{name} {deadline} s, {count} rounds"
            if key not in every:
                played = rounds_of(name, float(deadline), int(count), given.churn, given.seed)
                every[key] = [[each[:3] for each in one] for one in played]
                if given.json is not None:
                    given.json.write_text(json.dumps(every), encoding="utf-8")
            played = [Round(*(Answer(*each) for each in one)) for one in every[key]]
            rows[name, deadline] = row_of(name, float(deadline), sense, played)
            print(table([rows[name, deadline]]).splitlines()[-1], flush=True)
    command = f"python benchmarks/plans.py --rounds {given.rounds} --deadlines {given.deadlines}"
    command += " --unseen" if given.unseen else ""
    command += f" --families {given.families}" if given.families else ""
    command += f" --seed {given.seed}" if given.seed != 1 else ""
    command += " --own-clock" if given.own_clock else ""
    note = OWN_CLOCK if given.own_clock else ""
    text = page([rows[name, deadline] for name in names for deadline in deadlines], command, note)
    print(text)
    if given.write is not None:
        given.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
