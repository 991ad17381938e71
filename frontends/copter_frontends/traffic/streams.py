"""Streams of rounds: changes of a network from round to round (TE15 to TE18 in docs/method/traffic.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.network import Floats, Ints, Network

PERTURBATION = 0.1  # largest relative change of a demand in a round, as in the thesis (TE16)
FLASH_FACTOR = 5.0  # factor on the demands to a flash crowd's node (TE18)
FLASH_SHARE = 0.5  # a flash crowd lasts at most this share of the rounds
ROUND_S = 300.0  # seconds of a round


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """Changes of a round.

    Attributes
    ----------
    matrix : ndarray (n, n)
        Demands, without unmet demand of earlier rounds.
    arcs, capacity : ndarray
        Arcs whose capacity changes, and their new capacities.
    event : str
        Description of the change.
    """

    matrix: Floats
    arcs: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    capacity: Floats = field(default_factory=lambda: np.zeros(0))
    event: str = ""


def tracking(network: Network, matrix: Floats, rounds: int, seed: int = 1) -> Iterator[Round]:
    """NCFlow's demand tracking: every demand moves by a common and an individual shift (TE15).

    The published streams have 25 matrices in float32 and the seed 1.
    """
    first = matrix.astype(np.float32)
    mean = first.mean()
    delta, sigma = mean / 4.0, mean / 2.0
    rng = np.random.RandomState(seed)
    n, last = network.n_nodes, first
    yield Round(first.astype(np.float64))
    for _ in range(rounds - 1):
        shift = rng.normal(delta, sigma)
        sign = rng.choice([-1, 1])
        moved = rng.normal(sign * shift, sigma, n * n).reshape(n, n).astype(np.float32)
        last = np.maximum(last + moved, np.float32(0.0))
        np.fill_diagonal(last, 0.0)
        yield Round(last.astype(np.float64))


def perturbed(
    network: Network, matrix: Floats, rounds: int, seed: int = 0, amount: float = PERTURBATION
) -> Iterator[Round]:
    """The thesis's rounds: every demand changes by up to 10% of its last value (TE16)."""
    rng, last = np.random.default_rng(seed), matrix.copy()
    yield Round(last)
    for _ in range(rounds - 1):
        last = last * rng.uniform(1.0 - amount, 1.0 + amount, last.shape)
        yield Round(last)


def failures(network: Network, matrix: Floats, rounds: int, seed: int = 0, links: int = 1) -> Iterator[Round]:
    """`links` links fail in every second round and are repaired in the next (TE17)."""
    if not 0 < links <= len(network.links):
        raise DemandError(f"{links} links cannot fail: {network.name} has {len(network.links)}")
    rng = np.random.default_rng(seed)
    yield Round(matrix)
    down: Ints = np.zeros(0, dtype=np.int64)
    for _ in range(rounds - 1):
        if len(down):
            yield Round(matrix, down, network.capacity[down], "repaired")
            down = np.zeros(0, dtype=np.int64)
            continue
        chosen = rng.choice(len(network.links), links, replace=False)
        down = np.concatenate([network.links[link] for link in chosen])
        ends = [f"{network.nodes[network.source[own[0]]]}-{network.nodes[network.target[own[0]]]}" for own in
                (network.links[link] for link in chosen)]  # fmt: skip
        yield Round(matrix, down, np.zeros(len(down)), f"cut {', '.join(ends)}")


def flash_crowd(network: Network, matrix: Floats, rounds: int, seed: int = 0) -> Iterator[Round]:
    """Demands to one node grow fivefold, then decay (TE18)."""
    rng = np.random.default_rng(seed)
    node = int(rng.integers(network.n_nodes))
    begins, stays = max(1, rounds // 4), max(1, int(rounds * FLASH_SHARE))
    for at in range(rounds):
        factor = 1.0
        if begins <= at < begins + stays:
            factor = 1.0 + (FLASH_FACTOR - 1.0) * (1.0 - (at - begins) / stays)
        now = matrix.copy()
        now[:, node] *= factor
        now[node, :] *= factor
        yield Round(now, event=f"crowd at {network.nodes[node]}" if factor > 1.0 else "")


def sequence(matrices: list[Floats], rounds: int) -> Iterator[Round]:
    """Measured matrices in order, repeated from the start when they end."""
    if not matrices:
        raise DemandError("there is no matrix: a sequence needs at least one")
    for at in range(rounds):
        yield Round(matrices[at % len(matrices)])


STREAMS: dict[str, Callable[[Network, Floats, int, int], Iterator[Round]]] = {
    "perturbed": perturbed,
    "tracking": tracking,
    "failure": failures,
    "double-failure": lambda network, matrix, rounds, seed: failures(network, matrix, rounds, seed, 2),
    "flash-crowd": flash_crowd,
}
"""Streams by the names that the command line knows."""
