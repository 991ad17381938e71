"""Thesis Figures 3.3, 3.5, 3.6, 3.10 and 3.12: the paper's claim and what is measured, with the spread of workloads.

    python benchmarks/tables/sia_figures.py 3.3 [--policies sia,pollux,gavel] [--workloads 1] [--jobs N] [--keep FILE]

3.3: JCTs on the 44-GPU testbed as the simulator predicts them, a workload's first 30 jobs in 3 hours. 3.5: GPU hours
of a job by application and GPU type, over the least of the policies. 3.6: average JCT against jobs an hour. 3.10:
seconds of a plan against the cluster's size. 3.12: Sia with a share of the jobs strong-scaling only, or rigid. A row is
the mean over workloads, with the least and the most.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import loads
import numpy as np
from figure_command import Figures, end_figure, figure_options, names_of, spread, whole
from runs import RunStore, Setting, data_directory, jobs_of, profiles_of, run_name, show, sia_policy, simulate
from sweeps import limited

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.simulator import Simulation, SimulationResult
from copter_frontends.vocabulary import Cluster, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import NAMED_CLUSTERS
from copter_frontends.vocabulary.semantics import PRESETS

PAPER = {
    "3.3": "average JCT of Sia 50% below Gavel's, 35 to 50% below Pollux's; the simulator within 5% of the testbed",
    "3.5": "Sia has BERT almost only on a100 and DeepSpeech2 on rtx; Gavel rotates over types; Pollux does not care",
    "3.6": "Sia's average JCT is the least at every rate, and rises the slowest",
    "3.10": "64 GPUs: Sia 96 ms (p95 426), Pollux 2.2 s (4.8), Gavel 13 ms (28); 2,048 GPUs: Sia 1 s, Pollux 100 s",
    "3.12": "all strong-scaling 1.15 times the JCT, all rigid 2.6 times",
}
TESTBED_JOBS, TESTBED_S = 30, 10_800.0
DECILES = (10, 25, 50, 75, 90, 99)
QUARTILES = (25, 50, 75, 95)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def workloads(trace: str, count: int) -> list[Path]:
    """The first so many workloads of a trace."""
    found = sorted((data_directory() / "traces" / "sia" / trace).glob("workload-*.csv"))[:count]
    if not found:
        sys.exit(f"no workloads of {trace!r} in {data_directory()}")
    return found


def told(result: SimulationResult) -> Figures:
    """What the figures need of a run."""
    summary = result.summary()
    jct_s = result.jobs["jct_s"].astype(float)
    return {
        "avg_jct_h": summary["avg_jct_h"],
        "makespan_h": summary["makespan_h"],
        "percentiles_h": np.nanpercentile(jct_s, DECILES).round(2).tolist() if np.isfinite(jct_s).any() else [],
        "plan_s": [record.round_s for record in result.rounds if record.active_jobs],
    }


def testbed(jobs: list[Job]) -> list[Job]:
    """The first jobs, submitted within the testbed's three hours."""
    first = sorted(jobs, key=lambda job: job.submit_s)[:TESTBED_JOBS]
    last = max(job.submit_s for job in first) or 1.0
    return [replace(job, submit_s=job.submit_s * min(1.0, TESTBED_S / last)) for job in first]


def run(store: RunStore, setting: Setting, what: str = "") -> Figures:
    """One run, kept."""
    return store.figures(run_name(setting, what), lambda: told(simulate(setting)))


def figure_3_3(asked: argparse.Namespace, store: RunStore) -> Figures:
    """JCTs on the testbed."""
    rows, found = [], {}
    for policy in asked.policies:
        settings = [
            Setting(policy, "sia-physical", path, jobs=asked.jobs, change=testbed)
            for path in workloads("philly", asked.workloads)
        ]
        runs = [run(store, setting, "testbed") for setting in settings]
        found[policy] = [each["avg_jct_h"] for each in runs]
        deciles = np.mean([each["percentiles_h"] for each in runs], axis=0) / 3600.0
        rows.append([policy, spread(found[policy]), *(f"{value:.3g}" for value in deciles)])
    show("Figure 3.3, 44 GPUs: JCT h", ["policy", "average", *(f"p{d}" for d in DECILES)], rows)
    return found


