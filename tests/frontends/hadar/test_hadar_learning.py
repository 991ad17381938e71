"""Rates that Hadar learns in the simulated loop, from what its jobs are seen to do (docs/papers/hadar.md, H16)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from copter_frontends.policies.hadar import AverageJct, HadarPolicy, Unmeasured
from copter_frontends.policy_kit import GoodputThroughputs, Throughputs
from copter_frontends.simulator import Simulation
from copter_frontends.simulator.table_source import TableApplication, TableSource
from copter_frontends.vocabulary import Cluster, Job, configurations_of

ROUND_S = 360.0
PER_GPU = {"even": {"fast": 2.0, "slow": 1.9}, "picky": {"fast": 3.0, "slow": 0.5}}
TABLES = Path(__file__).parents[3] / "benchmarks" / "tables"


class Guessed:
    """Wrong rates: all types alike, at ten times the best true rate."""

    def __init__(self, source: Throughputs, learns: bool) -> None:
        self.source, self.learns = source, learns

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        return 10.0 * max(PER_GPU[job.application].values()) * gpus

    def work(self, job: Job) -> float:
        return self.source.work(job)


def simulation(cluster: Cluster, spread_cost: float, learns: bool = True, guessed: bool = False) -> Simulation:
    """Four jobs of four GPUs, two of each application, of 20 rounds each at best."""
    sizes = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
    facts = {n: TableApplication(n, row, sizes, 1.0, 10.0, spread_cost) for n, row in PER_GPU.items()}
    source = TableSource(configurations_of(cluster), facts)
    jobs = [
        Job(f"{name}-{i}", name, work_samples=20 * ROUND_S * 4 * max(row.values()), requested_gpus=4)
        for name, row in PER_GPU.items()
        for i in range(2)
    ]
    true = GoodputThroughputs(cluster, source)
    told = Guessed(true, learns) if guessed else Unmeasured(true)
    policy = HadarPolicy(cluster, told, utility=AverageJct(), spread_cost=spread_cost)
    return Simulation(cluster, jobs, policy, source, ROUND_S)


@pytest.mark.parametrize("guessed", [False, True])
def test_in_some_rounds_the_rates_are_the_true_ones_to_the_last_digit(guessed: bool) -> None:
    run = simulation(Cluster.of({"fast": (2, 4), "slow": (2, 4)}), 0.05, guessed=guessed)
    run.run(rounds=8)
    policy = run.policy
    assert isinstance(policy, HadarPolicy)
    row = {job.id: i for i, job in enumerate(policy.book.jobs)}
    true = np.array([[4 * PER_GPU[job.application][kind] for kind in ("fast", "slow")] for job in policy.book.jobs])
    tried = policy.book.rates == true
    assert tried[:, 1].all(), "all have seen the slow type"
    assert tried[[row["picky-0"], row["picky-1"]], 0].all()
    kinds = {job_id: each.gpu_type for job_id, each in policy.held.items()}
    assert kinds == {"even-0": "slow", "even-1": "slow", "picky-0": "fast", "picky-1": "fast"}


def test_without_what_jobs_are_seen_to_do_wrong_rates_stay_wrong() -> None:
    run = simulation(Cluster.of({"fast": (2, 4), "slow": (2, 4)}), 0.05, learns=False, guessed=True)
    run.run(rounds=8)
    assert isinstance(run.policy, HadarPolicy)
    guess = {name: 40.0 * max(row.values()) for name, row in PER_GPU.items()}
    expected = np.array([[guess[job.application]] * 2 for job in run.policy.book.jobs])
    assert run.policy.book.rates == pytest.approx(expected)


def test_what_spread_tasks_lose_is_not_taken_for_the_types() -> None:
    """Beside two jobs of three GPUs on servers of four, one of two has a GPU of each server."""
    cluster = Cluster.of({"fast": (2, 4)})
    facts = {"even": TableApplication("even", {"fast": 2.0}, {"fast": 4}, 1.0, 10.0, 0.2)}
    source = TableSource(configurations_of(cluster), facts)
    policy = HadarPolicy(cluster, Unmeasured(GoodputThroughputs(cluster, source)), spread_cost=0.2)
    jobs = [Job(f"j{gpus}{i}", "even", work_samples=1e6, requested_gpus=gpus) for i, gpus in enumerate((3, 3, 2))]
    Simulation(cluster, jobs, policy, source, ROUND_S).run(rounds=3)
    assert [bool(policy.book.spread[policy.book.row(job.id)]) for job in jobs] == [False, False, True]
    assert [policy.book.rates[policy.book.row(job.id), 0] for job in jobs] == pytest.approx([6.0, 6.0, 4.0])


def test_the_tables_blurred_rates_are_wrong_and_the_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TABLES))
    from hadar_runs import Blurred

    from copter_frontends.vocabulary.named_clusters import named_cluster
    from copter_papers.hadar.workload import hadar_jobs, table_source

    cluster = named_cluster("hadar-60")
    true = GoodputThroughputs(cluster, table_source(cluster))
    factors = {}
    for job in hadar_jobs(60, seed=0):
        for kind in cluster.types:
            rates = [each.rate(job, kind, job.requested_gpus) for each in (Blurred(true, True), Blurred(true, False))]
            assert rates[0] == rates[1]
            factor = rates[0] / true.rate(job, kind, job.requested_gpus)
            assert factors.setdefault((job.application, kind), factor) == pytest.approx(factor)
    assert len(factors) == 15
    logs = np.log(list(factors.values()))
    assert abs(logs.mean()) < 0.25
    assert 0.15 < logs.std() < 0.45


def test_the_policy_is_told_each_round_how_far_its_jobs_are() -> None:
    cluster = Cluster.of({"fast": (1, 4)})
    source = TableSource(configurations_of(cluster), {"m": TableApplication("m", {"fast": 1.0}, {"fast": 4})})
    policy = HadarPolicy(cluster, GoodputThroughputs(cluster, source))
    run = Simulation(cluster, [Job("j", "m", work_samples=14400.0, requested_gpus=4)], policy, source, ROUND_S)
    for done in range(4):
        run.step()
        assert policy.book.progress[0] == pytest.approx(max(360.0 * done - 10.0, 0.0) * 4 / 14400.0, abs=1e-12)
