"""Make the papers' tables that have changed, each with its command, commit, seed, machine and date beside it.

    python benchmarks/tables/make_tables.py                # `make tables`: those whose sources have changed
    python benchmarks/tables/make_tables.py --list         # which those are, and the processor time of each last time
    python benchmarks/tables/make_tables.py --only hadar   # of these only
    python benchmarks/tables/make_tables.py --engine       # those too that another engine made
    python benchmarks/tables/make_tables.py --again        # whether they have changed or not
    python benchmarks/tables/make_tables.py --ray auto     # each a task of a Ray cluster, written as it ends

A table is a file in docs/results/tables: what its command printed under a header. It has changed when its command, its
script, or a file of this project that the script imports, however far away, do not mean what they did by the header's
fingerprint (table_sources.py): comments, docstrings, imports and moved files change no meaning. The engine has a
fingerprint of its own: it is meant to make tables faster, not others, but could move a tie, so that --list says where
it is another and --engine makes those tables too.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from table_sources import HERE, PLACES, ROOT, digest_of, engine_digest
from table_sources import sources as sources_of

from copter_frontends.cli.output import InputError

KEPT = "docs/results/tables"
RESULTS = ROOT / KEPT
TO_MAKE, OTHER_ENGINE, AS_IT_IS = "to be made", "other engine", "as it is"
NOISE = ("HighsMipSolverData::", "Running HiGHS ", "Includes third-party software components")
"""Beginnings of lines that HiGHS prints whether it may print or not."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, the command that makes it, its seed, and the frontends whose policies it runs by name."""

    name: str
    command: str
    frontends: tuple[str, ...]
    seed: str = "0, 1, 2"

    @property
    def script(self) -> Path:
        """The script of its command."""
        return HERE / self.command.split()[0]


