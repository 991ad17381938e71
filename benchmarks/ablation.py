"""What each part of the solver is worth: methods, accelerators, reductions and constants switched off, halved, doubled.

    python benchmarks/ablation.py --tapes FOLDER --keep FILE
    python benchmarks/ablation.py --keep FILE --page docs/results/ablation.md

FOLDER holds the tapes of `python benchmarks/tapes.py make`; workloads whose tape is not there are left out. A result is
a line of FILE as soon as it is there, and what FILE knows is not measured again. `--only screen,NEAR` measures what has
one of these words in its name, again; `--workloads` some workloads only. `--page` leaves the rows of the page as they
are of which FILE knows nothing, so that a part can be measured alone; rows of things that are gone leave it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ablation_switches import Variant, reason, variants
from ablation_worker import WORKLOADS, kind_of

WORKER = Path(__file__).with_name("ablation_worker.py")
SLOWER = 1.2  # times the processor time, or the work, from which on a thing has earned its place
FASTER = 0.9
Result = dict[str, Any]
INTRODUCTION = """# Ablation of the solver

Made by `python benchmarks/ablation.py --page docs/results/ablation.md` from results that the same command measures and
keeps ({date}).

Each method, accelerator and reduction is switched off in turn, each numeric constant of the solver
rooms (`methods/`, without integer search) is halved and doubled, in compiled modules too. The table says what
the change does to the sums over each workload: **time** is the solver's processor time and **work** is iterations,
pricing passes and proximal steps, both over those of the solver as it is; the worst workload of each counts. Times are
rough: most runs take less than a tenth of a second, beside other work; where all answers and the work are the same to
the last digit, no time is told, and what saves time without changing the way shows nothing here. **Fails** is the
number of answers with another status or another objective, or the error. A workload in which the thing is never
reached is not counted.

A verdict **stays** says what a workload loses without the thing: answers, a fifth more time or work, or a fifth more
columns between whole numbers, which a shim must round. Of a method, an accelerator or a reduction the time is told even
where the work is the same: it is then the least of several runs in turns. A constant of which these workloads notice
nothing is a **guard** or a **part**. A guard holds where they do not go: of the clock (how often it is looked at), of
memory, of a method's end (steps and work after which it is given up), of rounding, of a division. A part is a value
that a thing that stays must have, and that need not be exact: half and double of it do as well. What is neither goes.

Workloads: {workloads}.

"""


def main() -> None:
    """Measure, or make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tapes", type=Path, default=Path("tapes"), help="folder of tapes (default: tapes)")
    parser.add_argument("--keep", type=Path, default=Path("benchmarks/results/ablation.jsonl"), help="file of results")
    parser.add_argument("--only", default="", help="words; measured again")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--page", type=Path, help="write this page from the results; measure nothing")
    parser.add_argument("--date", default="", help="what the page says of when it was measured")
    arguments = parser.parse_args()
    only = [word for word in arguments.only.split(",") if word]
    names = [name for name in arguments.workloads.split(",") if name]
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload {unknown[0]!r}: some of {', '.join(WORKLOADS)}")
    if arguments.page is not None:
        before = arguments.page.read_text() if arguments.page.exists() else ""
        arguments.page.write_text(page(read(arguments.keep), arguments.date, before))
        return
    arguments.keep.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        if kind_of(name) == "tape" and not (arguments.tapes / f"{name.partition(':')[0]}.tape").exists():
            print(f"{name}: no tape in {arguments.tapes}, left out", file=sys.stderr)
            continue
        measure(name, arguments.tapes, arguments.keep, only)


def read(keep: Path) -> list[Result]:
    """The results that are there; of two of the same thing the last."""
    if not keep.exists():
        return []
    found = [json.loads(line) for line in keep.read_text().splitlines()]
    return list({(each["workload"], each["key"]): each for each in found}.values())


def measure(workload: str, tapes: Path, keep: Path, only: list[str]) -> None:
    """Measure what is not known of a workload; a worker that dies costs the variant that it was at."""
    while True:
        known = [] if only else [each["key"] for each in read(keep) if each["workload"] == workload and each["key"]]
        left = [each.key for each in variants() if each.key not in known]
        if not left:
            return
        question = {"workload": workload, "tapes": str(tapes), "skip": known, "only": only}
        worker = subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if worker.stdin is None or worker.stdout is None:
            raise RuntimeError("a worker without pipes")
        worker.stdin.write(json.dumps(question))
        worker.stdin.close()
        done: list[str] = []
        for line in worker.stdout:
            with keep.open("a") as file:
                file.write(line)
            found = json.loads(line)
            done.append(found["key"])
            if not found.get("unread"):
                print(workload, found, file=sys.stderr, flush=True)
        code = worker.wait()
        if code == 0 or only or not done:
            return
        crashed = next(key for key in left if key not in done)
        with keep.open("a") as file:
            why = f"the process ends with code {code}"
            file.write(json.dumps({"key": crashed, "workload": workload, "wrong": 1, "why": why}) + "\n")


