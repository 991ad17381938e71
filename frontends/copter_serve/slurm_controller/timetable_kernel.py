"""The compiled list scheduler: jobs of an order, one by one, each where it completes first among those before it.

Free amounts are step functions of time (docs/method/timetable.md, T1). A row is a node, or a limit, whose one resource
is the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from copter_frontends.vocabulary.compilation import compiled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ENOUGH = 1e-6  # amounts that differ by less are alike
AT_ONCE = 1e-9  # seconds that differ by less are alike


class Steps(NamedTuple):
    """Free amounts over time: row, step, resource; a step lasts from its time to the next one's, the last for ever."""

    times: Floats
    free: Floats
    used: Ints  # steps of each row


class Jobs(NamedTuple):
    """Jobs and their ways to run; those of job j are first[j] to first[j + 1]."""

    first: Ints
    width: Ints  # nodes of each job
    weight: Floats
    may: npt.NDArray[np.int8]  # job, node: 0 if it may not run there, 2 if it must
    at: Ints  # class of each way
    kind: Ints  # resource of its GPUs
    seconds: Floats
    worth: Floats  # seconds as the sum counts them
    need: Floats  # way, resource: of each node
    takes: Floats  # way, limit


@compiled
def earliest(steps: Steps, row: int, since: float, seconds: float, need: Floats, latest: float) -> float:
    """Return the first time from `since` on from which amounts are free for so long; inf if past `latest` (T1)."""
    start, last = since, steps.used[row] - 1
    for k in range(last + 1):
        if k < last and steps.times[row, k + 1] <= start + AT_ONCE:
            continue
        enough = True
        for r in range(need.shape[0]):
            if need[r] > 0.0 and steps.free[row, k, r] < need[r] - ENOUGH:
                enough = False
        if not enough:
            if k == last or steps.times[row, k + 1] > latest:
                return np.inf
            start = steps.times[row, k + 1]
        elif k == last or steps.times[row, k + 1] >= start + seconds - AT_ONCE:
            return start
    return np.inf


@compiled
def step_at(steps: Steps, row: int, time: float) -> int:
    """Return the step of a row in which a time lies."""
    k = int(steps.used[row]) - 1
    while k > 0 and steps.times[row, k] > time + AT_ONCE:
        k -= 1
    return k


@compiled
def cut(steps: Steps, row: int, time: float) -> int:
    """Return the step that begins at a time, made if there is none."""
    k = int(step_at(steps, row, time))
    if steps.times[row, k] >= time - AT_ONCE:
        return k
    for step in range(steps.used[row], k + 1, -1):
        steps.times[row, step] = steps.times[row, step - 1]
        steps.free[row, step] = steps.free[row, step - 1]
    steps.times[row, k + 1] = time
    steps.free[row, k + 1] = steps.free[row, k]
    steps.used[row] += 1
    return k + 1


@compiled
def hold(steps: Steps, row: int, since: float, seconds: float, need: Floats) -> None:
    """Take amounts of a row for some seconds."""
    begin = cut(steps, row, since)
    end = cut(steps, row, since + seconds)
    for k in range(begin, end):
        for r in range(need.shape[0]):
            steps.free[row, k, r] -= need[r]


@compiled
def when(
    steps: Steps, jobs: Jobs, job: int, way: int, members: Ints, limits: int, latest: float, ready: Floats
) -> float:
    """Return when a job can start in a way; `ready` gets for each node of the way's class when that one can."""
    nodes = steps.used.shape[0] - limits
    since, seconds, most, one = 0.0, jobs.seconds[way], steps.times.shape[1] - 2, np.zeros(1)
    while True:
        able, all_of = 0, since
        for k in range(members.shape[0]):
            node = members[k]
            ready[k] = np.inf
            if jobs.may[job, node] > 0 and steps.used[node] <= most:
                ready[k] = earliest(steps, node, since, seconds, jobs.need[way], latest)
                able += ready[k] < np.inf
            if jobs.may[job, node] == 2:
                all_of = max(all_of, ready[k])
        if able < jobs.width[job]:
            return np.inf
        if jobs.width[job] == 1:
            time = max(np.min(ready[: members.shape[0]]), all_of)
        else:
            time = max(np.sort(ready[: members.shape[0]])[jobs.width[job] - 1], all_of)
        if time == np.inf:
            return time
        free, later = 0, time
        for k in range(members.shape[0]):
            if ready[k] > time + AT_ONCE or ready[k] < time - AT_ONCE:
                if jobs.may[job, members[k]] == 2:
                    later = np.inf
            else:
                free += 1
        if free < jobs.width[job] or later == np.inf:
            since = time
            continue
        for limit in range(limits):
            one[0] = jobs.takes[way, limit]
            if one[0] > 0.0:
                if steps.used[nodes + limit] > most:
                    return np.inf
                later = max(later, earliest(steps, nodes + limit, time, seconds, one, latest))
        if later <= time or later == np.inf:
            return later
        since = later


