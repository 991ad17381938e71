"""What the tables share: where the data is, one simulation of a workload and its figures, and a table on the screen."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before SciPy: see copter_frontends.cli

import loads
from rich.console import Console
from rich.table import Table

from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.measured import find_profiles, read_profiles
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policies.sia import SiaPolicy, TimeSharing
from copter_frontends.policies.sia.objective import objective_of
from copter_frontends.simulator import Simulation, SimulationResult
from copter_frontends.simulator.alone import GoodputAloneTimes
from copter_frontends.simulator.fairness import finish_time_fairness
from copter_frontends.simulator.workload import make_workload
from copter_frontends.vocabulary import Job, SchedulingPolicy, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from
from copter_frontends.vocabulary.semantics import PRESETS, Semantics


@dataclass(frozen=True)
class Setting:
    """A cluster, a workload file, and how both are run."""

    policy: str
    cluster: str
    workload: Path
    semantics: Semantics = PRESETS["sia-artifact"]
    round_s: float | None = None
    jobs: int | None = None
    change: Callable[[list[Job]], list[Job]] | None = None


def data_directory() -> Path:
    """The data directory (COPTER_DATA, by default ../shared/data); exits with a message where it is absent."""
    found = Path(os.environ.get("COPTER_DATA", "../shared/data"))
    if not (found / "traces").is_dir():
        sys.exit(f"{found}: no data there; set COPTER_DATA to the directory that holds traces/ and profiles/")
    return found


def jobs_of(setting: Setting) -> list[Job]:
    """The workload's jobs as the policy has them, changed as the setting says."""
    cap, gpus = setting.semantics.batch_limit == "policy", cluster_from(setting.cluster).gpus
    jobs = make_workload(str(setting.workload), setting.jobs, 24.0, gpus, 0, cap_batch=cap).jobs
    jobs = POLICIES[setting.policy].in_form(jobs)
    return setting.change(jobs) if setting.change else jobs


def simulate(
    setting: Setting, policy: SchedulingPolicy | None = None, model: GoodputModel | None = None
) -> SimulationResult:
    """Run a workload from its first job to its last; under the semantics as they are where a policy is given."""
    cluster = cluster_from(setting.cluster)
    model = model or GoodputModel(configurations_of(cluster))
    profiles, semantics = profiles_of(setting), setting.semantics
    if policy is None:
        semantics = POLICIES[setting.policy].under(semantics)
        policy = POLICIES[setting.policy].build(cluster, model, "full", None, semantics, profiles)
    if setting.round_s is not None:
        policy.round_s = setting.round_s
    jobs = jobs_of(setting)
    loads.note(cluster, jobs, model)
    simulation = Simulation(cluster, jobs, policy, model, policy.round_s, semantics=semantics, profiles=profiles)
    return simulation.run()


def sia_policy(
    setting: Setting, model: GoodputModel | None = None, *, power: float = -0.5, sharing: TimeSharing | None = None
) -> SiaPolicy:
    """Sia as the setting has it, with one thing changed."""
    return SiaPolicy(
        cluster_from(setting.cluster),
        model,
        objective=replace(objective_of(setting.semantics), power=power),
        semantics=setting.semantics,
        profiles=profiles_of(setting),
        time_sharing=sharing,
    )


def profiles_of(setting: Setting) -> Mapping[str, ProfiledApplication] | None:
    """The measured profiles that come with the workload, where the semantics have jobs run by them."""
    found = find_profiles(setting.workload) if setting.semantics.training == "agent" else None
    return read_profiles(found) if found else None


def run_name(setting: Setting, what: str = "") -> str:
    """The name under which a run is kept; `what` says what was changed that the setting does not tell."""
    of = f"{setting.workload.parent.name}/{setting.workload.stem}, {setting.jobs or 'all'} jobs"
    round_s = "" if setting.round_s is None else f", {setting.round_s:g} s rounds"
    return f"{setting.policy} on {setting.cluster}, {of}, {setting.semantics.name}{round_s}{what and ', ' + what}"


def figures_of(setting: Setting, policy: SchedulingPolicy | None = None) -> dict[str, Any]:
    """The summary of a run, its jobs' ``jct_s``, and ``ftf``: worst rho and unfair fraction in both ways (B40, B41).

    A job alone tunes its batch as it does here: where the workload's batch caps the policy's estimate only, it does not
    cap the job.
    """
    result, jobs = simulate(setting, policy), jobs_of(setting)
    if setting.semantics.batch_limit == "policy":
        jobs = [replace(job, max_batch_size=None) for job in jobs]
    alone = GoodputAloneTimes(GoodputModel(configurations_of(cluster_from(setting.cluster))))
    both = finish_time_fairness(result, jobs, alone)
    fairness = {name: {"worst": r.worst, "unfair_fraction": r.unfair_fraction} for name, r in both.items()}
    jct_s = result.jobs["jct_s"].astype(float).tolist()
    return {**result.summary(), "ftf": fairness, "jct_s": jct_s}


class RunStore:
    """Figures of runs in a file, a JSON object a line, so that a table that was interrupted goes on where it stopped.

    Parameters
    ----------
    path : str or Path, optional
        Without one nothing is kept.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._path = Path(path) if path else None
        self._known: dict[str, dict[str, Any]] = {}
        if self._path is not None and self._path.exists():
            for line in self._path.read_text().splitlines():
                found = json.loads(line)
                self._known[found["run"]] = found["figures"]

    def figures(self, run: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The figures of a run by its name: those in the file, or made and written to it."""
        if run not in self._known:
            self.keep(run, make())
        return self._known[run]

    def __contains__(self, run: str) -> bool:
        return run in self._known

    def keep(self, run: str, figures: dict[str, Any]) -> None:
        """Write the figures of a run down."""
        self._known[run] = figures
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(json.dumps({"run": run, "figures": figures}) + "\n")
        jct_h = figures.get("avg_jct_h")
        told = "done" if jct_h is None else f"JCT {jct_h:.3f} h"
        print(f"{run}: {told}", file=sys.stderr, flush=True)


def relative(measured: float, reference: float) -> float:
    """How far a figure is from its reference, as a share of it."""
    return (measured - reference) / reference


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; numbers to four digits."""
    table = Table(title=title)
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=max(100, 26 * len(columns))).print(table)


def mean(rows: Sequence[Mapping[str, float]], name: str) -> float:
    """Mean of one figure over rows."""
    return sum(row[name] for row in rows) / len(rows)
