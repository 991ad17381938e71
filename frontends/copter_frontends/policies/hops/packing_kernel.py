"""The compiled pass that gives jobs their servers, one server a job, in order."""

from __future__ import annotations

import numpy as np

from copter_frontends.policies.hops.offers import Floats, Ints
from copter_frontends.vocabulary.compilation import compiled


@compiled
def give_packed(
    free: Ints,
    group: Ints,
    first: Ints,
    order: Ints,
    idle: int,
    job: Ints,
    wanted: Ints,
    gpus: Ints,
    stays: Ints,
    gain: Floats,
    bonus: float,
    given: Ints,
) -> tuple[Ints, Ints]:
    """Give each job that has no server yet its current one, or the fullest one of its group with room.

    Servers with equally many free GPUs form a list, from which the first is taken; a server whose free GPUs change goes
    to the end of its new list, as in :class:`.Draft`.

    Parameters
    ----------
    free, group : int64 arrays (servers,)
        Free GPUs of every server (changed in place), and its group.
    first : int64 array (groups + 1,)
        First list of every group: list `first[g] + f` holds its servers with f free GPUs.
    order : int64 array (servers,)
        The servers, list after list.
    idle : int
        Free GPUs of all servers.
    job : int64 array (n,)
        Number of the job of every entry; a job may have several.
    wanted, gpus : int64 arrays (n,)
        Group and GPUs.
    stays : int64 array (n,)
        Server on which the job is and would remain; -1 for none.
    gain : float64 array (n,)
        Changed in place where a job stays; an entry without a positive gain gets nothing.
    bonus : float
        What staying adds to a gain.
    given : int64 array (n,)
        Server of every entry afterwards, -1 for none.

    Returns
    -------
    head, after : int64 arrays
        First server of every list, next server of every server; -1 for none.
    """
    lists = first[-1]
    head, tail = np.full(lists, -1, dtype=np.int64), np.full(lists, -1, dtype=np.int64)
    after, before = np.full(len(free), -1, dtype=np.int64), np.full(len(free), -1, dtype=np.int64)
    for server in order:
        at = first[group[server]] + free[server]
        if head[at] < 0:
            head[at] = server
        else:
            after[tail[at]] = server
            before[server] = tail[at]
        tail[at] = server
    done = np.zeros(job.max() + 1, dtype=np.bool_)
    for k in range(len(job)):
        given[k] = -1
        if done[job[k]]:
            continue
        server = stays[k]
        if server >= 0 and free[server] >= gpus[k]:
            gain[k] += bonus
        else:
            server = -1
            if gpus[k] <= idle:
                for at in range(first[wanted[k]] + gpus[k], first[wanted[k] + 1]):
                    if head[at] >= 0:
                        server = head[at]
                        break
        if server < 0 or not gain[k] > 0.0:
            continue
        at = first[group[server]] + free[server]
        if before[server] < 0:
            head[at] = after[server]
        else:
            after[before[server]] = after[server]
        if after[server] < 0:
            tail[at] = before[server]
        else:
            before[after[server]] = before[server]
        free[server] -= gpus[k]
        idle -= gpus[k]
        at -= gpus[k]
        before[server], after[server] = tail[at], -1
        if tail[at] < 0:
            head[at] = server
        else:
            after[tail[at]] = server
        tail[at] = server
        given[k] = server
        done[job[k]] = True
    return head, after
