"""The hour of frontends/examples/llm_serving.py by copter, a greedy, and HiGHS cold and warm.

Run it: python benchmarks/llm_rivals.py [--data FOLDER] [--minutes N] [--page writes docs/results/llm_serving.md]
Every solver plays the hour by itself: what it loaded in one minute runs in the next. Minute 0 is not timed.
"""

from __future__ import annotations

import argparse
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "llm_serving.md"
SERVING = runpy.run_path(str(ROOT / "frontends" / "examples" / "llm_serving.py"))
MIXES, GPUS, NEEDS, SPEED, BUSY = (SERVING[name] for name in ("MIXES", "GPUS", "NEEDS", "SPEED", "BUSY"))
DEADLINE_S, GAP, LIMIT_S = 0.02, 1e-4, 60.0
Chooser = Callable[[list[Any], np.ndarray], np.ndarray]  # groups and worths (groups, mixes) -> mix of each, -1 for none


class ByCopter:
    """The example's own fleet."""

    def __init__(self, groups: list[Any], deadline_s: float | None) -> None:
        self.fleet, self.deadline_s, self.gaps = SERVING["Fleet"](groups), deadline_s, []

    def __call__(self, groups: list[Any], costs: np.ndarray) -> np.ndarray:
        plan = self.fleet.plan(costs, self.deadline_s)
        self.gaps.append(plan.gap)
        return np.asarray(plan.columns_of(groups)) if plan else np.full(len(groups), -1)


def greedy(groups: list[Any], costs: np.ndarray) -> np.ndarray:
    """The group that gains most first, with the best mix of what is left."""
    left, chosen = np.array(list(GPUS.values())), np.full(len(groups), -1)
    for at in np.argsort(-costs.max(axis=1), kind="stable"):
        fits = (MIXES * NEEDS[groups[at][0]] <= left).all(axis=1)
        worth = np.where(fits, costs[at], -np.inf)
        best = int(worth.argmax())
        if worth[best] > 0:
            chosen[at] = best
            left = left - MIXES[best] * NEEDS[groups[at][0]]
    return chosen


class ByHighs:
    """The same program in HiGHS: made anew every minute, or kept with new costs and the last plan as a start."""

    def __init__(self, groups: list[Any], kept: bool) -> None:
        self.kept, self.solver, self.last, self.gaps = kept, None, None, []
        n, k = len(groups), len(MIXES)
        units = np.hstack([(MIXES * NEEDS[group[0]]).T for group in groups])
        one = sp.kron(sp.eye_array(n), np.ones((1, k)))
        self.rows, self.upper = sp.csc_array(sp.vstack([units, one])), np.array([*GPUS.values(), *[1.0] * n])

    def _made(self, costs: np.ndarray) -> Any:
        import highspy

        lp, n = highspy.HighsLp(), costs.size
        lp.num_col_, lp.num_row_, lp.sense_ = n, len(self.upper), highspy.ObjSense.kMaximize
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = costs.ravel(), np.zeros(n), np.ones(n)
        lp.row_lower_, lp.row_upper_ = np.full(len(self.upper), -highspy.kHighsInf), self.upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = self.rows.indptr, self.rows.indices
        lp.a_matrix_.value_, lp.integrality_ = self.rows.data, [highspy.HighsVarType.kInteger] * n
        highspy.Highs.resetGlobalScheduler(True)  # one that runs with other threads would refuse this solve
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("mip_rel_gap", GAP)
        solver.setOptionValue("time_limit", LIMIT_S)
        solver.passModel(lp)
        return solver

    def __call__(self, groups: list[Any], costs: np.ndarray) -> np.ndarray:
        if self.solver is None or not self.kept:
            self.solver = self._made(costs)
        else:
            import highspy

            self.solver.changeColsCost(costs.size, np.arange(costs.size, dtype=np.int32), costs.ravel())
            start = highspy.HighsSolution()
            start.col_value = self.last
            self.solver.setSolution(start)
        self.solver.run()
        self.last = list(self.solver.getSolution().col_value)
        self.gaps.append(self.solver.getInfo().mip_gap)
        x = np.reshape(self.last, costs.shape)
        return np.where(x.max(axis=1) > 0.5, x.argmax(axis=1), -1)


