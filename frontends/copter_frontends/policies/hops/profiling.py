"""A short profiling run, which measures the parts of a job's iterations, its loading states and its pattern (section
3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.hops.data_loading import fit_loading
from copter_frontends.policies.hops.errors import ThroughputError
from copter_frontends.policies.hops.estimator import ThroughputEstimator
from copter_frontends.policies.hops.iteration_time import IterationTimes, Pattern
from copter_frontends.vocabulary import Job

Floats = NDArray[np.float64]


def detected_pattern(loads: Floats, computes: Floats, forwards: Floats, totals: Floats) -> Pattern:
    """Return which of HP4's two patterns fits the measured iterations on one GPU better.

    Parameters
    ----------
    loads, computes, forwards, totals : float64 arrays (iterations,)
        Seconds of T_d, T_b + T_u, T_f and of the whole iteration.
    """
    overlapped = np.maximum(loads, computes) + forwards
    in_turn = loads + computes + forwards
    return 1 if float(((totals - overlapped) ** 2).sum()) <= float(((totals - in_turn) ** 2).sum()) else 2


def profiled(
    servers: Sequence[IterationTimes],
    weights: Sequence[float],
    rng: np.random.Generator,
    iterations: int = 200,
    noise: float = 0.02,
) -> IterationTimes:
    """Return the profile of `iterations` iterations on one GPU, each on a server drawn by weight.

    A profile by GPU type contains means over servers only; fast servers are found by observation.

    Parameters
    ----------
    servers : sequence of IterationTimes
        True times by kind of server.
    weights : sequence of float
        Number of GPUs of each kind.
    rng : numpy.random.Generator
    iterations : int
    noise : float
        Relative standard deviation of every part.

    Raises
    ------
    ThroughputError
        If there are no servers, or the number of weights differs.
    """
    if not servers or len(weights) != len(servers) or iterations < 1:
        raise ThroughputError(
            f"a profiling run needs servers, a weight for each and an iteration; there are {len(servers)}, "
            f"{len(weights)} and {iterations}"
        )
    share = np.asarray(weights, dtype=np.float64)
    at = rng.choice(len(servers), iterations, p=share / share.sum())
    parts = np.empty((iterations, 5))  # forward, backward, update, load, wait
    totals = np.empty(iterations)
    for i, where in enumerate(at.tolist()):
        true = servers[where]
        state = true.loading.cached if rng.random() < true.loading.cached_share else true.loading.slow
        load = max(rng.normal(state.mean_s, state.deviation_s), 0.0)
        compute = np.array([true.forward_s, true.backward_s, true.update_s]) * rng.normal(1.0, noise, 3).clip(0.1)
        parts[i] = (*compute, load, state.wait_s)
        back = compute[1] + compute[2]
        totals[i] = (max(load, back) if true.pattern == 1 else load + back) + compute[0]
    forward, backward, update, load, wait = parts.T
    return replace(
        servers[0],
        forward_s=float(forward.mean()),
        backward_s=float(backward.mean()),
        update_s=float(update.mean()),
        loading=fit_loading(load, wait),
        pattern=detected_pattern(load, backward + update, forward, totals),
    )


def profile_by_gpu(
    estimator: ThroughputEstimator,
    truth: Mapping[str, Mapping[str, IterationTimes]],
    gpus: Mapping[str, int],
    seed: int = 0,
    iterations: int = 200,
) -> None:
    """Profile every application on every GPU type, on any of its servers, like a scheduler that knows only GPU types.

    Parameters
    ----------
    estimator : ThroughputEstimator
        Estimator with records by application.
    truth : mapping of application to mapping of type to IterationTimes
        True times; types are named ``gpu`` or ``gpu-server``, and types with equal ``gpu`` get one profile.
    gpus : mapping of type to int
        GPUs of each type.
    seed : int
    iterations : int
        Number of iterations on each GPU.
    """
    rng = np.random.default_rng(seed)
    for name, parts in truth.items():
        alike: dict[str, list[str]] = {}
        for kind in parts:
            alike.setdefault(kind.partition("-")[0], []).append(kind)
        found: dict[str, IterationTimes] = {}
        for kinds in alike.values():
            seen = profiled([parts[kind] for kind in kinds], [gpus[kind] for kind in kinds], rng, iterations)
            found |= dict.fromkeys(kinds, seen)
        estimator.profile(Job(f"profile of {name}", name), found)
