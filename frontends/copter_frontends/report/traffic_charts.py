"""Plots of traffic engineering: the network on its map, flow and time of each scheme, prices of links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter_frontends.report.charts import Chart
from copter_frontends.report.theme import Theme
from copter_frontends.traffic.network import Network
from copter_frontends.traffic.simulation import TrafficResult

Floats = NDArray[np.float64]
MOST_PRICES = 7  # most links whose prices are drawn
STEPS = ((0.5, "up to 50%"), (0.8, "50 to 80%"), (0.999, "80 to 99.9%"), (np.inf, "full"))


def traffic_charts(results: Sequence[TrafficResult]) -> list[Chart]:
    """Return the plots for which the results have data."""
    first = results[0]
    charts = []
    if first.last is not None:
        caption = f"Links of {first.paths.network.name} by utilisation in the last round, {first.scheme}."
        charts.append(Chart("map", "The network", caption, lambda a, t: _map(a, t, first)))
    caption = "Total flow of each round's plan, and the demand."
    charts.append(Chart("flow", "Flow", caption, lambda a, t: _flow(a, t, results)))
    caption = "Seconds from the edits to flows that are feasible exactly."
    charts.append(Chart("round_time", "Round time", caption, lambda a, t: _times(a, t, results)))
    caption = "The busiest link of each round."
    charts.append(Chart("utilisation", "Largest utilisation", caption, lambda a, t: _utilisation(a, t, results)))
    if any(len(prices) and prices.any() for prices in first.prices):
        caption = f"What one more unit of capacity would add, for the {MOST_PRICES} dearest links, {first.scheme}."
        charts.append(Chart("prices", "Prices of links", caption, lambda a, t: _prices(a, t, first)))
    if first.prices and first.capacity.shape == first.prices[-1].shape and first.prices[-1].any():
        caption = f"Links of {first.paths.network.name} by their price in the last round, {first.scheme}."
        charts.append(Chart("price_map", "Prices on the map", caption, lambda a, t: _price_map(a, t, first)))
    return charts


def positions(result: TrafficResult) -> Floats:
    """Return the node positions to draw, from the map or computed from the links, (nodes, 2)."""
    network = result.paths.network
    if network.position is not None:
        known = np.asarray(np.isfinite(network.position).all(axis=1), dtype=np.bool_)
        if known.sum() > network.n_nodes // 2:
            return beside_neighbours(network, network.position, known)
    adjacency = np.zeros((network.n_nodes, network.n_nodes))
    adjacency[network.source, network.target] = adjacency[network.target, network.source] = 1.0
    if network.n_nodes > 2000:
        angle = 2.0 * np.pi * np.arange(network.n_nodes) / network.n_nodes
        return np.stack((np.cos(angle), np.sin(angle)), axis=1)
    degree = adjacency.sum(axis=1)
    scaled = adjacency / np.sqrt(np.outer(degree, degree))
    _, vectors = np.linalg.eigh(scaled)  # Hall's drawing: the eigenvectors of the smallest nonzero eigenvalues
    drawn = vectors[:, -3:-1] / np.sqrt(degree)[:, None]
    drawn = drawn * np.where(drawn[np.abs(drawn).argmax(axis=0), [0, 1]] < 0.0, -1.0, 1.0)
    return np.asarray(np.sign(drawn) * np.sqrt(np.abs(drawn)))


def beside_neighbours(network: Network, position: Floats, known: NDArray[np.bool_]) -> Floats:
    """Place nodes of unknown position between their neighbours, (nodes, 2)."""
    found = np.where(known[:, None], position, np.nanmean(position, axis=0))
    degree = np.maximum(np.bincount(network.source, minlength=network.n_nodes), 1)[:, None]
    for _ in range(100 if not known.all() else 0):
        around = np.zeros_like(found)
        np.add.at(around, network.source, found[network.target])
        found = np.where(known[:, None], found, around / degree)
    return np.asarray(found)


def _map(axes: Any, theme: Theme, result: TrafficResult) -> None:
    plan = result.last
    if plan is None:
        return
    used = plan.utilisation(result.capacity)
    _draw_links(axes, theme, result, used, STEPS, 1.0)


def _price_map(axes: Any, theme: Theme, result: TrafficResult) -> None:
    prices = result.prices[-1]
    dearest = float(prices.max())
    free = 1e-9 * dearest
    steps = [(free, "free"), *((share * dearest, f"to {share * dearest:.3g}") for share in (1 / 3, 2 / 3, 1.0))]
    _draw_links(axes, theme, result, prices, steps, dearest)


def _draw_links(
    axes: Any, theme: Theme, result: TrafficResult, of_arc: Floats, steps: Sequence[tuple[float, str]], widest: float
) -> None:
    """Draw links coloured by the larger value of their two arcs; failed links are dotted."""
    network, place = result.paths.network, positions(result)
    of_link = np.array([of_arc[link].max() for link in network.links])
    is_cut = np.array([(result.capacity[link] <= 0.0).any() for link in network.links])
    ends = [place[[network.source[link[0]], network.target[link[0]]]] for link in network.links]
    colours = (theme.series[5], theme.series[0], theme.series[1], theme.series[3])
    low = -1.0
    for order, ((high, words), colour) in enumerate(zip(steps, colours, strict=True)):
        own = np.flatnonzero((of_link > low) & (of_link <= high) & ~is_cut)
        low = high
        for at in own.tolist():
            axes.plot(*ends[at].T, color=colour, linewidth=0.7 + 1.1 * min(of_link[at] / widest, 1.0), zorder=2 + order)
        axes.plot([], [], color=colour, label=f"{words} ({len(own)})")
    for at in np.flatnonzero(is_cut).tolist():
        axes.plot(*ends[at].T, color=theme.ink, linewidth=1.2, linestyle=":", zorder=7)
    axes.plot(*place.T, linestyle="", marker="o", markersize=1.8, color=theme.muted, zorder=8)
    axes.set_axis_off()
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, -0.12), ncols=4, fontsize=7)


def _flow(axes: Any, theme: Theme, results: Sequence[TrafficResult]) -> None:
    demand = [each.demand for each in results[0].rounds]
    axes.plot(demand, color=theme.muted, linestyle="--", linewidth=1.0, label="demand")
    for result, colour in zip(results, _colours(theme, len(results)), strict=True):
        axes.plot([each.flow for each in result.rounds], color=colour, label=result.scheme)
    _rounds(axes, "flow")


def _times(axes: Any, theme: Theme, results: Sequence[TrafficResult]) -> None:
    for result, colour in zip(results, _colours(theme, len(results)), strict=True):
        axes.plot([max(each.round_s, 1e-5) for each in result.rounds], color=colour, label=result.scheme)
    axes.set_yscale("log")
    _rounds(axes, "seconds")


def _utilisation(axes: Any, theme: Theme, results: Sequence[TrafficResult]) -> None:
    for result, colour in zip(results, _colours(theme, len(results)), strict=True):
        axes.plot([each.utilisation for each in result.rounds], color=colour, label=result.scheme)
    _rounds(axes, "load over capacity")


def _prices(axes: Any, theme: Theme, result: TrafficResult) -> None:
    m = result.paths.network.n_arcs
    prices = np.array([each if len(each) == m else np.full(m, np.nan) for each in result.prices])
    dearest = np.argsort(-np.nan_to_num(prices).max(axis=0), kind="stable")[:MOST_PRICES]
    network = result.paths.network
    for arc, colour in zip(dearest.tolist(), _colours(theme, len(dearest)), strict=True):
        name = f"{network.nodes[network.source[arc]]} → {network.nodes[network.target[arc]]}"
        axes.plot(prices[:, arc], color=colour, label=name)
    _rounds(axes, "price")


def _rounds(axes: Any, label: str) -> None:
    axes.set_xlabel("round")
    axes.set_ylabel(label)
    axes.legend(fontsize=7)


def _colours(theme: Theme, count: int) -> list[str]:
    return [theme.series[at % len(theme.series)] for at in range(count)]
