"""Sequences of measured demand matrices: text with one matrix per line, NumPy archives, SNDlib."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from copter_frontends.traffic.demands import checked_matrix
from copter_frontends.traffic.errors import DemandError, NetworkFileError
from copter_frontends.traffic.network import Floats, Network


def read_matrices(
    path: str | Path, network: Network, unit: float = 1.0, hosts: list[str] | None = None
) -> list[Floats]:
    """Return a file's matrices, (n, n) in the network's node order, without diagonals.

    Parameters
    ----------
    path : path
        ``.txt`` (n * n numbers a line, row by row), ``.npz`` or ``.npy`` (matrices, n, n), ``.xml`` (SNDlib).
    network : Network
    unit : float
        The file's unit, expressed in the network's unit (1e-6 for a file in bit/s and a network in Mbit/s).
    hosts : list of str, optional
        Names of the file's rows, in order; by default the network's nodes in order.

    Raises
    ------
    NetworkFileError, DemandError
        The message names the file, and the line or matrix.
    """
    path, n = Path(path), network.n_nodes
    try:
        found = _read(path, network)
    except OSError as error:
        raise NetworkFileError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, ElementTree.ParseError) as error:
        raise NetworkFileError(f"{path}: not a file of demand matrices: {error}") from error
    order = np.arange(n)
    if hosts is not None:
        if len(hosts) != n or set(hosts) != set(network.nodes):
            raise NetworkFileError(f"{path}: its rows are {len(hosts)} hosts, not the {n} nodes of {network.name}")
        order = np.array([hosts.index(name) for name in network.nodes])
    matrices = []
    for at, matrix in enumerate(found):
        if matrix.shape != (n, n):
            raise NetworkFileError(f"{path}: matrix {at} has shape {matrix.shape}, {network.name} has {n} nodes")
        mine = matrix[np.ix_(order, order)] * unit
        np.fill_diagonal(mine, 0.0)
        try:
            matrices.append(checked_matrix(network, mine))
        except DemandError as error:
            raise DemandError(f"{path}: matrix {at}: {error}") from error
    return matrices


def _read(path: Path, network: Network) -> list[Floats]:
    if path.suffix == ".txt":
        lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        rows = [np.array(line, dtype=np.float64) for line in lines]
        sides = [round(len(row) ** 0.5) for row in rows]
        for at, (row, side) in enumerate(zip(rows, sides, strict=True)):
            if side * side != len(row):
                raise NetworkFileError(f"{path}: line {at + 1} has {len(row)} numbers, which is no square")
        return [row.reshape(side, side) for row, side in zip(rows, sides, strict=True)]
    if path.suffix in (".npz", ".npy"):
        with np.load(path) if path.suffix == ".npz" else _Array(path) as file:
            stack = np.asarray(file[next(iter(file))], dtype=np.float64)
        return list(stack if stack.ndim == 3 else stack[None])
    if path.suffix == ".xml":
        return [_sndlib(path, network)]
    raise NetworkFileError(f"{path}: unknown kind of file {path.suffix!r}: one of .txt, .npz, .npy, .xml")


class _Array(dict[str, Floats]):
    """A file with one array, read like an archive with one member."""

    def __init__(self, path: Path) -> None:
        super().__init__(array=np.load(path))

    def __enter__(self) -> _Array:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def _sndlib(path: Path, network: Network) -> Floats:
    """Return the demands of an SNDlib file, summed by pair."""
    found = np.zeros((network.n_nodes, network.n_nodes))
    for element in ElementTree.parse(path).getroot().iter():
        if element.tag.rpartition("}")[2] != "demand":
            continue
        own = {part.tag.rpartition("}")[2]: (part.text or "").strip() for part in element}
        ends = [network.node(own[end]) for end in ("source", "target")]
        found[ends[0], ends[1]] += float(own["demandValue"])
    return found
