"""What the figures' commands compute, on cases with known answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "tables"))

import copter_figures
import copter_table_4_1
import figure_command
import hadar_reasons
import sia_curves
import sia_figures
from hadar_runs import Outcome, compare
from policy_table import of_each

from copter_frontends.simulator import SimulationResult
from copter_frontends.simulator.activity import Span
from copter_frontends.vocabulary import Job
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import hadar_jobs, table_source


def test_a_move_counts_columns_that_change_of_requests_that_stay() -> None:
    before = {"stays": {0: 1.0}, "moves": {1: 1.0}, "splits": {2: 1.0}, "leaves": {0: 1.0}}
    after = {"stays": {0: 1.0}, "moves": {3: 1.0}, "splits": {2: 0.75, 4: 0.25}, "comes": {0: 1.0}}
    found = copter_figures.compared(before, after, 100)
    assert found["changed"] == pytest.approx(4 / 100)
    assert found["distance"] == pytest.approx(2.5)
    assert found["arrived_or_left"] == pytest.approx(2 / 5)


def test_a_share_of_the_jobs_is_restricted_and_the_same_one_for_every_kind() -> None:
    jobs = [Job(f"j{i}", "cifar10", max_batch_size=256, requested_gpus=2) for i in range(10)]
    strong, rigid = sia_figures.some("strong scaling", 0.4), sia_figures.some("rigid", 0.4)
    assert strong is not None
    assert rigid is not None
    fixed_batch = [job.id for job in strong(jobs) if job.batch_size is not None]
    fixed_gpus = [job.id for job in rigid(jobs) if job.gpus == 2]
    assert fixed_batch == fixed_gpus
    assert len(fixed_gpus) == 4
    assert sia_figures.some("rigid", 0.0) is None


def test_the_testbeds_jobs_are_the_first_thirty_within_three_hours() -> None:
    jobs = [Job(f"j{i}", "bert", 1000.0 * i) for i in range(50)]
    found = sia_figures.testbed(jobs[::-1])
    assert [job.id for job in found] == [f"j{i}" for i in range(30)]
    assert found[-1].submit_s == pytest.approx(10_800.0)
    assert [job.submit_s for job in sia_figures.testbed(jobs[:3])] == [0.0, 1000.0, 2000.0]


def test_seeds_are_pooled_with_their_spread() -> None:
    runs = [
        {"policy": "copter", "avg_jct_h": 1.0, "makespan_h": 4.0, "solve_percentiles_s": [1.0, 2.0]},
        {"policy": "copter", "avg_jct_h": 2.0, "makespan_h": 3.0, "solve_percentiles_s": [3.0, 6.0]},
    ]
    found = copter_table_4_1.pooled(runs)
    assert (found["policy"], found["avg_jct_h"], found["solve_percentiles_s"]) == ("copter", 1.5, [2.0, 4.0])
    assert (found["avg_jct_h_range"], found["makespan_h_range"]) == ((1.0, 2.0), (3.0, 4.0))


def test_table_4_1_fails_behind_lp_star_but_not_where_the_clock_decides() -> None:
    rows: list[dict[str, object]] = [
        {"policy": name, "avg_jct_h": jct_h, "makespan_h": 4.0, "solve_p99_s": 1.0}
        for name, jct_h in (("copter", 1.1), ("lp-star", 1.0))
    ]
    assert copter_table_4_1.within(rows, charged=False) is False
    assert copter_table_4_1.within(rows, charged=True) is None
    assert copter_table_4_1.within([rows[0] | {"avg_jct_h": 1.0}, rows[1]], charged=False) is True
    assert copter_table_4_1.within(rows[:1], charged=False) is None


def test_the_learned_runs_profile_on_gpus_and_double_at_most() -> None:
    learned = copter_table_4_1.LEARNED
    assert (learned.profiling, learned.profiling_s, learned.profiling_share, learned.growth) == (
        "bootstrap",
        20,
        0.125,
        2,
    )


def test_a_figures_command_takes_known_names_and_counts_from_one_on(capsys: pytest.CaptureFixture[str]) -> None:
    command = figure_command.figure_options("A figure.", ["1", "2b"], "draws")
    command.add_argument("--policies", type=figure_command.names_of(["fifo", "sia"]), default="sia,fifo")
    asked = command.parse_args(["2b", "--draws", "3", "--json"])
    assert (asked.figure, asked.draws, asked.policies) == ("2b", 3, ["sia", "fifo"])
    for wrong in (["3"], ["1", "--draws", "0"], ["1", "--policies", "lifo"], ["1", "--policies", ","]):
        with pytest.raises(SystemExit):
            command.parse_args(wrong)
        assert "A figure." in command.format_help()
    capsys.readouterr()
    figure_command.end_figure(asked, {"sia": [1.0, 2.5]}, {"1": "less", "2b": "twice as much"})
    claim, points = capsys.readouterr().out.strip().splitlines()
    assert "twice as much" in claim
    assert json.loads(points) == {"sia": [1.0, 2.5]}


def test_spread_has_the_least_and_the_most_where_there_are_several() -> None:
    assert figure_command.spread([2.0, 1.0, 6.0], " h") == "3 h (1 to 6)"
    assert figure_command.spread([0.12345]) == "0.123"


def outcome(name: str, jct_h: float) -> Outcome:
    return Outcome(name, np.array([jct_h]), np.array([1.0]), np.array([1.0]), 2.0 * jct_h, 0.5, 0.1, 0.01, 0)


def test_multiples_are_of_the_same_seeds_first_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [[outcome("hadar", 1.0), outcome("hadar", 2.0)], [outcome("gavel", 3.0), outcome("gavel", 2.0)]]
    rows = compare("average", runs, lambda each: float(each.jct_h.mean()), {"gavel": 1.8})
    assert [row["measured"] for row in rows] == [[1.0, 1.0], [3.0, 1.0]]
    assert [row["paper"] for row in rows] == [None, 1.8]
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == ["gavel", "2.5", "(2", "to", "3)", "2", "(1", "to", "3)", "1.80"]


def test_a_table_of_workloads_has_the_least_and_the_most() -> None:
    assert of_each([0.25, 2.0, 1.0]) == " (0.25 to 2)"
    assert of_each([1.0]) == ""


def spans(*rows: tuple[str, float, float, str, int]) -> SimulationResult:
    """A run of which only the spans are known: job, begin and end in minutes, GPU type, GPUs."""
    made = tuple(Span(job, 60.0 * a, 60.0 * b, kind, gpus) for job, a, b, kind, gpus in rows)
    times = {"j": (0.0, 10_800.0), "k": (12_000.0, 15_000.0), "z": (0.0, 9600.0)}
    columns = {
        "id": np.array(list(times)),
        "completion_s": np.array([end for _, end in times.values()]),
        "jct_s": np.array([end - begin for begin, end in times.values()]),
        "first_start_s": np.array([begin + 120.0 for begin, _ in times.values()]),
    }
    return SimulationResult(8, 60.0, 0, (), columns, (), made)


def test_a_timeline_is_cut_to_its_window_and_told_in_its_minutes() -> None:
    result = spans(("j", 0, 10, "t4", 2), ("j", 12, 30, "rtx", 4), ("k", 0, 30, "t4", 1))
    assert sia_curves.spans_of(result, "j", 300.0, 1200.0) == [(0.0, 5.0, "t4", 2), (7.0, 15.0, "rtx", 4)]
    assert sia_curves.spans_of(result, "j", 1800.0, 2400.0) == []
    jobs = [Job("j", "bert"), Job("k", "bert")]
    assert sia_curves.longest_of(result, jobs, "bert", 0.0) == "k"
    assert sia_curves.longest_of(result, jobs, "cifar10", 0.0) is None


def test_activity_is_that_of_the_jobs_in_the_window_and_its_figures_those_of_jobs_that_came_in_it() -> None:
    result = spans(("j", 100, 120, "t4", 1), ("j", 170, 180, "t4", 1), ("k", 202, 250, "t4", 1), ("z", 0, 160, "t4", 8))
    jobs = [Job("j", "bert"), Job("k", "bert", submit_s=12_000.0), Job("z", "bert")]
    found = sia_curves.activity(result, jobs)
    assert found["bars"] == [[(5.0, 15.0)], [(37.0, 85.0)]]
    assert (found["from_min"], found["to_min"]) == ([0.0, 35.0], [15.0, 85.0])
    assert found["served"] == pytest.approx(100.0 * 58 / 65)
    assert found["run_min"] == pytest.approx(29.0)
    assert (found["jct_h"], found["wait_min"], found["longest_wait_min"]) == (3000 / 3600, 2.0, 2.0)


def test_the_pipeline_models_throughput_is_linear_to_a_few_percent() -> None:
    for points in sia_curves.gpt_throughput().values():
        first, rate = points[0]
        assert all(0.95 < each / rate / (gpus / first) <= 1.0 for gpus, each in points)


def test_a_users_queue_is_of_one_type_and_a_changed_assumption_changes_its_scheduler_only() -> None:
    cluster = named_cluster("hadar-60")
    policy = hadar_reasons.own_type(cluster, table_source(cluster))
    jobs = hadar_jobs(30, "static", scale=0.02)
    for job in jobs:
        policy.add_job(job)
    first = {name: given.gpu_type for name, given in policy.plan(0.0, 60.0).allocations.items()}
    again = hadar_reasons.own_type(cluster, table_source(cluster))
    for job in reversed(jobs):
        again.add_job(job)
    second = {name: given.gpu_type for name, given in again.plan(0.0, 60.0).allocations.items()}
    assert len(set(first.values())) == 3
    assert all(second[name] == kind for name, kind in first.items() if name in second)
    base, changed = (
        hadar_reasons.outcomes(case, cluster, [jobs], "jct", ("hadar", "gavel", "yarn"))
        for case in (hadar_reasons.CASES[0], hadar_reasons.CASES[-1])
    )
    assert [base[name][0].makespan_h == changed[name][0].makespan_h for name in base] == [True, True, False]
    assert hadar_reasons.over(base, lambda o: o.makespan_h) == [
        f"{base[name][0].makespan_h / base['hadar'][0].makespan_h:.3g}" for name in ("gavel", "yarn")
    ]
