"""Simulation of rounds of arrivals, departures and failures with one scheme: worth, gap, use, time."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from copter_frontends.placement.servers.board import FAILED, Ints
from copter_frontends.placement.servers.checker import faults
from copter_frontends.placement.servers.errors import ServerError
from copter_frontends.placement.servers.plan import PlacementPlan, PlacementScheme
from copter_frontends.placement.servers.workload import Workload


@dataclass(frozen=True, slots=True)
class PlacementRound:
    """One round's figures; `worth_running` and `tasks_running` are after it."""

    arrived: int
    started: int
    waiting: int
    refused: int
    arrived_worth: int
    worth: int
    bound: int
    gap: float
    worth_running: int
    tasks_running: int
    servers_used: int
    used: tuple[float, ...]
    status: str
    edit_s: float
    solve_s: float
    shim_s: float
    round_s: float
    moved: int = 0


@dataclass(slots=True)
class PlacementResult:
    """A scheme's rounds.

    Attributes
    ----------
    scheme : str
    servers : int
    warmup : int
        Number of first rounds that are left out of the figures.
    reasons : dict of str to int
        Why tasks were refused for ever, and how many.
    held_up : dict of str to int
        Why tasks had to wait for servers to come back, and how many at most.
    use : list of list of float
        Used share of each server's scarcest dimension after the last round, a list for every type.
    """

    scheme: str
    servers: int
    warmup: int = 0
    rounds: list[PlacementRound] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    held_up: dict[str, int] = field(default_factory=dict)
    use: dict[str, list[float]] = field(default_factory=dict)

    @property
    def counted(self) -> list[PlacementRound]:
        """Rounds after the warm-up, from which the figures are computed."""
        return self.rounds[self.warmup :] or self.rounds

    def summary(self) -> dict[str, Any]:
        """Return the object that ``copter simulate placement --json`` prints."""
        rounds = self.counted

        def spread(values: list[float]) -> dict[str, float]:
            own = np.array(values, dtype=np.float64)
            return {"p50": float(np.median(own)), "p99": float(np.percentile(own, 99)), "max": float(own.max())}

        gaps = [each.gap for each in rounds if np.isfinite(each.gap)]
        return {
            "scheme": self.scheme,
            "servers": self.servers,
            "rounds": len(self.rounds),
            "warmup_rounds": self.warmup,
            "arrived": sum(each.arrived for each in rounds),
            "started": sum(each.started for each in rounds),
            "admitted_worth": sum(each.worth for each in rounds) / max(sum(each.arrived_worth for each in rounds), 1),
            "worth_running": float(np.mean([each.worth_running for each in rounds])),
            "tasks_running": rounds[-1].tasks_running,
            "moved": sum(each.moved for each in rounds),
            "waiting": rounds[-1].waiting,
            "refused": sum(self.reasons.values()),
            "reasons": self.reasons,
            "held_up": self.held_up,
            "servers_used": float(np.mean([each.servers_used for each in rounds])),
            "servers_used_max": max(each.servers_used for each in rounds),
            "used": [mean_known(each) for each in zip(*(each.used for each in rounds), strict=True)],
            "used_last": list(rounds[-1].used),
            "gap": {"p50": float(np.median(gaps)), "mean": float(np.mean(gaps)), "max": max(gaps)} if gaps else None,
            "round_s": spread([each.round_s for each in rounds]),
            "edit_s": spread([each.edit_s for each in rounds]),
            "solve_s": spread([each.solve_s for each in rounds]),
            "shim_s": spread([each.shim_s for each in rounds]),
        }


def mean_known(values: Sequence[float]) -> float:
    """Return the mean of the numbers that are not NaN; NaN if there is none."""
    known = [each for each in values if np.isfinite(each)]
    return float(np.mean(known)) if known else float("nan")


