"""What a run needs before its first round: cluster, jobs, goodput model and policy, as the options say."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from copter.errors import CopterError
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.output import InputError, complain
from copter_frontends.clusters import cluster_from, scaled_cluster
from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.measured import find_profiles, read_profiles
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.hare.applications import HARE_APPLICATIONS
from copter_frontends.hare.task_rates import TaskGoodput
from copter_frontends.hare.testbed import testbed_workload
from copter_frontends.registry.policies import POLICIES
from copter_frontends.report.extras import check_extras
from copter_frontends.semantics import PRESETS, Semantics
from copter_frontends.simulator import Simulation, read_events
from copter_frontends.simulator.saved_run import require_savable
from copter_frontends.simulator.tuned_jobs import tuned_jobs
from copter_frontends.simulator.workload import Workload, make_workload
from copter_frontends.vocabulary import Cluster, configurations_of


def prepare(asked: SimulateOptions) -> tuple[Simulation, Workload]:
    """Make all that a run needs; what is wrong here is bad input."""
    try:
        prepare_outputs(asked)
        cluster = cluster_of(asked)
        model = goodput_model_of(asked, cluster)
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


def goodput_model_of(asked: SimulateOptions, cluster: Cluster) -> GoodputModel:
    """The model of the jobs that are simulated, in all that the cluster can give them."""
    if asked.on_hares_testbed:
        return TaskGoodput(configurations_of(cluster), HARE_APPLICATIONS)
    return GoodputModel(configurations_of(cluster))


def _workload(asked: SimulateOptions, cluster: Cluster, semantics: Semantics) -> Workload:
    """The jobs: Hare's own on its testbed, else as the options say."""
    if asked.on_hares_testbed:
        return testbed_workload(asked.jobs, asked.seed)

    hours, cap = max(asked.hours or 24.0, 24.0), semantics.batch_limit == "policy"
    return make_workload(
        asked.trace, asked.jobs, hours, cluster.gpus, asked.seed, _work(asked.work), cap, asked.throughputs
    )


def _tuned(
    asked: SimulateOptions, workload: Workload, cluster: Cluster, profiles: Mapping[str, ProfiledApplication] | None
) -> Workload:
    """The workload with the GPUs and batches that jobs are tuned to."""
    jobs = tuned_jobs(workload.jobs, cluster, asked.tuned, seed=asked.seed, profiles=profiles)
    return replace(workload, jobs=jobs)


def _profiles(asked: SimulateOptions) -> Mapping[str, ProfiledApplication] | None:
    """The measured profiles where the semantics use them and they are there; None: fitted constants do."""
    if asked.profiles is not None:
        return read_profiles(asked.profiles)
    if PRESETS[asked.semantics].training == "exact":
        return None
    result = find_profiles(*([asked.trace] if asked.trace else []))
    if result is None:
        complain("no measured profiles found (COPTER_DATA, --profiles): jobs train by the fitted constants")
        return None
    return read_profiles(result)


def _work(word: str) -> Literal["trace", "full"]:
    return "full" if word == "full" else "trace"


def cluster_of(asked: SimulateOptions) -> Cluster:
    """The cluster that `--gpus` or `--cluster` names."""
    return scaled_cluster(asked.gpus) if asked.gpus is not None else cluster_from(asked.cluster or "")


def prepare_outputs(asked: SimulateOptions) -> None:
    """Make sure that the results can be written where they are to go; InputError where they cannot."""
    if asked.out is not None:
        prepare_directory(asked.out)
    if asked.save is not None:
        try:
            require_savable(asked.save)
        except CopterError as error:
            raise InputError(f"--save {error}") from error


def prepare_directory(out: str) -> None:
    """Make the directory of a report; InputError where that cannot be, or where no file can be written to it."""
    check_extras()
    try:
        os.makedirs(out, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be made: {error.strerror or error}") from error
    try:
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written to: {error.strerror or error}") from error
