"""Kueue's scheduler test: its numbers, its bounds, and a small one decided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_json

from copter_frontends.policies.registry.network_names import LOAD_TESTS
from copter_serve.queues import QueueError, Quota, QuotaTree
from copter_serve.queues.inversions import Inversions, Kind
from copter_serve.queues.load_bounds import least_waiting_ms, load_bounds
from copter_serve.queues.load_run import run_load_test
from copter_serve.queues.load_test import BUILT_IN, SHARE, load_test

SMALL = """
cohorts:
- className: cohort
  count: 2
  queuesSets:
  - className: cq
    count: 12
    nominalQuota: 20
    borrowingLimit: 100
    reclaimWithinCohort: Any
    withinClusterQueue: LowerPriority
    workloadsSets:
    - {count: 20, creationIntervalMs: 20, workloads: [{className: small, runtimeMs: 50, priority: 50, request: 1}]}
    - {count: 7, creationIntervalMs: 50, workloads: [{className: medium, runtimeMs: 100, priority: 100, request: 5}]}
    - {count: 3, creationIntervalMs: 200, workloads: [{className: large, runtimeMs: 200, priority: 200, request: 20}]}
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return str(path)


def test_the_built_in_tests_are_those_that_help_names_and_have_their_sizes() -> None:
    assert tuple(BUILT_IN) == LOAD_TESTS
    assert [test.workloads for test in BUILT_IN.values()] == [60_000, 50_000, 15_000]
    first = BUILT_IN["large-scale-60000"]
    assert (first.queues, first.quota, first.grid_ms) == (2000, 40_000, 10)
    assert sum(each.count for each in first.cohort_sets[0].queue_sets[0].classes) == 30


def test_bounds_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(
        "cohorts: [{className: c, count: 1, queuesSets: [{className: q, count: 2, nominalQuota: 1, workloadsSets: ["
        "{count: 2, creationIntervalMs: 10, workloads: [{className: a, runtimeMs: 20, priority: 1, request: 1}]}]}]}]"
    )
    test = load_test(str(path))
    bounds = load_bounds(test)
    # Two units; two workloads come at 10 and two at 20: the latter wait from 20 to 30, all end at 50.
    assert bounds.end_ms == pytest.approx(50.0)
    assert bounds.usage == pytest.approx(80.0 / 100.0)
    assert bounds.waiting_ms == pytest.approx(5.0, abs=1e-3)
    result = run_load_test(test)
    assert result.end_ms == 50.0
    assert result.usage == pytest.approx(bounds.usage)
    assert result.waiting_ms() == pytest.approx(5.0)


def test_a_small_one_reaches_its_bounds_and_overturns_no_priority(
    capsys: pytest.CaptureFixture[str], small: str, tmp_path: Path
) -> None:
    tape = tmp_path / "kueue.tape"
    code, found, _ = run_json(capsys, "simulate", "kueue", "--test", small, "--threads", "1", "--tape", str(tape))
    assert code == 0
    assert found["admitted"] == found["workloads"] == 720
    assert (
        found["usage"]["of_attainable"] >= 0.9
    )  # of a bound that splits workloads; large ones do not pack as well as in 100 queues
    assert found["end_ms"] >= found["least_end_ms"]
    assert found["inversions"] == found["idle"] == 0
    for each in found["classes"]:
        assert each["mean_ms"] >= each["least_mean_ms"] - 1e-3
    assert [each["class"] for each in found["classes"]] == ["large", "medium", "small"]
    assert found["mean_ms"] >= found["least_mean_ms"]
    code, replayed, _ = run_json(capsys, "replay", str(tape), "--threads", "1")
    assert code == 0
    assert json.dumps(replayed)


def test_a_bound_that_classes_above_limit_is_no_lower(small: str) -> None:
    test = load_test(small)
    alone, kept = least_waiting_ms(test, {"small": 1.0}), least_waiting_ms(test, {"small": 1.0}, {"large": 0.0})
    assert alone is not None
    assert kept is not None
    assert kept >= alone - 1e-6


def test_the_judge_sees_overturned_priorities_and_idle_room() -> None:
    tree = QuotaTree()
    tree.add_queue("a", {SHARE: Quota(10, borrowing=5)}, "c")
    tree.add_queue("b", {SHARE: Quota(10)}, "c")
    tree.settle().use("b", {SHARE: 12.0})
    judge = Inversions(tree, SHARE)
    judge.look([Kind("a", 20.0, 9, 1, 0), Kind("b", 1.0, 1, 0, 12)])  # 20 are more than a may borrow
    assert (judge.inversions, judge.idle) == (0, 0)
    judge.look([Kind("a", 15.0, 9, 1, 0), Kind("b", 1.0, 1, 0, 12)])
    assert (judge.inversions, judge.idle) == (1, 0)
    judge.look([Kind("a", 8.0, 9, 1, 0)])
    assert (judge.inversions, judge.idle) == (1, 1)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("nominalQuota: 20", "nominalQuota: lots", "nominalQuota: 'lots' is not a quantity"),
        ("nominalQuota: 20", "nominalQuota: -4", "nominalQuota: -4 must be"),
        ("count: 2\n", "count: 0\n", "count: must be a whole number of 1"),
        ("count: 2\n", "count: 900000\n", "workloads; it must be"),
        ("reclaimWithinCohort: Any", "reclaimWithinCohort: Always", "'Always'; it must be one of"),
        ("runtimeMs: 50, ", "", "lacks runtimeMs"),
        ("className: small", "className: small, gpus: 4", "unknown field gpus"),
        ("cohorts:", "topology: {}\ncohorts:", "a topology is not read"),
        ("cohorts:", "cohorts: []\nresourceFlavor:", "must be a list with at least one entry"),
    ],
)
def test_a_generator_file_that_cannot_be(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "bad.yaml"
    assert old in SMALL
    path.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(QueueError, match=says):
        load_test(str(path))
