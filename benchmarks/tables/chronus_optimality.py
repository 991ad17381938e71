"""The lease LP to a small gap beside HiGHS's optimum, the plan beside the bound, and the paper's MILP from that plan.

Cycles are those of `benchmarks/rounds.py --family chronus`. HiGHS is given the form with a block of leases per deadline
(chronus.md, C8), in which equal jobs are one of as many times the GPUs: the optimum is the same, the program much
smaller. The MILP is the compact form, job by job; HiGHS solves it from nothing, and from copter's plan as its start.

python benchmarks/tables/chronus_optimality.py --gpus 10000 --milp-s 0
python benchmarks/tables/chronus_optimality.py --gpus 1000 --cycles 3 --milp-s 60
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import highspy
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from families.chronus import LEASE_S, ChronusRounds

from copter import LinearProgram
from copter_frontends.chronus import LeaseFormulation
from copter_frontends.chronus.compact import compact_form, per_deadline_form
from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.options import Floats, Ints, Options


@dataclass(frozen=True, slots=True)
class Found:
    """What HiGHS came to: value, bound on it, processor seconds, and its own word for the end."""

    value: float
    bound: float
    seconds: float
    status: str


def by_class(options: Options) -> Options:
    """Equal jobs as one of as many times the GPUs and the value: an LP with the same optimum."""
    first = options.rows_of()
    columns = (options.mode, options.kind, options.gpus, options.need, options.last, options.step, options.value)
    known: dict[tuple[object, ...], list[int]] = {}
    for job in range(options.jobs):
        rows = slice(int(first[job]), int(first[job + 1]))
        own = tuple(tuple(column[rows].tolist()) for column in columns)
        known.setdefault((bool(options.must[job]), *own), []).append(job)
    which = [jobs[0] for jobs in known.values()]
    rows = np.concatenate([np.arange(first[job], first[job + 1]) for job in which])
    sizes = np.array([len(jobs) for jobs in known.values()])
    job = np.repeat(np.arange(len(which)), [int(first[j + 1] - first[j]) for j in which])
    parts = {name: getattr(options, name)[rows] for name in ("mode", "kind", "need", "last", "step")}
    gpus, value = options.gpus[rows] * sizes[job], options.value[rows] * sizes[job]
    return Options(job=job, gpus=gpus, value=value, must=options.must[which], **parts)


def highs(program: LinearProgram, limit_s: float, start: Floats | None = None) -> Found:
    """Solve a maximisation by HiGHS, an integer one if it has integer columns; `start` is a whole plan."""
    model = highspy.Highs()
    model.silent()
    data = highspy.HighsLp()
    data.num_row_, data.num_col_ = program.A.shape
    data.col_cost_, data.col_lower_, data.col_upper_ = -program.c, program.col_lower, program.col_upper
    data.row_lower_, data.row_upper_ = program.row_lower, program.row_upper
    matrix = program.A.tocsc()
    data.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    data.a_matrix_.start_, data.a_matrix_.index_, data.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    whole = bool(np.any(program.integrality))
    if whole:
        data.integrality_ = [highspy.HighsVarType.kInteger] * len(program.c)
    else:
        model.setOptionValue("solver", "ipm")
        model.setOptionValue("run_crossover", "off")
    model.setOptionValue("threads", 1)
    model.setOptionValue("time_limit", limit_s)
    model.passModel(data)
    if start is not None:
        point = highspy.HighsSolution()
        point.col_value = start.tolist()
        model.setSolution(point)
    begun = time.process_time()
    model.run()
    seconds, info = time.process_time() - begun, model.getInfo()
    has = info.primal_solution_status == 2 or not whole
    value = -float(info.objective_function_value) if has else float("nan")
    bound = -float(info.mip_dual_bound) if whole else value
    return Found(value, bound, seconds, model.modelStatusToString(model.getModelStatus()))


def plan_of(family: ChronusRounds, options: Options) -> Floats:
    """The Selector's plan as a point of the compact form."""
    horizon = family.capacity.shape[1]
    block = np.concatenate(([0], np.cumsum((np.diff(options.job) != 0) | (np.diff(options.mode) != 0))))
    at = {key: row for row, key in enumerate(zip(options.job, options.mode, options.step, strict=True))}
    point = np.zeros(len(options.job) + (int(block[-1]) + 1) * horizon)
    for number, record in enumerate(family.records):
        leases = record.leases[record.leases >= family.first] - family.first
        if len(leases):
            row = at[number, record.mode, record.step]
            point[row] = 1.0
            point[len(options.job) + block[row] * horizon + leases] = 1.0
    return point


