"""Sizes that always consolidate: a chain of divisors of a node, then whole nodes (docs/papers/chronus.md, C18)."""

from __future__ import annotations

from functools import lru_cache

from copter_frontends.vocabulary import InvalidClusterError


@lru_cache(maxsize=64)
def friendly_sizes(gpus_per_node: int) -> tuple[int, ...]:
    """Return ascending sizes within a node, each a divisor of the next; the last is the node.

    The sizes are 1, 2, 4, 8 for nodes of 8 GPUs and 1, 3, 6 for nodes of 6. Powers of two would not suffice: three jobs
    of 4 GPUs fit in two nodes of 6 by number, but not each on a single node.
    """
    if gpus_per_node < 1:
        raise InvalidClusterError(f"gpus_per_node is {gpus_per_node}, must be >= 1")
    sizes = [gpus_per_node]
    while sizes[-1] > 1:
        smallest = next(p for p in range(2, sizes[-1] + 1) if sizes[-1] % p == 0)
        sizes.append(sizes[-1] // smallest)
    return tuple(reversed(sizes))


def round_up(gpus: int, gpus_per_node: int) -> int:
    """Return the smallest friendly size of at least `gpus` GPUs: {1, 2, 4, 8n} on nodes of 8."""
    if gpus > gpus_per_node:
        return -(-gpus // gpus_per_node) * gpus_per_node
    return next(size for size in friendly_sizes(gpus_per_node) if size >= gpus)
