"""Construction of a network, its paths and a stream of rounds from names and files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from copter_frontends.traffic.demands import DemandConstants, demand_matrix
from copter_frontends.traffic.errors import DemandError, NetworkFileError
from copter_frontends.traffic.generated import CAPACITY, generated_network
from copter_frontends.traffic.matrices import read_matrices
from copter_frontends.traffic.network import Floats, Network
from copter_frontends.traffic.paths import PATHS, Paths, make_paths
from copter_frontends.traffic.published import TOPOLOGIES, constants_of, published_network
from copter_frontends.traffic.readers import READERS, read_network
from copter_frontends.traffic.streams import STREAMS, Round, sequence
from copter_frontends.vocabulary.samples import NETWORK, given_or_sample


@dataclass(frozen=True, slots=True)
class TrafficOptions:
    """Options of a workload.

    Attributes
    ----------
    network : str
        A published topology, a file, ``random-N`` or ``asn-N``.
    capacity : float or None
        Capacity of links without one in the file, and of all links of a generated one.
    model, scale, matrix_seed : str, float, int
        Generator of the demands, factor on them, and seed.
    matrices : str or None
        A file of measured demand matrices to be used instead; `unit` converts its numbers to the network's unit.
    stream : str
        One of :data:`copter_frontends.traffic.streams.STREAMS`.
    rounds, seed : int
    rule, most : str, int
        Rule and number of a pair's paths.
    cache : str or None
        Folder of cached path sets.
    """

    network: str
    capacity: float | None = CAPACITY
    model: str = "gravity"
    scale: float = 64.0
    matrix_seed: int = 0
    matrices: str | None = None
    unit: float = 1.0
    stream: str = "perturbed"
    rounds: int = 20
    seed: int = 0
    rule: str = "disjoint"
    most: int = PATHS
    cache: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TrafficWorkload:
    """A network, the paths of all pairs with demands, and the changes.

    Attributes
    ----------
    first : ndarray (pairs,)
        Demand of every pair in the first round.
    """

    network: Network
    paths: Paths
    first: Floats
    options: TrafficOptions

    def rounds(self) -> Iterator[Round]:
        """Return the rounds from the start; repeated calls give the same."""
        return stream_of(self.network, self.options)


def make_workload(options: TrafficOptions) -> TrafficWorkload:
    """Read or generate the network, the demands and the paths that the options name.

    Raises
    ------
    NetworkFileError, NetworkError, DemandError
    """
    if options.stream not in STREAMS:
        raise DemandError(f"unknown stream {options.stream!r}: one of {', '.join(STREAMS)}")
    network = network_of(options)
    first, ever = None, np.zeros((network.n_nodes, network.n_nodes), dtype=np.bool_)
    for event in stream_of(network, options):
        first = event.matrix if first is None else first
        ever |= event.matrix > 0.0
    if first is None:
        raise DemandError("a stream without rounds: give at least one")
    paths = make_paths(network, np.argwhere(ever), options.rule, options.most, options.cache)
    return TrafficWorkload(network, paths, paths.demands_of(first), options)


def stream_of(network: Network, options: TrafficOptions) -> Iterator[Round]:
    """Return the stream of rounds that the options describe."""
    if options.matrices is not None:
        found = read_matrices(options.matrices, network, options.unit, hosts_of(network, options))
        if options.stream == "perturbed":
            return sequence([matrix * options.scale for matrix in found], options.rounds)
        matrix = found[0] * options.scale
    else:
        known = options.network in TOPOLOGIES
        constants = constants_of(options.network) if known else DemandConstants.for_network(network)
        matrix = demand_matrix(network, constants, options.model, options.scale, options.matrix_seed)
    return itertools.islice(STREAMS[options.stream](network, matrix, options.rounds, options.seed), options.rounds)


def hosts_of(network: Network, options: TrafficOptions) -> list[str] | None:
    """Return the order of a file's rows: a list beside a DOT network, or numbers for numbered nodes."""
    listed = Path(options.network).with_suffix(".hosts")
    if listed.is_file():
        names = [line.strip() for line in listed.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [
            f"s{name[1:]}" if name.startswith("h") and f"s{name[1:]}" in network.node_of else name for name in names
        ]
    if all(name.isdigit() for name in network.nodes):
        return sorted(network.nodes, key=int)
    return None


def network_of(options: TrafficOptions) -> Network:
    """Return the network that the options name."""
    name = options.network
    generated = generated_network(name, options.seed, options.capacity or CAPACITY)
    if generated is not None:
        return generated
    name = given_or_sample(name, NETWORK)
    if Path(name).suffix.lower() in READERS:
        return read_network(name, options.capacity)
    if name in TOPOLOGIES:
        return published_network(name)
    raise NetworkFileError(
        f"unknown network {name!r}: one of {', '.join(TOPOLOGIES)} (of the public data), random-N, asn-N, or a "
        f"file that ends in {', '.join(READERS)}"
    )