def played(loads: dict[Any, np.ndarray], choose: Chooser, minutes: int) -> dict[str, float]:
    """Totals of the hour: worth, share of tokens not served in time, seconds of each minute after the first."""
    groups = list(loads)
    runs, worth, late, asked, times = {group: np.zeros(3, dtype=int) for group in groups}, 0.0, 0.0, 0.0, []
    for minute in range(minutes):
        costs = np.array([SERVING["worths"](group, loads[group][minute], runs[group]) for group in groups])
        began = time.perf_counter()
        chosen = choose(groups, costs)
        times.append(time.perf_counter() - began)
        used = np.zeros(3)
        for group, column, cost in zip(groups, chosen.tolist(), costs, strict=True):
            mix, load = (MIXES[column] if column >= 0 else np.zeros(3, dtype=int)), loads[group][minute]
            worth += float(cost[column]) if column >= 0 else 0.0
            late += max(load - float(mix @ (60.0 * SPEED[group[0]] * BUSY[group[1]])), 0.0)
            asked, runs[group] = asked + load, mix
            used += mix * NEEDS[group[0]]
        if (used > np.array(list(GPUS.values()))).any():
            raise RuntimeError(f"minute {minute}: {used} GPUs are used of {list(GPUS.values())}")
    gaps = [gap for gap in getattr(choose, "gaps", ()) if gap == gap]
    median, worst = np.quantile(times[1:], [0.5, 0.99])
    return {"worth": worth, "late": late / asked, "p50": median, "p99": worst, "gap": max(gaps, default=float("nan"))}


def table(loads: dict[Any, np.ndarray], minutes: int) -> list[str]:
    """A row for each solver."""
    groups = list(loads)
    solvers: dict[str, Chooser] = {
        "greedy": greedy,
        "HiGHS, made anew every minute": ByHighs(groups, kept=False),
        "HiGHS, kept, started from the last plan": ByHighs(groups, kept=True),
        f"copter, {1e3 * DEADLINE_S:.0f} ms a minute": ByCopter(groups, DEADLINE_S),
        "copter, no deadline": ByCopter(groups, None),
    }
    rows = [
        "| | worth of the hour | tokens late | time a minute, median | p99 | largest gap |",
        "|---|---|---|---|---|---|",
    ]
    for name, choose in solvers.items():
        found = played(loads, choose, minutes)
        gap = "not known" if found["gap"] != found["gap"] else f"{found['gap']:.2%}"
        times = " | ".join(f"{1e3 * found[each]:.3g} ms" for each in ("p50", "p99"))
        rows.append(f"| {name} | {found['worth']:,.0f} | {found['late']:.2%} | {times} | {gap} |")
    return rows


def main() -> None:
    """Play the hour and print the table; with --page write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT / ".." / "shared" / "data" / "azure_llm")
    parser.add_argument("--minutes", type=int, default=SERVING["MINUTES"])
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args()
    loads = SERVING["traffic"](asked.data)
    rows = table(loads, asked.minutes)
    print("\n".join(rows))
    if asked.page:
        real = (asked.data / "AzureLLMInferenceTrace_code.csv.gz").exists()
        source = "real traffic of two services" if real else "drawn traffic"
        head = f"""# Serving language models, minute by minute

By `python benchmarks/llm_rivals.py --page`: {asked.minutes} minutes of {source}, {len(loads)} groups of
{len(MIXES)} mixes of replicas each, {sum(GPUS.values())} GPUs of three types. HiGHS on one thread ends at a gap of
{GAP:.2%} or after {LIMIT_S:.0f} s; copter's gap is proven by prices; no commercial solver was run. Wall time. Every
solver goes on with what it loaded itself, so after the first minute the programs differ. A minute whose deadline was
over keeps the last plan: its gap is large.

"""
        PAGE.write_text(head + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
