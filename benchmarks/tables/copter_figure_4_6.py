"""Thesis Figure 4.6: what the solver, the edits and the warm start each bring, stacked, on Sia's relaxation.

    python benchmarks/tables/copter_figure_4_6.py [--gpus 10000] [--hours 0.4] [--seeds 5] [--gap 1e-4]

Sia's day is recorded and played again, once a way:

- HiGHS: the program made anew as SciPy's arrays, solved from nothing by the faster of dual simplex and interior points
  (with crossover), to that solver's own tolerances. The thesis has CPLEX here: no commercial solver was run.
- solver: a new model, and the thesis's own method (primal coordinate descent, 4.3.2) from nothing.
- edits: the model edited in place, the same method from nothing.
- start: the same from the last round's x and multipliers. These three are the thesis's stack.
- default: copter as it is, edited and warm.

The descent ends at a relative gap of --gap, and a hundredth of a GPU above a capacity; so does the default in a row of
its own, beside its usual 1e-6. Times are processor seconds of one thread, of building or edits and of the solve. A
speedup is a round's time before over after; mean, median, 10th and 90th percentile are over the rounds of all seeds.
HiGHS begins with nothing, so only ways that do stand over it; rivals that stay warm are on docs/measured.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from copter_building import Jobs, copter_model, record, scipy_arrays
from figure_command import Figures, end_figure, spread, whole
from runs import show

from copter import LinearProgram, Session, Settings
from copter.highs.lp import highs_lp, silent_highs
from copter.session.playback import Playback

PAPER = {"speedup": "solver 5, edits 3.5, start 1.5 times, stacked; 24 times CPLEX in all"}
WARM_UP = 3  # rounds that are left out
EXCESS = 1e-2  # of a capacity, in GPUs
STACK = ("HiGHS", "solver", "edits", "start")
ANEW = ("solver", "edits")  # ways that begin each solve with nothing, as HiGHS does
clock = time.process_time


def highs_s(lp: LinearProgram, way: str) -> float:
    """Processor seconds of HiGHS from nothing."""
    solver = silent_highs()
    for option, value in (("solver", way), ("threads", 1)):
        solver.setOptionValue(option, value)
    began = clock()
    solver.passModel(highs_lp(lp))
    solver.run()
    return clock() - began


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a call, and what it returned."""
    began = clock()
    found = work()
    return clock() - began, found


def played(tape: str, settings: dict[str, Any], cold: bool) -> list[dict[str, float]]:
    """Every round by copter with the edits of the tape, from nothing if cold: seconds of edits and of the solve."""
    rows = []
    asked = {"threads": 1, "purify": False, **settings}
    for each in Playback(tape, asked, clock=clock):
        session = Session(each.session.model, Settings.saved(asked)) if cold else each.session
        seconds, solution = timed(session.solve)
        rows.append({"edit": each.edit_s, "solve": seconds, "gap": solution.gap, "sweeps": float(solution.iterations)})
    return rows[WARM_UP:]


def built(tape: str, settings: dict[str, Any]) -> list[dict[str, float]]:
    """Every round made anew: HiGHS on arrays, the descent on a new model."""
    rows = []
    for each in list_of_programs(tape):
        jobs = Jobs.of(each)
        arrays, _ = timed(lambda jobs=jobs: scipy_arrays(jobs))  # type: ignore[misc]
        new, session = timed(lambda jobs=jobs: copter_model(jobs))  # type: ignore[misc]
        model = session.model
        asked = Settings.saved({"threads": 1, "purify": False, **settings})
        descent, solution = timed(Session(model, asked).solve)
        highs = {way: highs_s(each, way) for way in ("simplex", "ipm")}
        rows.append(
            {
                "arrays": arrays,
                "simplex": highs["simplex"],
                "ipm": highs["ipm"],
                "HiGHS": arrays + min(highs.values()),
                "model": new,
                "descent": descent,
                "solver": new + descent,
                "gap": solution.gap,
                "columns": float(len(each.c)),
            }
        )
    return rows


