"""Rounds and jobs as Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from copter_frontends.simulator import RoundRecord, SimulationResult
from copter_frontends.simulator.metrics import STAGES

_PLAIN = (
    *("index", "now_s", "warmup", "active_jobs", "running_jobs", "queued_jobs", "started", "stopped", "moved"),
    *("objective", "bound", "gap", "fractional_jobs", "round_s", "overhead_s", "variables", "peak_rss_mb"),
)


def round_columns(rounds: Sequence[RoundRecord]) -> dict[str, list[Any]]:
    """Return the table of rounds: plain fields of the records, and one column per stage, GPU type and price."""
    columns: dict[str, list[Any]] = {name: [getattr(r, name) for r in rounds] for name in _PLAIN}
    columns["status"] = [r.status.value for r in rounds]
    columns["completed_jobs"] = [len(r.completed) for r in rounds]
    for stage in STAGES:
        columns[f"{stage}_s"] = [r.timings.get(stage) for r in rounds]
    for kind in dict.fromkeys(kind for r in rounds for kind in r.gpus_capacity):
        columns[f"gpus_used_{kind}"] = [r.gpus_used.get(kind, 0) for r in rounds]
        columns[f"gpus_capacity_{kind}"] = [r.gpus_capacity.get(kind, 0) for r in rounds]
    for kind in dict.fromkeys(kind for r in rounds for kind in r.prices):
        columns[f"price_{kind}"] = [r.prices.get(kind) for r in rounds]
    return columns


def write_tables(result: SimulationResult, directory: Path) -> None:
    """Write ``rounds.parquet`` and ``jobs.parquet``."""
    import pyarrow as pa  # of the optional extra `report`
    import pyarrow.parquet as pq

    pq.write_table(pa.table(round_columns(result.rounds)), directory / "rounds.parquet")
    pq.write_table(pa.table({k: pa.array(v) for k, v in result.jobs.items()}), directory / "jobs.parquet")
