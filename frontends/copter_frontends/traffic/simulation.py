"""Simulation of a stream of rounds with one scheme: demands, served traffic, time.

With a service interval, the published rules of demand tracking apply: while a solve takes longer than the interval, the
old flows serve the traffic, and unmet demand is carried over (TE15).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from copter_frontends.traffic.network import Floats
from copter_frontends.traffic.paths import Paths
from copter_frontends.traffic.plan import FlowPlan, TrafficScheme, score, score_of
from copter_frontends.traffic.shim import feasible_flows
from copter_frontends.traffic.streams import Round


@dataclass(frozen=True, slots=True)
class TrafficRound:
    """One round's figures.

    Attributes
    ----------
    demand, flow, served : float
        Total demand, including carried-over demand; total flow of the round's plan; demand that was served.
    objective, bound, gap, utilisation : float
    least_share : float
        Served share of the demand of the worst-served pair; pairs without a path do not count.
    status, event : str
    edit_s, solve_s, shim_s, round_s : float
    stranded, iterations, cut : int
        `cut` counts the arcs without capacity.
    stale : bool
        Whether the old flows served the round because the solve was still running.
    """

    demand: float
    flow: float
    served: float
    objective: float
    bound: float
    gap: float
    utilisation: float
    least_share: float
    status: str
    event: str
    edit_s: float
    solve_s: float
    shim_s: float
    round_s: float
    stranded: int
    iterations: int
    cut: int
    stale: bool = False


@dataclass(slots=True)
class TrafficResult:
    """A scheme's rounds.

    Attributes
    ----------
    scheme, objective : str
    paths : Paths
    rounds : list of TrafficRound
    warmup : int
        Number of first rounds that are left out of the figures.
    last : FlowPlan or None
    capacity : ndarray (arcs,)
        Capacity in the last round.
    """

    scheme: str
    paths: Paths
    objective: str = "total"
    warmup: int = 0
    rounds: list[TrafficRound] = field(default_factory=list)
    last: FlowPlan | None = None
    capacity: Floats = field(default_factory=lambda: np.zeros(0))
    prices: list[Floats] = field(default_factory=list)

    @property
    def counted(self) -> list[TrafficRound]:
        """Rounds after the warm-up, from which the figures are computed."""
        return self.rounds[self.warmup :] or self.rounds

    def summary(self) -> dict[str, Any]:
        """Return the object that ``copter simulate traffic --json`` prints."""
        rounds = self.counted

        def spread(name: str) -> dict[str, float]:
            values = np.array([getattr(each, name) for each in rounds])
            return {
                "p50": float(np.median(values)),
                "p99": float(np.percentile(values, 99)),
                "max": float(values.max()),
            }

        demand = sum(each.demand for each in rounds)
        gaps = [each.gap for each in rounds if np.isfinite(each.gap)]
        return {
            "scheme": self.scheme,
            "objective": self.objective,
            "network": self.paths.network.name,
            "nodes": self.paths.network.n_nodes,
            "arcs": self.paths.network.n_arcs,
            "pairs": self.paths.n_pairs,
            "variables": self.paths.n_paths,
            "rounds": len(self.rounds),
            "warmup_rounds": self.warmup,
            "mean_objective": float(np.mean([each.objective for each in rounds])),
            "mean_flow": float(np.mean([each.flow for each in rounds])),
            "satisfied": sum(each.served for each in rounds) / demand if demand > 0.0 else 1.0,
            "least_share": min(each.least_share for each in rounds),
            "max_utilisation": max(each.utilisation for each in rounds),
            "round_s": spread("round_s"),
            "edit_s": spread("edit_s"),
            "solve_s": spread("solve_s"),
            "shim_s": spread("shim_s"),
            "gap": {"p50": float(np.median(gaps)), "max": float(max(gaps))} if gaps else None,
            "stale_rounds": sum(each.stale for each in rounds),
            "stranded_max": max(each.stranded for each in rounds),
        }


def simulate_traffic(
    name: str,
    scheme: TrafficScheme,
    stream: Iterable[Round],
    objective: str = "total",
    warmup: int = 0,
    deadline_s: float | None = None,
    interval_s: float | None = None,
    carried: float = 0.0,
) -> TrafficResult:
    """Run a stream through a scheme.

    Parameters
    ----------
    name : str
        Name of the scheme.
    scheme : TrafficScheme
    stream : iterable of Round
    objective : str
        Objective by which plans are judged.
    warmup : int
    deadline_s : float, optional
        Deadline of every plan.
    interval_s : float, optional
        Length of a round. Rounds that begin while a solve is still running are served by the old flows.
    carried : float
        Share of the unmet demand that is added to the next round's demand.
    """
    result = TrafficResult(name, scheme.paths, objective, warmup)
    capacity, missing = scheme.paths.network.capacity.copy(), np.zeros(scheme.paths.n_pairs)
    busy_s = 0.0  # remaining time of a solve that is still running when a round begins
    for event in stream:
        demands = scheme.paths.demands_of(event.matrix) + carried * missing
        capacity[event.arcs] = event.capacity
        late = interval_s is not None and busy_s >= interval_s and result.last is not None
        started = time.perf_counter()
        if len(event.arcs):
            scheme.set_capacity(event.arcs, event.capacity)
        scheme.set_demands(demands)
        edit_s = time.perf_counter() - started
        if late and result.last is not None and interval_s is not None:
            busy_s -= interval_s
            plan = result.last
        else:
            plan = scheme.plan(deadline_s)
            busy_s = edit_s + plan.seconds["solve"] + plan.seconds["shim"]
        flows = plan.flows
        if late:  # the flows were computed for an earlier round
            flows = feasible_flows(scheme.paths, flows, demands, capacity, refill=False)
        served = np.minimum(scheme.paths.served(flows), demands)
        missing = demands - served
        result.rounds.append(_noted(plan, event, demands, capacity, served, edit_s, late, objective, scheme.paths))
        result.last = plan
        result.prices.append(plan.prices)
    result.capacity = capacity
    return result


def _noted(
    plan: FlowPlan, event: Round, demands: Floats, capacity: Floats, served: Floats, edit_s: float, late: bool,
    objective: str, paths: Paths,
) -> TrafficRound:  # fmt: skip
    used = plan.load > 0.0
    with np.errstate(divide="ignore"):
        utilisation = float((plan.load[used] / capacity[used]).max(initial=0.0))
    solve_s, shim_s = plan.seconds["solve"], plan.seconds["shim"]
    return TrafficRound(
        demand=float(demands.sum()),
        flow=plan.total,
        served=float(served.sum()),
        objective=plan.objective if not late else score(paths, plan.flows, demands, capacity, objective),
        bound=plan.bound,
        gap=plan.gap,
        utilisation=utilisation,
        least_share=score_of(served, plan.load, paths, demands, capacity, "concurrent"),
        status=plan.status,
        event=event.event,
        edit_s=edit_s,
        solve_s=solve_s,
        shim_s=shim_s,
        round_s=edit_s + solve_s + shim_s,
        stranded=len(plan.stranded),
        iterations=plan.iterations,
        cut=int((capacity <= 0.0).sum()),
        stale=late,
    )
