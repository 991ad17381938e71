"""Hare by tasks on any cluster and application: times, training, steadiness, and what the command line shows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from copter_frontends.cli import cli
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.goodput import GoodputModel, UnknownApplicationError
from copter_frontends.policies.hare import HareInstance, HareJob
from copter_frontends.policies.hare.columns import FEW
from copter_frontends.policies.hare.grid import intervals_of
from copter_frontends.policies.hare.slots import counts_of, steady_counts
from copter_frontends.policies.hare.solver import RelaxationSolution, RelaxationSolver
from copter_frontends.policies.hare.task_policy import HareTaskPolicy, alpha_of
from copter_frontends.policies.hare.task_times import GoodputTaskTimes
from copter_frontends.policies.hare.task_training import TaskRateTable, TasksGoodput, round_on_s
from copter_frontends.simulator.rates import RateTable
from copter_frontends.vocabulary import Allocation, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import scaled_cluster

CLUSTER = scaled_cluster(56)
MODEL = GoodputModel(configurations_of(CLUSTER))
JOB = Job("one", "cifar10", work_samples=4e6, requested_gpus=4)


def on(kind: str, gpus: int, other: str = "", more: int = 0) -> Allocation:
    nodes = [(f"{kind}-0", gpus)] + ([(f"{other}-0", more)] if more else [])
    mixture = tuple(sorted({kind: gpus, other: more}.items())) if more else ()
    return Allocation(kind, gpus + more, tuple(nodes), mixture)


def test_on_the_gpus_asked_for_rates_are_the_models_and_elsewhere_in_proportion_to_rounds() -> None:
    times = GoodputTaskTimes(CLUSTER, MODEL)
    mine, plain = TaskRateTable(MODEL, ["cifar10"], times, CLUSTER), RateTable(MODEL, ["cifar10"])
    phases = np.zeros(1, dtype=np.int64)

    def rate(table: RateTable, allocation: Allocation) -> float:
        return float(table.rates(np.array([table.curve(JOB, allocation)]), phases)[0])

    whole = rate(plain, on("a100", 4))
    assert rate(mine, on("a100", 4)) == whole
    known = times.of(JOB)
    task_s = known.train_s["a100"] + known.sync_s["a100"]
    in_turns = round_on_s(known, 4, {"a100": 1})
    assert in_turns == pytest.approx(4 * known.train_s["a100"] + known.sync_s["a100"])
    assert rate(mine, on("a100", 1)) == pytest.approx(whole * task_s / in_turns)
    mixed = rate(mine, on("a100", 3, "v100", 1))
    assert rate(mine, on("a100", 3)) <= mixed < whole


def test_a_job_stays_where_other_gpus_would_not_repay_a_restart() -> None:
    jobs = [HareJob(name, 100, 2, {"fast": 1.0, "slow": 1.2}) for name in ("a", "b")]
    instance = HareInstance.of(jobs, {"fast": 2, "slow": 2})
    wanted, held = np.array([[2, 0], [0, 2]]), np.array([[0, 2], [2, 0]])
    order, dear, cheap = np.arange(2), np.full(2, 60.0), np.full(2, 1.0)
    assert steady_counts(instance, wanted, held, order, dear, 100.0).tolist() == held.tolist()
    assert steady_counts(instance, wanted, held, order, cheap, 100.0).tolist() == wanted.tolist()
    assert counts_of(instance, np.array([0, 0, 1, -1])).tolist() == [[2, 0], [0, 1]]
    assert alpha_of(instance) == pytest.approx(1.2)


def test_an_application_that_nobody_knows_is_named() -> None:
    policy = HareTaskPolicy(CLUSTER, TasksGoodput(MODEL, CLUSTER))
    with pytest.raises(UnknownApplicationError, match="'nameless'"):
        policy.add_job(Job("j", "nameless", work_samples=1.0))
    assert not policy.jobs


def test_the_command_line_runs_tasks_on_any_cluster_and_shows_their_program() -> None:
    short = ["--gpus", "56", "--jobs", "500", "--hours", "9", "--json", "--threads", "1"]  # more than there is room for
    found = CliRunner().invoke(cli, ["simulate", "hare-relaxed", *short, "--compare", "highs", "--compare-every", "3"])
    assert found.exit_code == 0, found.output
    summary = json.loads(found.stdout.splitlines()[-1])
    assert summary["variables"]["max"] > 100
    assert summary["figures"]["alpha"] > 1
    assert summary["figures"]["alpha_factor"] == pytest.approx(
        summary["figures"]["alpha"] * (2 + summary["figures"]["alpha"])
    )
    assert summary["highs"]["objective_rel_diff_max"] < 1e-3
    assert summary["jobs_completed"] > 3
    rigid = CliRunner().invoke(cli, ["simulate", "hare-gang", *short])
    assert json.loads(rigid.stdout.splitlines()[-1])["variables"]["max"] == 0


@pytest.mark.parametrize(("gpus", "jobs", "large"), [(56, 1000, False), (112, 4000, True)])
def test_requests_that_a_run_adds_and_removes_are_the_jobs_that_came_and_went(
    gpus: int, jobs: int, large: bool
) -> None:
    """In programs with all columns and in larger ones, whose columns change with the clock and the prices."""
    arguments = ["hare-relaxed", "--gpus", str(gpus), "--jobs", str(jobs), "--hours", "4", "--threads", "1"]
    simulation = Run.read(SimulateOptions.of(**simulate.make_context("simulate", arguments).params)).simulation
    policy = simulation.policy
    assert isinstance(policy, HareTaskPolicy)
    known, came, went, sizes = set[str](), 0, 0, []
    engine = RelaxationSolver.solve

    def watched(self: RelaxationSolver, instance: HareInstance, *rest: Any) -> RelaxationSolution:
        nonlocal known, came, went
        found = engine(self, instance, *rest)
        if found.passes and self is policy.solver:
            now = {job.id for job in instance.jobs}
            came, went, known = came + len(now - known), went + len(known - now), now
            sizes.append(instance.n_jobs * len(instance.gpus) * intervals_of(policy.growth))
            assert set(policy.model.requests) == now
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RelaxationSolver, "solve", watched)
        while simulation.now_s < (3600.0 if large else 14400.0):
            simulation.tell_policy()
            simulation.step()
    assert came > 10
    assert max(sizes) > FEW if large else min(sizes) <= FEW
    assert (policy.edit_log.added, policy.edit_log.removed) == (came, went)
    assert policy.edit_log.changed > came


def test_a_job_of_a_saved_run_is_explained(tmp_path: object) -> None:
    path = f"{tmp_path}/run"
    made = ["simulate", "hare", "--gpus", "56", "--jobs", "60", "--hours", "9", "--save", path, "--threads", "1", "-q"]
    assert CliRunner().invoke(cli, made).exit_code == 0
    missing = CliRunner().invoke(cli, ["explain", path, "nobody"])
    assert missing.exit_code == 2
    job = missing.output.split("among them ['")[1].split("'")[0]
    told = CliRunner().invoke(cli, ["explain", path, job])
    assert told.exit_code == 0, told.output
    assert "place: " in told.output
    assert "task s: " in told.output
