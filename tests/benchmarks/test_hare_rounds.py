"""Hare's opponents on the benchmarks' own table."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

TABLES = Path(__file__).parents[2] / "benchmarks" / "tables"


def test_hare_is_below_its_opponents_where_gpus_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(TABLES), *sys.path])
    runs = importlib.import_module("hare_runs")
    workload = importlib.import_module("copter_papers.hare.workload").PaperWorkload(40)
    monkeypatch.setattr(runs, "MAX_TASKS", 50_000)
    row = runs.weighted_jct_h(workload, runs.mixed(32), range(1), online=True)
    assert set(row) == set(runs.NAMES)
    ((nearest, furthest),) = runs.below_others(row)
    assert 0.0 < nearest < furthest < 1.0
