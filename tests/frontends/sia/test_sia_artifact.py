"""The public simulator's semantics: measured profiles, agents that fit and tune, estimates, rounding, whole runs."""

from __future__ import annotations

import csv
import gzip
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from copter.runtime.errors import InvalidDataError, SettingsError
from copter_frontends.goodput import APPLICATIONS, GoodputModel, step_time_s
from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.goodput.job_agent import FitCache, JobAgent, noise_of
from copter_frontends.goodput.measured import MeasuredSteps, placement_name, read_profiles
from copter_frontends.goodput.profile_files import read_columns
from copter_frontends.goodput.profiled import fitted_profiles
from copter_frontends.goodput.refitting import loss_and_gradient, refit
from copter_frontends.policies.sia import SiaObjective, SiaPolicy
from copter_frontends.policies.sia.estimator import HintedGoodput
from copter_frontends.policies.sia.exact import exact_assignment
from copter_frontends.policies.sia.formulation import SiaFormulation
from copter_frontends.policies.sia.objective import objective_of
from copter_frontends.policies.sia.relaxed_solution import RelaxedSolution
from copter_frontends.policies.sia.shim import integer_assignment
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.agent_training import used_of
from copter_frontends.vocabulary import Allocation, Cluster, Configuration, Job, TraceError, configurations_of
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_frontends.vocabulary.semantics import DEFAULT, PRESETS, SIA_ARTIFACT, SIA_THESIS, Semantics
from copter_papers.sia.workload import REFERENCE_WORKLOADS, reference_workload

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))
FITTED = fitted_profiles()


# Semantics


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"profiling": "none"}, "needs training='agent'"),
        ({"training": "magic"}, "training is 'magic'"),
        ({"growth": 0}, "growth is 0"),
        ({"decimals": 20}, "decimals is 20"),
        ({"clip": 0.0}, "clip is 0"),
        ({"training": "agent", "profiling": "bootstrap", "profiling_s": -1.0}, "profiling_s is -1"),
    ],
)
def test_impossible_semantics_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Semantics(**fields)  # type: ignore[arg-type]


def test_presets_are_what_they_are_named() -> None:
    assert dict(PRESETS) == {"default": DEFAULT, "sia-artifact": SIA_ARTIFACT, "thesis": SIA_THESIS}
    assert objective_of(DEFAULT) == SiaObjective()
    assert objective_of(SIA_ARTIFACT).decimals == 2
    assert objective_of(SIA_THESIS).decimals is None


def test_the_thesis_has_jobs_profiled_on_one_gpu_that_double_and_plans_without_branch_and_bound() -> None:
    assert (SIA_THESIS.profiling, SIA_THESIS.profiling_s, SIA_THESIS.growth) == ("bootstrap", 20.0, 2)
    assert SIA_THESIS.training == "agent"
    assert SIA_THESIS.shim == "filled"


# Profiles


