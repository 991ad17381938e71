"""A compiled pass that chooses batch sizes for many configurations at once (docs/method/goodput.md, G6 to G8)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

CANDIDATES = 50  # batch sizes tried, in geometric progression (G7)
EPSILON = 1e-8  # subtracted before rounding up, so that rounding errors add no step (G7)
_TINY_S = 1e-8  # = throughput.TINY_S, which compiled code needs as its own constant

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def _best_batches(
    parameters: Floats,
    local_limits: Integers,
    nodes: Integers,
    gpus: Integers,
    kinds: Integers,
    init_batch: int,
    max_batch: int,
    overshoot: bool,
    fixed_batch: int,
    noise_batches: Floats,
    noise_scales: Floats,
    goodput: Floats,
    local_batch: Integers,
    accumulation: Integers,
) -> None:
    for i in range(gpus.size):
        kind = kinds[i]
        count = gpus[i]
        alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma = parameters[kind]
        least, most = local_limits[kind, 0], local_limits[kind, 1]
        low = max(init_batch, least * count)
        goodput[i] = 0.0
        local_batch[i] = 0
        accumulation[i] = 0
        if most == 0 or (low > max_batch and not overshoot):
            continue
        high = max(low, max_batch)
        if fixed_batch > 0:
            low = high = fixed_batch
        sync = _TINY_S
        if nodes[i] > 1:
            sync = alpha_n + beta_n * max(count - 2.0, _TINY_S)
        elif count > 1:
            sync = alpha_r + beta_r * max(count - 2.0, _TINY_S)
        growth = math.log(high / low) / (CANDIDATES - 1)
        last_local, last_steps = -1, -1
        at = 0
        for candidate in range(CANDIDATES):
            share = low * math.exp(growth * candidate) / count
            if candidate == CANDIDATES - 1:
                share = high / count
            steps = math.ceil(share / most - EPSILON) - 1
            if count == 1 and share > init_batch + EPSILON:
                steps = max(steps, 1)
            local = math.ceil(share / (steps + 1) - EPSILON)
            if local < least or local > most or (local == last_local and steps == last_steps):
                continue
            last_local, last_steps = local, steps
            compute = alpha_c + beta_c * local
            longer, shorter = max(compute, sync), min(compute, sync)
            step = longer * (1.0 + (shorter / longer) ** gamma) ** (1.0 / gamma)
            batch = count * local * (steps + 1)
            while at > 0 and noise_batches[at - 1] >= batch:
                at -= 1
            while at < noise_batches.size and noise_batches[at] < batch:
                at += 1
            if at == 0:
                noise_scale = noise_scales[0]
            elif at == noise_batches.size:
                noise_scale = noise_scales[at - 1]
            else:
                weight = (batch - noise_batches[at - 1]) / (noise_batches[at] - noise_batches[at - 1])
                noise_scale = noise_scales[at - 1] + weight * (noise_scales[at] - noise_scales[at - 1])
            value = batch / (steps * compute + step) * ((noise_scale + init_batch) / (noise_scale + batch))
            if value > goodput[i]:
                goodput[i] = value
                local_batch[i] = local
                accumulation[i] = steps


_compile: Callable[..., Any] = njit(cache=True, nogil=True)

best_batches: Callable[..., None] = _compile(_best_batches)
"""Best goodput and batch of every configuration, written into the last three arguments (G6 to G8).

Parameters
----------
parameters : ndarray (kinds, 7) of float64
    Throughput constants of each GPU type.
local_limits : ndarray (kinds, 2) of int64
    Smallest and largest local batch of each GPU type; (0, 0) for a type that cannot run the application.
nodes, gpus, kinds : ndarray (n,) of int64
    Nodes, GPUs and GPU type (a row of `parameters`) of each configuration.
init_batch, max_batch : int
    The initial batch size (M0) and the largest total batch size, in samples.
overshoot : bool
    Whether a configuration whose smallest batch exceeds `max_batch` still runs at this smallest batch, as in the public
    simulator.
fixed_batch : int
    The only total batch to try, in samples; 0: any.
noise_batches, noise_scales : ndarray (b,) of float64
    The noise scale in samples at total batches, ascending; linear between, constant beyond.
goodput : ndarray (n,) of float64
    Written: efficient samples per second; 0.0 if the job cannot run.
local_batch, accumulation : ndarray (n,) of int64
    Written: the batch that gives this goodput; 0 if the job cannot run.
"""
