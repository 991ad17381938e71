"""Jobs with plain rates, and mixtures, in the simulator; the paper's comparison in small."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from printed_tables import tables_of

from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policy_kit import GoodputThroughputs
from copter_frontends.simulator import Simulation, SimulationError
from copter_frontends.simulator.table_source import TableApplication, TableSource
from copter_frontends.vocabulary import (
    Allocation,
    Cluster,
    InvalidJobError,
    Job,
    Plan,
    SchedulingPolicy,
    TraceError,
    configurations_of,
)
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import STEPS_PER_S, hadar_jobs, table_source

TABLES = Path(__file__).parents[3] / "benchmarks" / "tables"


class Fixed(SchedulingPolicy):
    """A policy that always gives one job the same."""

    round_s = 360.0

    def __init__(self, allocation: Allocation) -> None:
        self.allocation, self.jobs = allocation, set()

    def add_job(self, job: Job) -> None:
        self.jobs.add(job.id)

    def remove_job(self, job_id: str) -> None:
        self.jobs.discard(job_id)

    def update_job(self, job_id: str, **what_changed: object) -> None:
        assert job_id in self.jobs

    def add_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        raise AssertionError("nobody changes the cluster or pins a job here")

    def remove_resources(self, gpu_type: str, count: int, nodes: Iterable[str] = ()) -> None:
        raise AssertionError("nobody changes the cluster or pins a job here")

    def pin(self, job_id: str, allocation: Allocation | None) -> None:
        raise AssertionError("nobody changes the cluster or pins a job here")

    def plan(self, now_s: float, deadline_s: float = 60.0) -> Plan:
        return Plan(dict.fromkeys(self.jobs, self.allocation))


def simulate(allocation: Allocation, spread_cost: float = 0.0) -> float:
    """Seconds until a job of 3,600 iterations on 4 GPUs is done."""
    cluster = Cluster.of({"fast": (1, 4), "slow": (1, 4)})
    facts = TableApplication("m", {"fast": 1.0, "slow": 0.5}, {"fast": 4, "slow": 4}, 3600.0, 10.0, spread_cost)
    source = TableSource(configurations_of(cluster), {"m": facts})
    result = Simulation(cluster, [Job("j", "m", requested_gpus=4)], Fixed(allocation), source, 360.0).run()  # type: ignore[arg-type]
    used = [dict(record.gpus_used) for record in result.rounds]
    assert all(sum(each.values()) == 4 for each in used)
    return float(result.jobs["jct_s"][0])


def test_a_mixture_runs_at_the_pace_of_its_slowest_type() -> None:
    mixed = Allocation("slow", 4, (("fast-0", 3), ("slow-0", 1)), (("fast", 3), ("slow", 1)))
    assert simulate(mixed) == pytest.approx(10 + 3600 / 2)
    assert simulate(Allocation("fast", 4, (("fast-0", 4),))) == pytest.approx(10 + 3600 / 4)


def test_spread_tasks_lose_their_share() -> None:
    mixed = Allocation("slow", 4, (("fast-0", 3), ("slow-0", 1)), (("fast", 3), ("slow", 1)))
    assert simulate(mixed, 0.2) == pytest.approx(10 + 3600 / 2 / 0.8)


def test_a_mixture_that_does_not_add_up_stops_the_simulation() -> None:
    with pytest.raises(SimulationError, match="add up"):
        simulate(Allocation("slow", 4, (("fast-0", 3), ("slow-0", 1)), (("fast", 2), ("slow", 2))))
    with pytest.raises(SimulationError, match="'slow-0' has 'slow'"):
        simulate(Allocation("fast", 4, (("fast-0", 3), ("slow-0", 1))))


def test_a_throughput_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidJobError, match="'m': its throughput on 'fast' is nan"):
        TableApplication("m", {"fast": float("nan")}, {"fast": 4})
    with pytest.raises(InvalidJobError, match="spread_cost 1"):
        TableApplication("m", {"fast": 1.0}, {"fast": 4}, spread_cost=1)


def test_the_workload_is_that_of_the_paper() -> None:
    jobs = hadar_jobs(2000, seed=3)
    hours = np.array([job.work_samples / STEPS_PER_S[job.application]["p100"] / 3600 for job in jobs])  # type: ignore[operator]
    shares = [np.mean(hours <= 1), np.mean((hours > 1) & (hours <= 10)), np.mean((hours > 10) & (hours <= 50))]
    assert shares == pytest.approx([0.25] * 3, abs=0.03)
    assert hours.max() <= 100
    assert {job.requested_gpus for job in jobs} == {1, 2, 4, 8}
    assert all(job.submit_s == 0 for job in jobs)
    arrivals = np.diff([job.submit_s for job in hadar_jobs(2000, "continuous", 2.0)])
    assert arrivals.mean() == pytest.approx(1800, rel=0.1)
    with pytest.raises(TraceError, match="must be positive"):
        hadar_jobs(0)


def test_every_job_ends_where_none_fits_on_one_type() -> None:
    cluster = Cluster.of({"v100": (1, 2), "p100": (1, 3)})
    source = table_source(cluster)
    drawn = hadar_jobs(8, scale=0.02, seed=1)
    jobs = [Job(job.id, job.application, 0.0, work_samples=job.work_samples, requested_gpus=4) for job in drawn]
    policy = HadarPolicy(cluster, GoodputThroughputs(cluster, source))
    mixtures: list[int] = []
    policy.observers.append(lambda: mixtures.append(sum(bool(held.mixture) for held in policy.held.values())))
    result = Simulation(cluster, jobs, policy, source, 360.0).run()
    assert result.summary()["jobs_completed"] == 8
    assert max(mixtures) == 1
    assert all(record.bound >= record.objective * (1 - 1e-6) - 1e-9 for record in result.rounds)


@pytest.mark.parametrize(
    ("script", "options", "wanted"),
    [
        ("hadar_jct", ["--jobs", "40", "--scale", "0.1", "--schedulers", "hadar,gavel,yarn"], "average JCT, static"),
        ("hadar_fairness_makespan", ["--jobs", "20", "--scale", "0.05", "--schedulers", "hadar,tiresias"], "makespan"),
        ("hadar_table3", ["--seeds", "1", "--scale", "0.05", "--schedulers", "hadar,gavel"], "average JCT"),
    ],
)
def test_the_tables_figures_are_multiples_of_hadars(
    script: str,
    options: list[str],
    wanted: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = tables_of(run_table(script, options, monkeypatch, capsys))
    assert any(title.startswith(wanted) for title in printed)
    schedulers = set(options[options.index("--schedulers") + 1].split(","))
    for title, rows in printed.items():
        assert set(rows) == schedulers, title
        for name, (value, measured, *_) in rows.items():
            assert value > 0, (title, name)
            assert measured == pytest.approx(value / rows["hadar"][0], rel=0.05, abs=0.006), (title, name)


def test_longer_rounds_cost_hadar_completion_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run_table("hadar_round_length", ["--jobs", "15", "--scale", "0.05", "--rates", "10"], monkeypatch, capsys)
    *_, row, load = out.strip().splitlines()
    assert load.startswith("load:")
    rate, *jct_h = map(float, row.split())
    assert rate == 10
    assert len(jct_h) == 4
    assert 0 < jct_h[0] < jct_h[-1]


def test_the_lps_plans_are_worth_nearly_the_bound_and_the_online_ones_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run_table("hadar_prices", ["--jobs", "20", "--scale", "0.05"], monkeypatch, capsys)
    shares = re.search(r"worth over the certified bound.*\n\s*LP\s+([\d.]+)\s*\n\s*online\s+([\d.]+)", out)
    assert shares is not None, out
    lp, online = float(shares[1]), float(shares[2])
    assert 0.99 <= lp <= 1.0
    assert 0.5 < online <= 1.0


def run_table(
    script: str, options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """Run a script of benchmarks/tables and return what it printed."""
    monkeypatch.syspath_prepend(str(TABLES))
    monkeypatch.setattr(sys, "argv", [script, *options])
    runpy.run_path(str(TABLES / f"{script}.py"), run_name="__main__")
    return capsys.readouterr().out


def test_in_small_hadar_beats_those_that_do_not_see_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TABLES))
    from hadar_runs import run

    cluster = named_cluster("hadar-60")
    source = table_source(cluster, spread_cost=0.05)
    jobs = hadar_jobs(80, scale=0.1, seed=2)
    jct = {name: float(run(name, "jct", cluster, source, jobs).jct_h.mean()) for name in ("hadar", "tiresias", "yarn")}
    assert jct["hadar"] < jct["tiresias"] < jct["yarn"] * 1.5
    assert jct["hadar"] < 0.8 * jct["yarn"]
