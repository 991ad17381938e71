"""``copter simulate``."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import click

from copter_frontends.cli.output import FiniteRange, InputError, complain, print_json
from copter_frontends.policy_names import BASELINE_NAMES, DEADLINE_NAMES, HARE_SCHEMES

if TYPE_CHECKING:
    from copter_frontends.goodput import GoodputModel
    from copter_frontends.goodput.profiled import ProfiledApplication
    from copter_frontends.semantics import Semantics
    from copter_frontends.simulator import RoundRecord, Simulation, SimulationResult
    from copter_frontends.simulator.workload import Workload
    from copter_frontends.vocabulary import Cluster, SchedulingPolicy

POLICY_NAMES = ("sia", "hadar", "hops", "hare", *HARE_SCHEMES, "chronus", "fifo", *BASELINE_NAMES)
"""The keys of :data:`copter_frontends.simulator.policies.POLICIES`, here so that ``--help`` imports nothing."""

SEMANTICS_NAMES = ("default", "sia-artifact")
"""The keys of :data:`copter_frontends.semantics.PRESETS`."""

WARMUP_HOURS = 9  # of a sampled day: then its busiest hours begin
"""Rounds simulated first, by default, when ``--rounds`` is given."""

_COUNT = click.IntRange(min=1)
_POSITIVE = FiniteRange(min=0, min_open=True)
_ROUND = FiniteRange(min=1.0, max=1e7)


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """The options of ``copter simulate``, as they were given."""

    policy: str
    gpus: int | None
    cluster: str | None
    hours: float | None
    rounds: int | None
    trace: str | None
    work: str
    jobs: int | None
    seed: int
    mode: str
    round_s: float | None
    semantics: str
    profiles: str | None
    warmup_rounds: int | None
    compare: str | None
    compare_every: int
    compare_time_limit: float
    out: str | None
    as_json: bool
    threads: int | None
    throughputs: str | None = None
    tuned: str | None = None
    events: str | None = None
    save: str | None = None
    save_every: int | None = None
    deadlines: bool = False  # whether deadlines are drawn although the policy has no use for them

    def warmup(self, round_s: float, sampled: bool) -> int:
        """Rounds simulated first: as given, or up to the day's busy hours where a day is sampled for some rounds."""
        if self.warmup_rounds is not None:
            return self.warmup_rounds
        return round(WARMUP_HOURS * 3600 / round_s) if self.rounds is not None and sampled else 0

    @property
    def on_hares_testbed(self) -> bool:
        """Whether the jobs are those of Hare's testbed: on its GPUs, without a trace, trained as its models say."""
        return self.cluster == "hare-15" and self.trace is None and self.semantics == "default"

    def check(self) -> None:
        """UsageError for options that do not go together."""
        if (self.gpus is None) == (self.cluster is None):
            raise click.UsageError("give either --gpus N or --cluster NAME|FILE.yaml")
        if self.compare and not _has_lp(self.policy):
            raise click.UsageError(f"--compare {self.compare}: the policy {self.policy!r} solves no linear programme")
        if self.compare and self.save:
            raise click.UsageError("--compare and --save do not go together: the other solver's state cannot be saved")
        if self.save_every is not None and self.save is None:
            raise click.UsageError("--save-every says how often --save FILE is written; give --save too")


