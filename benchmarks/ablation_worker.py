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

import numpy as np
from ablation_switches import Variant, variants
from families import Instance, make_family
from families.protocol import SolverOptions
from judge import faults
from lp_problems import problems_of
from made_programs import MADE, Edited
from numpy.typing import NDArray

import copter
from copter.session.playback import Playback
from copter_frontends.traffic import TrafficFormulation, make_paths, published
from copter_frontends.traffic.paths import Paths

COLD = ":cold"  # after a tape's name: every round is solved as the first
WORKLOADS = {  # rounds of a tape; of the sets of programs none
    "netlib": 0,
    "netlib:interior": 0,
    "netlib:all": 0,
    "infeasible": 0,
    "infeasible:all": 0,
    "kennington": 0,
    "lp_small_highs": 0,
    "miplib": 0,
    "netlib:reduced": 0,
    "netlib:plain": 0,
    "infeasible:interior": 0,
    "kennington:interior": 0,
    "made": 0,
    "figures": 0,
    "fixed": 0,
    "unlocked": 0,
    "few-columns": 40,
    "moving-bounds": 2,
    "requests-a-row": 4,
    "limits-a-row": 2,
    "edits": 25,
    "networks": 0,
    "sia-1000": 6,
    "sia-1000:cold": 2,
    "sia-10000": 3,
    "sia-1000000": 3,
    "sia-1000:descent": 6,
    "sia-10000:descent": 3,
    "hadar-1000": 12,
    "hops-1000": 20,
    "chronus-1000": 30,
    "hare-1000": 2,
    "shards-1024": 5,
    "bounds": 3,
    "transport": 3,
    "multicommodity": 3,
    "commodities-20000": 4,
    "traffic-gtsce-perturbed": 2,
    "traffic-gtsce-failure": 3,
    "traffic-uscarrier-failure": 3,
    "shards-2048": 3,
    "chronus-10000": 6,
    "kueue-large-scale-60000": 8,
    "hare-10000": 2,
    "energy": 10,
    "reopt": 4,
}
FAMILIES = {  # of the controlled studies: scale and kind of change
    "transport": ("transport", 4500, 50, "churn"),
    "multicommodity": ("multicommodity", 200, None, "churn"),
    "commodities-20000": ("multicommodity", 20000, None, "churn"),
}
DESCENT = {"method": "price_descent"}
INTERIOR: dict[str, Any] = {"method": "interior"}
PLAIN = INTERIOR | {"presolve": False}
OF_ONE_METHOD = {  # settings of a workload
    "netlib:interior": INTERIOR,
    "netlib:reduced": INTERIOR,
    "netlib:plain": PLAIN,
    "infeasible:interior": INTERIOR,
    "kennington:interior": INTERIOR,
    "made": INTERIOR,
    "fixed": INTERIOR,
    "unlocked": INTERIOR,
    "figures": PLAIN,
    "sia-1000:descent": DESCENT,
    "sia-10000:descent": DESCENT,
}
PROGRAMS = {
    "netlib": "adlittle,afiro,agg,beaconfd,boeing1,bore3d,capri,e226,forplan,israel,lotfi,sc105,scagr25,share1b,"
    "stocfor1",
    "netlib:interior": "adlittle,afiro,lotfi,share1b,stocfor1",
    "netlib:all": "",
    "netlib:reduced": "bore3d,greenbeb,nesm,scfxm1,scfxm3,ship08s,ship12s,stair,wood1p",
    "netlib:plain": "adlittle,scagr25,scfxm3,sctap3,share1b",
    "infeasible:interior": "bgdbg1,bgindy,box1,cplex2,ex73a,galenet,gas11,itest6,klein2,mondou2,pilot4i,reactor,vol1",
    "kennington:interior": "",
    "infeasible:all": "",
    "infeasible": "bgdbg1,box1,chemcom,ex73a,galenet,itest6,klein2,mondou2,reactor,vol1",
    "kennington": "ken-07,pds-02",
    "lp_small_highs": "",
    "miplib": "",
}
NETWORKS = ("UsCarrier poisson-high-intra x1", "UsCarrier poisson-high-intra x8", "UsCarrier poisson-high-intra x64")
WHOLE = 1e-6  # distance from a whole number up to which a value counts as one
AGREES = 4e-6  # relative difference of objectives that two answers within tolerance may have
LIMIT = 8.0  # times the work's usual seconds, after which a variant counts as not ending
PART_RUNS = 4  # most runs of a method, an accelerator or a reduction, in turns with the solver as it is
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
    fractional : int
        Columns of models strictly between whole numbers: what a shim must round.
    """

    seconds: float
    work: int
    answers: list[tuple[str, float]]
    fractional: int = 0


def kind_of(workload: str) -> str:
    """Where a workload comes from: a tape, a family, files of programs, programs made here, or published networks."""
    if workload in MADE or workload == "networks":
        return workload
    return "programs" if workload in PROGRAMS else "family" if workload in FAMILIES else "tape"


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


def of_family(
    name: str, scale: int, rows: int | None, change: str, last: int, settings: dict[str, Any]
) -> Iterator[tuple[float, copter.Solution]]:
    """(seconds, solution) of every round of a controlled study."""
    family = make_family(name, Instance(scale=scale, rows=rows, change=change, seed=1))
    solver: Any = family.solver(SolverOptions())
    solver.session.settings = copter.Settings.saved(settings)
    for _ in range(last):
        family.edit()
        begun = time.process_time()
        solution = solver.session.solve()
        yield time.process_time() - begun, solution
        family.prepare()


def network_of(one: published.Instance) -> tuple[Paths, NDArray[np.float64]]:
    """The paths of a published network and its demands."""
    matrix = one.demands()
    paths = make_paths(one.network(), np.argwhere(matrix > 0.0))
    return paths, paths.demands_of(matrix)


def of_networks(
    networks: list[tuple[Paths, NDArray[np.float64]]], settings: dict[str, Any]
) -> Iterator[tuple[float, copter.Solution]]:
    """(seconds, solution) of every network's first solve."""
    for paths, demands in networks:
        session = copter.Session(TrafficFormulation(paths, demands, "total").model, copter.Settings.saved(settings))
        begun = time.process_time()
        solution = session.solve()
        yield time.process_time() - begun, solution