def table(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def steps(limit: int | None = None) -> MeasuredSteps:
    """Step time 1 + nodes + gpus / 10 + local / 100; a fifth of it synchronisation."""

    def times(nodes: int, gpus: int, local: int) -> tuple[float, float]:
        step = 1 + nodes + gpus / 10 + local / 100
        return step, step / 5

    places = [("1", 1, 1), ("2", 1, 2), ("4", 1, 4), ("44", 2, 8), ("24", 2, 6)]
    rows = [(name, m, *times(n, k, m)) for name, n, k in places for m in (10, 20, 40)]
    placements = {
        "placement": np.array([row[0] for row in rows], dtype=np.str_),
        **{
            name: np.array([row[i] for row in rows])
            for i, name in ((1, "local_bsz"), (2, "step_time"), (3, "sync_time"))
        },
    }
    grid = [(n, k, m) for n in (3, 6) for k in (12, 24) for m in (10, 20)]
    scalability = {
        "num_nodes": np.array([float(n) for n, _, _ in grid]),
        "num_replicas": np.array([float(k) for _, k, _ in grid]),
        "local_bsz": np.array([float(m) for _, _, m in grid]),
        "step_time": np.array([times(*point)[0] for point in grid]),
        "sync_time": np.array([times(*point)[1] for point in grid]),
    }
    return MeasuredSteps(placements, scalability, limit)


def test_measured_steps_are_exact_on_their_points_and_linear_between() -> None:
    found = steps()
    assert found.step((4, 4), 20) == pytest.approx((4.0, 0.8))
    assert found.step((4, 4), 30) == pytest.approx((4.1, 0.82))
    assert found.step((4, 2), 10) == found.step((2, 4), 10)  # one rotation
    assert found.step((4, 4, 4, 4), 15) == pytest.approx((1 + 4 + 1.6 + 0.15, (1 + 4 + 1.6 + 0.15) / 5))
    assert (found.min_local, found.max_local) == (10, 40)
    assert steps(25).max_local == 25
    assert found.most_local((4, 4)) == 40
    assert found.most_local((4, 4, 4)) == 20
    assert found.most_local_of(6) == 40
    assert found.most_local_of(7) is None
    assert found.one_gpu_rate == pytest.approx(40 / 2.5)
    assert len(found.observations(1, 2)) == 6


def test_a_type_measured_on_one_node_is_interpolated_there_and_says_nothing_of_two() -> None:
    rows = [(str(k), k, m) for k in (1, 2, 4) for m in (10, 20, 40)]
    times = {"step_time": np.array([1 + k / 10 + m / 100 for _, k, m in rows]), "sync_time": np.zeros(len(rows))}
    local = np.array([float(m) for *_, m in rows])
    known = {"placement": np.array([name for name, *_ in rows]), "local_bsz": local, **times}
    counts = {"num_nodes": np.ones(len(rows)), "num_replicas": np.array([float(k) for _, k, _ in rows])}
    found = MeasuredSteps(known, {**counts, "local_bsz": local, **times})
    assert found.step((3,), 15)[0] == pytest.approx(1.45)
    assert found.step((8,), 40)[0] == pytest.approx(1.8)  # outside: the nearest measured one
    with pytest.raises(InvalidDataError, match="8 GPUs on 2 nodes: this GPU type was measured on one node only"):
        found.step((4, 4), 20)


def test_a_placements_name_is_its_smallest_rotation() -> None:
    assert placement_name((4, 2, 4)) == "244"
    assert placement_name((8,)) == "8"


def test_a_bad_profile_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "placements-aws.csv"
    table(path, [{"placement": "4", "local_bsz": 10}, {"placement": "x", "local_bsz": 20}])
    with pytest.raises(InvalidDataError, match="line 3: placement is 'x'"):
        read_columns(path, ("placement", "local_bsz"))
    with pytest.raises(InvalidDataError, match="lacks the column step_time"):
        read_columns(path, ("step_time",))
    table(path, [{"local_bsz": 10}, {"local_bsz": "nan"}])
    with pytest.raises(InvalidDataError, match="line 3"):
        read_columns(path, ("local_bsz",))
    with pytest.raises(InvalidDataError, match="no such folder"):
        read_profiles(tmp_path, ["cifar10"])


def test_fitted_profiles_stand_in_for_measured_ones() -> None:
    known = FITTED["bert"]
    assert known.epochs == 2
    assert known.epoch_ends[-1] == pytest.approx(14774.0)
    parameters = APPLICATIONS["bert"].gpus["t4"].parameters
    assert known.steps["t4"].step((4, 4), 8)[0] == pytest.approx(float(step_time_s(parameters, 2, 8, 8)))
    assert noise_of(known, 12, 0) == pytest.approx(APPLICATIONS["bert"].noise_scale_at(0.25))


# Fits


def test_the_gradient_of_the_loss_is_its_slope() -> None:
    rng = np.random.default_rng(0)
    points = np.column_stack(
        [[1, 1, 1, 2, 3], [1, 2, 4, 8, 12], [32, 64, 64, 91, 128], np.log(rng.uniform(0.02, 0.1, 5)), np.zeros(5)]
    ).astype(np.float64)
    theta = np.array([0.02, 0.0005, 0.05, 0.002, 0.03, 0.001, 1.7])
    gradient, unused = np.empty(7), np.empty(7)
    loss_and_gradient(theta, points, gradient)
    for k in range(7):
        step = np.zeros(7)
        step[k] = 1e-6 * theta[k]
        slope = (loss_and_gradient(theta + step, points, unused) - loss_and_gradient(theta - step, points, unused)) / (
            2 * step[k]
        )
        assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_what_was_not_seen_is_pinned() -> None:
    one = refit([(1, 1, 64, 0.10, 0.02)])
    assert one.alpha_c == pytest.approx(0.04)  # half the compute time
    assert one.alpha_r == pytest.approx(1e-8)
    assert one.alpha_n == pytest.approx(1.1e-8)
    several = refit([(1, 1, 64, 0.10, 0.001), (1, 2, 64, 0.15, 0.05), (1, 2, 128, 0.22, 0.05)])
    assert several.beta_r == pytest.approx(1e-8)
    assert several.alpha_n == pytest.approx(1.1 * several.alpha_r)


# The agent


def test_an_agent_starts_with_the_smallest_batch_and_tunes_once_it_has_seen_steps() -> None:
    agent = JobAgent(FITTED["cifar10"], FitCache(), 4096)
    assert agent.hints() is None
    agent.tune("a100", (2,))
    assert (agent.local, agent.accumulation) == (64, 0)
    step, sync = FITTED["cifar10"].steps["a100"].step((2,), 64)
    agent.observe("a100", (2,), step, sync, 5000.0)
    hints = agent.hints()
    assert hints is not None
    assert (hints.max_gpus, hints.noise_scale) == ({"a100": 2}, 5000.0)
    agent.tune("a100", (2,))
    assert agent.local > 64
    agent.tune("t4", (1,))  # a type that it has not seen
    assert (agent.local, agent.accumulation) == (128, 0)


def test_a_fixed_batch_is_split_and_never_changed() -> None:
    agent = JobAgent(FITTED["cifar10"], FitCache(), 4096, fixed_batch=4096)
    agent.seed("t4", FITTED["cifar10"].steps["t4"].observations(1, 4))
    agent.seed_noise()
    agent.tune("t4", (4,))
    assert agent.local * 4 * (agent.accumulation + 1) == 4096
    agent.tune("t4", (1,))
    assert (agent.local, agent.accumulation) == (1024, 3)


def test_a_job_fixed_to_fewer_gpus_than_it_holds_trains_on_those() -> None:
    held = Allocation("t4", 8, (("t4-0", 4), ("t4-1", 4)))
    assert used_of(held, None) == (4, 4)
    assert used_of(held, 6) == (4, 2)
    assert used_of(held, 3) == (3,)


# Estimates

PLACES = configurations_of(named_cluster("sia-het"), 64)
PER_NODE = {"t4": 4, "rtx": 8, "a100": 8}


def estimator(semantics: Semantics) -> HintedGoodput:
    return HintedGoodput(PLACES, PER_NODE, FITTED, semantics)


def at(row: np.ndarray, kind: str, gpus: int) -> float:
    return float(row[next(i for i, c in enumerate(PLACES) if (c.gpu_type, c.gpus) == (kind, gpus))])


def hints_of(*kinds: str, gpus: int = 2) -> TrainingHints:
    parameters = {kind: APPLICATIONS["cifar10"].gpus[kind].parameters for kind in kinds}
    return TrainingHints(parameters, dict.fromkeys(kinds, gpus), 2000.0)


def test_a_new_job_gets_one_gpu_of_any_type_all_alike() -> None:
    row = estimator(SIA_ARTIFACT).row(Job("j", "cifar10"), None)
    assert {(c.gpu_type, c.gpus) for c, g in zip(PLACES, row, strict=True) if g > 0} == {(k, 1) for k in PER_NODE}
    assert set(row.tolist()) == {0.0, 1.0}


def test_other_types_are_projected_by_their_one_gpu_rates_and_growth_is_twofold() -> None:
    found = estimator(SIA_ARTIFACT).row(Job("j", "cifar10"), hints_of("rtx"))
    ratio = FITTED["cifar10"].steps["a100"].one_gpu_rate / FITTED["cifar10"].steps["rtx"].one_gpu_rate
    for gpus in (1, 2, 4):
        assert at(found, "a100", gpus) == pytest.approx(ratio * at(found, "rtx", gpus))
    assert at(found, "rtx", 4) > 0
    assert at(found, "rtx", 8) == 0
    both = estimator(SIA_ARTIFACT).row(Job("j", "cifar10"), hints_of("rtx", "t4"))
    slower = FITTED["cifar10"].steps["a100"].one_gpu_rate / FITTED["cifar10"].steps["t4"].one_gpu_rate
    assert at(both, "a100", 2) == pytest.approx(slower * at(both, "t4", 2))  # the first in the order


def test_without_projection_an_unknown_type_counts_as_the_least_known() -> None:
    found = estimator(replace(SIA_ARTIFACT, profiling="none")).row(Job("j", "cifar10"), hints_of("a100"))
    assert at(found, "t4", 1) == at(found, "a100", 1)
    assert at(found, "t4", 2) == 0


def test_bootstrap_projects_several_gpus_only_and_only_until_they_have_run() -> None:
    semantics = replace(SIA_ARTIFACT, profiling="bootstrap", growth=None)
    parameters = {kind: APPLICATIONS["cifar10"].gpus[kind].parameters for kind in PER_NODE}
    hints = TrainingHints(parameters, {"t4": 4, "rtx": 1, "a100": 1}, 2000.0)
    found = estimator(semantics).row(Job("j", "cifar10"), hints)
    steps = FITTED["cifar10"].steps
    assert at(found, "a100", 8) == pytest.approx(
        at(found, "t4", 8) * steps["a100"].one_gpu_rate / steps["t4"].one_gpu_rate
    )
    ran = replace(hints, max_gpus={"t4": 4, "rtx": 1, "a100": 2})
    own = estimator(semantics).row(Job("j", "cifar10"), ran)
    assert at(own, "a100", 8) != pytest.approx(at(found, "a100", 8))
    assert at(own, "a100", 1) == at(found, "a100", 1)


# Values and plans


def test_values_are_rounded_and_clipped_as_the_public_simulator_does() -> None:
    objective = objective_of(SIA_ARTIFACT)
    base = objective.base("j", np.array([1.0, 2.0, 7.0, 0.0]), np.ones(4, dtype=bool), 1)
    assert objective.values(base, 1.0).tolist() == pytest.approx([0.1, 1.1 - 0.71, 1.1 - 0.38, -1.0])
    assert objective.values(base, 0.25)[0] == pytest.approx(1.1 - 2.0)
    assert objective.values(base, 0.0)[0] == pytest.approx(1.1 - 3000.0)


def test_branch_and_bound_is_never_worse_than_the_shim_and_sometimes_better() -> None:
    gains = []
    for seed in range(6):
        cluster = Cluster.of({"t4": (2, 4), "a100": (1, 8)})
        rng = np.random.default_rng(seed)
        waiting = [Job(f"j{i}", str(rng.choice(list(APPLICATIONS)))) for i in range(12)]
        policy, exact = SiaPolicy(cluster), SiaPolicy(cluster, semantics=replace(DEFAULT, shim="exact"))
        for job in waiting:
            policy.add_job(job)
            exact.add_job(job)
        formulation = policy.formulation
        formulation.refresh_costs(0.0)
        solution = formulation.solve()
        shim, _ = integer_assignment(formulation, solution)
        searched, _ = exact_assignment(formulation, solution, 60.0)
        for each in (shim, searched):
            used = np.zeros(len(formulation.types), dtype=np.int64)
            for column in each.column.values():
                used[formulation.kind[column]] += formulation.gpus[column]
            assert (used <= [cluster.capacity(name) for name in formulation.types]).all()
            value = sum(formulation.value(job_id, column) for job_id, column in each.column.items())
            assert each.objective == pytest.approx(value, rel=1e-9)
        assert shim.objective > 0
        assert searched.objective >= shim.objective - 1e-9
        assert searched.objective <= solution.bound + 1e-6
        assert exact.plan(0.0).objective == pytest.approx(searched.objective, rel=1e-3)
        gains.append(searched.objective / shim.objective - 1.0)
    assert max(gains) > 0.005


def test_branch_and_bound_has_what_the_linear_program_leaves_of_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def search(formulation: SiaFormulation, time_limit_s: float) -> None:
        limits.append(time_limit_s)

    monkeypatch.setattr("copter_frontends.policies.sia.exact._branch_and_bound", search)
    policy = SiaPolicy(Cluster.of({"t4": (2, 4), "a100": (1, 8)}), semantics=replace(DEFAULT, shim="exact"))
    rng, solve = np.random.default_rng(3), policy.solve
    for i in range(12):
        policy.add_job(Job(f"j{i}", str(rng.choice(list(APPLICATIONS)))))

    def slow(deadline_s: float) -> RelaxedSolution:
        time.sleep(0.3)
        return solve(deadline_s)

    monkeypatch.setattr(policy, "solve", slow)
    plan = policy.plan(0.0, 0.8)
    assert plan.allocations
    assert all(limit <= 0.5 * (0.8 - 0.3) for limit in limits)
    monkeypatch.setattr(
        "copter_frontends.policies.sia.exact._branch_and_bound", lambda *_: pytest.fail("no time is left")
    )
    assert policy.plan(60.0, 0.2).allocations, "the shim's plan, where the linear program took all the time"


@pytest.mark.parametrize("profiling", ["oracle", "bootstrap", "projected", "none"])
def test_every_profiling_mode_finishes_its_jobs(profiling: str) -> None:
    growth = None if profiling == "oracle" else 2
    semantics = replace(SIA_ARTIFACT, profiling=profiling, growth=growth, profiling_s=20.0)
    cluster = named_cluster("sia-het")
    jobs = [Job(f"j{i}", name, 30.0 * i, max_batch_size=None) for i, name in enumerate(("cifar10", "bert", "cifar10"))]
    jobs.append(Job("fixed", "cifar10", 45.0, batch_size=1024))
    jobs.append(Job("rigid", "cifar10", 45.0, batch_size=1024, gpus=3))
    policy = SiaPolicy(cluster, semantics=semantics)
    result = Simulation(cluster, jobs, policy, GoodputModel(configurations_of(cluster)), semantics=semantics).run()
    assert result.summary()["jobs_completed"] == len(jobs)
    starts = result.jobs["first_start_s"].astype(float) - result.jobs["submit_s"].astype(float)
    assert (starts >= (20.0 if profiling == "bootstrap" else 0.0)).all()
    assert (result.jobs["completion_s"].astype(float) % 1 == 0).all()  # whole seconds


@pytest.mark.parametrize("semantics", [SIA_ARTIFACT, SIA_THESIS], ids=lambda each: each.name)
def test_a_lone_job_starts_on_one_gpu_and_doubles_at_most(semantics: Semantics) -> None:
    """Thesis 3.3.1: exactly one GPU at first, though the job was profiled on one GPU of each type before."""
    cluster = named_cluster("sia-het")
    policy = SiaPolicy(cluster, semantics=semantics)
    run = Simulation(cluster, [Job("j", "cifar10")], policy, GoodputModel(PLACES), semantics=semantics)
    most = 0
    while not run.finished:
        run.step()
        held = run._occupancy.allocations.get("j")
        if held is not None:
            assert held.gpus <= max(1, 2 * most)
            most = max(most, held.gpus)
    assert most > 1


def test_limits_of_nodes_and_gpus_hold() -> None:
    cluster = Cluster.of({"a100": (8, 8)})
    policy = SiaPolicy(cluster, semantics=replace(DEFAULT, max_gpus=64, max_nodes={"a100": 2}))
    policy.add_job(Job("j", "imagenet"))
    assert policy.plan(0.0).allocations["j"].gpus <= 16
    assert Configuration(8, 64, "a100") in policy.formulation.configurations


# Whole runs against the public simulator's


@pytest.mark.skipif(not (DATA / "traces" / "sia").is_dir(), reason=f"no workloads in {DATA}")
def test_the_reference_workloads_are_read() -> None:
    assert len(REFERENCE_WORKLOADS) == 12
    for name, gpus in (("philly_1", 64), ("homog_philly_2", 64)):
        workload = reference_workload(name)
        jobs = workload.read(DATA).jobs
        assert workload.cluster.gpus == gpus
        assert len(jobs) == 160
        assert any(job.max_batch_size is not None for job in jobs)


def test_a_reference_workload_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"'philly_9'; there are philly_1"):
        reference_workload("philly_9")
    with pytest.raises(TraceError, match=r"workload-1\.csv"):
        reference_workload("philly_1").read(tmp_path)


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "reference_results").is_dir(), reason=f"no reference results in {DATA}")
@pytest.mark.parametrize("name", ["philly_1", "saturn_3"])
def test_average_jct_and_makespan_are_within_a_tenth_of_the_public_simulator(name: str) -> None:
    with gzip.open(DATA / "reference_results" / f"jobs_sia_{name}.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    jct_s = np.mean([float(row["jct"]) for row in rows])
    first = min(float(row["submission_time"]) for row in rows)
    makespan_s = max(float(row["completion_time"]) for row in rows) - first
    workload = reference_workload(name)
    cluster, profiles = workload.cluster, read_profiles(DATA / "profiles" / "sia")
    jobs = workload.read(DATA).jobs
    policy = SiaPolicy(cluster, semantics=SIA_ARTIFACT, profiles=profiles)
    model = GoodputModel(configurations_of(cluster))
    summary = Simulation(cluster, jobs, policy, model, semantics=SIA_ARTIFACT, profiles=profiles).run().summary()
    assert summary["jobs_completed"] == len(rows)
    assert summary["avg_jct_h"] * 3600 == pytest.approx(jct_s, rel=0.1)
    assert summary["makespan_h"] * 3600 == pytest.approx(makespan_s, rel=0.1)
