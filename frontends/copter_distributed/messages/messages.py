"""Messages between the coordinator and its shards: plain values with counted sizes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

WORD = 8  # bytes counted for one number in a message's size


def no_ints() -> Ints:
    """Return an empty int32 array."""
    return np.zeros(0, dtype=np.int32)


def no_floats() -> Floats:
    """Return an empty float64 array."""
    return np.zeros(0)


@dataclass(frozen=True)
class TemplateAt:
    """A declared template, by its index at the time of the call.

    Attributes
    ----------
    place : int
    """

    place: int


@dataclass(frozen=True)
class Call:
    """One edit: a method of :class:`copter.Model` with its arguments.

    Attributes
    ----------
    method : str
    arguments : tuple
    named : dict
    """

    method: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]


@dataclass(frozen=True)
class Columns:
    """All held columns of some plain requests, with their data.

    A request is plain if its columns have lower bounds of zero and no upper bounds, its sum has a limit but no least
    sum, and it has no private rows.

    Attributes
    ----------
    requests : list of ids (k,)
    count : ndarray (k,) int32
        Number of listed columns of each request.
    limit : ndarray (k,)
    integer : ndarray (k,) bool
    fixed : ndarray (k,) int32
        Column to which each request is fixed; -1 if it is not fixed.
    column : ndarray (n,) int32
        Column number within the request, ascending.
    cost : ndarray (n,)
        In the signs of the model's sense.
    entry_start, row, coefficient : CSC arrays
        Usage; rows are numbered in the order of the model's resources.
    """

    requests: list[Hashable] = field(default_factory=list)
    count: Ints = field(default_factory=no_ints)
    limit: Floats = field(default_factory=no_floats)
    integer: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    fixed: Ints = field(default_factory=no_ints)
    column: Ints = field(default_factory=no_ints)
    cost: Floats = field(default_factory=no_floats)
    entry_start: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int32))
    row: Ints = field(default_factory=no_ints)
    coefficient: Floats = field(default_factory=no_floats)


@dataclass(frozen=True)
class WholeRequest:
    """A wholly held request: one with private rows, a least sum, bounds or no limit.

    Attributes
    ----------
    request : hashable
    entry_start, row, coefficient : CSC arrays
        Usage; rows are numbered in the order of the model's resources.
    named : dict
        Arguments for :meth:`copter.Model.add_request`, without the usage.
    """

    request: Hashable
    entry_start: Ints
    row: Ints
    coefficient: Floats
    named: dict[str, Any]


@dataclass(frozen=True)
class Changes:
    """Changes of the columns that the coordinator holds.

    Attributes
    ----------
    columns : Columns
        Plain requests, with the columns that replace their held ones.
    whole : list of WholeRequest
        Wholly held requests that replace their earlier versions.
    requests : list of ids
        Requests of which only the costs have changed.
    count, cost : ndarray
        Number of held columns of each of these requests, and their costs, request by request.
    version : int
        Version of the shard's model.
    """

    columns: Columns = field(default_factory=Columns)
    whole: list[WholeRequest] = field(default_factory=list)
    requests: list[Hashable] = field(default_factory=list)
    count: Ints = field(default_factory=no_ints)
    cost: Floats = field(default_factory=no_floats)
    version: int = 0


@dataclass(frozen=True)
class Priced:
    """A shard's answer to prices (equations R2 to R4).

    Attributes
    ----------
    correction : float
        Change (zero or less) of the dual value by the columns that the coordinator does not hold.
    total : float
        The dual value of the shard's plain requests.
    margin : float
        Largest rounding error of `correction` and `total`.
    rounding : float
        Largest amount by which the rounding of stored costs may have raised the dual value.
    most, least : ndarray (m,)
        Largest and smallest possible usage of each resource by the shard's plain requests.
    columns : Columns
        Requests with improving columns, with all the columns of each that are held from now on.
    held : int
        Number of columns that the coordinator holds, according to the shard.
    whole : bool
        Whether all columns were priced in time; if not, the answer gives no bound.
    seconds : float
        Time of the pass.
    """

    correction: float
    total: float
    margin: float
    rounding: float
    most: Floats
    least: Floats
    columns: Columns
    held: int
    whole: bool
    seconds: float


@dataclass(frozen=True)
class OwnRows:
    """Duals of the own rows of some requests: of their sums and private rows.

    Attributes
    ----------
    count : ndarray (k,) int32
        Number of rows of each request.
    row : ndarray int32
        0 for the sum, 1 + i for private row i; ascending within a request.
    dual : ndarray
        In the signs of the model's sense.
    """

    count: Ints
    row: Ints
    dual: Floats


@dataclass(frozen=True)
class Hello:
    """The state of a shard.

    Attributes
    ----------
    version : int
        Version of the shard's model: its number of edits.
    open_batch : int
        Number of the batch that is prepared but not decided; -1 if there is none.
    requests : int
    columns : int
    memory : int
        Peak of the process's resident memory, bytes.
    processor_s : float
        Processor time of the process so far, of all threads.
    """

    version: int
    open_batch: int
    requests: int
    columns: int
    memory: int
    processor_s: float


@dataclass(frozen=True)
class Inventory:
    """Contents of a shard's model, for a coordinator that starts afresh.

    Attributes
    ----------
    resources : list of ids
    lower, upper : ndarray (m,)
    templates : list of tuples
        (column_start, row, coefficient, private rows) of each template.
    requests : list of ids
    size : ndarray int32
        Number of columns of each request.
    """

    resources: list[Hashable]
    lower: Floats
    upper: Floats
    templates: list[tuple[Any, ...]]
    requests: list[Hashable]
    size: Ints


def size_of(value: Any) -> int:
    """Return the approximate bytes of a message: arrays by size, one word per number and id."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, dict):
        return sum(size_of(key) + size_of(each) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        if type(value) is list and value and type(value[0]) in (int, float):
            return WORD * len(value)
        return sum(map(size_of, value))
    if is_dataclass(value) and not isinstance(value, type):
        return sum(size_of(getattr(value, each.name)) for each in fields(value))
    if hasattr(value, "data") and hasattr(value, "indptr"):  # a sparse matrix
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    return WORD
