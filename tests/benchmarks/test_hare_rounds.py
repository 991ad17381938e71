"""Hare's round sequence at a tiny scale: judged, warm, and equal to HiGHS."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from families.hare import HareRounds, HareRun
from harness import Options

TABLES = Path(__file__).parents[2] / "benchmarks" / "tables"


def options(**fields: object) -> Options:
    return Options(**({"family": "hare", "mode": "capped", "scale": 150, "churn": 0.05, "rounds": 2} | fields))


def test_rounds_agree_with_highs() -> None:
    found = HareRun(options(tolerance=1e-5, peers=("highs", "highs-ipm-cold"))).run()
    assert found["jobs"] == 30
    assert found["copter"]["not_optimal"] == 0
    assert found["copter"]["gap_max"] <= 1e-5
    assert found["objective_rel_diff_max"] <= 1e-4
    assert found["peers"]["highs"]["cold_ended"]
    assert found["variables"] > 1000


def test_the_same_seed_gives_the_same_sequence() -> None:
    one, two = (HareRounds(150, "full", 0.05, 3) for _ in range(2))
    before = [job.id for job in one.jobs]
    for family in (one, two):
        family.prepare()
        family.edit()
    assert one.jobs == two.jobs
    assert sum(job.id not in before for job in one.jobs) == 2


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(SystemExit, match="no peer 'glop'"):
        HareRun(options(peers=("glop",)))


def test_hare_is_below_its_opponents_where_gpus_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(TABLES), *sys.path])
    runs = importlib.import_module("hare_runs")
    workload = importlib.import_module("copter_frontends.hare.workload").PaperWorkload(40)
    monkeypatch.setattr(runs, "MAX_TASKS", 50_000)
    row = runs.weighted_jct_h(workload, runs.mixed(32), range(1), online=True)
    assert set(row) == set(runs.NAMES)
    assert row["hare"] < min(value for name, value in row.items() if not name.startswith("hare"))
