"""Make the papers' tables that are no longer true, each with its command, commit, seed, machine and date beside it.

    python benchmarks/tables/make_tables.py                # `make tables`: those whose probe answers differently
    python benchmarks/tables/make_tables.py --list         # which those are, and the processor time of each last time
    python benchmarks/tables/make_tables.py --only hadar   # of these only
    python benchmarks/tables/make_tables.py --again        # whether they have changed or not
    python benchmarks/tables/make_tables.py --ray auto     # each a task of a Ray cluster, written as it ends
    python benchmarks/tables/make_tables.py --loads        # only the lines that tell of their jobs' load, in seconds

A table is a file in docs/results/tables: what its command printed under a header. Each table (table_list.py) has a
probe: the same command on a small workload, some seconds of work. A table is current while its command is the one in
the list and its probe answers as it did when the table was made (probe.py), which docs/results/tables/probes keeps. So
a change of the sources that changes no answer leaves the tables current, and a run that was stopped goes on where it
was.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from probe import FAILED, INPUTS, ROOT, answer_of, environment, printed, same
from table_list import TABLES, Table

from copter_frontends.cli.output import InputError

ONLY_LOADS = Path(__file__).with_name("only_loads.py")
KEPT = "docs/results/tables"
RESULTS = ROOT / KEPT
LOADS = "loads"  # names the line above a table that says when its lines on load were written, if later
TO_MAKE, CURRENT = "to be made", "current"
NOISE = ("HighsMipSolverData::", "Running HiGHS ", "Includes third-party software components")
"""Beginnings of lines that HiGHS prints whether it may print or not."""


def state_of(table: Table, results: Path) -> str:
    """Whether a table still says what its command would print."""
    header, probe = header_of(results / f"{table.name}.txt"), _probe(results, table)
    if header.get("command") != f"python benchmarks/tables/{table.command}" or not probe.is_file():
        return TO_MAKE
    known = probe.read_text().removesuffix("\n")
    return CURRENT if not known.startswith(FAILED) and same(known, printed(table.probe)) else TO_MAKE


def _probe(results: Path, table: Table) -> Path:
    """Where the answer of a table's probe is kept."""
    return results / "probes" / f"{table.name}.txt"


def header_of(path: Path) -> dict[str, str]:
    """What stands above a table, by name; nothing where there is no table yet."""
    if not path.is_file():
        return {}
    lines = [line[2:] for line in path.read_text().splitlines() if line.startswith("# ")]
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def commit(root: Path = ROOT) -> str:
    """The commit that is checked out, and whether files other than the tables differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (
        " and changes" if git("status", "--porcelain", "--", ".", f":!{KEPT}") else ""
    )


def machine() -> str:
    """Processor, how many, and how busy they are."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        named = [line.split(":", 1)[1].strip() for line in information.read_text().splitlines() if "model name" in line]
        model = named[0] if named else model
    return f"{model}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a table's command came to, wherever it ran.

    Attributes
    ----------
    code : int
        0 where it ended well.
    out, error : str
        What it printed.
    machine : str
    seconds : float
        Of processor time, which other work on the machine stretches less than the clock's.
    """

    code: int
    out: str
    error: str
    machine: str
    seconds: float


def _children_s() -> float:
    """Processor time of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def outcome_of(command: Sequence[str]) -> Outcome:
    """Run a table's command, with the checkout where it is here."""
    begun = _children_s()
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr, machine(), _children_s() - begun)


def write(table: Table, done: Outcome, results: Path) -> bool:
    """Write what a table's command printed; whether it ended well. A table that fails stays as it was."""
    if done.code:
        print(f"{table.name}: failed: {(done.error.strip() or 'no message').splitlines()[-1]}", flush=True)
        return False
    says = {
        "command": f"python benchmarks/tables/{table.command}",
        "commit": commit(),
        "seed": table.seed,
        **({"few because": table.few} if table.few else {}),
        "machine": done.machine,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor seconds": f"{done.seconds:.0f}",
    }
    _probe(results, table).parent.mkdir(parents=True, exist_ok=True)
    path = results / f"{table.name}.txt"
    temporary = path.with_suffix(".new")
    lines = [line.rstrip() for line in done.out.splitlines() if not line.startswith(NOISE)]
    temporary.write_text("\n".join([*(f"# {name}: {what}" for name, what in says.items()), *lines, ""]))
    _probe(results, table).write_text(f"{answer_of(table.probe)}\n")
    temporary.replace(path)
    print(f"{table.name}: made in {says['processor seconds']} s of processor time", flush=True)
    return True


