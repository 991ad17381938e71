"""Schemes by name, for the command line and the tables."""

from __future__ import annotations

import re
from collections.abc import Callable

from copter import Settings
from copter_frontends.traffic.dede import DeDe
from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.fair_scheme import MaxMin
from copter_frontends.traffic.formulation import MOST_COLUMNS, TrafficFormulation
from copter_frontends.traffic.greedy import Greedy
from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.plan import TrafficScheme

_POP = re.compile(r"^pop-(\d+)$")

SCHEMES = ("copter", "max-min", "lp-all", "lp-top", "pinning", "dede", "greedy")
"""Names of the schemes; pop-K, for any number K, is another one."""
CLIENT_SPLIT = 0.75
"""Pieces that POP's client splitting adds by default, as a share of the number of demands: as its authors do."""
NEEDS_HIGHS = ("lp-all", "lp-top", "pinning", "pop")


def check_scheme(name: str, objective: str = "total") -> None:
    """Raise DemandError for an unknown scheme, one without HiGHS, or an unsupported objective."""
    if name == "copter":
        return
    if name not in SCHEMES and not _POP.match(name):
        raise DemandError(f"unknown scheme {name!r}: {', '.join(SCHEMES)}, pop-K (pop-16, say)")
    if objective != "total":
        raise DemandError(f"{name} maximises the total flow only; {objective} is copter's")
    if name.startswith(NEEDS_HIGHS):
        try:
            from copter_frontends.traffic import baselines  # noqa: F401  # needs highspy, an optional extra
        except ImportError as error:
            raise DemandError(f"{name} needs HiGHS: {error}; pip install highspy") from error


def make_scheme(
    name: str,
    paths: Paths,
    demands: Floats,
    objective: str = "total",
    threads: int = 0,
    seed: int = 0,
    client_split: float = CLIENT_SPLIT,
) -> TrafficScheme:
    """Return the scheme of this name: copter, max-min, lp-all, lp-top, pinning, pop-K, dede, greedy.

    Parameters
    ----------
    name : str
    paths : Paths
    demands : ndarray (pairs,)
    objective : str
        Objective of copter; every other scheme has only one, total flow or fairness.
    threads : int
        Threads of copter; 0 for all processors.
    seed : int
        Seed of POP's parts.
    client_split : float
        Number of pieces that POP's splitting adds, as a share of the number of demands.

    Raises
    ------
    DemandError
    """
    check_scheme(name, objective)
    settings = Settings(threads=threads, interior_columns=MOST_COLUMNS)
    made: dict[str, Callable[[], TrafficScheme]] = {
        "copter": lambda: TrafficFormulation(paths, demands, objective, settings),
        "max-min": lambda: MaxMin(paths, demands, Settings(threads=threads)),
        "dede": lambda: DeDe(paths, demands),
        "greedy": lambda: Greedy(paths, demands),
    }
    if name in made:
        return made[name]()
    from copter_frontends.traffic import baselines  # needs highspy, an optional extra

    found = _POP.match(name)
    if found is not None:
        return baselines.Pop(paths, demands, int(found.group(1)), client_split, seed)
    if name == "lp-all":
        return baselines.LpAll(paths, demands)
    return baselines.LpTop(paths, demands, pinned_first=name == "pinning")
