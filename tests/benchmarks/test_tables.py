"""What the tables share: runs that are kept, their names, figures by path, distances of distributions."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "tables"))
from policy_table import at_path
from reference_table import quantile_distance
from runs import RunStore, Setting, figures_of, jobs_of, run_name

from copter_frontends.vocabulary.semantics import DEFAULT

WORKLOAD = """name,time,application,num_replicas,batch_size
a,0,cifar10,2,512
b,60,cifar10,1,256
c,130,bert,4,24
"""


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    (tmp_path / "philly").mkdir()
    path = tmp_path / "philly" / "workload-1.csv"
    path.write_text(WORKLOAD)
    return Setting("sia", "sia-het", path)


def test_a_kept_run_is_not_run_again(tmp_path: Path) -> None:
    made = []

    def make() -> dict[str, float]:
        made.append(1)
        return {"avg_jct_h": 0.5}

    path = tmp_path / "folder" / "runs.jsonl"
    first = RunStore(path)
    assert first.figures("one", make) == first.figures("one", make) == {"avg_jct_h": 0.5}
    assert RunStore(path).figures("one", make) == {"avg_jct_h": 0.5}
    assert len(made) == 1
    RunStore(path).figures("two", make)
    RunStore(None).figures("two", make)
    assert len(made) == 3


def test_the_name_of_a_run_tells_all_that_changes_it(setting: Setting) -> None:
    changed = [
        replace(setting, policy="fifo"),
        replace(setting, cluster="sia-hom"),
        replace(setting, jobs=2),
        replace(setting, round_s=30.0),
        replace(setting, semantics=DEFAULT),
        replace(setting, workload=setting.workload.with_name("workload-2.csv")),
    ]
    names = {run_name(each) for each in (setting, *changed)} | {run_name(setting, "p 1.0")}
    assert len(names) == len(changed) + 2


def test_a_run_has_its_summary_its_jcts_and_its_fairness(setting: Setting) -> None:
    found = figures_of(setting)
    assert found["jobs_completed"] == len(found["jct_s"]) == 3
    assert np.mean(found["jct_s"]) / 3600 == pytest.approx(found["avg_jct_h"])
    assert at_path(found, "ftf.thesis.worst") >= at_path(found, "ftf.artifact.worst") > 0


def test_only_sia_is_told_the_workloads_batch_as_a_cap(setting: Setting) -> None:
    assert [job.max_batch_size for job in jobs_of(setting)] == [512, 256, 24]
    assert [job.max_batch_size for job in jobs_of(replace(setting, policy="pollux"))] == [None] * 3
    assert [job.batch_size for job in jobs_of(replace(setting, policy="gavel"))] == [512, 256, 24]


def test_the_distance_of_quantiles_is_that_of_the_means_for_a_shift() -> None:
    jct_s = np.array([1.0, 2.0, 6.0])
    assert quantile_distance(jct_s, jct_s) == 0.0
    assert quantile_distance(jct_s + 3.0, jct_s) == pytest.approx(1.0)
