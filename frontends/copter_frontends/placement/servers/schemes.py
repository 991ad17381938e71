"""Schemes by name, for the command line and the tables."""

from __future__ import annotations

from copter import Settings
from copter_frontends.placement.servers.errors import ServerError
from copter_frontends.placement.servers.plan import PlacementScheme
from copter_frontends.placement.servers.policy import OPENING, CopterPlacement
from copter_frontends.placement.servers.rivals import RULES, ByRule, CvxCluster, Milp
from copter_frontends.placement.servers.workload import Workload

SCHEMES = ("copter", "first-fit", *RULES, "cvxcluster", "cvxcluster-by-server", "milp")


def make_scheme(
    name: str,
    workload: Workload,
    threads: int = 0,
    time_limit_s: float = 60.0,
    migrations: float = 0.0,
    move_cost: float = 0.0,
) -> PlacementScheme:
    """Return the scheme of this name on a fresh fleet of the workload's servers; raises ServerError if unknown.

    Only copter's own moves running tasks; see `CopterPlacement` for its `migrations` and `move_cost`.
    """
    if name not in SCHEMES:
        raise ServerError(f"unknown scheme {name!r}: {', '.join(SCHEMES)}")
    fleet = workload.fleet()
    if name == "copter":
        opening = 0.0 if workload.one_by_one else OPENING  # where all servers fill up, none is kept free
        return CopterPlacement(fleet, Settings(threads=threads), opening, workload.one_by_one, migrations, move_cost)
    if name.startswith("cvxcluster"):
        return CvxCluster(fleet, by_server=name != "cvxcluster")
    if name == "milp":
        return Milp(fleet, time_limit_s)
    return ByRule(fleet, name, "arrival" if workload.one_by_one else "worth")