def cycle(family: ChronusRounds, asked: argparse.Namespace) -> None:
    """One cycle: the LP beside HiGHS's, then the plan, then the MILP."""
    options, capacity = family.options, family.capacity
    origin = Draft(options, capacity)  # what is promised: its jobs are rows "= 1" of the LP
    origin.put_leases(*family.selector.book.incumbent(family.records, options, family.first, capacity.shape[1]))
    begun = time.process_time()
    found = LeaseFormulation(gap=asked.gap, max_passes=200).solve(
        options, capacity, origin=origin, time_limit_s=asked.limit_s
    )
    lp_s = time.process_time() - begun
    print(
        f"lease {family.first}: {options.jobs} jobs, {int(options.must.sum())} with a promise; copter's LP "
        f"{found.value:.4f}, bound {found.bound:.4f} (gap {found.gap:.1e}), {found.passes} solves, {lp_s:.2f} s"
    )
    groups = by_class(options)
    other = highs(per_deadline_form(groups, capacity, whole=False), asked.limit_s)
    print(
        f"  HiGHS, {groups.jobs} kinds of jobs: {other.value:.4f} ({other.status}), {other.seconds:.2f} s; "
        f"copter's value {(other.value - found.value) / other.value:+.1e} below, "
        f"its bound {(found.bound - other.value) / other.value:+.1e} above"
    )
    selector, nothing = family.selector, np.zeros(1, dtype=np.int64)
    running = {record.job.id for record in selector.book.holders(family.first - 1)}
    begun = time.process_time()
    plan = selector.cycle(
        family.first * LEASE_S, family.first, family.gpus, nothing, running, True, begins=True, fresh=True
    )
    cycle_s = time.process_time() - begun
    tight = min(plan.bound, found.bound)
    print(
        f"  plan: reward {plan.reward:.1f}, {100 * (plan.bound - plan.reward) / plan.bound:.3f}% below the cycle's own "
        f"bound, {100 * (tight - plan.reward) / tight:.3f}% below the tighter one; {cycle_s:.2f} s"
    )
    if asked.milp_s > 0:
        milp(family, options, capacity, plan.reward, asked.milp_s)


def milp(family: ChronusRounds, options: Options, capacity: Ints, reward: float, limit_s: float) -> None:
    """The paper's MILP by HiGHS, from nothing and from copter's plan."""
    program = compact_form(options, capacity, whole=True, vub=False)
    for name, start in (("from nothing", None), ("from copter's plan", plan_of(family, options))):
        found = highs(program, limit_s, start)
        print(
            f"  HiGHS's MILP {name}: reward {found.value:.1f} ({found.value / reward:.4f} of copter's), bound "
            f"{found.bound:.1f}, {found.seconds:.1f} s, {found.status}"
        )


def main() -> None:
    """Every cycle of every seed."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--gpus", type=int, default=10_000)
    command.add_argument("--gap", type=float, default=1e-4, help="of the LP (default 1e-4; the cycles' own is 5e-3)")
    command.add_argument("--cycles", type=int, default=1)
    command.add_argument("--seed", type=int, default=0, help="the first seed")
    command.add_argument("--seeds", type=int, default=1)
    command.add_argument("--limit-s", type=float, default=600.0, help="seconds of one LP")
    command.add_argument("--milp-s", type=float, default=60.0, help="seconds of one MILP; 0: none is solved")
    asked = command.parse_args()
    for seed in range(asked.seed, asked.seed + asked.seeds):
        print(f"{asked.gpus} GPUs, seed {seed}")
        family = ChronusRounds(asked.gpus, seed)
        for _ in range(asked.cycles):
            cycle(family, asked)
            sys.stdout.flush()
            family.prepare()


if __name__ == "__main__":
    main()
