"""Traffic engineering on the differential model: a request per pair, a column per path, a resource per arc.

TE1 to TE3, and TE21, in which each pair has the logarithm of its flow as its worth.

One program serves both the common share and the largest utilisation: if z* is the least possible largest utilisation
with all demands served, the largest common share is min(1, 1/z*) (TE2). So every request has one private row, its sum,
and z is one more request.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from copter import Model, Session, Settings, Solution, worth
from copter_frontends.traffic.bounds import mean_share_bound, total_flow_bound, utilisation_bound
from copter_frontends.traffic.demands import checked_demands
from copter_frontends.traffic.errors import DemandError, NetworkError, UnknownPairError
from copter_frontends.traffic.flow_kernels import dead_paths
from copter_frontends.traffic.network import Floats, Ints, summed
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.plan import FLOOR, OBJECTIVES, FlowPlan, is_stranded, plan_of, score
from copter_frontends.traffic.shim import exact_sums, feasible_flows, prepare

SHARE = "largest utilisation"  # id of the request whose column is z
MOST_COLUMNS = 20_000_000  # models with more columns are not solved by interior points
AFTER = 3.0  # time reserved for the shim, as a multiple of its time for the kept flows
PRECISE = 1e-7  # tolerance of a solve for TE21, whose gap is measured by the mean share
OPTIMAL = 1e-6  # relative gap up to which a plan counts as optimal


class TrafficFormulation:
    """One network with its demands in a session; all edits are in place.

    Parameters
    ----------
    paths : Paths
        Paths of all pairs that may ever have a demand; pairs without a path cannot be served.
    demands : array_like (pairs,)
    objective : {"total", "concurrent", "utilisation", "proportional"}
    settings : Settings, optional
        Settings of the session.

    Attributes
    ----------
    demands : ndarray (pairs,)
    nominal, capacity : ndarray (arcs,)
        Capacity of the arcs when intact, and their present capacity.
    last : FlowPlan or None

    Raises
    ------
    DemandError
    """

    def __init__(
        self, paths: Paths, demands: ArrayLike, objective: str = "total", settings: Settings | None = None
    ) -> None:
        if objective not in OBJECTIVES:
            raise DemandError(f"unknown objective {objective!r}: one of {', '.join(OBJECTIVES)}")
        self.paths, self.objective = paths, objective
        self.names = PairNames(paths)
        self.demands = checked_demands(self.names, demands)  # type: ignore[arg-type]
        self.nominal, self.capacity = paths.network.capacity.copy(), paths.network.capacity.copy()
        self.down: set[int] = set()
        self.last: FlowPlan | None = None
        self.last_solution: Solution | None = None
        self.last_price: Floats = np.zeros(0)
        self.edit_s = 0.0
        self.stranded, self.reach = is_stranded(paths, self.capacity), reach_of(paths, self.nominal)
        prepare(paths)
        self.model = Model(sense="min" if self.serves_all else "max")
        given = settings or Settings(interior_columns=MOST_COLUMNS)
        if objective == "proportional":
            given = replace(given, tolerance=min(given.tolerance, PRECISE))
        self.session = Session(self.model, given)
        self._build()

    # Building -----------------------------------------------------------------------------------------------------

    @property
    def serves_all(self) -> bool:
        """Whether the program serves every demand and minimises the largest utilisation."""
        return self.objective in ("concurrent", "utilisation")

    @property
    def _cost(self) -> float:
        """Cost of a unit of flow."""
        return 1.0 if self.objective == "total" else 0.0

    def _build(self) -> None:
        with self.model.batch():
            for arc, count in enumerate(self.capacity.tolist()):
                self.model.add_resource(arc, 0.0 if self.serves_all else count)
            if self.serves_all:
                self.model.add_request(SHARE, [1.0], self._share_usage(), resources=self._arcs(), limit=np.inf)
            self._add_all()
        self.requests: list[int] = np.flatnonzero(np.diff(self.paths.first)).tolist()

    def _add_all(self) -> None:
        """Add the requests of all pairs that have paths."""
        paths, sizes = self.paths, np.diff(self.paths.first)
        served = np.flatnonzero(sizes)
        wanted = self._wanted(served)
        shape = (paths.network.n_arcs, paths.n_paths)
        usage = sp.csc_array((np.ones(len(paths.arc)), paths.arc, paths.start), shape=shape)
        self.model.add_own_requests(
            served.tolist(),
            sizes[served],
            np.full(paths.n_paths, self._cost),
            usage,
            resources=self._arcs(),
            limit=wanted,
            at_least=wanted if self.serves_all else -np.inf,
        )
        self._value(served)

    def _value(self, places: Ints) -> None:
        """Give pairs the worths of their demands, if the objective has any; a pair without a demand has none."""
        if self.objective != "proportional":
            return
        some = places[self.demands[places] > 0.0].tolist()
        for at in places[self.demands[places] <= 0.0].tolist():
            if self.model.worth(at) is not None:
                self.model.drop_worth(at)
        if some:
            worths = [worth.log(demand, FLOOR * demand) for demand in self.demands[some].tolist()]
            first = self.paths.first
            self.model.update_worths(some, worths, [np.ones(int(first[at + 1] - first[at])) for at in some])

    def _add(self, at: int) -> None:
        """Add the request of a pair."""
        paths = self.paths
        begin, end = int(paths.first[at]), int(paths.first[at + 1])
        start = paths.start[begin : end + 1]
        rows, place = np.unique(paths.arc[start[0] : start[-1]], return_inverse=True)
        usage = sp.csc_array((np.ones(len(place)), place, start - start[0]), shape=(len(rows), end - begin))
        wanted = self._wanted(np.array([at]))[0]
        self.model.add_request(
            at,
            np.full(end - begin, self._cost),
            usage,
            resources=rows.tolist(),
            limit=wanted,
            at_least=wanted if self.serves_all else -np.inf,
        )
        self._value(np.array([at]))

    def _wanted(self, places: Ints) -> Floats:
        """Return the demands of some pairs, limited to what can matter.

        Zero if the demand would make the program infeasible, and at most what the pair's paths can carry, so that a
        huge demand does not spoil the program's scale.
        """
        found = self.demands[places]
        return np.where(self.stranded[places], 0.0, found) if self.serves_all else np.minimum(found, self.reach[places])

    def _arcs(self) -> list[int]:
        return list(range(self.paths.network.n_arcs))

    def _share_usage(self) -> sp.csc_array:
        return sp.csc_array(-self.nominal[:, None])

    # Edits --------------------------------------------------------------------------------------------------------

    def set_demands(self, demands: ArrayLike) -> None:
        """Set the demands of all pairs; raises DemandError that names the first wrong one."""
        found = checked_demands(self.names, demands)  # type: ignore[arg-type]
        self._take(np.flatnonzero(found != self.demands), found)

    def set_demand(self, source: int | str, target: int | str, demand: float) -> None:
        """Set the demand of one pair; raises DemandError or UnknownPairError."""
        at = self.paths.pair(source, target)
        found = self.demands.copy()
        found[at] = checked_demands([self.paths.pair_name(at)], [demand])[0]
        self._take(np.array([at]), found)

    def _take(self, places: Ints, demands: Floats) -> None:
        started = time.perf_counter()
        before, self.demands = self.demands, demands
        try:
            self._limit(places)
        except BaseException:
            self.demands = before
            raise
        self.edit_s += time.perf_counter() - started

    def _limit(self, places: Ints) -> None:
        """Update the limits of some pairs' sums to their demands."""
        places = places[np.diff(self.paths.first)[places] > 0]
        if len(places):
            wanted = self._wanted(places)
            with self.model.batch():
                self.model.update_limits(places.tolist(), wanted, wanted if self.serves_all else None)
                self._value(places)

    def set_capacity(self, arcs: ArrayLike, capacity: ArrayLike) -> None:
        """Set the capacity of some arcs, zero for failed ones; raises NetworkError or UnknownPairError."""
        places = np.atleast_1d(np.array(arcs, dtype=np.int64))
        for arc in places[(places < 0) | (places >= len(self.capacity))].tolist():
            raise UnknownPairError(f"there is no arc {arc}: arcs are 0 to {len(self.capacity) - 1}")
        if len(np.unique(places)) < len(places):
            raise NetworkError("an arc is given twice")
        given = np.broadcast_to(np.asarray(capacity, dtype=np.float64), places.shape)
        self.paths.network.require_capacities(places, given)
        nominal = self.nominal.copy()
        nominal[places] = given
        self._carry(nominal, self.down)

    def fail_link(self, u: int | str, v: int | str) -> None:
        """Remove the link between two nodes in both directions; no effect if already removed. Raises
        UnknownPairError.
        """
        self._carry(self.nominal, self.down | set(self.paths.network.link(u, v).tolist()))

    def repair_link(self, u: int | str, v: int | str) -> None:
        """Restore a link with its nominal capacity; raises UnknownPairError."""
        self._carry(self.nominal, self.down - set(self.paths.network.link(u, v).tolist()))

    def _carry(self, nominal: Floats, down: set[int]) -> None:
        """Update the model to the arcs' present capacities."""
        started = time.perf_counter()
        capacity = nominal.copy()
        capacity[list(down)] = 0.0
        changed = np.flatnonzero(capacity != self.capacity)
        is_other = bool((nominal != self.nominal).any())
        before = self.capacity
        kept = self.nominal, self.down, before, self.stranded, self.reach
        wanted = self._wanted(np.arange(self.paths.n_pairs))
        self.nominal, self.down, self.capacity = nominal, down, capacity
        self.stranded = is_stranded(self.paths, capacity)
        if is_other:
            self.reach = reach_of(self.paths, nominal)
        limited = np.flatnonzero(self._wanted(np.arange(self.paths.n_pairs)) != wanted)
        try:
            with self.model.batch():
                if is_other and self.serves_all:
                    self.model.update_usage(SHARE, self._share_usage(), resources=self._arcs())
                if self.serves_all:
                    self._forbid(before)
                elif len(changed):
                    self.model.update_counts(changed.tolist(), capacity[changed])
                self._limit(limited)
        except BaseException:
            self.nominal, self.down, self.capacity, self.stranded, self.reach = kept
            raise
        self.edit_s += time.perf_counter() - started

    def _forbid(self, before: Floats) -> None:
        """Update the bounds of paths over arcs that were cut or restored.

        If all demands are served, a cut arc closes its paths by their bounds. The arc's row, whose right-hand side is
        its capacity times z, then stays the same, and so does the basis.
        """
        paths = self.paths
        dead = dead_paths(paths.start, paths.arc, self.capacity)
        turned = np.flatnonzero(dead != dead_paths(paths.start, paths.arc, before))
        for at in np.unique(paths.pair_of[turned]).tolist():
            self._shut(at, dead)

    def _shut(self, at: int, dead: NDArray[np.bool_]) -> None:
        """Close a pair's dead paths by their bounds, and open the others."""
        own = dead[int(self.paths.first[at]) : int(self.paths.first[at + 1])]
        self.model.update_bounds(at, upper=np.where(own, 0.0, np.inf) if own.any() else np.inf)

    def set_paths(self, source: int | str, target: int | str, node_paths: Sequence[Sequence[int | str]]) -> None:
        """Give a pair other paths, each by its nodes; raises PathError or UnknownPairError."""
        started = time.perf_counter()
        at = self.paths.pair(source, target)
        changed = self.paths.with_paths(at, node_paths)
        kept = self.paths, self.stranded, self.reach
        before = int(kept[0].first[at]), int(kept[0].first[at + 1])
        self.paths, self.stranded = changed, is_stranded(changed, self.capacity)
        self.reach = reach_of(changed, self.nominal)
        try:
            with self.model.batch():
                if before[1] > before[0]:
                    self.model.remove_request(at)
                if len(node_paths):
                    self._add(at)
                    if self.serves_all:
                        self._shut(at, dead_paths(changed.start, changed.arc, self.capacity))
        except BaseException:
            self.paths, self.stranded, self.reach = kept
            raise
        self.requests = np.flatnonzero(np.diff(changed.first)).tolist()
        self.names = PairNames(changed)
        if self.last is not None:
            flows = self.last.flows
            new = np.zeros(len(node_paths))
            flows = np.concatenate((flows[: before[0]], new, flows[before[1] :]))
            self.last = plan_of(changed, flows, self.demands, self.capacity, self.objective)
        self.edit_s += time.perf_counter() - started

    def add_path(self, source: int | str, target: int | str, nodes: Sequence[int | str]) -> None:
        """Give a pair one more path; raises PathError or UnknownPairError."""
        at = self.paths.pair(source, target)
        own = range(int(self.paths.first[at]), int(self.paths.first[at + 1]))
        self.set_paths(source, target, [*(self.paths.nodes_of(path) for path in own), nodes])

    # A round ------------------------------------------------------------------------------------------------------

    def plan(self, deadline_s: float | None = None) -> FlowPlan:
        """Return exactly feasible flows for the current network, with a certified bound, by the deadline.

        The last flows, reduced to what is still possible and filled up, are ready at once. The session's solve gets the
        remaining time, and the plan is the better of the two. The time of the edits since the last plan counts towards
        the deadline.
        """
        started = time.perf_counter()
        kept = self._kept_flows()
        kept_s = time.perf_counter() - started
        flows, price, solve_s, iterations = kept, np.zeros(0), 0.0, 0
        solution = self._solve(None if deadline_s is None else deadline_s - self.edit_s - AFTER * kept_s)
        shim_started = time.perf_counter()
        bound = self._loose_bound()
        if solution is None and len(self.last_price):
            bound = self._bound(self.last_price, bound)
        if solution is not None:
            solve_s, iterations = solution.solve_time_s, solution.iterations
            price = np.abs(solution.prices(self._arcs()))
            # any prices prove a bound; those of an interrupted solve may be worse than the last ones
            for known in (price, self.last_price):
                bound = self._bound(known, bound) if len(known) else bound
            self.last_price = price if solution.status.value == "optimal" else self.last_price
            flows = self._shim(self.flows_of(solution))
        better, is_kept = self._better(flows, kept)
        found = plan_of(
            self.paths, better, self.demands, self.capacity, self.objective, bound, "feasible", price,
            {"edit": self.edit_s, "solve": solve_s, "shim": time.perf_counter() - shim_started + kept_s}, iterations,
        )  # fmt: skip
        status = "optimal" if found.gap <= OPTIMAL else "kept_previous" if is_kept else "feasible"
        object.__setattr__(found, "status", status)
        self.last, self.edit_s = found, 0.0
        return found

    def _solve(self, deadline_s: float | None) -> Solution | None:
        """Solve the session; None if there is nothing to solve or no time left."""
        if not self.requests or not self.demands.any() or (deadline_s is not None and deadline_s <= 0.0):
            return None
        self.last_solution = self.session.solve(deadline_s=deadline_s)
        return self.last_solution

    def flows_of(self, solution: Solution) -> Floats:
        """Return the flows of all paths."""
        return np.asarray(solution.values_of(self.requests)[1], dtype=np.float64)

    def _shim(self, flows: Floats) -> Floats:
        """Return flows that are feasible for the objective."""
        if not self.serves_all:
            return feasible_flows(self.paths, flows, self.demands, self.capacity)
        dead = dead_paths(self.paths.start, self.paths.arc, self.capacity)
        flows = np.where(dead | ~np.isfinite(flows), 0.0, np.maximum(flows, 0.0))
        served = exact_sums(self.paths, flows)[0]
        wanted = self._wanted(np.arange(self.paths.n_pairs))
        factor = np.divide(wanted, served, out=np.zeros_like(served), where=served > 0.0)
        whole = flows * factor[self.paths.pair_of]
        missing = np.flatnonzero((wanted > 0.0) & (served <= 0.0))
        whole[self._first_path(missing, dead)] = wanted[missing]
        if self.objective == "utilisation":
            return whole
        share = score(self.paths, whole, self.demands, self.capacity, "utilisation")
        whole /= max(1.0, share)
        return feasible_flows(self.paths, whole, self.demands, self.capacity, refill=False)

    def _first_path(self, pairs: Ints, dead: NDArray[np.bool_]) -> Ints:
        """Return the first live path of some pairs."""
        first, end = self.paths.first[pairs].tolist(), self.paths.first[pairs + 1].tolist()
        found = [begin + int(np.argmin(dead[begin:until])) for begin, until in zip(first, end, strict=True)]
        return np.array(found, dtype=np.int64)

    def _kept_flows(self) -> Floats:
        """Return the last flows as far as still possible; without them, greedy flows."""
        return self._shim(np.zeros(self.paths.n_paths) if self.last is None else self.last.flows)

    def _better(self, flows: Floats, kept: Floats) -> tuple[Floats, bool]:
        """Return (the better flows, whether they are the kept ones)."""
        if flows is kept:
            return kept, True
        new, old = (score(self.paths, own, self.demands, self.capacity, self.objective) for own in (flows, kept))
        is_kept = old < new if self.objective == "utilisation" else old > new
        return (kept, True) if is_kept else (flows, False)

    def _loose_bound(self) -> float:
        """Return a bound that needs no prices."""
        if self.objective == "total":
            return float(self._wanted(np.flatnonzero(~self.stranded)).sum())
        return 0.0 if self.objective == "utilisation" else 1.0

    def _bound(self, price: Floats, loose: float) -> float:
        """Return the certified bound at the links' prices, or the loose bound if better."""
        if self.objective == "total":
            wanted = self._wanted(np.arange(self.paths.n_pairs))
            return min(loose, total_flow_bound(self.paths, price, wanted, self.capacity))
        wanted = self._wanted(np.arange(self.paths.n_pairs))
        if self.objective == "proportional":
            return min(loose, mean_share_bound(self.paths, price, wanted, self.demands, self.capacity))
        least = utilisation_bound(self.paths, price, wanted, self.capacity)
        if self.objective == "utilisation":
            return max(loose, least)
        return min(loose, 1.0 / max(1.0, least))


def reach_of(paths: Paths, capacity: Floats) -> Floats:
    """Return, for each pair, the sum of its paths' capacities, (pairs,): an upper bound on its flow."""
    if not paths.n_paths:
        return np.zeros(paths.n_pairs)
    least = np.minimum.reduceat(capacity[paths.arc], paths.start[:-1])
    return summed(paths.pair_of, least, paths.n_pairs)


class PairNames(Sequence[str]):
    """Names of the pairs, made when they are asked for."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return self._paths.n_pairs

    def __getitem__(self, at: int) -> str:  # type: ignore[override]
        return self._paths.pair_name(at)