@click.command()
@click.argument("policy", type=click.Choice(POLICY_NAMES))
@click.option("--gpus", type=int, help="Size of a cluster of seven GPU types, 8 GPUs a node.")
@click.option("--cluster", help="A paper's cluster (sia-het, hadar-60, ...; hare-15 has its own jobs) or a YAML file.")
@click.option("--hours", type=_POSITIVE, help="Simulated hours.")
@click.option("--rounds", type=_COUNT, help="Simulated rounds. Without hours or rounds: until the last job ends.")
@click.option("--trace", type=click.Path(), help="Trace file; without one the jobs are made up.")
@click.option(
    "--work",
    type=click.Choice(["trace", "full"]),
    default="trace",
    show_default=True,
    help="A sampled job's work: as long as the trace says, or its model's full training run.",
)
@click.option("--jobs", type=_COUNT, help="Jobs in a sampled day  [default: 4 per GPU; 40 of Hare's own]")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--mode",
    type=click.Choice(["full", "capped"]),
    default="full",
    show_default=True,
    help="Configurations: all sizes, or up to 64 GPUs.",
)
@click.option(
    "--semantics",
    type=click.Choice(SEMANTICS_NAMES),
    default="default",
    show_default=True,
    help="Conventions: copter's own, or those of Sia's public simulator.",
)
@click.option("--profiles", type=click.Path(), help="Folder of measured profiles  [default: found beside the data]")
@click.option(
    "--throughputs",
    type=click.Path(),
    help="File of steps per second, for Gavel's traces  [default: found beside the data]",
)
@click.option("--tuned", metavar="TYPE", help="Tune rigid policies' jobs on this GPU type, to 64 GPUs (TunedJobs).")
@click.option("--round-s", type=_ROUND, help="Seconds between plans  [default: the policy's paper's]")
@click.option(
    "--warmup-rounds",
    type=click.IntRange(min=0),
    help=f"Rounds simulated first and not measured  [default: {WARMUP_HOURS} h of a sampled day with --rounds, else 0]",
)
@click.option("--events", type=click.Path(), help="YAML file of node failures, repairs and changes of capacity.")
@click.option("--compare", type=click.Choice(["highs"]), help="Solve the same programmes with another solver too.")
@click.option("--compare-every", type=_COUNT, default=10, show_default=True, help="Rounds between comparisons.")
@click.option("--compare-time-limit", type=_POSITIVE, default=120.0, show_default=True, help="Seconds for each.")
@click.option("--out", type=click.Path(file_okay=False), help="Directory for Parquet files, plots and report.html.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the last line of stdout, and no table.")
@click.option("--threads", type=_COUNT, help="Threads of the solver  [default: all]")
@click.option("--save", type=click.Path(dir_okay=False), help="Save the run here, to go on with `copter resume`.")
@click.option(
    "--save-every", type=_COUNT, metavar="ROUNDS", help="Save every so many rounds, too  [default: at the end]"
)
def simulate(**options: Any) -> None:
    """Simulate POLICY on a cluster, round by round."""
    asked = SimulateOptions(**options)
    asked.check()
    show(asked, run_simulation(asked))


def run_simulation(asked: SimulateOptions) -> dict[str, Any]:
    """Simulate, write what was asked for, and return the summary."""
    simulation, workload = _prepare(asked)
    for skipped in workload.skipped_lines[:1]:
        count = len(workload.skipped_lines)
        complain(f"{asked.trace}: skipped {count} lines; the first: line {skipped.line_number}: {skipped.reason}")
    return carry_on(asked, simulation, workload)


def carry_on(asked: SimulateOptions, simulation: Simulation, workload: Workload) -> dict[str, Any]:
    """Run a simulation, new or resumed, to where it is to end; save and write what was asked for."""
    from copter_frontends.cli.saving import Saver
    from copter_frontends.report.progress import LiveProgress

    done, warmup = len(simulation.records), asked.warmup(simulation.round_s, workload.sampled)
    comparison = _make_comparison(asked, simulation.policy, warmup)
    total = _rounds(asked, simulation.round_s, warmup)
    left = None if total is None else max(total - done, 0)
    saver = Saver(simulation, asked, workload)
    with LiveProgress(left, simulation.jobs_left) as progress:

        def on_round(record: RoundRecord) -> None:
            progress(record)
            saver.after_round()

        warmup_left = min(max(warmup - done, 0), left if left is not None else warmup)
        result = simulation.run(None if left is None else left - warmup_left, None, on_round, warmup_left)
    saver.at_end()
    if result.skipped:
        first = result.skipped[0]
        complain(f"skipped {len(result.skipped)} jobs; the first: {first.id}: {first.reason}")
    summary = summary_of(asked, result, workload, comparison)
    if asked.out is not None:
        _write(asked, result, summary, workload, comparison)
    return summary


def summary_of(
    asked: SimulateOptions, result: SimulationResult, workload: Workload, comparison: Any | None
) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    figures = result.summary()
    return {
        "policy": asked.policy,
        "gpus": result.gpus,
        **figures,
        **_fairness(asked, result, workload),
        **_weighted(result, workload),
        **_deadlines(asked, result, workload),
        "highs": comparison.summary() if comparison is not None else None,
        "seed": asked.seed,
        "mode": asked.mode,
        "jobs_submitted": len(workload.jobs),
        "jobs_skipped": len(result.skipped),
        "trace_lines_skipped": len(workload.skipped_lines),
    }


