"""Thesis 3.5.6 and 3.5.8: Sia over p, round length, adaptivity and profiling, paper and measured.

python benchmarks/tables/sweeps.py {p,round,adaptivity,profiling} [--jobs 160] [--keep FILE] [--ray auto]

Ratios are to the first row of each sweep, of profiling bootstrap. The workloads are Helios (saturn) but for adaptivity
(philly), as in the thesis. A run draws nothing at random: a workload is a draw of the trace, and with several
(--workloads) each figure has its mean and in brackets the least and the most. For the time-sharing penalty see
time_sharing.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import loads
from runs import RunStore, Setting, data_directory, figures_of, mean, run_name, show, sia_policy
from spreads import mean_and_range, ratio_and_range

from copter_frontends.cli.output import InputError
from copter_frontends.vocabulary import Job
from copter_frontends.vocabulary.semantics import SIA_ARTIFACT

CLUSTER = "sia-het"
ORACLE_GROWTH = None  # what is known need not be approached in steps
PROFILING_S = 20.0  # on each GPU type, thesis 3.3.2

ROUND_S = 60.0
FIGURES = ("avg_jct_h", "p99_jct_h", "makespan_h", "gpu_hours_per_job", "restarts_per_job")
USUAL = {"p": "-0.5", "round": "60", "adaptivity": "adaptive", "profiling": "projected"}
"""Rows that are Sia as it is in the other tables."""

# Sweep: trace, and what the thesis says of each row.
SWEEPS: dict[str, tuple[str, dict[str, str]]] = {
    "p": (
        "saturn",
        {"-0.5": "best average JCT and makespan", "-1.0": "", "0.5": "", "1.0": "lower p99, higher average"},
    ),
    "round": ("saturn", {"60": "1", "30": "worse", "300": "1.12 of the average JCT"}),
    "adaptivity": (
        "philly",
        {"adaptive": "1", "strong scaling": "1.15 (batch size gives 13%)", "rigid": "2.6 (GPU count gives 56%)"},
    ),
    "profiling": (
        "saturn",
        {
            "bootstrap": "1",
            "oracle": "0.93",
            "none": "1.43",
            "projected": "(public simulator)",
            "two counts": "worse than bootstrap",
            "deja vu": "(6.2)",
        },
    ),
}

PROFILINGS: dict[str, dict[str, Any]] = {
    "oracle": {"growth": ORACLE_GROWTH},
    "two counts": {"profiling": "bootstrap", "profiled_gpus": 2},
    "deja vu": {"profiling": "bootstrap", "deja_vu": True},
}
"""Conventions of the rows of that sweep that differ in more than their profiling, which has the row's name."""


def limited(kind: str) -> Callable[[list[Job]], list[Job]] | None:
    """Make jobs strong-scaling or rigid, with the batch and GPUs of the workload file."""
    if kind == "rigid":
        return lambda jobs: [replace(job, batch_size=job.max_batch_size, gpus=job.requested_gpus) for job in jobs]
    if kind == "strong scaling":
        return lambda jobs: [replace(job, batch_size=job.max_batch_size) for job in jobs]
    return None


@dataclass(frozen=True)
class Run:
    """One row on one workload.

    Attributes
    ----------
    name : str
        Under which its figures are kept.
    setting : Setting
    power : float
        Sia's p.
    """

    name: str
    setting: Setting
    power: float


def run_of(sweep: str, row: str, path: Path, jobs: int | None) -> Run:
    """The run of one row on one workload."""
    semantics, round_s, power, change = SIA_ARTIFACT, None, -0.5, None
    if sweep == "p":
        power = float(row)
    elif sweep == "round":
        round_s = None if float(row) == ROUND_S else float(row)
    elif sweep == "adaptivity":
        change = limited(row)
    elif sweep == "profiling" and row != SIA_ARTIFACT.profiling:
        semantics = replace(SIA_ARTIFACT, **{"profiling": row, "profiling_s": PROFILING_S, **PROFILINGS.get(row, {})})
    setting = Setting("sia", CLUSTER, path, semantics, round_s, jobs, change)
    return Run(run_name(setting, "" if row == USUAL[sweep] or sweep == "round" else f"{sweep} {row}"), setting, power)


def made(run: Run) -> dict[str, Any]:
    """The figures of a run."""
    return figures_of(run.setting, sia_policy(run.setting, power=run.power))


def made_over_ray(address: str, runs: Sequence[Run], store: RunStore) -> None:
    """Make the runs that are not kept yet as tasks of a Ray cluster; each is kept as it ends."""
    from copter_frontends.cli.over_ray import gathered  # for an optional extra

    missing = list({run.name: run for run in runs if run.name not in store}.values())

    def ended(place: int, figures: dict[str, Any]) -> None:
        store.keep(missing[place].name, figures)

    gathered(address, made, missing, "runs", [run.name for run in missing], ended)


def report(title: str, sweep: str, found: Mapping[str, Sequence[Mapping[str, Any]]], paper: Mapping[str, str]) -> None:
    """A row of the sweep a line: figures over its workloads, its JCT over the first row's, and the thesis's word."""
    each = {row: {name: [run[name] for run in runs] for name in FIGURES} for row, runs in found.items()}
    base = next(iter(each.values()))["avg_jct_h"]
    table = [
        [
            row,
            *(mean_and_range(values) for values in figures.values()),
            ratio_and_range(figures["avg_jct_h"], base),
            paper[row],
        ]
        for row, figures in each.items()
    ]
    show(title, [sweep, *FIGURES, "JCT ratio", "thesis"], table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sweep and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", choices=list(SWEEPS))
    parser.add_argument("--workloads", type=int, default=1, help="workloads to average over (default 1)")
    parser.add_argument("--jobs", type=int, help="only the first so many jobs of each")
    parser.add_argument("--keep", metavar="FILE", help="keep the figures of each run here, and do not run it again")
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    parser.add_argument(
        "--ray",
        metavar="ADDRESS|local",
        help="run them as tasks of a Ray cluster whose machines have this checkout and the data (auto: the one that "
        "runs here), or of one started here",
    )
    asked = parser.parse_args(arguments)
    if asked.workloads < 1 or (asked.jobs is not None and asked.jobs < 1):
        parser.error("--workloads and --jobs must be 1 or more")
    trace, paper = SWEEPS[asked.sweep]
    paths = sorted((data_directory().resolve() / "traces" / "sia" / trace).glob("workload-*.csv"))[: asked.workloads]
    store = RunStore(asked.keep)
    runs = {row: [run_of(asked.sweep, row, path, asked.jobs) for path in paths] for row in paper}
    if asked.ray is not None:
        try:
            made_over_ray(asked.ray, [run for each in runs.values() for run in each], store)
        except InputError as error:
            parser.error(error.message)
    found = {row: [store.figures(run.name, partial(made, run)) for run in each] for row, each in runs.items()}
    report(f"Sia over {asked.sweep}, {trace}, {len(paths)} workloads", asked.sweep, found, paper)
    loads.say()
    if asked.json:
        rows = {row: {name: mean(each, name) for name in FIGURES} for row, each in found.items()}
        base = next(iter(rows.values()))["avg_jct_h"]
        print(
            json.dumps(
                {
                    "rows": rows,
                    "ratios": {row: each["avg_jct_h"] / base for row, each in rows.items()},
                    "each": {
                        row: {name: [run[name] for run in each] for name in FIGURES} for row, each in found.items()
                    },
                }
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
