"""A scheduler's day from what `copter simulate --out` wrote: utilisation, queue, prices and gap, round by round."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from copter_frontends.report.charts import charts_of
from copter_frontends.simulator import RoundRecord, SimulationResult
from copter_frontends.simulator.metrics import STAGES
from copter_frontends.vocabulary import PlanStatus
from pictures.drawing import drawn, panels

PANELS = ("utilisation", "jobs", "prices", "gap")
"""The report's charts that are drawn."""


def rounds_in(folder: Path) -> tuple[RoundRecord, ...]:
    """The rounds of a report's folder; which jobs ended in a round is not in it."""
    table = pq.read_table(folder / "rounds.parquet").to_pydict()
    names = {field.name for field in fields(RoundRecord)} & table.keys()

    def begun_with(prefix: str, row: int) -> dict[str, Any]:
        found = {name.removeprefix(prefix): values[row] for name, values in table.items() if name.startswith(prefix)}
        return {name: value for name, value in found.items() if value is not None}

    return tuple(
        RoundRecord(
            **{name: table[name][row] for name in names if name != "status"},
            gpus_used=begun_with("gpus_used_", row),
            gpus_capacity=begun_with("gpus_capacity_", row),
            prices=begun_with("price_", row),
            timings={stage: table[f"{stage}_s"][row] or 0.0 for stage in STAGES},
            status=PlanStatus(table["status"][row]),
            completed=(),
        )
        for row in range(len(table["index"]))
    )


def picture(folder: Path) -> str:
    """The SVG of a report's folder; ValueError if the run had no program, and so neither prices nor gaps."""
    rounds = rounds_in(folder)
    result = SimulationResult(0, 60.0, 0, rounds, {"jct_s": np.zeros(0)}, ())
    charts = {chart.name: chart for chart in charts_of(result, ())}
    if missing := [name for name in PANELS if name not in charts]:
        raise ValueError(f"{folder}: this run has no {' and no '.join(missing)}")
    chosen = [charts[name] for name in PANELS]

    def draw(figure: Any, theme: Any) -> None:
        for axes, chart in zip(panels(figure, [chart.title for chart in chosen], 2), chosen, strict=True):
            chart.draw(axes, theme)

    return drawn(draw, (9.6, 5.6))
