"""The working set of an LP over rounds: how few of its columns a session keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from families import Instance, make_family
from families.protocol import SolverOptions
from matplotlib.figure import Figure

from copter_frontends.report.theme import Theme
from pictures.drawing import drawn


@dataclass(frozen=True, slots=True)
class Counts:
    """Columns of a round's program, those in the working set when its LP is solved, those not zero at the optimum."""

    all: int
    working: int
    used: int


def counted(gpus: int, rounds: int, seed: int = 0) -> list[Counts]:
    """A session's rounds of Sia's LP: 1% of the jobs are replaced in each, and every running job's values move.

    Parameters
    ----------
    gpus, rounds, seed : int

    Raises
    ------
    RuntimeError
        If a round is not solved to optimality.
    """
    family: Any = make_family("sia", Instance(gpus, seed=seed))
    solver = family.solver(SolverOptions(threads=1, method="proximal"))
    found = []
    for _ in range(rounds):
        family.edit()
        outcome = solver.solve()
        if outcome.status != "optimal":
            raise RuntimeError(f"a round of Sia's LP on {gpus} GPUs ended {outcome.status}")
        solution = outcome.answer[0]
        used = int((solution.by_column()[-1] > 0).sum())
        found.append(Counts(family.counts["variables"], solution.working_columns, used))
        family.adopt(outcome)
        family.prepare()
    return found


def picture(rounds: Sequence[Counts]) -> str:
    """The SVG of the counts, a point a round."""
    return drawn(lambda figure, theme: _draw(figure, theme, rounds), (7.2, 2.9))


def _draw(figure: Figure, theme: Theme, rounds: Sequence[Counts]) -> None:
    axes: Any = figure.add_subplot()
    lines = (
        ("columns of the LP", [each.all for each in rounds], theme.series[5]),
        ("working set", [each.working for each in rounds], theme.series[0]),
        ("not zero at the optimum", [each.used for each in rounds], theme.series[3]),
    )
    at = range(1, len(rounds) + 1)
    for label, values, colour in lines:
        axes.plot(at, values, "o-", markersize=3, color=colour, label=label)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.minorticks_off()
    axes.set_xlabel("round")
    axes.set_ylabel("columns")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.2)
