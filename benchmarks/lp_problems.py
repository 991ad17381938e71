"""The sets of LP test problems that lie outside the project, with their reference answers."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

SETS = ("netlib", "infeasible", "lp_small_highs", "miplib", "integer", "kennington")
STATUS = {
    "Optimal": "optimal",
    "Infeasible": "primal_infeasible",
    "infeasible": "primal_infeasible",
    "unbounded": "dual_infeasible",
}


@dataclass(frozen=True, slots=True)
class LpProblem:
    """A file and what is known of its answer.

    Attributes
    ----------
    set, name : str
    path : Path
    status : str
        The right status.
    objective : float or None
        The right objective; of an integer problem the best one known.
    integer : bool
        Whether it is solved as an integer problem.
    """

    set: str
    name: str
    path: Path
    status: str
    objective: float | None
    integer: bool = False


def data_folder() -> Path:
    """Where the test sets are: COPTER_DATA, or next to the project."""
    return Path(os.environ.get("COPTER_DATA", "../shared/data"))


def problems_of(name: str) -> list[LpProblem]:
    """The problems of one set whose files are there."""
    folder = data_folder()
    found = {
        "netlib": lambda: netlib(folder / "netlib"),
        "infeasible": lambda: infeasible(folder / "netlib_infeasible"),
        "lp_small_highs": lambda: small(folder / "lp_small_highs", "LP relaxation"),
        "miplib": lambda: miplib(folder / "miplib_small", integer=False),
        "integer": lambda: [
            *miplib(folder / "miplib_small", integer=True),
            *small(folder / "lp_small_highs", "MIP"),
        ],
        "kennington": lambda: kennington(folder / "extra_lp"),
    }[name]()
    return [problem for problem in found if problem.path.exists()]


def rows(path: Path) -> list[dict[str, str]]:
    """A reference table; none if it is absent."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def stem(file: str) -> str:
    """A file's name without what says how it is written."""
    return Path(file).name.removesuffix(".gz").removesuffix(".mps")


def netlib(folder: Path) -> list[LpProblem]:
    """The reference optimum leaves the objective's constant out; HiGHS's reading of it is in a column of its own."""
    return [
        LpProblem(
            "netlib",
            row["name"],
            folder / row["file"],
            "optimal",
            float(row["reference_optimum"]) + float(row["highs_obj_offset"]),
        )
        for row in rows(folder / "optimal_values.csv")
    ]


def infeasible(folder: Path) -> list[LpProblem]:
    """Infeasible and unbounded ones."""
    return [
        LpProblem("infeasible", stem(row["file"]), folder / row["file"], STATUS[row["expected_status"]], None)
        for row in rows(folder / "status.csv")
    ]


def small(folder: Path, mode: str) -> list[LpProblem]:
    """Corner cases, relaxed or integer."""
    integer = mode == "MIP"
    return [
        LpProblem(
            "integer" if integer else "lp_small_highs",
            stem(row["file"]),
            folder / row["file"],
            STATUS[row["highs_status"]],
            float(row["highs_objective"]) if row["highs_status"] == "Optimal" else None,
            integer,
        )
        for row in rows(folder / "highs_results.csv")
        if row["mode"] == mode
    ]


def miplib(folder: Path, integer: bool) -> list[LpProblem]:
    """Relaxations, to HiGHS's digits, or integer problems with the best value known."""
    return [
        LpProblem(
            "integer" if integer else "miplib",
            row["name"],
            folder / row["file"],
            "optimal",
            float(row["mip_best_known" if integer else "highs_lp_obj"]),
            integer,
        )
        for row in rows(folder / "optimal_values.csv")
    ]


def kennington(folder: Path) -> list[LpProblem]:
    """The published optima have eight digits; HiGHS's agree with them and have all."""
    return [
        LpProblem("kennington", row["name"], folder / row["file"], "optimal", float(row["highs_lp_objective"]))
        for row in rows(folder / "reference_values.csv")
    ]
