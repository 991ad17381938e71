"""Fuzz by structure: programs and stateful sessions against exact arithmetic; writes docs/results/trust.md.

    python -m tests.adversary.solver_fuzz --solves 100000 --state FILE --page

Runs blocks of seeds, each in a process of its own (a crash is a count, not an end), adds their counts to FILE, and goes
on from where FILE ends. --page writes the page from FILE; with --solves 0 nothing else is done.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import copter
from copter import Session, Settings
from tests.adversary.exact_judge import FALSE, OPEN, TOLERATED, TRUE, Judgement, judged
from tests.adversary.structures import FIGURES, MILD, STRUCTURES, Tinker, structured

PAGE = Path(__file__).parents[2] / "docs" / "results" / "trust.md"
ROUNDS, EDITS = 20, 13  # solves of a session, edits before each: ten that are taken, and three that are refused
LARGE_EVERY = 10  # sessions and programs that HiGHS judges
EXACT_EVERY = 10  # rounds of a session that the exact simplex decides in any case
PROGRAMS_EVERY = 10  # seeds that are programs rather than sessions
BLOCK, BLOCK_S = 100, 3600.0
METHODS = ("auto", "auto", "simplex", "interior")
SOLVE_S = 20.0  # a solve that does not end: long enough for a loaded machine
VERDICTS = (TRUE, TOLERATED, OPEN, FALSE)


def counted(counts: Counter[str], kind: str, figures: str, judgement: Judgement, seed: int, at: int) -> None:
    """Add a judgement to the counts; what is false, and no verdict on mild figures, is printed."""
    counts[f"{kind}|{figures}|{judgement.verdict}"] += 1
    counts[f"by|{judgement.by}"] += 1
    counts["solves"] += 1
    if judgement.verdict == FALSE or (judgement.verdict == OPEN and figures in MILD):
        print(
            f"{judgement.verdict.upper()} seed {seed}, round {at}, {kind}, {figures}: {judgement.why}",
            file=sys.stderr,
            flush=True,
        )


def program(seed: int, counts: Counter[str]) -> None:
    """One program, solved once by one of the methods."""
    large = seed // PROGRAMS_EVERY % LARGE_EVERY == 0
    structure, figures, lp = structured(seed, 30 if large else 6)
    method = METHODS[seed // PROGRAMS_EVERY % len(METHODS)]
    solution = copter.solve(lp, Settings(method=method, time_limit_s=SOLVE_S))  # type: ignore[arg-type]
    counted(counts, f"program, {structure}", figures, judged(lp, solution, figures in MILD), seed, 0)


def session(seed: int, counts: Counter[str], edits: int = EDITS) -> None:
    """A session of edits and solves, each solve from where the last ended."""
    rng = np.random.default_rng(seed)
    figures = str(rng.choice(list(FIGURES)))
    tinker = Tinker(rng, figures, 25 if seed % LARGE_EVERY == 5 else int(rng.integers(1, 5)))
    live = Session(tinker.model, Settings(time_limit_s=SOLVE_S))
    for at in range(ROUNDS):
        for _ in range(edits):
            tinker.step()
        solution = live.solve()
        lp = tinker.model.to_linear_program()
        counted(counts, "session", figures, judged(lp, solution, figures in MILD, at % EXACT_EVERY == 0), seed, at)
    counts["edits"] += tinker.edits
    counts["refused"] += tinker.refused
    counts["sessions"] += 1


def trial(seed: int, counts: Counter[str]) -> None:
    """A program or a session."""
    (program if seed % PROGRAMS_EVERY == 0 else session)(seed, counts)


def block(first: int, count: int) -> Counter[str]:
    """The counts of some seeds; an error that is no answer counts as one."""
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            trial(seed, counts)
        except Exception as error:
            counts["errors"] += 1
            print(f"ERROR seed {seed}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
    return counts


def run(state: Path, solves: int, until_s: float) -> None:
    """Blocks of seeds until there are so many solves in the state, or the time is over."""
    began, one = time.monotonic(), {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    known = json.loads(state.read_text()) if state.exists() else {"next": 0, "counts": {}, "commit": commit()}
    while known["counts"].get("solves", 0) < solves and time.monotonic() - began < until_s:
        first = known["next"]
        command = [sys.executable, "-m", "tests.adversary.solver_fuzz", "--block", str(first)]
        counts = Counter(known["counts"])
        try:
            done = subprocess.run(command, env=one, stdout=subprocess.PIPE, text=True, check=False, timeout=BLOCK_S)
            if done.returncode:
                counts["crashes"] += 1
                print(f"CRASH block {first}: {done.returncode}", file=sys.stderr, flush=True)
            else:
                counts.update(json.loads(done.stdout.splitlines()[-1]))
        except subprocess.TimeoutExpired:
            counts["endless"] += 1
            print(f"ENDLESS block {first}", file=sys.stderr, flush=True)
        known |= {"next": first + BLOCK, "counts": dict(counts)}
        state.write_text(json.dumps(known))


def commit() -> str:
    """The commit and its date that runs here."""
    git = ["git", "-C", str(PAGE.parent), "log", "-1", "--format=%h, %cs"]
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()


def page(state: Path) -> str:
    """The page of a state's counts."""
    known = json.loads(state.read_text())
    counts, since = Counter(known["counts"]), known.get("mended", "")
    kinds = ["session", *(f"program, {name}" for name in STRUCTURES)]
    rows = [
        f"| {kind} | {figures} | " + " | ".join(f"{counts[f'{kind}|{figures}|{v}']:,}" for v in VERDICTS) + " |"
        for kind in kinds
        for figures in FIGURES
        if any(counts[f"{kind}|{figures}|{v}"] for v in VERDICTS)
    ]
    total = [sum(count for name, count in counts.items() if name.endswith(f"|{v}")) for v in VERDICTS]
    return "\n".join([
        "# Fuzz by structure",
        "",
        "Made by `python -m tests.adversary.solver_fuzz`; not edited by hand.",
        f"Commit and its date: {known.get('commit', commit())}. Seeds 0 to {known['next'] - 1:,}.",
        "",
        f"{counts['solves']:,} solves after {counts['edits']:,} edits of {counts['sessions']:,} sessions "
        f"({counts['refused']:,} further edits were refused, as they should be). Decided by the solution's own "
        f"prices or ray, evaluated in exact arithmetic: {counts['by|certificate']:,}; by an exact simplex: "
        f"{counts['by|exact']:,}; by HiGHS, where it agrees: {counts['by|HiGHS']:,}. Processes that crashed: "
        f"{counts['crashes']}; that did not end: {counts['endless']}; errors that are no answers: {counts['errors']}.",
        "",
        "True: the status, the optimum and the certified bound agree with exact arithmetic. Within tolerance: the "
        "point called optimal keeps to the tolerances, but figures lie so far apart that exact arithmetic has another "
        "optimum, or none; or exact arithmetic proves the answer for a program whose figures differ by 1e-9 of "
        "themselves (rows that are one but for rounding). No certified bound among these is beyond the truth. "
        "No verdict: `numerical_error` or a limit. False: any other claim.",
        "",
        f"| what | figures | {' | '.join(VERDICTS)} |",
        "|---|---|---|---|---|---|",
        *rows,
        f"| all | all | {' | '.join(f'{each:,}' for each in total)} |",
        "",
        *([since, ""] if since else []),
    ])  # fmt: skip


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solves", type=int, default=100_000)
    parser.add_argument("--until-s", type=float, default=float("inf"))
    parser.add_argument("--state", type=Path, default=Path("solver-fuzz.json"))
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--block", type=int, help="only these seeds, for a process of the run")
    arguments = parser.parse_args()
    if arguments.block is not None:
        print(json.dumps(block(arguments.block, BLOCK)))
        return 0
    run(arguments.state, arguments.solves, arguments.until_s)
    if arguments.page:
        PAGE.write_text(page(arguments.state))
    return 0


if __name__ == "__main__":
    sys.exit(main())