def again_with_loads(table: Table, results: Path) -> bool:
    """Write a table's lines on its jobs' load anew, and leave its figures; whether they could be, if it has any.

    They are those of the command under which the table stands, which may be an earlier one than the list's. Where a
    script cannot do without the jobs' work, all of it is run, and only these lines are taken.
    """
    path = results / f"{table.name}.txt"
    old = path.read_text().splitlines() if path.is_file() else []
    known = [line for line in old if line.startswith(INPUTS)]
    if not known:
        return True
    words = header_of(path)["command"].removeprefix("python benchmarks/tables/").split()
    for command in ([str(ONLY_LOADS), *words], [str(ONLY_LOADS.with_name(words[0])), *words[1:]]):
        done = outcome_of(command)
        found = [line for line in done.out.splitlines() if line.startswith(INPUTS)]
        if not done.code and found:
            break
    else:
        print(f"{table.name}: failed: {(done.error.strip() or 'no line on load').splitlines()[-1]}", flush=True)
        return False
    if clusters_of(found) != clusters_of(known):
        print(f"{table.name}: failed: other clusters than the table's", flush=True)
        return False
    if found == known:
        print(f"{table.name}: its loads are the same", flush=True)
        return True
    at = old.index(known[0])
    old = [line for line in old if line not in known]
    old[at:at] = found
    old = [line for line in old if not line.startswith(f"# {LOADS}: ")]
    told = f"# {LOADS}: written again, its figures not, by commit {commit()}"
    old.insert(next(i for i, line in enumerate(old) if not line.startswith("# ")), told)
    path.write_text("\n".join([*old, ""]))
    print(f"{table.name}: its loads are new", flush=True)
    return True


def clusters_of(lines: Sequence[str]) -> set[str]:
    """What lines on load say of GPUs."""
    return {size for line in lines for size in re.findall(r" on ([\d,]+) GPUs", line)}


def make(tables: Sequence[Table], results: Path, ray: str | None = None) -> int:
    """Make tables, here one after the other or each as a task of a Ray cluster; how many failed."""
    commands = [table.words for table in tables]
    if ray is None:
        return sum(
            not write(table, outcome_of(command), results) for table, command in zip(tables, commands, strict=True)
        )
    from copter_frontends.cli.over_ray import gathered  # for an optional extra

    failed: list[str] = []

    def ended(place: int, done: Outcome) -> None:
        if not write(tables[place], done, results):
            failed.append(tables[place].name)

    gathered(ray, outcome_of, commands, "tables", [table.name for table in tables], ended)
    return len(failed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the tables; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a table's name")
    parser.add_argument("--again", action="store_true", help="tables that are current too")
    parser.add_argument("--list", action="store_true", help="make none, say what would be made")
    parser.add_argument(
        "--loads", action="store_true", help="make none; write the lines of all on their jobs' load anew, without runs"
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS|local",
        help="make them as tasks of a Ray cluster whose machines have this checkout at this path (auto: the one that "
        "runs here), or of one started here",
    )
    asked = parser.parse_args(arguments)
    chosen = [table for table in TABLES if asked.only in table.name]
    if not chosen:
        parser.error(f"no table named {asked.only!r}: {', '.join(table.name for table in TABLES)}")
    if asked.loads:
        done = [again_with_loads(table, RESULTS) for table in chosen]
        return 0 if all(done) else 1
    to_make, seconds, unknown = [], 0.0, 0
    for table in chosen:
        known = header_of(RESULTS / f"{table.name}.txt")
        state = TO_MAKE if asked.again else state_of(table, RESULTS)
        took = known.get("processor seconds", "")
        print(f"{table.name:<28} {state:<10} {known.get('date', 'never'):<21} {took or '?':>6} s", flush=True)
        if state == TO_MAKE:
            to_make.append(table)
            seconds, unknown = seconds + float(took or 0), unknown + (not took)
    print(
        f"{len(to_make)} of {len(chosen)} tables to be made: {seconds:,.0f} s of processor time and {unknown} unknown"
    )
    if asked.list:
        return 0
    try:
        return 1 if make(to_make, RESULTS, asked.ray) else 0
    except InputError as error:
        parser.error(error.message)


if __name__ == "__main__":
    sys.exit(main())
