"""The benchmarks' figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

COPTER, HIGHS, FLOOR = "#0b6e99", "#c8553d", "#8a8a8a"
LABELS = {
    "highs_dual_warm": "HiGHS dual simplex, warm",
    "highs_primal_warm": "HiGHS primal simplex, warm",
    "highs_simplex_cold": "HiGHS simplex, cold",
    "highs_ipm_cold": "HiGHS IPM, cold",
    "highs_ipm_cold_no_crossover": "HiGHS IPM, cold, no crossover",
    "highs_ipm_cold_no_crossover_1e-6": "HiGHS IPM to 1e-6, cold, no crossover",
    "glop_warm": "GLOP, incremental",
    "pdlp_warm": "PDLP, from last point",
}
TITLES = {"sia": "Sia", "gub": "GUB scheduling", "transport": "transport", "multicommodity": "multi-commodity flow"}
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "copter",
    "savefig.bbox": "tight",
}


def save(figure: Any, path: Path) -> None:
    """Write an SVG without a date, so that the same figures give the same file."""
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def time_curves(results: list[dict[str, Any]], across: str, stream: float, path: Path) -> None:
    """Time of a round against `across` ("nonzeros" or "churn"), a panel a family, with the memory-pass floor."""
    names = [name for name in TITLES if any(result["family"] == name for result in results)]
    with mpl.rc_context(STYLE):
        figure, panels = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3.2), sharey=True, squeeze=False)
        for panel, name in zip(panels[0], names, strict=True):
            own = sorted((result for result in results if result["family"] == name), key=lambda r: r[across])
            one_family(panel, own, across, stream)
            panel.set_title(TITLES[name], fontsize=10)
            panel.set_xlabel("nonzeros" if across == "nonzeros" else churn_label(name))
        panels[0][0].set_ylabel("median round, s")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=len(labels), bbox_to_anchor=(0.5, 1.07))
        figure.tight_layout()
        save(figure, path)


def churn_label(name: str) -> str:
    """What churn means in a family."""
    return "largest change of a demand" if name == "multicommodity" else "share of requests replaced"


def one_family(panel: Axes, own: list[dict[str, Any]], across: str, stream: float) -> None:
    """Curves of copter, the peer's best way, and the floor."""
    at = np.array([result[across] for result in own])
    panel.loglog(at, [r["copter"]["p50_s"] for r in own], "o-", color=COPTER, label="copter", markersize=4)
    timed = [(r[across], r["best_peer_p50_s"]) for r in own if r["best_peer_p50_s"] is not None]
    if timed:
        panel.loglog(*zip(*timed, strict=True), "s-", color=HIGHS, label="HiGHS, its best way", markersize=4)
    floor = [8.0 * result["variables"] / stream for result in own]
    panel.loglog(at, floor, "--", color=FLOOR, label="one pass over the costs", linewidth=1.2)
    panel.minorticks_off()
    if across == "churn":
        panel.set_xticks(at, [f"{100 * churn:g} %" for churn in at])
    else:  # whole decades, so that every panel has labels
        panel.set_xlim(10 ** np.floor(np.log10(0.9 * at.min())), 10 ** np.ceil(np.log10(at.max())))


def attribution_chart(results: list[dict[str, Any]], path: Path) -> None:
    """Stacked speed-ups over the memoryless baseline: mean with p10 to p90, as the thesis's Figure 4.6."""
    steps = {"b": "custom\nsolver", "c": "+ differential\nedits", "d": "+ warm\nstart"}
    alone = {
        "e": "HiGHS +\nedits",
        "f": "HiGHS + edits\n+ warm start",
        "h": "the thesis's solver\n+ edits + warm",
        "i": "with the\nshim",
    }
    bars = {**steps, **alone}
    own = (*steps, "h", "i")
    shades = ("#9cc9dc", COPTER)
    highs_shades = ("#eab8ac", HIGHS)
    with mpl.rc_context(STYLE):
        figure, panel = plt.subplots(figsize=(7.2, 3.4))
        width = 0.8 / len(results)
        for which, result in enumerate(results):
            for place, name in enumerate(bars):
                found = result["stacked"].get(name)
                if found is None:
                    continue
                left = place + (0.5 if name in alone else 0.0) + (which - (len(results) - 1) / 2) * width
                colour = (shades if name in own else highs_shades)[which % 2]
                error = [[found["mean"] - found["p10"]], [found["p90"] - found["mean"]]]
                panel.bar(left, found["mean"], 0.92 * width, color=colour)
                panel.errorbar(left, found["mean"], np.abs(error), color="#333333", linewidth=1, capsize=2)
                panel.text(
                    left, 1.12 * max(found["p90"], found["mean"]), f"{found['mean']:.3g}x", ha="center", fontsize=8
                )
        for which, result in enumerate(results):
            panel.bar(0, 0, color=shades[which % 2], label=f"{result['scale']:,.0f} GPUs")
        panel.set_yscale("log")
        panel.axhline(1.0, color="#333333", linewidth=0.8)
        panel.set_xticks(
            [place + (0.5 if name in alone else 0.0) for place, name in enumerate(bars)], list(bars.values())
        )
        panel.grid(axis="x", visible=False)
        panel.set_ylabel("speed-up over HiGHS\nrebuilt and cold each round")
        panel.set_ylim(top=3 * max(f["p90"] for r in results for f in r["stacked"].values()))
        panel.legend(loc="upper left")
        save(figure, path)
