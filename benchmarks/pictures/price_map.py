"""Prices of a network's links on its map: the report's chart of one run of `copter simulate traffic`."""

from __future__ import annotations

from copter_frontends.report.traffic_charts import traffic_charts
from copter_frontends.traffic import make_scheme, simulate_traffic
from copter_frontends.traffic.simulation import TrafficResult
from copter_frontends.traffic.workload import TrafficOptions, make_workload
from pictures.drawing import drawn


def run(network: str, rounds: int, scale: float) -> TrafficResult:
    """Rounds of perturbed demands on a network that ships with the project, `scale` times the gravity model's."""
    workload = make_workload(TrafficOptions(network, scale=scale, rounds=rounds))
    scheme = make_scheme("copter", workload.paths, workload.first, "total", 1, 0)
    return simulate_traffic("copter", scheme, workload.rounds())


def picture(result: TrafficResult) -> str:
    """The SVG of the last round's prices; ValueError if no link has one."""
    charts = {chart.name: chart for chart in traffic_charts([result])}
    if "price_map" not in charts:
        raise ValueError(f"{result.paths.network.name}: no link of the last round has a price; scale the demands up")
    return drawn(lambda figure, theme: charts["price_map"].draw(figure.add_subplot(), theme), (7.2, 4.2))
