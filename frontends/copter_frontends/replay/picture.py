"""A replay as a picture: milliseconds per round, one line per solver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from copter_frontends.replay.runs import Run


def draw(done: Sequence[Run], path: str, title: str) -> None:
    """Write a picture in the format of the file name's ending (.svg, .png, .pdf).

    Raises
    ------
    OSError, ValueError
        If the file cannot be written, or its ending is no format of pictures.
    """
    from matplotlib.figure import Figure  # an optional extra

    figure = Figure(figsize=(8.0, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for run in done:
        if run.rows:
            rounds, times = [row["round"] for row in run.rows], [1e3 * row["total_s"] for row in run.rows]
            axes.plot(rounds, times, marker=".", linewidth=2.0 if run is done[0] else 1.0, label=run.solver)
    axes.set(yscale="log", xlabel="round", ylabel="edit, solve and shim (ms)", title=title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(Path(path))