def of_models(models: list[Edited], settings: dict[str, Any]) -> Iterator[tuple[float, copter.Solution]]:
    """(seconds, solution) of every round of the models."""
    for each in models:
        model, edits = each()
        session = copter.Session(model, copter.Settings.saved(settings))
        for edit in edits:
            edit()
            begun = time.process_time()
            solution = session.solve()
            yield time.process_time() - begun, solution


def of_programs(
    programs: list[copter.LinearProgram], settings: dict[str, Any]
) -> Iterator[tuple[float, copter.Solution]]:
    """(seconds, solution) of every program; one that the checker finds fault with is called wrong."""
    asked = copter.Settings.saved(settings)
    for lp in programs:
        begun = time.process_time()
        solution = copter.solve(lp, asked)
        spent = time.process_time() - begun
        if faults(lp, solution, asked.tolerance):
            raise ValueError("the checker finds fault with an answer")
        yield spent, solution


class Workload:
    """A tape's rounds, or a set of linear programs."""

    def __init__(self, name: str, tapes: Path) -> None:
        tape, self.cold = name.partition(":")[0], name.endswith(COLD)
        self.name, self.path, self.last = name, tapes / f"{tape}.tape", WORKLOADS.get(name, 0)
        self.programs: list[copter.LinearProgram] = []
        every = published.instances("total") if name == "networks" else ()
        found = {kind: one for one in every if (kind := one.name.rpartition(" ")[0]) in NETWORKS}
        self.networks = [network_of(one) for one in found.values()]
        self.models: list[Edited] = []
        if name in PROGRAMS:
            only = PROGRAMS[name].split(",") if PROGRAMS[name] else []
            for problem in problems_of(name.partition(":")[0]):
                if not only or problem.name in only:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self.programs.append(copter.read_mps(str(problem.path)))
        elif name in MADE:
            self.programs, self.models = MADE[name](self.last)

    def run(self, settings: dict[str, Any]) -> Run:
        """Solve everything."""
        run = Run(0.0, 0, [])
        settings = OF_ONE_METHOD.get(self.name, {}) | settings
        if self.networks:
            parts = of_networks(self.networks, settings)
        elif self.programs:
            parts = of_programs(self.programs, settings)
        elif self.models:
            parts = of_models(self.models, settings)
        elif self.name in FAMILIES:
            parts = of_family(*FAMILIES[self.name], self.last, settings)
        else:
            parts = of_tape(self.path, self.cold, self.last, settings)
        for seconds, solution in parts:
            run.seconds += seconds
            run.work += solution.iterations + solution.pricing_passes + solution.proximal_steps
            run.answers.append((solution.status.value, solution.objective))
            if self.path.exists():
                value = solution.working_columns_by_slot()[2]
                run.fractional += int(np.count_nonzero(np.abs(value - np.rint(value)) > WHOLE))
        return run

    def reached(self) -> set[str]:
        """Names that the code of a run reads, and folders that it is in: what is not there changes nothing."""
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
            names |= {"/".join(file.split("/")[:2])} if file.startswith("methods/") else set()
            inner = [code, *(each for each in code.co_consts if isinstance(each, types.CodeType))]
            names |= {name for each in inner for name in each.co_names}
        return names