# The page -------------------------------------------------------------------------------------------------------------


def rows_of(text: str) -> dict[tuple[str, str], str]:
    """The rows of a page by name and change."""
    cells = ((line, line.split("|")) for line in text.splitlines() if line.startswith("| `"))
    return {(each[1].strip(" `"), each[2].strip()): line + "\n" for line, each in cells}


def page(results: list[Result], date: str, before: str = "") -> str:
    """The page of all that is there now; what was not measured keeps its row of the page before."""
    known, earlier = {each["key"] for each in results}, rows_of(before)
    by_key: dict[str, list[Result]] = defaultdict(list)
    for each in results:
        if not each.get("unread"):
            by_key[each["key"]].append(each)
    sizes = dict(re.findall(r"([\w:-]+) \((\d+) solves\)", before))
    sizes |= {each["workload"]: str(each["answers"]) for each in results if not each["key"]}
    told = ", ".join(f"{name} ({size} solves)" for name, size in sizes.items())
    text = INTRODUCTION.format(date=date, workloads=told)
    everything = variants()
    for title, kinds in (
        ("Methods and accelerators", ("method", "accelerator")),
        ("Presolve's reductions", ("reduction",)),
        ("Settings and constants", ("setting", "constant")),
    ):
        text += f"## {title}\n\n| what | change | time | work | where it is slowest | fails | verdict |\n"
        text += "|---|---|---|---|---|---|---|\n"
        chosen = [each for each in everything if each.kind in kinds]
        worth: dict[str, str] = {}
        for each in chosen:
            worth[each.name] = max(worth.get(each.name, ""), verdict(by_key[each.key]), key=len)
        rows = [row(each.name, each.change, by_key[each.key], worth[each.name]) for each in chosen]
        kept = [earlier.get((each.name, each.change)) if each.key not in known else None for each in chosen]
        lines = [with_reason(old or new, each) for old, new, each in zip(kept, rows, chosen, strict=True)]
        text += "".join(lines) + "\n"
    return text


def with_reason(line: str, variant: Variant) -> str:
    """A row with the reason for a thing that no workload needs."""
    cells = line.rstrip("\n").split("|")
    if not cells[-2].strip().startswith("stays"):
        cells[-2] = f" {reason(variant)} "
    return "|".join(cells) + "\n"


def slowest(results: Iterable[Result]) -> Result | None:
    """The workload with the longest time relative to the usual one; None where nothing was measured."""
    timed = [each for each in results if each.get("time") is not None]
    return max(timed, key=lambda each: min(float(each["time"]), 100.0) if costs(each) else 0.0, default=None)


def costs(result: Result) -> bool:
    """Whether a change took another way: equal answers by equal work differ in time by little but noise."""
    return result.get("timed", False) or not result.get("same") or result["work"] != 1.0


def verdict(results: list[Result]) -> str:
    """Why the thing stays, in a word; nothing where the table gives no reason."""
    if any(each["wrong"] for each in results):
        return "stays: answers fail"
    worst = slowest(results)
    if worst is None:
        return ""
    most = max(float(each["work"]) for each in results if each.get("work") is not None)
    if max(each.get("fractional", 1.0) for each in results) >= SLOWER:
        return "stays: more to round"
    return "stays: slower" if max(most, worst["time"] if costs(worst) else 1.0) >= SLOWER else ""


def row(name: str, change: str, results: list[Result], worth: str) -> str:
    """A line of the table."""
    if not results:
        return f"| `{name}` | {change} | | | never reached | | {worth} |\n"
    worst = slowest(results)
    works = [float(each["work"]) for each in results if each.get("work") is not None]
    fails = ", ".join(
        f"{each['workload']}: {each['why'] or each['wrong']}" for each in results if each["wrong"]
    ).replace("|", "/")
    if worst is not None and not costs(worst):
        return f"| `{name}` | {change} | 1 | 1 | the same everywhere | {fails} | {worth} |\n"
    figures = "| | | " if worst is None else f"| {worst['time']:.2f} | {max(works):.2f} | {worst['workload']} "
    return f"| `{name}` | {change} {figures}| {fails} | {worth} |\n"


if __name__ == "__main__":
    main()