def hours_by_type(setting: Setting) -> Figures:
    """GPU hours a job, application / GPU type."""
    result, jobs = simulate(setting), {job.id: job.application for job in jobs_of(setting)}
    count: dict[str, int] = defaultdict(int)
    for application in jobs.values():
        count[application] += 1
    hours: dict[str, float] = defaultdict(float)
    for span in result.spans:
        name = jobs[span.job]
        hours[f"{name}/{span.gpu_type}"] += span.gpus * (span.end_s - span.begin_s) / 3600.0 / count[name]
    return dict(hours)


def figure_3_5(asked: argparse.Namespace, store: RunStore) -> Figures:
    """GPU hours by application and type."""
    found: dict[str, list[dict[str, float]]] = {}
    for policy in asked.policies:
        settings = [Setting(policy, "sia-het", path, jobs=asked.jobs) for path in workloads("saturn", asked.workloads)]
        found[policy] = [
            store.figures(run_name(each, "GPU hours by type"), partial(hours_by_type, each)) for each in settings
        ]
    kinds = list(NAMED_CLUSTERS["sia-het"])
    rows = hours_and_shares(found, kinds)
    show("Figure 3.5: GPU hours over the least, and where", ["application", "policy", "hours", *kinds], rows)
    return found


def hours_and_shares(found: dict[str, list[dict[str, float]]], kinds: list[str]) -> list[list[str]]:
    """Of each application and policy: hours over those of the least policy, and on which types, over the workloads."""
    rows = []
    for name in sorted({key.split("/")[0] for runs in found.values() for hours in runs for key in hours}):
        sums = {
            policy: [sum(hours.get(f"{name}/{kind}", 0.0) for kind in kinds) for hours in runs]
            for policy, runs in found.items()
        }
        least = min((sum(each) for each in sums.values() if sum(each)), default=1.0)
        for policy, runs in found.items():
            count = len(runs)
            ran = [(hours, total) for hours, total in zip(runs, sums[policy], strict=True) if total]
            shares = [[100.0 * hours.get(f"{name}/{kind}", 0.0) / total for hours, total in ran] for kind in kinds]
            over = [total * count / least for total in sums[policy]]
            rows.append([name, policy, spread(over), *(spread(each, "%") if each else "–" for each in shares)])
    return rows


def figure_3_6(asked: argparse.Namespace, store: RunStore) -> Figures:
    """JCT against the rate of arrivals."""
    rates = [int(rate) for rate in asked.points.split(",")] if asked.points else [10, 20, 30]
    rows, found = [], {}
    for rate in rates:
        cells = []
        for policy in asked.policies:
            paths = workloads(f"scale/rate_{rate}", asked.workloads)
            settings = [Setting(policy, "sia-het", path, PRESETS[asked.semantics], jobs=asked.jobs) for path in paths]
            runs = [run(store, setting, f"rate {rate}") for setting in settings]
            found[f"{policy} {rate}"] = [each["avg_jct_h"] for each in runs]
            cells.append(spread(found[f"{policy} {rate}"]))
        rows.append([str(rate), *cells])
    show("Figure 3.6: average JCT h", ["jobs an hour", *asked.policies], rows)
    return found


def plan_seconds(policy: str, times: int, path: Path, hours: float) -> Figures:
    """Seconds of each plan on a cluster that is so many times sia-het."""
    semantics = PRESETS["sia-artifact"]
    cluster = Cluster.of({kind: (times * n, size) for kind, (n, size) in NAMED_CLUSTERS["sia-het"].items()})
    setting, model = Setting(policy, "sia-het", path), GoodputModel(configurations_of(cluster))
    profiles, own = profiles_of(setting), POLICIES[policy].under(semantics)
    made = POLICIES[policy].build(cluster, model, "full", None, own, profiles)
    jobs = jobs_of(setting)
    loads.note(cluster, jobs, model)
    simulation = Simulation(cluster, jobs, made, model, made.round_s, semantics=own, profiles=profiles)
    return told(simulation.run(hours=hours))


