"""One workload of the ablation in a process of its own: variants in turn, a JSON line for each on stdout.

The question on stdin is one JSON object: `workload`, `tapes` (folder), `skip` (keys that are known). The first line is
the solver as it is, key "".
"""

from __future__ import annotations

import json
import signal
import sys
import time
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablation_switches import Variant, variants
from judge import faults
from lp_problems import LpProblem, problems_of

import copter
from copter.session.playback import Playback

COLD = ":cold"  # after a tape's name: every round is solved as the first
WORKLOADS = {  # rounds of a tape; of the sets of programs none
    "netlib": 0,
    "infeasible": 0,
    "sia-1000": 30,
    "sia-1000:cold": 6,
    "sia-10000": 8,
    "hadar-1000": 20,
    "hops-1000": 30,
    "chronus-1000": 60,
    "hare-1000": 4,
    "shards-1024": 12,
    "bounds": 15,
    "bounds:cold": 3,
    "traffic-gtsce-perturbed": 3,
}
PROGRAMS = {
    "netlib": "afiro,sc50a,adlittle,blend,share1b,bandm,lotfi,scfxm1,25fv47,degen2,agg,etamacro,capri,perold,seba,"
    "grow7,tuff,forplan,stair,pilot4,boeing2,bore3d,fit1p,scagr7",
    "infeasible": "itest2,itest6,galenet,bgprtr,forest6,klein1,woodinfe,reactor,ex72a,vol1",
}
AGREES = 4e-6  # relative difference of objectives that two answers within tolerance may have
LIMIT = 8.0  # times the work's usual seconds, after which a variant counts as not ending
AGAIN = 1.12  # times the usual seconds from which on a variant is measured once more, and the faster run counts


class TooLong(Exception):
    """A variant has used up its seconds."""


@dataclass(slots=True)
class Run:
    """What a run of a workload came to.

    Attributes
    ----------
    seconds : float
        Of the processor, in solves alone.
    work : int
        Iterations, pricing passes and proximal steps together.
    answers : list of (status, objective)
    """

    seconds: float
    work: int
    answers: list[tuple[str, float]]


def of_tape(path: Path, cold: bool, last: int, settings: dict[str, Any]) -> Iterator[tuple[float, copter.Solution]]:
    """(seconds, solution) of every round that counts."""
    for played in Playback(path, settings):
        if played.number >= last:
            return
        if cold:
            played.session.reset()
        begun = time.process_time()
        solution = played.session.solve()
        yield time.process_time() - begun, solution


def of_programs(
    programs: list[tuple[LpProblem, copter.LinearProgram]], settings: dict[str, Any]
) -> Iterator[tuple[float, copter.Solution]]:
    """(seconds, solution) of every program; one that the checker finds fault with is called wrong."""
    asked = copter.Settings(**settings)
    for _, lp in programs:
        begun = time.process_time()
        solution = copter.solve(lp, asked)
        spent = time.process_time() - begun
        if faults(lp, solution, asked.tolerance):
            raise ValueError("the checker finds fault with an answer")
        yield spent, solution


