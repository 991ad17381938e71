"""Means with the least and the most of workloads and seeds: what Sia's sweeps and figures make of their runs."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "tables"))

import copter_figures
import copter_table_4_1
import rigid_only
import sia_figures
import sweeps
import time_sharing
from runs import RunStore
from spreads import mean_and_range, ratio_and_range

HEAD = "name,time,application,num_replicas,batch_size\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with two small workloads of each trace; the second's jobs come later and are longer."""
    for trace in ("philly", "saturn", "newtrace"):
        folder = tmp_path / "traces" / "sia" / trace
        folder.mkdir(parents=True)
        for number, application in ((1, "cifar10"), (2, "bert")):
            rows = [f"j{i},{600 * i},{application},{1 + i % 2},{128 if number == 1 else 24}" for i in range(8)]
            (folder / f"workload-{number}.csv").write_text(HEAD + "\n".join(rows) + "\n")
    monkeypatch.setenv("COPTER_DATA", str(tmp_path))
    return tmp_path


def last_object(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, dict[str, list[float]]]]:
    """The JSON object that a command prints last."""
    found: dict[str, dict[str, dict[str, list[float]]]] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_a_mean_has_its_range_and_a_ratio_that_of_each_workload() -> None:
    assert mean_and_range([1.0, 4.0]) == "2.5 (1 to 4)"
    assert mean_and_range([0.25]) == "0.25"
    assert ratio_and_range([3.0, 6.0], [1.0, 3.0]) == "2.25 (2.00 to 3.00)", "of the means, and of each"
    assert ratio_and_range([3.0], [2.0]) == "1.50"


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(("command", "base"), [(sweeps.main, "60"), (rigid_only.main, "gavel")])
def test_rows_are_means_of_their_workloads(command: object, base: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["round"] if base == "60" else []
    assert command([*given, "--workloads", "2", "--jobs", "3", "--json"]) == 0  # type: ignore[operator]
    found = last_object(capsys)
    assert base in found["rows"]
    for row, each in found["each"].items():
        for figure, values in each.items():
            assert len(values) == 2
            assert found["rows"][row][figure] == pytest.approx(np.mean(values)), (row, figure)
        assert each["avg_jct_h"][0] != each["avg_jct_h"][1]
        assert all(jct <= p99 <= last for jct, p99, last in zip(*list(each.values())[:3], strict=True)), row
    if base == "60":
        assert found["ratios"]["60"] == 1.0


@pytest.mark.usefixtures("data")
def test_the_bursts_ratio_is_that_of_the_same_workloads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time_sharing, "JOBS", 8)
    assert time_sharing.main(["--workloads", "2", "--burst", "4", "--window-s", "180", "--json"]) == 0
    found = last_object(capsys)["each"]
    assert set(found) == {"none", "180"}
    assert [run["burst_jobs"] for runs in found.values() for run in runs] == [4] * 4  # type: ignore[call-overload]
    some = [{"burst_jct_h": 2.0}, {"burst_jct_h": 6.0}]
    assert time_sharing.over(some, [{"burst_jct_h": 1.0}, {"burst_jct_h": 4.0}]) == "1.60 (1.50 to 2.00)"


def test_hours_by_type_are_over_the_least_policys_and_shares_are_of_each_workload() -> None:
    found = {
        "sia": [{"bert/t4": 1.0, "bert/a100": 3.0}, {"bert/a100": 4.0}],
        "gavel": [{"bert/t4": 4.0}, {"bert/t4": 12.0}],
    }
    assert sia_figures.hours_and_shares(found, ["t4", "a100"]) == [
        ["bert", "sia", "1 (1 to 1)", "12.5% (0 to 25)", "87.5% (75 to 100)"],
        ["bert", "gavel", "2 (1 to 3)", "100% (100 to 100)", "0% (0 to 0)"],
    ]


