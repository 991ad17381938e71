"""What the views say of random clusters, judged; `make check-long` judges 20,000 documents of each."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.adversary.view_run import DRAWN, judged
from tests.adversary.view_truth import TrueJob, TrueNode, TruePod, Truth, false_start, missed_start, most_units


@pytest.mark.parametrize("kind", sorted(DRAWN))
def test_no_false_start_none_missed_and_none_above_the_bound(kind: str) -> None:
    counts: Counter[str] = Counter()
    wrong = {seed: why for seed in range(30_000, 30_300) if (why := judged(kind, seed, counts))}
    assert wrong == {}
    assert counts["named"] > 50
    assert counts["known"] > 200


def test_the_judge_sees_false_and_missed_starts() -> None:
    nodes = {"n1": TrueNode({"cpu": 2, "gpu": 1}), "n2": TrueNode({"cpu": 2, "gpu": 1})}
    pods = [TruePod({"cpu": 1, "gpu": 2}, frozenset(nodes)), TruePod({"cpu": 1, "gpu": 1}, frozenset({"n1"}))]
    jobs = {
        "two": TrueJob(pods[:1], units=2),
        "one": TrueJob(pods[1:], units=1),
        "held": TrueJob(pods[1:], False, units=1),
    }
    truth = Truth(nodes, jobs)
    assert false_start(truth, [("two", [["n1"]], {})]) == "two does not fit on ['n1']"
    assert false_start(truth, [("one", [["n2"]], {})]) == "one does not fit on ['n2']"
    assert false_start(truth, [("held", [["n1"]], {})]) == "held may not start"
    assert false_start(truth, [("one", [["n1"]], {})]) == ""
    assert missed_start(truth, []) == "one on n1"
    assert missed_start(truth, [("one", [["n1"]], {})]) == ""
    assert most_units(truth) == 1


def test_a_gpu_has_one_name_in_both_forms_of_its_label() -> None:
    assert judged("kai", 7370, Counter()) == ""