HADAR = ("hadar", "baselines")
HOPS = ("hops", "baselines")
SIA = ("sia", "baselines")
DRAWS = "of the workloads"
PROFILED = "hops,hops-profiling,hops-profiling-each"
SMALL = "--cluster hops-64 --jobs 120 --jobs-per-hour 60 --scale 0.3"
ALL_MODES = "hadar,hadar-online,hadar-printed,hadar-horizon,gavel,tiresias,yarn"
LEARNING = "hadar,hadar-measured,hadar-blurred,hadar-misled,gavel,gavel-misled"
TABLES = [
    Table("hadar_jct_static", f"hadar_jct.py --jobs 120 --scale 0.25 --seeds 3 --schedulers {ALL_MODES}", HADAR),
    Table(
        "hadar_jct_continuous",
        "hadar_jct.py --jobs 100 --scale 0.25 --jobs-per-hour 6 --arrivals continuous --seeds 3",
        HADAR,
    ),
    Table("hadar_jct_480", "hadar_jct.py --seeds 3 --schedulers hadar,gavel,tiresias,yarn", HADAR),
    Table("hadar_prices", "hadar_prices.py --jobs 40 --scale 0.1 --seeds 3", HADAR),
    Table(
        "hadar_jct_philly",
        "hadar_jct.py --seeds 2 --sizes philly --schedulers hadar,gavel,tiresias,yarn",
        HADAR,
        "0, 1",
    ),
    Table("hadar_learning", f"hadar_jct.py --jobs 60 --scale 0.25 --seeds 3 --schedulers {LEARNING}", HADAR),
    Table(
        "hadar_fairness_makespan",
        "hadar_fairness_makespan.py --jobs 120 --scale 0.2 --seeds 3 --schedulers hadar,hadar-horizon,gavel,tiresias",
        HADAR,
    ),
    Table(
        "hadar_horizon",
        "hadar_fairness_makespan.py --jobs 240 --scale 0.25 --seeds 2 --schedulers hadar,hadar-horizon,gavel",
        HADAR,
        "0, 1",
    ),
    Table("hadar_packing", "hadar_packing.py --jobs 120 --scale 0.25 --seeds 3", HADAR),
    Table("hadar_changes", "hadar_changes.py --jobs 60 --scale 0.25 --seeds 3", HADAR),
    Table("hadar_figure_3", "hadar_figures.py 3 --jobs 60 --seeds 3", HADAR),
    Table("hadar_figure_4", "hadar_figures.py 4 --jobs 60 --seeds 3", HADAR),
    Table("hadar_figure_7", "hadar_figures.py 7 --rounds 2 --seeds 2 --schedulers hadar,gavel", HADAR, "0, 1"),
    Table("hadar_figure_8", "hadar_figures.py 8 --jobs 40 --seeds 3 --schedulers hadar,gavel,tiresias", HADAR),
    Table("hadar_table3", "hadar_table3.py --seeds 10", HADAR, "0 to 9"),
    Table("hadar_figure_10", "hadar_figures.py 10 --scale 0.1 --seeds 3", HADAR),
    Table("hadar_restarts", "hadar_figures.py IV --jobs 60 --seeds 3", HADAR),
    Table("hops_table3", "hops_table3.py --seeds 3", HOPS),
    Table("hops_table4", "hops_table4.py --jobs 250 --seeds 3", HOPS),
    Table("hops_table4_500", "hops_table4.py --seeds 1", HOPS, "0"),
    Table("hops_profiling", f"hops_table3.py --seeds 5 --schedulers {PROFILED}", HOPS, "0 to 4"),
    Table("hops_figure_6", "hops_estimator.py --seeds 3", ("hops", "goodput")),
    Table("hops_figure_7b", "hops_figures.py 7b --seeds 10", HOPS, "0 to 9"),
    Table("hops_figures_9_11", "hops_figures.py curves --seeds 5", HOPS, "0 to 4"),
    Table("hops_figure_12", "hops_figures.py 12 --jobs 60 --seeds 5", HOPS, "0 to 4"),
    Table("hops_figure_14", "hops_figures.py 14 --seeds 3 --samples 10", HOPS),
    Table("hops_figure_15", "hops_figures.py 15 --seeds 2 --times 2,4,8,16", HOPS, "0, 1"),
    Table("hops_queues", f"hops_sweeps.py --sweep priorities {SMALL} --seeds 3", HOPS),
    Table("hops_fragments", f"hops_sweeps.py --sweep fragments {SMALL} --seeds 3", HOPS),
    Table("table_3_3", "table_3_3.py --policies sia,pollux,gavel --workloads 5", SIA, DRAWS),
    Table("table_3_4", "table_3_4.py --policies sia,themis,gavel,gavel-finish-time-fairness --workloads 3", SIA, DRAWS),
    Table("table_3_4_slow", "table_3_4.py --policies sia,pollux,shockwave --workloads 1", SIA, DRAWS),
    Table("fairness", "finish_time_fairness.py --policies sia,gavel --workloads 5", SIA, DRAWS),
    *(
        Table(f"sweep_{name}", f"sweeps.py {name} --workloads 5", SIA, DRAWS)
        for name in ("p", "round", "adaptivity", "profiling")
    ),
    Table("rigid_only", "rigid_only.py --workloads 5", SIA, DRAWS),
    Table("time_sharing", "time_sharing.py --workloads 3 --restart-s 30", SIA, DRAWS),
    Table("time_sharing_measured_starts", "time_sharing.py --workloads 3", SIA, DRAWS),
    Table(
        "time_sharing_published",
        "time_sharing.py --workloads 1 --restart-s 30 --window-s 180 --penalty published",
        SIA,
        DRAWS,
    ),
    Table("sia_reference", "sia_reference.py", SIA, DRAWS),
    Table("sia_reference_own_shim", "sia_reference.py --own-shim", SIA, DRAWS),
    Table("gavel_reference", "gavel_reference.py", SIA, DRAWS),
    Table("sia_figure_3_3", "sia_figures.py 3.3 --policies sia,gavel --workloads 3", SIA, DRAWS),
    Table("sia_figure_3_5", "sia_figures.py 3.5 --policies sia,gavel --workloads 2 --jobs 80", SIA, DRAWS),
    Table("sia_figure_3_6", "sia_figures.py 3.6 --workloads 2 --jobs 60", SIA, DRAWS),
    Table("sia_figure_3_10", "sia_figures.py 3.10 --workloads 2 --points 1,2,4 --hours 0.25", SIA, DRAWS),
    Table("sia_figure_3_12", "sia_figures.py 3.12 --points 0,0.5,1 --jobs 60", SIA, DRAWS),
    Table("copter_figure_4_1", "copter_figures.py 4.1 --gpus 1792 --hours 0.25 --seeds 2", SIA, "0, 1"),
    Table("copter_figure_4_2", "copter_figures.py 4.2 --gpus 2500 --hours 1 --seeds 2", SIA, "0, 1"),
    Table(
        "copter_figure_4_5",
        "copter_figures.py 4.5 --gpus 1792 --hours 0.25 --seeds 2 --policies lp-star,copter",
        SIA,
        "0, 1",
    ),
    *(
        Table(
            f"table_4_1_latency_{times}",
            "copter_table_4_1.py --gpus 2500 --hours 0.25 --threads 1 --seeds 3 --policies copter,lp-star "
            f"--plan-latency {times}",
            SIA,
        )
        for times in (0, 1, 50)
    ),
    Table(
        "table_4_1_learned_1344",
        "copter_table_4_1.py --gpus 1344 --hours 0.5 --learned --seeds 3 --policies copter,lp-star --threads 1",
        SIA,
    ),
    Table(
        "table_4_1_learned",
        "copter_table_4_1.py --gpus 448 --hours 1 --learned --seeds 3 --policies copter,lp-star,pop-copter --parts 8 "
        "--threads 1",
        SIA,
    ),
]