def _fairness(asked: SimulateOptions, result: SimulationResult, workload: Workload) -> dict[str, Any]:
    """Finish-time fairness, latency ratio and fragmentation, against jobs alone as the goodput model has them."""
    from copter_frontends.simulator.alone import GoodputAloneTimes
    from copter_frontends.simulator.fairness import fairness_summary

    return fairness_summary(result, workload.jobs, GoodputAloneTimes(_goodput_model(asked, _cluster(asked))))


def _weighted(result: SimulationResult, workload: Workload) -> dict[str, float]:
    """Sum of w JCT over the jobs that completed, hours, where the workload has weights: Hare's objective."""
    if not workload.weights:
        return {}
    pairs = zip(result.jobs["id"], result.jobs["jct_s"], strict=True)
    done = ((str(job_id), float(jct_s)) for job_id, jct_s in pairs)
    total = sum(workload.weights[job_id] * jct_s for job_id, jct_s in done if math.isfinite(jct_s))
    return {"weighted_jct_h": total / 3600.0}


def _deadlines(asked: SimulateOptions, result: SimulationResult, workload: Workload) -> dict[str, Any]:
    """How often the deadlines that were drawn are missed, where there are any."""
    if not asked.deadlines and asked.policy not in DEADLINE_NAMES:
        return {}
    from copter_frontends.baselines.throughputs import GoodputThroughputs
    from copter_frontends.chronus.drawn_rewards import DrawnRewards, deadline_summary
    from copter_frontends.simulator.policies import POLICIES

    cluster = _cluster(asked)
    rewards = DrawnRewards(cluster, GoodputThroughputs(cluster, _goodput_model(asked, cluster)))
    return deadline_summary(result, POLICIES["chronus"].take(workload.jobs), rewards)


def _prepare(asked: SimulateOptions) -> tuple[Simulation, Workload]:
    """Make all that a run needs; what is wrong here is bad input."""
    from copter.errors import CopterError

    try:
        from copter_frontends.semantics import PRESETS
        from copter_frontends.simulator import Simulation, read_events
        from copter_frontends.simulator.policies import POLICIES

        if asked.out is not None:
            prepare_directory(asked.out)
        cluster = _cluster(asked)
        model = _goodput_model(asked, cluster)
        model.row(next(iter(model.applications)), 0.0)  # compiles its kernel before the clock runs
        entry = POLICIES[asked.policy]
        semantics, profiles = entry.under(PRESETS[asked.semantics]), _profiles(asked)
        workload = _workload(asked, cluster, semantics)
        if asked.tuned is not None and entry.rigid:
            workload = _tuned(asked, workload, cluster, profiles)
        policy = entry.build(cluster, model, asked.mode, asked.threads, semantics, profiles, workload.weights)
        policy.round_s = asked.round_s or workload.round_s or policy.round_s
        simulation = Simulation(
            cluster,
            entry.take(workload.jobs),
            policy,
            model,
            policy.round_s,
            asked.seed,
            semantics=semantics,
            profiles=profiles,
            events=read_events(asked.events, cluster) if asked.events else (),
        )
        return simulation, workload
    except CopterError as error:
        raise InputError(str(error)) from error


def _goodput_model(asked: SimulateOptions, cluster: Cluster) -> GoodputModel:
    """The model of the jobs that are simulated, in all that the cluster can give them."""
    from copter_frontends.goodput import GoodputModel
    from copter_frontends.vocabulary import configurations_of

    if asked.on_hares_testbed:
        from copter_frontends.hare.applications import HARE_APPLICATIONS

        return GoodputModel(configurations_of(cluster), HARE_APPLICATIONS)
    return GoodputModel(configurations_of(cluster))


def _workload(asked: SimulateOptions, cluster: Cluster, semantics: Semantics) -> Workload:
    """The jobs: Hare's own on its testbed, else as the options say."""
    if asked.on_hares_testbed:
        from copter_frontends.hare.testbed import testbed_workload

        return testbed_workload(asked.jobs, asked.seed)
    from copter_frontends.simulator.workload import make_workload

    hours, cap = max(asked.hours or 24.0, 24.0), semantics.batch_limit == "policy"
    return make_workload(
        asked.trace, asked.jobs, hours, cluster.gpus, asked.seed, _work(asked.work), cap, asked.throughputs
    )


