"""Kueue's own tests of preemption, from a checkout of Kueue: the same workloads are stopped.

`make kueue-suite` fetches Kueue and sets KUEUE_TESTS. Cases with what the plan does not know are left out: several pod
sets, boosts in the tables, shares of local queues.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kueue_cases import cases

from copter_serve.queues import fair_preemption, preemption

TESTS = os.environ.get("KUEUE_TESTS", "")
FILES = {
    "preemption_test.go": 30,
    "preemption_hierarchical_test.go": 12,
    "preemption_fair_test.go": 30,
}  # with the least number of cases that are read


@pytest.mark.skipif(not TESTS, reason="KUEUE_TESTS does not name Kueue's folder of these tests: make kueue-suite")
@pytest.mark.parametrize("file", FILES)
def test_kueues_own_cases(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fair = "fair" in file
    for module in (preemption, fair_preemption):  # Kueue decides this before the function that these cases call
        monkeypatch.setattr(module, "may_stop_others", lambda *_: True)
    different, count = {}, 0
    for each in cases(Path(TESTS) / file, fair):
        count += 1
        if fair:
            found = fair_preemption.fair_victims(each.tree, each.rules, each.asking, each.holders, each.strategies)
        else:
            found = preemption.victims(each.tree, each.rules, each.asking, each.holders)
        names = {holder.key for holder in found or []}
        if names != each.expected:
            different[each.name] = (names, each.expected)
    assert different == {}
    assert count >= FILES[file]
