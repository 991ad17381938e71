"""Preparation of a run from its options: cluster, jobs, goodput model and policy."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from copter import Settings
from copter.errors import CopterError
from copter.storage.files import require_writable
from copter_frontends.cli.options import TESTBEDS, SimulateOptions
from copter_frontends.cli.output import InputError, complain
from copter_frontends.cli.saving import RunInputs
from copter_frontends.elsewhere import elsewhere
from copter_frontends.goodput import ALL_APPLICATIONS, GoodputModel
from copter_frontends.goodput.application_files import read_applications
from copter_frontends.goodput.measured import find_profiles, read_profiles
from copter_frontends.goodput.profiled import ProfiledApplication, fitted_profiles
from copter_frontends.policies.hare.task_rates import TaskGoodput
from copter_frontends.policies.hare.task_training import TasksGoodput
from copter_frontends.policies.hops import OfferRules
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policies.sia import TimeSharing
from copter_frontends.policies.sia.objective import objective_of
from copter_frontends.policy_kit import TrainingThroughputs
from copter_frontends.policy_kit.ageing import Ageing
from copter_frontends.policy_kit.deadlines import DeadlineOptions, DrawnRewards, Rewards, StepReward
from copter_frontends.policy_kit.offered_load import offered_load
from copter_frontends.report.extras import check_extras
from copter_frontends.simulator import Simulation, read_events
from copter_frontends.simulator.saved_run import require_savable
from copter_frontends.simulator.tuned_jobs import tuned_jobs
from copter_frontends.simulator.workload import Workload, make_workload
from copter_frontends.vocabulary import Cluster, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from, scaled_cluster
from copter_frontends.vocabulary.semantics import PRESETS, Semantics
from copter_frontends.what_if.change import Change
from copter_frontends.what_if.run import change_run

LOAD_SAMPLE = 20_000
"""Jobs of the first sample from which ``--load`` takes how many jobs are that load."""

LOAD_SAMPLES = 16
LOAD_TOLERANCE = 0.01
"""Samples that ``--load`` draws at most, and the relative distance at which it stops."""


def read_inputs(asked: SimulateOptions) -> RunInputs:
    """Read the cluster and the applications, once for the whole run; raises InputError for anything wrong."""
    try:
        prepare_outputs(asked)
        cluster = cluster_of(asked)
        return RunInputs(cluster, goodput_model_of(asked, cluster), profiles_folder(asked))
    except CopterError as error:
        raise InputError(str(error)) from error


def prepare(
    asked: SimulateOptions, change: Change | None = None, inputs: RunInputs | None = None
) -> tuple[Simulation, Workload]:
    """Make everything that a run needs, from `inputs` if they were read before.

    A what-if change applies from the run's start. Raises InputError for anything wrong.
    """
    inputs = inputs or read_inputs(asked)
    if asked.load is not None:
        return prepare(replace(asked, load=None, jobs=jobs_of_load(asked, asked.load, inputs)), change, inputs)
    try:
        cluster = inputs.cluster.copy()
        if asked.gpus not in (None, cluster.gpus):
            complain(f"--gpus {asked.gpus}: a cluster of whole nodes, {cluster.gpus} GPUs")
        model = inputs.model
        model.row(next(iter(model.applications)), 0.0)  # compiles the model's kernel before rounds are timed
        entry = POLICIES[asked.policy]
        if entry.by_tasks and not isinstance(model, TaskGoodput):
            model = TasksGoodput(model, cluster)
        semantics, profiles = entry.under(PRESETS[asked.semantics]), _profiles(asked, inputs)
        if asked.growth is not None:
            semantics = replace(semantics, growth=asked.growth)
        if asked.deja_vu:
            semantics = replace(semantics, deja_vu=True)
        if asked.shim is not None:
            semantics = replace(semantics, shim=asked.shim)
        workload = _kept_jobs(asked, _workload(asked, cluster, semantics, model))
        if change is not None:
            workload = replace(workload, jobs=change.jobs(workload.jobs))
        if asked.tuned is not None and entry.rigid:
            workload = _tuned(asked, workload, cluster, profiles)
        settings = Settings(threads=asked.threads or 0, method=asked.method)
        policy = entry.build(
            *(cluster, model, asked.mode, settings, semantics, profiles, workload.weights, _own(asked)),
            DeadlineOptions(
                rewards_of(asked, inputs, workload), asked.lease_s, asked.profiling, asked.admission != "paper"
            ),
        )
        policy.round_s = asked.round_s or workload.round_s or policy.round_s
        if asked.ageing is not None:
            policy = Ageing(policy, cluster, 3600.0 * asked.ageing)
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
            plan_latency=asked.plan_latency,
            deadline_s=asked.deadline_s,
        )
        if change is not None:
            change_run(change, simulation)
        return simulation, workload
    except CopterError as error:
        raise InputError(str(error)) from error


def jobs_of_load(asked: SimulateOptions, wanted: float, inputs: RunInputs) -> int:
    """Return the number of generated jobs that offer this load in the rounds that are counted.

    Load is nearly in proportion to the number of jobs, but each number draws other jobs, of whose few largest ones the
    load of a small cluster is made: numbers near the right one are tried until a drawn load is near enough.
    """
    simulation, workload = prepare(replace(asked, load=None, jobs=LOAD_SAMPLE, save=None, out=None), None, inputs)
    cluster, model = inputs.cluster, inputs.model
    rates = TrainingThroughputs(cluster, model)
    capacity = {kind: sum(node.gpus for node in cluster.nodes_of(kind)) for kind in cluster.types}
    warmup = asked.warmup(simulation.round_s, workload.sampled)
    total = asked.counted_rounds(simulation.round_s, warmup)
    jobs, tried = LOAD_SAMPLE, dict[int, float]()
    for sample in range(LOAD_SAMPLES):
        if jobs in tried:
            jobs += sample
        given = replace(asked, load=None, jobs=jobs)
        drawn = workload.jobs if sample == 0 else _workload(given, cluster, simulation.semantics, model).jobs
        last_s = max(job.submit_s for job in drawn) if total is None else total * simulation.round_s
        tried[jobs] = offered_load(drawn, rates, capacity, warmup * simulation.round_s, last_s).all
        if abs(tried[jobs] - wanted) <= LOAD_TOLERANCE * wanted:
            break
        per_job = sorted(load / count for count, load in tried.items())[len(tried) // 2]
        if not per_job > 0:
            raise InputError("--load: the generated jobs ask for no GPU time in the counted rounds")
        jobs = max(1, round(wanted / per_job * (1.0 + 0.01 * (sample // 2) * (-1) ** sample)))
    return min(tried, key=lambda each: abs(tried[each] - wanted))


def goodput_model_of(asked: SimulateOptions, cluster: Cluster) -> GoodputModel:
    """Return the goodput model of the simulated jobs for all configurations of the cluster."""
    if asked.on_testbed:
        model: GoodputModel = elsewhere(TESTBEDS)[asked.cluster].goodput(cluster)
        return model
    applications = ALL_APPLICATIONS if asked.applications is None else read_applications(asked.applications)
    return GoodputModel(configurations_of(cluster), applications)


def rewards_of(asked: SimulateOptions, inputs: RunInputs, workload: Workload) -> Rewards:
    """Return the jobs' deadlines, from the trace or drawn; the same for every policy."""
    if asked.deadline_source == "own" and not workload.deadlines:
        raise InputError(
            f"--deadlines own: {workload.source}: no job has deadlines of its own (Chronus's traces have them, as "
            "expect_time_list and expect_value_list); take --deadlines drawn"
        )
    if workload.deadlines and asked.deadline_source != "drawn" and asked.mix is None:
        return {job: StepReward.listed(steps) for job, steps in workload.deadlines.items()}
    rates = TrainingThroughputs(inputs.cluster, inputs.model)
    return DrawnRewards(inputs.cluster, rates, asked.mix or "mix2", asked.seed)