@compiled
def filled(
    order: Ints, base: Steps, steps: Steps, jobs: Jobs, class_first: Ints, members: Ints, limits: int, far: float,
    bound: float, starts: Floats, ways: Ints, nodes: Ints, work: Ints,
) -> float:  # fmt: skip
    """Fill `steps` by jobs in an order; return the sum of weighted completions, inf once it must pass `bound`.

    `starts`, `ways` and `nodes` get each job's place, -1 for a job without one, which counts as completed `far` ahead.
    `work` is raised by one for each job and node. A job's place is that of T2, the sum that of T3.
    """
    for row in range(base.used.shape[0]):
        steps.used[row] = base.used[row]
        for k in range(base.used[row]):
            steps.times[row, k] = base.times[row, k]
            steps.free[row, k] = base.free[row, k]
    ready, one, all_nodes = np.zeros(members.shape[0]), np.zeros(1), base.used.shape[0] - limits
    total, rest = 0.0, 0.0
    for job in order:
        rest += jobs.weight[job] * np.min(jobs.worth[jobs.first[job] : jobs.first[job + 1]])
    for job in order:
        best, best_start, best_way = np.inf, np.inf, -1
        rest -= jobs.weight[job] * np.min(jobs.worth[jobs.first[job] : jobs.first[job + 1]])
        for way in range(jobs.first[job], jobs.first[job + 1]):
            own = members[class_first[jobs.at[way]] : class_first[jobs.at[way] + 1]]
            work[0] += own.shape[0]
            start = when(steps, jobs, job, way, own, limits, best - jobs.worth[way], ready)
            if start + jobs.worth[way] < best:
                best, best_start, best_way = start + jobs.worth[way], start, way
        ways[job] = best_way
        nodes[job, :] = -1
        total += jobs.weight[job] * min(best, far)
        if total + rest > bound:
            return np.inf
        if best_way < 0:
            starts[job] = np.inf
            continue
        starts[job] = best_start
        own = members[class_first[jobs.at[best_way]] : class_first[jobs.at[best_way] + 1]]
        for k in range(own.shape[0]):
            ready[k] = np.inf
            if jobs.may[job, own[k]] > 0 and steps.used[own[k]] <= steps.times.shape[1] - 2:
                begin = earliest(steps, own[k], best_start, jobs.seconds[best_way], jobs.need[best_way], best_start)
                if begin <= best_start + AT_ONCE:
                    step = step_at(steps, own[k], best_start)
                    ready[k] = steps.free[own[k], step, jobs.kind[best_way]] - 1e9 * (jobs.may[job, own[k]] == 2)
        for taken in range(jobs.width[job]):  # those with least room left first
            k = int(np.argmin(ready[: own.shape[0]]))
            ready[k] = np.inf
            nodes[job, taken] = own[k]
            hold(steps, own[k], best_start, jobs.seconds[best_way], jobs.need[best_way])
        for limit in range(limits):
            one[0] = jobs.takes[best_way, limit]
            if one[0] > 0.0:
                hold(steps, all_nodes + limit, best_start, jobs.seconds[best_way], one)
    return total


@compiled
def improved(
    order: Ints, moves: Ints, fixed: int, most_work: int, base: Steps, steps: Steps, jobs: Jobs, class_first: Ints,
    members: Ints, limits: int, far: float, best: float, starts: Floats, ways: Ints, nodes: Ints, work: Ints,
) -> float:  # fmt: skip
    """Move jobs in the order, while the sum does not grow (T5); the first `fixed` stay. The places are the best's."""
    new, new_starts, new_ways, new_nodes = order.copy(), starts.copy(), ways.copy(), nodes.copy()
    for move in range(moves.shape[0]):
        if work[0] >= most_work:
            break
        begin, end = moves[move, 0], moves[move, 1]
        if begin == end or begin < fixed or end < fixed:
            continue
        new[:] = order
        step = 1 if begin < end else -1
        for k in range(begin, end, step):
            new[k] = order[k + step]
        new[end] = order[begin]
        total = filled(
            new, base, steps, jobs, class_first, members, limits, far, best + AT_ONCE, new_starts, new_ways, new_nodes,
            work,
        )  # fmt: skip
        if total <= best + AT_ONCE:
            best = total
            order[:], starts[:], ways[:], nodes[:] = new, new_starts, new_ways, new_nodes
    return best
