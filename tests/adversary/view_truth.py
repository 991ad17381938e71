"""Small clusters as they really are, and a scheduler that tries everything: the judge of what a view says.

It shares no code with the views. Amounts are whole numbers; parts of GPUs are hundredths.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

PART = 100  # parts of one GPU
Use = dict[tuple[str, str, str], int]  # queue, flavor, resource


@dataclass
class TrueNode:
    """A node: what is free, whether jobs may start, whether jobs are on it, and the free parts of its GPUs."""

    free: dict[str, int]
    open: bool = True
    taken: bool = False  # whether jobs are on it
    closed_to_others: bool = False  # whether one job has it alone
    gpus: list[int] = field(default_factory=list)
    gpu_memory: int = 0


@dataclass
class TruePod:
    """A pod: its needs, its nodes, its parts of GPUs."""

    need: dict[str, int]
    nodes: frozenset[str]
    part: int = 0
    memory: int = 0
    parts: int = 1
    untouched: bool = False  # needs memory that nobody else uses


@dataclass
class TrueJob:
    """A waiting job; `may` is False for one that is held, None where nobody can know."""

    pods: list[TruePod]
    may: bool | None = True
    apart: bool = False
    alone: bool = False
    units: int = 0
    takes: dict[str, int] = field(default_factory=dict)  # of the limits
    choices: list[list[Use]] = field(default_factory=list)  # of quotas, one of each group
    after: str = ""
    reaches: list[tuple[frozenset[str], bool, str]] = field(default_factory=list)  # sets of nodes of which one has all
    # pods, whether the nodes then are the job's alone, and the room of which its CPUs are taken too


@dataclass
class Truth:
    """A cluster, its waiting jobs, what is left of limits, and whether quotas admit some more usage."""

    nodes: dict[str, TrueNode]
    jobs: dict[str, TrueJob]
    limits: dict[str, int] = field(default_factory=dict)
    admits: Callable[[Use], bool] = lambda use: True


Claim = tuple[str, list[list[str]], Use]  # a job, nodes of its groups of pods in any order, its quotas


@dataclass
class _Room:
    free: dict[str, int]
    gpus: list[int]
    taken: bool
    closed: bool


def _rooms(truth: Truth) -> dict[str, _Room]:
    return {
        name: _Room(dict(node.free), list(node.gpus), node.taken, node.closed_to_others or not node.open)
        for name, node in truth.nodes.items()
    }


def _put(truth: Truth, rooms: dict[str, _Room], job: TrueJob, names: Sequence[str]) -> bool:
    """Put a job's pods on nodes, one each; return whether they fit, and change the rooms if they do."""
    if job.apart and len(set(names)) < len(names):
        return False
    for reach, alone, also in job.reaches or [(None, job.alone, "")]:
        if reach is None or reach.issuperset(names):
            trial = _copied(rooms)
            if _put_on(truth, trial, job, names, alone, also):
                rooms.update(trial)
                return True
    return False


def _put_on(truth: Truth, rooms: dict[str, _Room], job: TrueJob, names: Sequence[str], alone: bool, also: str) -> bool:
    for pod, name in zip(job.pods, names, strict=True):
        room = rooms[name]
        if name not in pod.nodes or room.closed or (alone and room.taken):
            return False
        if pod.untouched and room.free.get("mem", 0) < room.free.get("all mem", 0):
            return False
        for resource, amount in [*pod.need.items(), *([(also, pod.need["cpu"])] if also else [])]:
            if amount > max(0, room.free.get(resource, 0)):
                return False
            room.free[resource] = room.free.get(resource, 0) - amount
        if pod.untouched:
            room.free["mem"] = 0
            room.free["all mem"] = 1
        if not _take_parts(truth.nodes[name], room, pod):
            return False
    for name in names:
        rooms[name].taken = True
        rooms[name].closed = rooms[name].closed or alone
    return True