def _own(asked: SimulateOptions) -> Mapping[str, Any]:
    """Return the policy's own arguments that the options give."""
    if asked.policy == "sia":
        return _sia(asked)
    if asked.policy != "hops":
        return {"unmeasured": asked.unmeasured}
    names = ("fairness", "priority", "stay_bonus")
    given = {name: getattr(asked, name) for name in names if getattr(asked, name) is not None}
    if asked.profiling:
        given["profiling"] = True
    return given if asked.sensitivity is None else {**given, "rules": OfferRules(threshold=asked.sensitivity)}


def _sia(asked: SimulateOptions) -> Mapping[str, Any]:
    """Return the arguments of :class:`~copter_frontends.policies.sia.SiaPolicy` that the options give."""
    given: dict[str, Any] = {"quotas": dict(asked.quota)} if asked.quota else {}
    objective = objective_of(PRESETS[asked.semantics])
    power = objective.power if asked.power is None else asked.power
    incentive = objective.incentive if asked.incentive is None else asked.incentive
    if asked.power is not None or asked.incentive is not None:
        given["objective"] = replace(objective, power=power, incentive=incentive)
    if asked.time_sharing is not None:
        given["time_sharing"] = TimeSharing(asked.time_sharing, published=asked.penalty == "published")
    return given


