"""What each means gives, stacked as in the thesis's Figure 4.6, on Sia rounds.

    python benchmarks/attribution.py --scales 2500,10000 --rounds 10

(a) HiGHS from nothing each round, the model built each round: no memory at all. (b) copter's solver from nothing, the
model rebuilt. (c) the model edited in place, the solver from nothing. (d) and started from the last round. Beside the
stack, what HiGHS gets from the same two means without copter's solver: (e) edited in place, (f) and its basis kept.
The thesis's own solver (proximal point with coordinate descent, section 4.3.2), edited in place: (g) from nothing, (h)
from the last round. These solve the LP of the same rounds, as in the thesis's figure. Whole plans: (i) is (d) and the
shim, (j) (a) and the shim, (k) HiGHS's branch and bound on the integer program, rebuilt: what the shim is worth with
HiGHS's LP, and with copter's. The plans that the rounds follow are made by (i).

Seconds are of processor time, which other work on the machine stretches less than the clock's; every solver has one
thread.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from charts import attribution_chart
from families.sia import SiaRounds
from harness import WARM_UP

from copter import Model, Session, Settings, Status
from copter.shims import IntegerPlan, RoundingShim
from copter_frontends.replay.peers.highs import SIMPLEX, Mirror, Way

HERE = Path(__file__).parent
NAMES = {
    "a": "HiGHS, rebuilt, cold",
    "b": "copter's solver, rebuilt, cold",
    "c": "+ differential edits",
    "d": "+ warm start",
    "e": "HiGHS, differential edits",
    "f": "HiGHS, differential edits, warm",
    "g": "the thesis's solver, differential edits, cold",
    "h": "the thesis's solver, differential edits, warm",
    "i": "whole plans: (d) and the shim",
    "j": "whole plans: (a) and the shim",
    "k": "whole plans: HiGHS's branch and bound, rebuilt",
}
STEPS = {"custom solver": ("a", "b"), "differential edits": ("b", "c"), "warm start": ("c", "d"), "all": ("a", "d")}
PAPER = {
    "custom solver": "5x",
    "differential edits": "3.5x",
    "warm start": "1.5x",
    "all": "24x",
    "the shim for branch and bound, HiGHS's LP": "2 to 3x (load balancing)",
    "all, whole plans": "24 to 72x (expected)",
}
THESIS = {
    "thesis's solver": ("e", "g"),
    "its warm start": ("g", "h"),
    "copter's over it, warm": ("h", "d"),
    "the shim for branch and bound, HiGHS's LP": ("k", "j"),
    "all, whole plans": ("k", "i"),
}


class Attribution:
    """The variants on one sequence.

    Parameters
    ----------
    scale : int
        GPUs.
    rounds : int
    highs_rounds : int
        Rounds of (a), (e), (j) and (k), which can take minutes each; the others run in all rounds.
    limit_s : float
        Of an LP's solve by HiGHS, by the clock; infinite: each runs to its end.
    branching_s : float
        The same of (k).
    """

    def __init__(
        self, scale: int, rounds: int, highs_rounds: int, limit_s: float, branching_s: float, seed: int
    ) -> None:
        self.branching_s = branching_s
        self.family = SiaRounds(scale, "full", 0.01, seed)
        self.scale, self.rounds, self.highs_rounds, self.limit_s = scale, rounds, highs_rounds, limit_s
        one = Settings(threads=1)
        self.warm, self.cold = Session(self.family.model, one), Session(self.family.model, one)
        interior = {"solver": "ipm", "threads": 1}
        self.memoryless = Mirror("a", Way(interior, rebuilt=True))
        self.edited, self.highs_warm = Mirror("e", Way(interior)), Mirror("f", Way(SIMPLEX | {"threads": 1}, warm=True))
        self.branching = Mirror("k", Way({"threads": 1}, rebuilt=True, integer=True))
        descent = Settings(method="coordinate_descent", purify=False, threads=1)
        self.descent_warm, self.descent_cold = Session(self.family.model, descent), Session(self.family.model, descent)
        self.seconds: dict[str, list[float]] = {name: [] for name in NAMES}
        self.late: dict[str, int] = dict.fromkeys(NAMES, 0)
        self.plan: IntegerPlan | None = None

    def run(self) -> Attribution:
        """All rounds, warm-up first."""
        for index in range(-WARM_UP - 1, self.rounds):
            self.round(index)
            print(
                f"round {index}: " + ", ".join(f"({n}) {s[-1]:.3f} s" for n, s in self.seconds.items() if s),
                file=sys.stderr,
                flush=True,
            )
        return self

    def note(self, index: int, name: str, seconds: float) -> None:
        """Write a counted round's time down."""
        if index >= 0:
            self.seconds[name].append(seconds)

    def round(self, index: int) -> None:
        """One round of every variant."""
        family = self.family
        started = time.process_time()
        family.edit()
        edit_s = time.process_time() - started
        started = time.process_time()
        solution = self.warm.solve()
        self.note(index, "d", edit_s + time.process_time() - started)
        if index >= 0:
            self.cold.reset()
            started = time.process_time()
            self.cold.solve()
            self.note(index, "c", edit_s + time.process_time() - started)
            self.note(index, "b", self.rebuilt())
        self.descent_round(index, edit_s)
        self.highs_round(index, solution)
        started = time.process_time()
        self.plan = RoundingShim()(family.model, solution, self.plan)
        self.whole_plans(index, time.process_time() - started)
        family.take(family.plan_columns(self.plan))
        family.prepare()

    def descent_round(self, index: int, edit_s: float) -> None:
        """The thesis's solver on the same model."""
        for name, session in (("g", self.descent_cold), ("h", self.descent_warm)):
            if name == "g":
                if index < 0:
                    continue
                session.reset()
            started = time.process_time()
            found = session.solve()
            self.late[name] += index >= 0 and found.status is not Status.OPTIMAL
            self.note(index, name, edit_s + time.process_time() - started)

    def whole_plans(self, index: int, shim_s: float) -> None:
        """The LP's rounds with the shim on top, and HiGHS's branch and bound in the place of both."""
        if index >= 0:
            self.note(index, "i", self.seconds["d"][-1] + shim_s)
        if not 0 <= index < self.highs_rounds:
            return
        self.note(index, "j", self.seconds["a"][-1] + shim_s)
        self.late["j"] = self.late["a"]
        started = time.process_time()
        self.branching.update(self.family.program())
        self.timed(index, "k", self.branching, time.process_time() - started, self.branching_s)

    def rebuilt(self) -> float:
        """Seconds to build the round's model anew and solve it from nothing; its costs are given as arrays."""
        family = self.family
        costs = family.costs(slice(0, len(family.jobs)))
        started = time.process_time()
        model = Model(sense="max")
        for kind, count in enumerate(family.capacity.tolist()):
            model.add_resources(kind, count)
        usage = {kind: np.where(family.kind == kind, family.gpus, 0.0) for kind in range(len(family.capacity))}
        template = model.add_template(usage)
        for job, cost in zip(family.jobs.tolist(), costs, strict=True):
            model.add_request(job, cost, template=template, integer=True)
        Session(model, Settings(threads=1)).solve()
        return time.process_time() - started

    def highs_round(self, index: int, solution: Any) -> None:
        """HiGHS's variants; (f) gets copter's first basis, so that its own cold solve need not be waited for."""
        family = self.family
        if 0 <= index < self.highs_rounds:
            started = time.process_time()
            self.memoryless.update(family.program())  # builds the arrays and passes them: all that a rebuild takes
            build_s = time.process_time() - started
            self.timed(index, "a", self.memoryless, build_s)
        program = family.program()
        edit_s = self.edited.update(program)
        if 0 <= index < self.highs_rounds:
            self.timed(index, "e", self.edited, edit_s)
        edit_s = self.highs_warm.update(program)
        if index == -WARM_UP - 1:
            self.highs_warm.set_basis(self.highs_warm.basis_at(solution.x, solution.y))
        self.timed(index, "f", self.highs_warm, edit_s)

    def timed(self, index: int, name: str, peer: Mirror, edit_s: float, limit_s: float | None = None) -> None:
        """Solve, and write the time down; a solve that hits the limit counts with the limit."""
        started = time.process_time()
        answer = peer.solve(self.limit_s if limit_s is None else limit_s, edit_s)
        self.late[name] += index >= 0 and not answer.optimal
        self.note(index, name, edit_s + time.process_time() - started)