def _take_parts(node: TrueNode, room: _Room, pod: TruePod) -> bool:
    """Take whole GPUs and parts: the fullest GPU that holds a part is used, which is best for what comes later."""
    if not node.gpus:
        return not pod.part and not pod.memory
    whole = pod.need.get("gpu", 0)
    room.gpus.sort()
    for _ in range(whole):
        if not room.gpus or room.gpus[-1] < PART:
            return False
        room.gpus[-1] = 0
        room.gpus.sort()
    part = pod.part or (-(-pod.memory * PART // node.gpu_memory) if pod.memory else 0)
    if not part:
        return True
    if part > PART:
        return False
    fitting = [at for at, free in enumerate(room.gpus) if free >= part][: pod.parts]
    if len(fitting) < pod.parts:
        return False
    for at in fitting:
        room.gpus[at] -= part
    return True


def false_start(truth: Truth, claims: Iterable[Claim]) -> str:
    """Return which of the claimed starts cannot be; empty if all can happen together."""
    rooms, limits, used = _rooms(truth), dict(truth.limits), dict[tuple[str, str, str], int]()
    started: set[str] = set()
    for name, places, use in claims:
        job = truth.jobs.get(name)
        if job is None or job.may is not True:
            return f"{name} may not start"
        if job.after and job.after not in started:
            return f"{name} waits for {job.after}"
        started.add(name)
        flat = [node for group in places for node in group]
        if len(flat) != len(job.pods) or not _put_in_any_order(truth, rooms, job, flat):
            return f"{name} does not fit on {flat}"
        for limit, amount in job.takes.items():
            limits[limit] -= amount
            if amount > 0 and limits[limit] < 0:
                return f"{name} exceeds {limit}"
        if job.choices:
            if not any(_sum(chosen) == use for chosen in itertools.product(*job.choices)):
                return f"{name} takes {use}"
            used = _sum([used, use])
            if not truth.admits(used):
                return f"{name} exceeds quotas"
    return ""


def _put_in_any_order(truth: Truth, rooms: dict[str, _Room], job: TrueJob, names: Sequence[str]) -> bool:
    return any(_put(truth, rooms, job, order) for order in dict.fromkeys(itertools.permutations(names)))


def _copied(rooms: dict[str, _Room]) -> dict[str, _Room]:
    return {name: _Room(dict(each.free), list(each.gpus), each.taken, each.closed) for name, each in rooms.items()}


def _sum(uses: Iterable[Use]) -> Use:
    total: Use = {}
    for each in uses:
        for share, amount in each.items():
            total[share] = total.get(share, 0) + amount
    return total


def missed_start(truth: Truth, claims: Sequence[Claim]) -> str:
    """Return a job that one node would hold, beside the claimed starts; empty if there is none."""
    rooms, limits = _rooms(truth), dict(truth.limits)
    used: Use = {}
    started = {name for name, _, _ in claims}
    for name, places, use in claims:
        job = truth.jobs[name]
        flat = [node for group in places for node in group]
        _put_in_any_order(truth, rooms, job, flat)
        for limit, amount in job.takes.items():
            limits[limit] -= amount
        used = _sum([used, use])
    for name, job in truth.jobs.items():
        if name in started or job.may is not True or (job.after and job.after not in started):
            continue
        if any(amount > max(0, limits[limit]) for limit, amount in job.takes.items()):
            continue
        if len(job.choices) == 1 and not job.pods:
            if any(truth.admits(_sum([used, use])) for use in job.choices[0]):
                return name
        elif job.choices and not job.pods:
            continue
        elif not (job.apart and len(job.pods) > 1):
            for node in truth.nodes:
                if _put(truth, _copied(rooms), job, [node] * len(job.pods)):
                    return f"{name} on {node}"
    return ""


def most_units(truth: Truth, tries: int = 4000) -> int | None:
    """Return the most units that can start together, over all jobs that may or might; None if it takes too long."""
    jobs = [(name, job) for name, job in truth.jobs.items() if job.may is not False and job.units > 0]
    best, left = 0, [tries]

    def go(at: int, rooms: dict[str, _Room], limits: dict[str, int], used: Use, units: int) -> None:
        nonlocal best
        left[0] -= 1
        best = max(best, units)
        if at == len(jobs) or left[0] < 0 or units + sum(job.units for _, job in jobs[at:]) <= best:
            return
        job = jobs[at][1]
        rest = {limit: limits[limit] - amount for limit, amount in job.takes.items()}
        if all(rest[limit] >= 0 for limit, amount in job.takes.items() if amount > 0):
            if job.pods:
                for names in itertools.product(truth.nodes, repeat=len(job.pods)):
                    trial = _copied(rooms)
                    if _put(truth, trial, job, names):
                        go(at + 1, trial, limits | rest, used, units + job.units)
            else:
                for chosen in itertools.product(*job.choices):
                    more = _sum([used, *chosen])
                    if truth.admits(more):
                        go(at + 1, rooms, limits | rest, more, units + job.units)
        go(at + 1, rooms, limits, used, units)

    go(0, _rooms(truth), dict(truth.limits), {}, 0)
    return best if left[0] >= 0 else None