def simulate_placement(
    name: str,
    scheme: PlacementScheme,
    workload: Workload,
    warmup: int = 0,
    check_every: int = 100,
    clock: Callable[[], float] = time.perf_counter,
) -> PlacementResult:
    """Simulate a workload's rounds with a scheme.

    Parameters
    ----------
    name : str
    scheme : PlacementScheme
        With a fresh fleet of the workload's servers.
    workload : Workload
    warmup : int
    check_every : int
        Rounds between exact checks of the whole placement; the last round is checked always.
    clock : callable
        Seconds, by which edits and rounds are measured: ``time.process_time`` beside other work, say.

    Raises
    ------
    ServerError
        If the exact checker finds a fault.
    """
    fleet = scheme.fleet
    result = PlacementResult(name, fleet.servers, warmup)
    ends: dict[int, list[Ints]] = defaultdict(list)
    waiting, lives = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    groups, worth_running, running = 0, 0, 0
    worth = fleet.shapes.worth
    for at, events in enumerate(workload.rounds):
        leaving = ends.pop(at, [])
        gone = np.concatenate(leaving) if leaving else np.zeros(0, dtype=np.int64)
        gone = gone[fleet.jobs.server[gone] >= 0]  # the others were on failed servers and run anew
        worth_running -= int(worth[fleet.jobs.shape[gone]].sum())
        running -= len(gone)
        begun = clock()
        fleet.depart(gone)
        fleet.repair(events.back)
        fleet.drain(events.drained)
        again = fleet.fail(events.lost) if events.lost else np.zeros(0, dtype=np.int64)
        group = np.where(events.group >= 0, events.group + groups, -1)
        added = fleet.arrive(events.shape, group)
        edit_s = clock() - begun
        worth_running -= int(worth[fleet.jobs.shape[again]].sum())
        running -= len(again)
        groups += int(events.group.max(initial=-1)) + 1
        lives = np.concatenate((lives, events.rounds)) if len(lives) < fleet.tasks else lives
        asking = np.concatenate((waiting, again, added))
        begun = clock()
        plan = scheme.plan(asking)
        round_s = clock() - begun + edit_s
        waiting = plan.waiting if workload.waits else plan.waiting[:0]
        _book(ends, plan.started, lives, at)
        worth_running += plan.worth
        running += len(plan.started)
        _count(result, plan)
        if at % check_every == check_every - 1 or at == len(workload.rounds) - 1:
            _checked(scheme, name, at)
        seconds = plan.seconds
        result.rounds.append(
            PlacementRound(
                len(added), len(plan.started), len(waiting), len(plan.refused),
                int(worth[events.shape].sum()), plan.worth, plan.bound, plan.gap, worth_running, running,
                int((fleet.board.running > 0).sum()), tuple(fleet.used().tolist()), plan.status,
                edit_s + seconds.get("edit", 0.0), seconds.get("solve", 0.0) + seconds.get("bound", 0.0),
                seconds.get("shim", 0.0), round_s, plan.moved,
            )
        )  # fmt: skip
    result.use = _use(scheme)
    return result


def _book(ends: dict[int, list[Ints]], started: Ints, lives: Ints, at: int) -> None:
    """Note the rounds in which started tasks end."""
    until = at + lives[started]
    order = np.argsort(until, kind="stable")
    rounds, first = np.unique(until[order], return_index=True)
    for when, own in zip(rounds.tolist(), np.split(started[order], first[1:]), strict=False):
        ends[when].append(own)


def _count(result: PlacementResult, plan: PlacementPlan) -> None:
    """Count the reasons of tasks that were refused for ever, or that cannot run now."""
    for why, number in Counter(plan.refused.values()).items():
        result.reasons[why] = result.reasons.get(why, 0) + number
    for why, number in Counter(plan.held_up.values()).items():
        result.held_up[why] = max(result.held_up.get(why, 0), number)


def _checked(scheme: PlacementScheme, name: str, at: int) -> None:
    found = faults(scheme.fleet)
    if found:
        raise ServerError(f"{name}, round {at}: the placement is not feasible: {'; '.join(found)}")


def _use(scheme: PlacementScheme) -> dict[str, list[float]]:
    """Return each server's used share of its scarcest dimension, by type, the fullest first."""
    fleet = scheme.fleet
    board, whole = fleet.board, fleet.capacity[fleet.board.kind]
    free = np.column_stack((board.free, board.gpu.sum(axis=1)))
    used = np.divide(whole - free, whole, out=np.zeros(whole.shape), where=whole > 0).max(axis=1)
    used[board.status == FAILED] = 0.0
    return {
        each.name: np.sort(used[board.kind == at])[::-1].tolist() for at, each in enumerate(fleet.types)
    }  # fmt: skip
