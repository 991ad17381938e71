"""A run of ``copter simulate``, ``compare`` or ``resume``: everything read once, which all that comes after takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from copter import Settings
from copter.runtime.errors import CopterError
from copter_frontends.cli.destinations import prepare_outputs
from copter_frontends.cli.jobs import Profiles, drawn_jobs, jobs_of
from copter_frontends.cli.options import TESTBEDS, SimulateOptions
from copter_frontends.cli.output import InputError, complain
from copter_frontends.cli.policy_arguments import own_arguments, rewards_of, semantics_of
from copter_frontends.cli.pulse import told
from copter_frontends.cli.saving import RunInputs, RunNote
from copter_frontends.goodput import ALL_APPLICATIONS, GoodputModel
from copter_frontends.goodput.application_files import read_applications
from copter_frontends.goodput.measured import find_profiles, profiles_of
from copter_frontends.policies.hare.task_rates import TaskGoodput
from copter_frontends.policies.hare.task_training import TasksGoodput
from copter_frontends.policies.registry.elsewhere import elsewhere
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policy_kit.ageing import Ageing
from copter_frontends.policy_kit.deadlines import DeadlineOptions, Rewards
from copter_frontends.policy_kit.highs_comparison import HighsComparison
from copter_frontends.policy_kit.offered_load import offered_load
from copter_frontends.replay.what_if.change import Change
from copter_frontends.simulator import Simulation, read_events
from copter_frontends.simulator.workload import Workload
from copter_frontends.vocabulary import configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from, scaled_cluster
from copter_frontends.vocabulary.semantics import PRESETS

if TYPE_CHECKING:
    from copter_frontends.policy_kit import LpPolicy

LOAD_SAMPLE = 20_000
"""Jobs of the first sample from which ``--load`` takes how many jobs are that load."""

LOAD_SAMPLES = 16
LOAD_TOLERANCE = 0.01
"""Samples that ``--load`` draws at most, and the relative distance at which it stops."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is made of.

    Attributes
    ----------
    asked : SimulateOptions
        The command's options.
    inputs : RunInputs
        Cluster, goodput and the folder of profiles as they were read.
    workload : Workload
        The jobs.
    rewards : Rewards
        The jobs' deadlines.
    simulation : Simulation
        The simulated cluster with its policy, before its first round or, of a resumed run, its next one.
    comparison : HighsComparison or None
        Observer that also solves every k-th program with HiGHS.
    """

    asked: SimulateOptions
    inputs: RunInputs
    workload: Workload
    rewards: Rewards
    simulation: Simulation
    comparison: HighsComparison | None = None

    @classmethod
    def read(cls, asked: SimulateOptions, change: Change | None = None) -> Run:
        """Read and make everything that a run needs, once; a what-if change applies from the run's start.

        Raises InputError for anything wrong.
        """
        try:
            prepare_outputs(asked)
            cluster = scaled_cluster(asked.gpus) if asked.gpus is not None else cluster_from(asked.cluster or "")
            if asked.gpus not in (None, cluster.gpus):
                complain(f"--gpus {asked.gpus}: a cluster of whole nodes, {cluster.gpus} GPUs")
            if asked.on_testbed:
                model: GoodputModel = elsewhere(TESTBEDS)[asked.cluster].goodput(cluster)
            else:
                named = ALL_APPLICATIONS if asked.applications is None else read_applications(asked.applications)
                model = GoodputModel(configurations_of(cluster), named)
            exact = PRESETS[asked.semantics].training == "exact"
            found = asked.profiles if asked.profiles is not None or exact else find_profiles(asked.trace)
            folder = None if found is None else str(found)
            measured = None if folder is None else profiles_of(folder, model.applications)
            if folder is None and not exact:
                complain(
                    "no measured profiles found (COPTER_DATA, --profiles): jobs train by the fitted constants, and "
                    "figures differ from the public simulator's (Gavel's makespan by a quarter)"
                )
            elif asked.profiles is None and not exact:
                complain(f"measured profiles: {folder}")
            inputs = RunInputs(cluster, model, folder)
            given = asked
            if asked.load is not None:
                sample = replace(asked, load=None, jobs=LOAD_SAMPLE, save=None, out=None, compare=None, events=None)
                given = replace(asked, load=None, jobs=cls.made(sample, inputs, measured).jobs_of_load(asked.load))
            run = replace(cls.made(given, inputs, measured, change), asked=asked)
        except CopterError as error:
            raise InputError(str(error)) from error
        workload = run.workload
        if workload.drawn_from is not None and asked.jobs is None and change is None:
            complain(f"{workload.source} (4 a GPU and day; --jobs N for N)")
        if workload.lacks:
            complain(f"{asked.trace} has {workload.lacks}")
        for skipped in workload.skipped_lines[:1]:
            count = len(workload.skipped_lines)
            complain(f"{asked.trace}: skipped {count} lines; the first: line {skipped.line_number}: {skipped.reason}")
        return run

    @classmethod
    def made(
        cls, asked: SimulateOptions, inputs: RunInputs, profiles: Profiles | None, change: Change | None = None
    ) -> Run:
        """Make the jobs, the policy and the simulation from what was read; raises InputError or one of copter's
        errors.
        """
        cluster, model, entry = inputs.cluster.copy(), inputs.model, POLICIES[asked.policy]
        model.row(next(iter(model.applications)), 0.0)  # compiles the model's kernel before rounds are timed
        if entry.by_tasks and not isinstance(model, TaskGoodput):
            model = TasksGoodput(model, cluster)
        semantics = entry.under(PRESETS[asked.semantics])
        workload = jobs_of(asked, inputs, profiles, semantics, entry, change)
        rewards = rewards_of(asked, inputs, workload)
        semantics, own = semantics_of(asked, semantics), own_arguments(asked)
        deadlines = DeadlineOptions(rewards, asked.lease_s, asked.profiling, asked.admission != "paper")
        settings = Settings(threads=asked.threads or 0, method=asked.method)
        policy = entry.build(
            *(cluster, model, asked.mode, settings, semantics, profiles, workload.weights, own), deadlines
        )
        policy.round_s = asked.round_s or workload.round_s or policy.round_s
        if asked.ageing is not None:
            policy = Ageing(policy, cluster, 3600.0 * asked.ageing)
        simulation = Simulation(
            cluster,
            entry.in_form(workload.jobs),
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
            change.tell_simulation(simulation)
        comparison = None
        if asked.compare:
            comparison = HighsComparison(cast("LpPolicy", policy), asked.compare_every, asked.compare_time_limit)
            comparison.around = lambda index: told(
                lambda: f"HiGHS solves the program of round {index + 1} for comparison"
            )
        return cls(asked, inputs, workload, rewards, simulation, comparison)

    @classmethod
    def resumed(cls, asked: SimulateOptions, note: RunNote, simulation: Simulation) -> Run:
        """Return a saved run with the options that it goes on with."""
        return cls(asked, note.inputs, note.workload, rewards_of(asked, note.inputs, note.workload), simulation)

    @property
    def note(self) -> RunNote:
        """What a saved run keeps of this one besides its simulation."""
        return RunNote(self.asked, self.workload, self.inputs)

    @property
    def profiles(self) -> str | None:
        """The measured profiles by which jobs train, for reports; None if no agents train them."""
        if PRESETS[self.asked.semantics].training == "exact":
            return None
        return self.inputs.profiles or "fitted constants"

    @property
    def warmup(self) -> int:
        """Number of first rounds outside the statistics."""
        return self.asked.warmup(self.simulation.round_s, self.workload.sampled)

    @property
    def rounds(self) -> int | None:
        """Number of rounds to simulate, warm-up included; None if the run ends with its last job."""
        return self.asked.counted_rounds(self.simulation.round_s, self.warmup)

    def jobs_of_load(self, wanted: float) -> int:
        """Return the number of generated jobs that offer this load in the rounds that are counted.

        Load is nearly in proportion to the number of jobs, but each number draws other jobs, of whose few largest ones
        the load of a small cluster is made: numbers near the right one are tried until a drawn load is near enough.

        This run has :data:`LOAD_SAMPLE` jobs.
        """
        inputs, simulation = self.inputs, self.simulation
        rates = inputs.rates
        capacity = {kind: sum(node.gpus for node in inputs.cluster.nodes_of(kind)) for kind in inputs.cluster.types}
        warmup, total = self.warmup, self.rounds
        jobs, tried = LOAD_SAMPLE, dict[int, float]()
        for number in range(LOAD_SAMPLES):
            if jobs in tried:
                jobs += number
            given = replace(self.asked, jobs=jobs)
            drawn = self.workload.jobs if number == 0 else drawn_jobs(given, inputs, simulation.semantics).jobs
            last_s = max(job.submit_s for job in drawn) if total is None else total * simulation.round_s
            tried[jobs] = offered_load(drawn, rates, capacity, warmup * simulation.round_s, last_s).all
            if abs(tried[jobs] - wanted) <= LOAD_TOLERANCE * wanted:
                break
            per_job = sorted(load / count for count, load in tried.items())[len(tried) // 2]
            if not per_job > 0:
                raise InputError("--load: the generated jobs ask for no GPU time in the counted rounds")
            jobs = max(1, round(wanted / per_job * (1.0 + 0.01 * (number // 2) * (-1) ** number)))
        return min(tried, key=lambda each: abs(tried[each] - wanted))
