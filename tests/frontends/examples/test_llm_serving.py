"""Serving language models: the example's worths by hand, its plans beside HiGHS and the greedy, hours that end."""

from __future__ import annotations

import gzip
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
RIVALS = runpy.run_path(str(ROOT / "benchmarks" / "llm_rivals.py"))
SERVING = RIVALS["SERVING"]


def test_a_worth_by_hand() -> None:
    mix = int(np.flatnonzero((SERVING["MIXES"] == [2, 0, 1]).all(axis=1))[0])
    speed = 60.0 * (2 * 9e3 * 0.9 + 9e2 * 0.8)  # two replicas on h100, one on l4, of the smallest model, relaxed
    cost = (2 * 4.0 + 0.6) / 60.0 + SERVING["LOADING"] * 2  # one of three runs already
    for load in (1e5, 1e9):
        found = SERVING["worths"]((0, 1, 0), load, np.array([1, 0, 0]))[mix]
        assert found == pytest.approx(SERVING["WORTH"] * min(load, speed) - cost)


def test_traffic_is_read_minute_by_minute(tmp_path: Path) -> None:
    head, text = "TIMESTAMP,ContextTokens,GeneratedTokens\n", "2023-11-16 18:17:03.9799600,100,10\n"
    later = "2023-11-16 18:19:03.9800000,300,20\n"
    with gzip.open(tmp_path / "AzureLLMInferenceTrace_code.csv.gz", "wt") as file:
        file.write(head + text + later)
    loads = SERVING["traffic"](tmp_path)
    assert len(loads) == 4 * 2 * SERVING["TENANTS"]
    total = sum(loads.values())
    assert (total[[0, 1, 2]] / SERVING["SCALE"]).tolist() == [110.0, 0.0, 320.0]


def test_plans_are_as_good_as_highs_and_better_than_the_greedy(tmp_path: Path) -> None:
    pytest.importorskip("highspy", reason="needs copter-lp[highs]")
    loads = SERVING["traffic"](tmp_path)
    groups, fleet = list(loads), SERVING["Fleet"](list(loads))
    costs = np.array([SERVING["worths"](group, loads[group][0], np.zeros(3)) for group in groups])
    plan = fleet.plan(costs, None)

    def worth(chosen: np.ndarray) -> float:
        return sum(float(costs[at, column]) for at, column in enumerate(chosen.tolist()) if column >= 0)

    exact = worth(RIVALS["ByHighs"](groups, kept=False)(groups, costs))
    assert plan.objective <= exact * (1 + 1e-4)
    assert exact <= plan.bound * (1 + 1e-6)
    assert worth(RIVALS["greedy"](groups, costs)) <= plan.bound * (1 + 1e-9)
    assert plan.objective >= exact * (1 - plan.gap - 1e-4)


def test_three_minutes_within_the_gpus(tmp_path: Path) -> None:
    loads = SERVING["traffic"](tmp_path)
    found = RIVALS["played"](loads, RIVALS["ByCopter"](list(loads), None), 3)
    by_hand = RIVALS["played"](loads, RIVALS["greedy"], 3)
    assert found["worth"] >= 0.98 * by_hand["worth"]
    assert 0.0 <= found["late"] <= 1.0
