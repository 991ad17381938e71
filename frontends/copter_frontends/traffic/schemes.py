"""Schemes by name, for the command line and the tables."""

from __future__ import annotations

import re
from collections.abc import Callable

from copter import Settings
from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.formulation import MOST_COLUMNS, TrafficFormulation
from copter_frontends.traffic.greedy import Greedy
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.plan import TrafficScheme

_POP = re.compile(r"^pop-(\d+)$")

NEEDS_HIGHS = ("lp-all", "lp-top", "pinning", "pop")


def make_scheme(
    name: str,
    paths: Paths,
    demands: Floats,
    objective: str = "total",
    threads: int = 0,
    seed: int = 0,
    client_split: float = 0.0,
) -> TrafficScheme:
    """The scheme of this name: copter, lp-all, lp-top, pinning, pop-K, greedy.

    Parameters
    ----------
    name : str
    paths : Paths
    demands : ndarray (pairs,)
    objective : str
        Of copter; the others know the total flow only.
    threads : int
        Of copter; 0 for all.
    seed : int
        Of POP's parts.
    client_split : float
        Pieces that POP's splitting adds, as a share of the demands.

    Raises
    ------
    DemandError
    """
    if name == "copter":
        return TrafficFormulation(paths, demands, objective, Settings(threads=threads, interior_columns=MOST_COLUMNS))
    if objective != "total":
        raise DemandError(f"{name} maximises the total flow only; {objective} is copter's")
    if name.startswith(NEEDS_HIGHS):
        try:
            from copter_frontends.traffic import baselines  # needs highspy, an optional extra
        except ImportError as error:
            raise DemandError(f"{name} needs HiGHS: {error}; install copter-lp[highs]") from error
        found = _POP.match(name)
        if found is not None:
            return baselines.Pop(paths, demands, int(found.group(1)), client_split, seed)
        made: dict[str, Callable[[], TrafficScheme]] = {
            "lp-all": lambda: baselines.LpAll(paths, demands),
            "lp-top": lambda: baselines.LpTop(paths, demands),
            "pinning": lambda: baselines.LpTop(paths, demands, pinned_first=True),
        }
        if name in made:
            return made[name]()
    if name == "greedy":
        return Greedy(paths, demands)
    raise DemandError(f"unknown scheme {name!r}: copter, lp-all, lp-top, pinning, pop-K (pop-16, say), greedy")