def sources(table: Table, places: Sequence[Path] = PLACES) -> list[Path]:
    """The files that decide what a table says."""
    return sources_of(table.script, table.frontends, places)


def fingerprint(table: Table, places: Sequence[Path] = PLACES) -> str:
    """A digest of a table's command and sources."""
    return digest_of(sources(table, places), table.command)


def state_of(table: Table, header: Mapping[str, str], engine: str) -> str:
    """What has changed since a table was made."""
    if header.get("fingerprint") != fingerprint(table):
        return TO_MAKE
    return AS_IT_IS if header.get("engine") == engine else OTHER_ENGINE


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
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT / "benchmarks")])}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
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
        "machine": done.machine,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor seconds": f"{done.seconds:.0f}",
        "fingerprint": fingerprint(table),
        "engine": engine_digest(),
    }
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{table.name}.txt"
    temporary = path.with_suffix(".new")
    lines = [line.rstrip() for line in done.out.splitlines() if not line.startswith(NOISE)]
    temporary.write_text("\n".join([*(f"# {name}: {what}" for name, what in says.items()), *lines, ""]))
    temporary.replace(path)
    print(f"{table.name}: made in {says['processor seconds']} s of processor time", flush=True)
    return True


def make(tables: Sequence[Table], results: Path, ray: str | None = None) -> int:
    """Make tables, here one after the other or each as a task of a Ray cluster; how many failed."""
    commands = [[str(table.script), *table.command.split()[1:]] for table in tables]
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
    parser.add_argument("--again", action="store_true", help="tables that have not changed too")
    parser.add_argument("--engine", action="store_true", help="tables that another engine made too")
    parser.add_argument("--list", action="store_true", help="make none, say what would be made")
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
    to_make: list[Table] = []
    engine, made_now = engine_digest(), (TO_MAKE, OTHER_ENGINE) if asked.engine else (TO_MAKE,)
    for table in chosen:
        known = header_of(RESULTS / f"{table.name}.txt")
        state = state_of(table, known, engine)
        if asked.list:
            took = known.get("processor seconds", "?")
            print(f"{table.name:<26} {state:<12} {known.get('date', 'never'):<21} {took:>6} s")
        elif state in made_now or asked.again:
            to_make.append(table)
        else:
            print(f"{table.name}: {state}, of {known['date']}")
    try:
        return 1 if make(to_make, RESULTS, asked.ray) else 0
    except InputError as error:
        parser.error(error.message)


if __name__ == "__main__":
    sys.exit(main())