def pooled(runs: list[Attribution]) -> Attribution:
    """The rounds of runs with several seeds as one."""
    first = runs[0]
    for run in runs[1:]:
        for name in NAMES:
            first.seconds[name] += run.seconds[name]
            first.late[name] += run.late[name]
    return first


def summary(run: Attribution) -> dict[str, Any]:
    """Seconds of each variant; speed-up of each step over the round before it, and stacked over (a)."""
    found: dict[str, Any] = {"scale": run.scale, "variables": run.family.model.n_columns}
    found["seconds"] = {name: values for name, values in run.seconds.items() if values}
    found["late"] = run.late
    medians = {name: float(np.median(values)) for name, values in found["seconds"].items()}
    found["median_s"] = medians
    found["step"] = {step: medians[a] / medians[b] for step, (a, b) in (STEPS | THESIS).items() if a in medians}
    base = medians.get("a")
    if base is not None:
        found["stacked"] = {}
        for name in NAMES:
            if name in medians:
                ratios = base / np.array(run.seconds[name])
                found["stacked"][name] = {
                    "mean": float(ratios.mean()),
                    "median": float(np.median(ratios)),
                    "p10": float(np.percentile(ratios, 10)),
                    "p90": float(np.percentile(ratios, 90)),
                }
    return found


