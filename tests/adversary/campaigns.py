"""The campaigns of the long run, each a number of trials, every trial judged; long_run.py prints what held."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import highspy
import numpy as np
from families.sia import SiaRounds
from judge import faults

import copter
from copter import LinearProgram, Model, Session, Settings
from copter.highs.lp import highs_lp
from copter.methods.blocks import screen, solve
from copter.problem.checker import check
from copter.runtime.settings import Internals
from copter.shims.checked import require_feasible
from tests.adversary import enumerated, interrupted, taped, worths
from tests.adversary.mutations import FORMATS, mutated, seeds, verdict
from tests.adversary.plan_judge import added, edited, judged
from tests.copter.random_programs import KINDS, random_program
from tests.copter.session.test_durability import killed

AGREES = 1e-6  # relative, of objectives, and of a bound's side of an optimum
EDITS = ("cost", "fix", "unfix", "remove", "less", "more", "bounds", "kind", "add")
DEADLINES_MS = (1, 2, 5, 10, 50, 500)
LATE_S, LATE_SHARE = 0.010, 0.1
SOLVES_A_MODEL = 50  # at each deadline
COLD_EVERY = 10

Trial = Callable[[int, Path], "str | None"]


def programs(seed: int, folder: Path) -> str | None:
    """A random linear program of one of many kinds, by one of the methods, judged and compared with HiGHS."""
    names = list(KINDS)
    lp = random_program(names[seed % len(names)], seed, 6 + seed % 25)
    method = "proximal" if seed % 10 == 9 else ("auto", "interior")[seed // len(names) % 2]
    solution = copter.solve(lp, Settings(method=method, time_limit_s=20.0))
    wrong = faults(lp, solution)
    if wrong:
        return f"{solution.status.value}: {wrong[0]}"
    return against_highs(lp, solution)


def against_highs(lp: LinearProgram, solution: copter.Solution) -> str | None:
    """What HiGHS's optimum contradicts: another optimum, an optimum of what has none, a bound on its wrong side.

    HiGHS's optimum counts where the checker finds it feasible to 1e-9, so that its tolerances decide nothing.
    """
    solver = highspy.Highs()
    solver.silent()
    solver.passModel(highs_lp(lp))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    found = solver.getSolution()
    point = check(lp, np.array(found.col_value), np.array(found.row_dual))
    if point.primal_absolute > 1e-9 or point.dual_absolute > 1e-9:
        return None
    size, sign = 1.0 + abs(point.objective), 1.0 if lp.sense == "min" else -1.0
    if solution.status.value == "primal_infeasible":
        return "infeasible, but HiGHS has an optimum"
    if solution.status.value == "optimal" and abs(solution.objective - point.objective) > 1e-5 * size:
        return f"optimum {solution.objective:.12g}, HiGHS's is {point.objective:.12g}"
    if solution.bound_is_certified and sign * (solution.bound - point.objective) > AGREES * size:
        return f"certified bound {solution.bound:.12g} beyond the optimum {point.objective:.12g}"
    return None


def sessions(seed: int, folder: Path) -> str | None:
    """A session of random edits whose solves are cut anywhere: every plan holds, every optimum is a fresh solve's."""
    rng = np.random.default_rng(seed)
    whole = bool(rng.random() < 0.5)
    model = Model(sense=rng.choice(["max", "min"]), offset=0.5)
    for k in range(2):
        model.add_resources(k, float(rng.integers(0, 7)) if whole else float(rng.uniform(0, 7)))
    for request in range(int(rng.integers(1, 9))):
        added(model, request, rng, whole)
    session = Session(model)
    try:
        for _ in range(6):
            session.settings = Settings(internals=Internals(max_pricing_passes=int(rng.choice([1, 1, 2, 200]))))
            shim = str(rng.choice(["rounding"] * 18 + ["dive", "exact"]))
            judged(model, session.solve_integer(shim, None if shim == "rounding" else 0.1))
            for _ in range(int(rng.integers(0, 5))):
                edited(model, (str(rng.choice(EDITS)), int(rng.integers(100)), int(rng.integers(100))), rng, whole)
    except AssertionError as error:
        return f"a plan does not hold: {str(error)[:200]}"
    session.settings = Settings()
    warm, fresh = session.solve(), Session(model).solve()
    if warm.status is not fresh.status:
        return f"{warm.status.value}, a fresh session says {fresh.status.value}"
    if warm.status.value == "optimal" and abs(warm.objective - fresh.objective) > 2e-6 * (1 + abs(fresh.objective)):
        return f"optimum {warm.objective:.12g}, a fresh session's is {fresh.objective:.12g}"
    return None