def plan_quartiles(runs: Sequence[Sequence[float]]) -> list[list[float]]:
    """Of each of four percentiles every run's; a run that ended before its first job came has none."""
    made = [np.percentile(seconds, QUARTILES) for seconds in runs if len(seconds)]
    return [[float(each[at]) for each in made] for at in range(len(QUARTILES))]


def figure_3_10(asked: argparse.Namespace, store: RunStore) -> Figures:
    """Seconds of a plan against the cluster's size."""
    scales = [int(times) for times in asked.points.split(",")] if asked.points else [1, 2, 4]
    rows, found = [], {}
    for times in scales:
        trace = "saturn" if times == 1 else f"scale/scale_{times}x"
        for policy in asked.policies:
            runs = [
                store.figures(
                    f"{policy} on {times} times sia-het, {trace}/{path.stem}, {asked.hours:g} h",
                    partial(plan_seconds, policy, times, path, asked.hours),
                )
                for path in workloads(trace, asked.workloads)
            ]
            cells = plan_quartiles([each["plan_s"] for each in runs])
            found[f"{policy} {64 * times}"] = cells
            rows.append([f"{64 * times:,}", policy, *(spread(values) if values else "no job yet" for values in cells)])
    show("Figure 3.10: seconds of a plan", ["GPUs", "policy", "p25", "median", "p75", "p95"], rows)
    return found


def some(kind: str, share: float) -> Callable[[list[Job]], list[Job]] | None:
    """Restrict a share of the jobs, the same ones for every kind."""
    change = limited(kind)
    if change is None or share == 0.0:
        return None

    def changed(jobs: list[Job]) -> list[Job]:
        chosen = np.random.default_rng(0).permutation(len(jobs)) < round(share * len(jobs))
        return [new if pick else old for old, new, pick in zip(jobs, change(jobs), chosen, strict=True)]

    return changed


def figure_3_12(asked: argparse.Namespace, store: RunStore) -> Figures:
    """JCT and makespan against the share of jobs that adapt less."""
    shares = [float(share) for share in asked.points.split(",")] if asked.points else list(SHARES)
    rows, found = [], {}
    for kind in ("strong scaling", "rigid"):
        base: list[Figures] = []
        for share in shares:
            settings = [
                Setting("sia", "sia-het", path, jobs=asked.jobs, change=some(kind, share))
                for path in workloads("philly", asked.workloads)
            ]
            what = "" if share == 0.0 else f"{100 * share:g}% {kind}"
            runs = [
                store.figures(run_name(s, what or "all adaptive"), lambda s=s: told(simulate(s, sia_policy(s))))  # type: ignore[misc]
                for s in settings
            ]
            base = base or runs
            ratios = {
                figure: [mine[figure] / first[figure] for mine, first in zip(runs, base, strict=True)]
                for figure in ("avg_jct_h", "makespan_h")
            }
            found[f"{kind} {share}"] = ratios
            rows.append([kind, f"{100 * share:g}%", *(spread(values) for values in ratios.values())])
    show("Figure 3.12: over all jobs adaptive", ["jobs are", "share", "JCT", "makespan"], rows)
    return found


FIGURES: dict[str, Callable[[argparse.Namespace, RunStore], Figures]] = {
    "3.3": figure_3_3,
    "3.5": figure_3_5,
    "3.6": figure_3_6,
    "3.10": figure_3_10,
    "3.12": figure_3_12,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a figure and print it."""
    command = figure_options(__doc__, FIGURES, "workloads")
    command.add_argument("--policies", type=names_of(POLICIES), default="sia,gavel", help="(default sia,gavel)")
    command.add_argument("--jobs", type=whole, help="only the first so many jobs of each")
    command.add_argument("--points", help="of 3.6 jobs an hour, of 3.10 times 64 GPUs, of 3.12 shares; comma-separated")
    command.add_argument("--hours", type=float, default=0.5, help="of 3.10: simulated (default 0.5)")
    command.add_argument("--semantics", choices=list(PRESETS), default="sia-artifact", help="of 3.6")
    command.add_argument("--keep", metavar="FILE", help="keep the figures of each run here, and do not run it again")
    asked = command.parse_args(arguments)
    end_figure(asked, FIGURES[asked.figure](asked, RunStore(asked.keep)), PAPER)


if __name__ == "__main__":
    main()