def _kept_jobs(asked: SimulateOptions, workload: Workload) -> Workload:
    """Apply reservations and non-preemptible jobs to the workload; raises InputError for an unknown job."""
    changes: dict[str, dict[str, Any]] = {job: {"preemptible": False} for job in asked.non_preemptible}
    for job, kind, gpus in asked.reserve:
        changes.setdefault(job, {})["reservation"] = (kind, gpus)
    missing = sorted(changes.keys() - {job.id for job in workload.jobs})
    if missing:
        some = ", ".join(job.id for job in workload.jobs[:3])
        raise InputError(f"no job is called {missing[0]!r}; the first jobs are {some}")
    return replace(workload, jobs=[replace(job, **changes.get(job.id, {})) for job in workload.jobs])


def _workload(asked: SimulateOptions, cluster: Cluster, semantics: Semantics, model: GoodputModel) -> Workload:
    """Return the jobs: a paper's own jobs on its GPUs, otherwise those of the options."""
    if asked.on_testbed:
        jobs: Workload = elsewhere(TESTBEDS)[asked.cluster].workload(asked.jobs, asked.seed)
        return jobs

    hours, cap = asked.window_hours or max(asked.hours or 24.0, 24.0), semantics.batch_limit == "policy"
    return make_workload(
        asked.trace,
        asked.jobs,
        hours,
        cluster.gpus,
        asked.seed,
        _work(asked.work),
        cap,
        asked.throughputs,
        model.applications,
    )


def _tuned(
    asked: SimulateOptions, workload: Workload, cluster: Cluster, profiles: Mapping[str, ProfiledApplication] | None
) -> Workload:
    """Return the workload with jobs tuned to GPUs and batches."""
    jobs = tuned_jobs(workload.jobs, cluster, asked.tuned, seed=asked.seed, profiles=profiles)
    return replace(workload, jobs=jobs)


def profiles_folder(asked: SimulateOptions) -> str | None:
    """Return the folder of measured profiles; None if fitted constants are used instead, or no profiles at all."""
    if asked.profiles is not None or PRESETS[asked.semantics].training == "exact":
        return asked.profiles
    result = find_profiles(*([asked.trace] if asked.trace else []))
    return None if result is None else str(result)


def _profiles(asked: SimulateOptions, inputs: RunInputs) -> Mapping[str, ProfiledApplication] | None:
    """Return measured profiles if the semantics use them and they exist; None for fitted constants. Reports which."""
    folder = inputs.profiles
    if folder is None:
        if PRESETS[asked.semantics].training != "exact":
            complain(
                "no measured profiles found (COPTER_DATA, --profiles): jobs train by the fitted constants, and figures "
                "differ from the public simulator's (Gavel's makespan by a quarter)"
            )
        return None
    if asked.profiles is None:
        complain(f"measured profiles: {folder}")
    measured = read_profiles(folder)
    others = {name: made for name, made in inputs.model.applications.items() if name not in measured}
    return {**fitted_profiles(others), **measured}


def _work(word: str) -> Literal["trace", "full"]:
    return "full" if word == "full" else "trace"


def cluster_of(asked: SimulateOptions) -> Cluster:
    """Return the cluster of `--gpus` or `--cluster`."""
    return scaled_cluster(asked.gpus) if asked.gpus is not None else cluster_from(asked.cluster or "")


def prepare_outputs(asked: SimulateOptions) -> None:
    """Check that all results can be written; raises InputError otherwise."""
    if asked.out is not None:
        prepare_directory(asked.out)
    if asked.save is not None:
        try:
            require_savable(asked.save)
        except CopterError as error:
            raise InputError(f"--save {error}") from error


def prepare_directory(out: str) -> None:
    """Create a report's directory; raises InputError if that fails or files cannot be written there."""
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


def prepare_report(path: str) -> None:
    """Raise InputError unless a page can be written to a file."""
    check_extras()
    try:
        require_writable(path)
    except CopterError as error:
        raise InputError(f"--report {error}") from error