def networks(seed: int, folder: Path) -> str | None:
    """Flows over many links, of which a sample tells the binding ones: the optimum is HiGHS's, cold and after edits."""
    rng = np.random.default_rng(seed)
    links = int(rng.integers(65, 120))
    model = Model(sense="max")
    for link in range(links):
        model.add_resources(
            link, float(rng.choice([0.0, rng.uniform(0.5, 4.0), rng.uniform(4.0, 90.0)], p=[0.02, 0.6, 0.38]))
        )
    sizes = 10.0 ** rng.uniform(-2.0, rng.choice([0.5, 2.0]), int(rng.integers(30, 200)))
    longest, alike = int(rng.integers(2, 9)), rng.random() < 0.5
    for request, size in enumerate(sizes):
        flow(model, request, size, longest, alike, rng)
    changed = {(screen, "LEAST_ROWS"): 8, (screen, "LEAST_ENTRIES"): 1.0, (screen, "BLOCKS"): int(rng.integers(4, 12)),
               (solve, "FEW"): float(rng.choice([0.25, 1.0]))}  # fmt: skip
    usual = {place: getattr(*place) for place in changed}
    for place, value in changed.items():
        setattr(*place, value)
    asked = Settings(
        method="blocks" if rng.random() < 0.7 else "auto", internals=Internals(purify=bool(rng.random() < 0.5))
    )
    session = Session(model, asked)
    try:
        for _ in range(3):
            wrong = against_highs(model.to_linear_program(), session.solve())
            if wrong:
                return wrong
            for request in rng.choice(list(model.requests), 8, replace=False).tolist():
                model.remove_request(request)
                flow(model, request, 10.0 ** rng.uniform(-2.0, 1.0), longest, alike, rng)
            session = session if rng.random() < 0.5 else Session(model, asked)
    finally:
        for place, value in usual.items():
            setattr(*place, value)
    return None


def flow(model: Model, request: int, size: float, longest: int, alike: bool, rng: np.random.Generator) -> None:
    """A request of a size over up to four paths of up to so many links; some paths have none."""
    links, paths = len(model.resources), int(rng.integers(1, 5))
    used = [
        rng.choice(links, int(rng.integers(0 if rng.random() < 0.1 else 1, longest)), replace=False)
        for _ in range(paths)
    ]
    some = np.unique(np.concatenate((*used, [0])))
    usage = {int(k): [float(k in path) for path in used] for k in some}
    cost = np.ones(paths) if alike else rng.uniform(0.2, 2.0, paths)
    model.add_request(request, cost, usage=usage, limit=size, upper=np.inf)


def files(seed: int, folder: Path) -> str | None:
    """A damaged file of one of the formats."""
    rng = random.Random(seed)
    name = list(FORMATS)[seed % len(FORMATS)]
    fault = verdict(name, mutated(rng, rng.choice(seeds(name))), folder)
    return None if fault is None else f"{name}: {fault}"


def kills(seed: int, folder: Path) -> str | None:
    """A process that edits, solves and saves is killed: what it acknowledged is there."""
    place = folder / f"kill-{seed}"
    place.mkdir()
    try:
        killed(place, seed, random.Random(seed).uniform(0.0, 0.5))
    except AssertionError as error:
        return f"what was acknowledged is not there: {str(error)[:200]}"
    return None


CONTROL = np.random.default_rng(0).random(10_000)
CONTROL_SORTS = 25  # about 6 ms, as long as a solve with a deadline of 1 ms