def _tuned(
    asked: SimulateOptions, workload: Workload, cluster: Cluster, profiles: Mapping[str, ProfiledApplication] | None
) -> Workload:
    """The workload with the GPUs and batches that jobs are tuned to."""
    from copter_frontends.simulator.tuned_jobs import tuned_jobs

    jobs = tuned_jobs(workload.jobs, cluster, asked.tuned, seed=asked.seed, profiles=profiles)
    return replace(workload, jobs=jobs)


def _profiles(asked: SimulateOptions) -> Mapping[str, ProfiledApplication] | None:
    """The measured profiles where the semantics use them and they are there; None: fitted constants do."""
    from copter_frontends.goodput.measured import find_profiles, read_profiles
    from copter_frontends.semantics import PRESETS

    if asked.profiles is not None:
        return read_profiles(asked.profiles)
    if PRESETS[asked.semantics].training == "exact":
        return None
    found = find_profiles(*([asked.trace] if asked.trace else []))
    if found is None:
        complain("no measured profiles found (COPTER_DATA, --profiles): jobs train by the fitted constants")
        return None
    return read_profiles(found)


def _work(word: str) -> Literal["trace", "full"]:
    return "full" if word == "full" else "trace"


def _cluster(asked: SimulateOptions) -> Cluster:
    from copter_frontends.clusters import cluster_from, scaled_cluster

    return scaled_cluster(asked.gpus) if asked.gpus is not None else cluster_from(asked.cluster or "")


def _rounds(asked: SimulateOptions, round_s: float, warmup: int) -> int | None:
    """Rounds that will be simulated, the warm-up included; None if the run ends with its last job."""
    limits = [asked.rounds] if asked.rounds is not None else []
    limits += [math.ceil(asked.hours * 3600 / round_s - 1e-9)] if asked.hours is not None else []
    return min(limits) + warmup if limits else None


def prepare_directory(out: str) -> None:
    """Make the directory of a report; InputError where that cannot be."""
    from copter_frontends.report.extras import check_extras

    check_extras()
    try:
        os.makedirs(out, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be made: {error.strerror or error}") from error
    if not os.access(out, os.W_OK):
        raise InputError(f"--out {out}: cannot be written to")


def _make_comparison(asked: SimulateOptions, policy: SchedulingPolicy, warmup: int) -> Any | None:
    if not asked.compare:
        return None
    from importlib import import_module

    try:
        module: Any = import_module("copter_frontends.sia.comparison")
        return module.HighsComparison(policy, asked.compare_every, asked.compare_time_limit, warmup)
    except ImportError as error:
        raise InputError(f"--compare highs: {error}; install copter-lp[highs]") from error


def _write(
    asked: SimulateOptions, result: SimulationResult, summary: Mapping[str, Any], workload: Workload, comparison: Any
) -> None:
    from copter_frontends.report.writer import write_report

    capacity = result.rounds[-1].gpus_capacity if result.rounds else {}
    facts = {
        "Command": shlex.join(["copter", *sys.argv[1:]]),
        "Cluster": asked.cluster or f"{result.gpus:,} GPUs of the scaled cluster",
        "GPUs by type": ", ".join(f"{count:,} {kind}" for kind, count in capacity.items()),
        "Jobs": workload.source,
        "Seed": str(asked.seed),
        "Configurations": asked.mode,
        "Round": f"{result.round_s:g} s",
    }
    rows = comparison.table() if comparison is not None else []
    page = write_report(result, asked.out or ".", summary, facts=facts, comparison=rows)
    print(f"report: {page}", file=sys.stderr)


def show(asked: SimulateOptions, summary: Mapping[str, Any]) -> None:
    """The summary, as a table or as JSON."""
    if asked.as_json:
        print_json(summary)
        return
    from rich.console import Console

    from copter_frontends.report.table import print_summary

    print_summary(summary, Console())


def _has_lp(policy: str) -> bool:
    from copter_frontends.simulator.policies import POLICIES

    return POLICIES[policy].has_lp