def list_of_programs(tape: str) -> list[LinearProgram]:
    """The programs of all rounds but the first few."""
    found = []
    for each in Playback(tape, {"threads": 1}):
        if each.number >= WARM_UP:
            found.append(each.session.model.to_linear_program())
        else:
            each.session.solve()
    return found


def run(asked: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Seconds of every way by round, (rounds,), and what they say besides."""
    descent = {"method": "coordinate_descent", "tolerance": asked.gap, "absolute_tolerance": EXCESS}
    loose = {"tolerance": asked.gap, "absolute_tolerance": EXCESS}
    with tempfile.TemporaryDirectory() as folder:
        tape = str(Path(folder) / "day.tape")
        record(asked, seed, Path(tape))
        anew = built(tape, descent)
        ways = {
            "edits": played(tape, descent, cold=True),
            "start": played(tape, descent, cold=False),
            "default to the same gap": played(tape, loose, cold=False),
            "default": played(tape, {}, cold=False),
        }
    found: dict[str, Any] = {name: np.array([row[name] for row in anew]) for name in ("HiGHS", "solver", "columns")}
    found["parts"] = {
        name: np.array([row[name] for row in anew]) for name in ("arrays", "simplex", "ipm", "model", "descent")
    }
    found["missed"] = {"solver": np.mean([row["gap"] > asked.gap for row in anew])}
    for name, rows in ways.items():
        found[name] = np.array([row["edit"] + row["solve"] for row in rows])
        found["parts"] |= {f"{name}, edits": np.array([row["edit"] for row in rows])}
        found["missed"][name] = np.mean([row["gap"] > asked.gap for row in rows])
    return found


def main(arguments: list[str] | None = None) -> None:
    """See the module's docstring."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--gpus", type=whole, default=10_000)
    command.add_argument("--hours", type=float, default=0.4)
    command.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    command.add_argument("--seeds", type=whole, default=5)
    command.add_argument("--gap", type=float, default=1e-4, help="at which the descent ends (default 1e-4)")
    command.add_argument("--json", action="store_true", help="the medians as one object, the last line")
    asked = command.parse_args(arguments)
    seeds = range(asked.seed, asked.seed + asked.seeds)
    found = [run(asked, seed) for seed in seeds]
    columns = np.mean(np.concatenate([each["columns"] for each in found]))
    rounds = sum(len(each["HiGHS"]) for each in found)
    names = (*STACK, "default to the same gap", "default")
    rows = []
    for before, name in zip((None, *STACK[:3], STACK[3], STACK[3]), names, strict=True):
        ms = [1e3 * float(np.median(each[name])) for each in found]
        cells = [name, spread(ms)]
        for other in (before, "HiGHS"):
            if other is None or name == "HiGHS" or (other == "HiGHS" and name not in ANEW):
                cells += ["", ""]
                continue
            ratio = np.concatenate([each[other] / each[name] for each in found])
            low, high = np.percentile(ratio, (10, 90))
            cells += [f"{ratio.mean():.2f}, {np.median(ratio):.2f}", f"{low:.2f} to {high:.2f}"]
        missed = "" if name == "HiGHS" else f"{np.mean([each['missed'][name] for each in found]):.0%}"
        rows.append([*cells, missed])
    title = f"Figure 4.6: {asked.gpus:,} GPUs, {columns:,.0f} columns, {asked.seeds} seeds, {rounds} rounds"
    heads = [
        "way",
        "ms, medians",
        "over the row before: mean, median",
        "10 to 90%",
        "over HiGHS",
        "10 to 90%",
        "missed",
    ]
    show(title, heads, rows)
    parts: dict[str, list[float]] = {name: [] for name in found[0]["parts"]}
    for each in found:
        for name, values in each["parts"].items():
            parts[name].append(1e3 * float(np.median(values)))
    show("parts, ms (medians of the seeds)", ["part", "ms"], [[name, spread(values)] for name, values in parts.items()])
    print(f'"missed": rounds that ended above a gap of {asked.gap:g}. "default" rows are over "start".')
    figures: list[Figures] = [{name: float(np.median(each[name])) for name in names} for each in found]
    end_figure(argparse.Namespace(figure="speedup", json=asked.json), figures, PAPER)


if __name__ == "__main__":
    main()