class Deadlines:
    """Solves under churn at 10,000 GPUs, cold every tenth time: plans hold, and the solve is not late.

    What counts is the processor time of the calling thread, which other work on the machine stretches least; the wall
    clock's is kept too. After each solve fixed work of about a short solve's length is timed (the control): a machine
    that stalls it stalls solves as often.
    """

    def __init__(self, gpus: int = 10_000) -> None:
        self.gpus = gpus
        self.rounds: SiaRounds | None = None
        self.session: Session | None = None
        self.late: dict[int, list[tuple[float, float]]] = {deadline: [] for deadline in DEADLINES_MS}
        self.control: list[float] = []

    def __call__(self, seed: int, folder: Path) -> str | None:
        at, which = divmod(seed, len(DEADLINES_MS))
        if self.rounds is None or at % SOLVES_A_MODEL == which == 0:
            self.rounds, self.session = SiaRounds(self.gpus, "full", 0.01, seed), None
            self.rounds.edit()
        if self.session is None or at % COLD_EVERY == 0:
            self.session = Session(self.rounds.model)
        deadline_s = DEADLINES_MS[which] / 1e3
        began, started = time.thread_time(), time.perf_counter()
        plan = self.session.solve_integer(deadline_s=deadline_s)
        wall, processor = time.perf_counter() - started - deadline_s, time.thread_time() - began - deadline_s
        self.late[DEADLINES_MS[which]].append((processor, wall))
        self.control.append(control_s())
        require_feasible(self.rounds.model, plan)
        self.rounds.take(self.rounds.plan_columns(plan))
        self.rounds.prepare()
        self.rounds.edit()
        if not plan.is_feasible:
            return f"no plan within {1e3 * deadline_s:g} ms"
        if processor > allowed_s(deadline_s):
            return f"{1e3 * processor:.1f} ms late at {1e3 * deadline_s:g} ms, {1e3 * wall:.1f} by the wall clock"
        return None

    def notes(self) -> list[str]:
        """A table: how late the solves were at each deadline."""
        lines = [
            "| deadline | solves | held | held by the wall clock | latest, processor time | wall clock: 99%, latest |",
            "|---|---|---|---|---|---|",
        ]
        for deadline, late in self.late.items():
            if late:
                processor, wall = 1e3 * np.array(late).T
                allowed = 1e3 * allowed_s(deadline / 1e3)
                held, in_time = (processor <= allowed).sum(), (wall <= allowed).sum()
                lines.append(
                    f"| {deadline} ms | {len(late)} | {held} | {in_time} | {processor.max():+.1f} ms "
                    f"| {np.quantile(wall, 0.99):+.1f}, {wall.max():+.1f} ms |"
                )
        control = 1e3 * np.array(self.control)
        slow = (control > np.median(control) + 1e3 * LATE_S).sum()
        lines += [
            "",
            f"Control: of {len(control)} turns of fixed work of {np.median(control):.1f} ms, {slow} took over "
            f"{1e3 * LATE_S:g} ms longer (processor time; the longest {control.max():.1f} ms).",
        ]
        return lines


def control_s() -> float:
    """Processor time of a fixed piece of work, in seconds."""
    began = time.thread_time()
    for _ in range(CONTROL_SORTS):
        np.argsort(CONTROL)
    return time.thread_time() - began


def allowed_s(deadline_s: float) -> float:
    """How late a solve may come back: 10 ms or a tenth of its deadline."""
    return max(LATE_S, LATE_SHARE * deadline_s)


CAMPAIGNS: dict[str, tuple[int, Callable[[], Trial]]] = {
    "linear programs, judged and against HiGHS": (10_000, lambda: programs),
    "edited sessions, plans in exact arithmetic": (2_000, lambda: sessions),
    "tiny models of which every plan is known, three rounds": (1_700, lambda: enumerated.trial),
    "flows over many links, cold and edited, against HiGHS": (3_000, lambda: networks),
    "damaged files of nine formats": (5_000, lambda: files),
    "processes killed while they save": (1_000, lambda: kills),
    "deadlines of 1 to 500 ms, 10,000 GPUs": (3_000, Deadlines),
    "calls interrupted at an instruction": (20_000, lambda: interrupted.at_an_instruction),
    "calls ended by a timer's signal, 60 a process": (500, lambda: interrupted.by_a_timer),
    "tapes of random sessions, accepted": (10_000, lambda: taped.accepted),
    "tapes with a lie, rejected": (2_000, lambda: taped.rejected),
    "models with concave worths, five rounds, against Clarabel": (20_000, lambda: worths.trial),
    "sessions of 50 rounds, recorded while threads change places each microsecond": (40, lambda: taped.unlost),
}


def run(name: str, count: int, folder: Path, first: int = 0, trial: Trial | None = None) -> Iterator[str | None]:
    """The verdict of every trial of a campaign: None if it held; an unexpected error is a fault like any other."""
    trial = trial or CAMPAIGNS[name][1]()
    for seed in range(first, first + count):
        try:
            yield trial(seed, folder)
        except Exception as error:
            yield f"seed {seed}: {type(error).__name__}: {str(error)[:200]}"