def limited(seconds: float) -> None:
    """Raise TooLong after so many seconds of the processor; they are looked at once a second of the other clock, since
    a timer of the processor blurs its clock.
    """
    last = time.process_time() + seconds

    def look(*_: object) -> None:
        if time.process_time() > last:
            raise TooLong

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)


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
    fastest, faster, is_part = None, usual.seconds, variant.kind not in ("constant", "setting")
    for _ in range(PART_RUNS if is_part else 2):
        limited(LIMIT * (usual.seconds + 3.0))
        try:
            with variant.on():
                run = workload.run(variant.settings)
        except TooLong:
            return found | {"wrong": 1, "why": f"more than {LIMIT:g} times the time", "time": LIMIT, "work": LIMIT}
        except Exception as error:
            return found | {"wrong": 1, "why": f"{type(error).__name__}: {str(error)[:90]}", "time": None, "work": None}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        fastest = run if fastest is None or run.seconds < fastest.seconds else fastest
        same = fastest.work == usual.work and fastest.answers == usual.answers
        if fastest.seconds <= AGAIN * faster or (same and not is_part):
            break
        faster = min(faster, workload.run({}).seconds)
    found |= {"wrong": wrong_of(fastest, usual), "time": fastest.seconds / faster}
    found |= {"fractional": (fastest.fractional + 1) / (usual.fractional + 1), "timed": is_part}
    return found | {"work": fastest.work / max(usual.work, 1), "same": fastest.answers == usual.answers}


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    workload = Workload(question["workload"], Path(question["tapes"]))
    known, skip = workload.reached(), set(question["skip"])
    runs = [workload.run({}) for _ in range(3)]
    usual = min(runs, key=lambda run: run.seconds)
    seconds = [run.seconds for run in runs]
    first = {
        "key": "",
        "workload": workload.name,
        "seconds": seconds,
        "work": usual.work,
        "answers": len(usual.answers),
    }
    print(json.dumps(first), flush=True)
    asked = question["only"]
    for variant in variants():
        if variant.key in skip or (asked and not any(each in variant.key for each in asked)):
            continue
        if not variant.reads & known:
            print(json.dumps({"key": variant.key, "workload": workload.name, "wrong": 0, "unread": True}), flush=True)
            continue
        print(json.dumps(measured(workload, variant, usual)), flush=True)


if __name__ == "__main__":
    main()