def test_percentiles_of_plans_are_those_of_runs_with_plans() -> None:
    assert sia_figures.plan_quartiles([[1.0, 2.0, 3.0], [], [4.0]]) == [[1.5, 4.0], [2.0, 4.0], [2.5, 4.0], [2.9, 4.0]]
    assert sia_figures.plan_quartiles([[]]) == [[]] * 4


def test_a_run_that_ends_before_its_first_job_has_no_percentiles(data: Path) -> None:
    path = data / "traces" / "sia" / "saturn" / "workload-1.csv"
    path.write_text(HEAD + "late,900,cifar10,1,128\n")
    asked = Namespace(points="1", policies=["sia"], workloads=1, hours=0.05)
    assert sia_figures.figure_3_10(asked, RunStore(None)) == {"sia 64": [[]] * 4}


def test_quarters_of_rounds_go_by_distance() -> None:
    rounds = np.array([(distance, 0.0, 0.0, 10.0 * distance) for distance in (8, 1, 7, 2, 3, 6, 5, 4)], dtype=float)
    assert copter_figures.by_quarter(rounds)[:, [0, 3]].tolist() == [[1.5, 15], [3.5, 35], [5.5, 55], [7.5, 75]]


def test_a_kept_run_is_told_from_every_other() -> None:
    usual = ["--gpus", "56", "--hours", "1"]
    others = [
        [],
        *(["--plan-latency", "1"], ["--threads", "1"], ["--relative-gap", "0.1"], ["--time-limit-s", "9"]),
        *(["--mode", "capped"], ["--learned"], ["--work", "trace"], ["--hours", "2"], ["--gpus", "112"]),
    ]
    made = [copter_table_4_1.parser().parse_args([*usual, *each]) for each in others]
    names = {copter_table_4_1.kept_name("milp", asked, 0, "a log") for asked in made}
    names |= {copter_table_4_1.kept_name(name, made[0], 0, "a log") for name in ("copter", "pop")}
    names |= {
        copter_table_4_1.kept_name("milp", made[0], 1, "a log"),
        copter_table_4_1.kept_name("milp", made[0], 0, ""),
    }
    parts = copter_table_4_1.parser().parse_args([*usual, "--parts", "4"])
    names.add(copter_table_4_1.kept_name("pop", parts, 0, "a log"))
    assert len(names) == len(others) + 5


def test_a_run_of_table_4_1_that_was_stopped_goes_on_where_it_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["--gpus", "224", "--hours", "0.2", "--policies", "copter", "--threads", "1", "--json"]
    kept = ["--keep", str(tmp_path / "kept" / "day.jsonl"), "--save-every", "10"]
    step, done = copter_table_4_1.Simulation.step, 0

    def until_stopped(simulation: Any, warmup: bool = False) -> Any:
        nonlocal done
        done += 1
        if done == 25:
            raise KeyboardInterrupt
        return step(simulation, warmup)

    monkeypatch.setattr(copter_table_4_1.Simulation, "step", until_stopped)
    with pytest.raises(KeyboardInterrupt):
        copter_table_4_1.main([*given, *kept])
    unfinished = list((tmp_path / "kept").glob("*.run"))
    assert len(unfinished) == 1
    copter_table_4_1.main([*given, *kept])
    rounds = done - 25
    assert list((tmp_path / "kept").glob("*.run")) == []
    kept_figures = json.loads((tmp_path / "kept" / "day.jsonl").read_text())["figures"]
    done = 25
    copter_table_4_1.main(given)
    assert done - 25 == rounds + 20, "the second run went on after round 20"
    asked = copter_table_4_1.parser().parse_args(given)
    workload = copter_table_4_1.make_workload(None, None, 0.2, 224, 0, "full")
    whole = copter_table_4_1.run("copter", asked, workload.jobs, 0)
    for name in ("avg_jct_h", "makespan_h", "jobs_completed", "variables_max"):
        assert kept_figures[name] == whole[name]
    assert ", commit " in kept_figures["made"]
    before = done
    copter_table_4_1.main([*given, *kept])
    assert done == before, "what is kept is not made again"