class Workload:
    """A tape's rounds, or a set of linear programs."""

    def __init__(self, name: str, tapes: Path) -> None:
        tape, self.cold = name.removesuffix(COLD), name.endswith(COLD)
        self.name, self.path, self.last = name, tapes / f"{tape}.tape", WORKLOADS.get(name, 0)
        self.programs: list[tuple[LpProblem, copter.LinearProgram]] = []
        if name in PROGRAMS:
            only = PROGRAMS[name].split(",")
            for problem in problems_of(name):
                if problem.name in only:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self.programs.append((problem, copter.read_mps(str(problem.path))))

    def run(self, settings: dict[str, Any]) -> Run:
        """Solve everything."""
        run = Run(0.0, 0, [])
        parts = of_programs(self.programs, settings) if self.programs else of_tape(self.path, self.cold, self.last, settings)
        for seconds, solution in parts:
            run.seconds += seconds
            run.work += solution.iterations + solution.pricing_passes + solution.proximal_steps
            run.answers.append((solution.status.value, solution.objective))
        return run

    def reached(self) -> set[str]:
        """Names that the code of a run reads, file by file ("file NAME"): a constant not among them changes nothing."""
        seen: set[types.CodeType] = set()

        def look(frame: types.FrameType, event: str, argument: object) -> None:
            seen.add(frame.f_code)

        sys.setprofile(look)
        try:
            self.run({})
        finally:
            sys.setprofile(None)
        names: set[str] = set()
        for code in seen:
            file = code.co_filename.partition("/copter/")[2]
            inner = [code, *(each for each in code.co_consts if isinstance(each, types.CodeType))]
            names |= {f"{file} {name}" for each in inner for name in each.co_names}
            names |= {name for each in inner for name in each.co_names}
        return names


def wrong_of(run: Run, usual: Run) -> int:
    """How many answers of a run are not those of the solver as it is."""
    if len(run.answers) != len(usual.answers):
        return len(usual.answers)
    return sum(
        status != other or (status == "optimal" and not abs(value - best) <= AGREES * (1.0 + abs(best)))
        for (status, value), (other, best) in zip(run.answers, usual.answers, strict=True)
    )


def measured(workload: Workload, variant: Variant, usual: Run) -> dict[str, Any]:
    """A variant's figures as ratios to the solver as it is."""
    found: dict[str, Any] = {"key": variant.key, "workload": workload.name, "wrong": 0, "why": ""}
    fastest, faster = None, usual.seconds
    for _ in range(2):
        signal.setitimer(signal.ITIMER_REAL, LIMIT * (usual.seconds + 3.0) * 3)
        signal.setitimer(signal.ITIMER_PROF, LIMIT * usual.seconds + 2.0)
        try:
            with variant.on():
                run = workload.run(variant.settings)
        except TooLong:
            return found | {"wrong": 1, "why": f"more than {LIMIT:g} times the time", "time": LIMIT, "work": LIMIT}
        except Exception as error:  # noqa: BLE001  (a change may break anything; that is the result)
            return found | {"wrong": 1, "why": f"{type(error).__name__}: {str(error)[:90]}", "time": None, "work": None}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        fastest = run if fastest is None or run.seconds < fastest.seconds else fastest
        if fastest.seconds <= AGAIN * faster:
            break
        faster = min(faster, workload.run({}).seconds)
    found |= {"wrong": wrong_of(fastest, usual), "time": fastest.seconds / faster}
    return found | {"work": fastest.work / max(usual.work, 1), "same": fastest.answers == usual.answers}


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)

    def end(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, end)
    signal.signal(signal.SIGALRM, end)
    workload = Workload(question["workload"], Path(question["tapes"]))
    known, skip = workload.reached(), set(question["skip"])
    runs = [workload.run({}) for _ in range(3)]
    usual = min(runs, key=lambda run: run.seconds)
    seconds = [run.seconds for run in runs]
    first = {"key": "", "workload": workload.name, "seconds": seconds, "work": usual.work, "answers": len(usual.answers)}
    print(json.dumps(first), flush=True)
    asked = question["only"]
    for variant in variants():
        if variant.key in skip or (asked and not any(each in variant.key for each in asked)):
            continue
        file = variant.name.split(" ")[0]
        compiled = file.endswith(".pyx")
        unread = variant.kind == "constant" and not compiled and variant.name.split()[-1] not in known
        if unread or (compiled and file.split("/")[1] == "simplex" and workload.name in ("sia-10000",)):
            print(json.dumps({"key": variant.key, "workload": workload.name, "wrong": 0, "unread": True}), flush=True)
            continue
        print(json.dumps(measured(workload, variant, usual)), flush=True)


if __name__ == "__main__":
    main()