def table(results: list[dict[str, Any]]) -> str:
    """Markdown: a row a variant, a column group a size."""
    lines = [
        "| | " + " | ".join(f"{r['scale']:,.0f} GPUs: median | speed-up (p10 to p90)" for r in results) + " |",
        "|---|" + "---|---|" * len(results),
    ]
    for name, title in NAMES.items():
        cells = []
        for result in results:
            stacked = result.get("stacked", {}).get(name)
            late = result["late"][name]
            mark = f" ({late} at the limit)" if late else ""
            cells.append(f"{result['median_s'][name]:.3f} s{mark}" if name in result["median_s"] else "not run")
            cells.append(f"{stacked['mean']:.1f}x ({stacked['p10']:.1f} to {stacked['p90']:.1f})" if stacked else "-")
        lines.append(f"| ({name}) {title} | " + " | ".join(cells) + " |")
    lines += ["", "| step | thesis, 10,000 GPUs | " + " | ".join(f"{r['scale']:,.0f} GPUs" for r in results) + " |"]
    lines.append("|---|---|" + "---|" * len(results))
    for step in STEPS | THESIS:
        cells = [f"{r['step'][step]:.1f}x" if step in r["step"] else "-" for r in results]
        lines.append(f"| {step} | {PAPER.get(step, '–')} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parse, run, write the table and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", default="2500,10000", help="GPUs, comma-separated")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--highs-rounds", type=int, default=3, help="rounds of HiGHS from nothing")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of one LP of HiGHS (inf: none)")
    parser.add_argument("--branching-limit", type=float, default=120.0, help="seconds of its branch and bound")
    parser.add_argument("--seeds", default="0", help="comma-separated; their rounds are pooled")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    arguments = parser.parse_args()
    scales = [int(scale) for scale in arguments.scales.split(",")]
    if min(scales) < 56 or arguments.rounds < 1 or arguments.highs_rounds < 1:
        parser.error("scales >= 56, rounds >= 1 and highs-rounds >= 1")
    results = []
    for scale in scales:
        runs = [
            Attribution(
                scale, arguments.rounds, arguments.highs_rounds, arguments.limit, arguments.branching_limit, int(seed)
            ).run()
            for seed in arguments.seeds.split(",")
        ]
        results.append(summary(pooled(runs)))
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "attribution.json").write_text(json.dumps(results, indent=1))
    (arguments.out / "attribution.md").write_text(table(results))
    attribution_chart(results, arguments.out / "attribution.svg")
    print(table(results))


if __name__ == "__main__":
    main()
