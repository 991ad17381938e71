"""The nodes of a saved run as tables: what many objects alike hold is written by column, and each text once.

A run has hundreds of thousands of jobs. As a node, each repeats its class, the names of its attributes, and its id
wherever it is a key. Here nodes of one form are one table, with an array for each attribute; an array of few runs of
equal values, or of equal steps, is written by its runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter_frontends.simulator.errors import SimulationError

Node = tuple[Any, ...]
Array = NDArray[Any]

LEAST = 16  # nodes of one form, or values of one node, from which on they are written by column
FEW_RUNS = 4  # an array is written by its runs if they are at most a part in so many of its values
MOST_VALUES = 1 << 20  # values that runs may give, whatever the file's size
VALUES_A_BYTE = 64  # values that runs may give for each byte of the file: a damaged count must not take all memory
INT32, INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
PAIRED = frozenset({"dict", "ordered", "counter", "default", "proxy"})
LISTED = frozenset({"list", "tuple", "set", "frozenset", "deque", "objects"})
LEAVES = frozenset({"array", "list of numbers", "tuple of numbers"})


def packed(nodes: Sequence[Node], order: Sequence[int]) -> dict[str, Any]:
    """Return nodes, and the order in which they are complete, in the form of the file."""
    writer = _Writer()
    forms: dict[Any, list[int]] = {}
    for number, node in enumerate(nodes):
        forms.setdefault(_form(node), []).append(number)
    tables: list[Any] = []
    arrays: list[Any] = []
    rest = forms.pop(None, [])
    for form, numbers in forms.items():
        if len(numbers) < LEAST:
            rest += numbers
        elif form[0] == "array":
            arrays.append(_alike([nodes[number][1] for number in numbers], numbers))
        else:
            columns = zip(*[nodes[number][-1] for number in numbers], strict=True)
            tables.append((nodes[numbers[0]][:-1], _whole(numbers), [writer.column(each) for each in columns]))
    return {
        "nodes": [writer.node(nodes[number]) for number in sorted(rest)],
        "order": _whole(order),
        "tables": tables,
        "arrays": arrays,
        "text": "".join(writer.texts),
        "lengths": _whole([len(each) for each in writer.texts]),
    }


def unpacked(payload: dict[str, Any], size: int) -> tuple[list[Node], list[int]]:
    """Return nodes and their order from the form of a file of `size` bytes.

    Raises
    ------
    SimulationError
        If it is no such form. Other invalid values raise errors of many kinds.
    """
    reader = _Reader(payload["text"], payload["lengths"], size)
    found: dict[int, Node] = {}
    for head, numbers, columns in payload["tables"]:
        rows = reader.array(numbers).tolist()
        every = [reader.column(each) for each in columns]
        if not every or any(len(each) != len(rows) for each in every):
            raise SimulationError("the columns of a table are not as long as the table")
        found.update((number, (*head, list(each))) for number, each in zip(rows, zip(*every, strict=True), strict=True))
    for numbers, shapes, flat in payload["arrays"]:
        values, ends = reader.array(flat), np.cumsum(shapes.prod(axis=1))
        parts = np.split(values, ends[:-1])
        for number, shape, part in zip(reader.array(numbers).tolist(), shapes.tolist(), parts, strict=True):
            found[number] = ("array", part.reshape(shape).copy(), [])
    others, total = iter(payload["nodes"]), len(found) + len(payload["nodes"])
    if any(not 0 <= number < total for number in found):
        raise SimulationError("a table has a number that no object has")
    nodes = [found[number] if number in found else reader.node(next(others)) for number in range(total)]
    return nodes, reader.array(payload["order"]).tolist()


def _form(node: Node) -> Any:
    """Return what the nodes of one table have in common; None for a node that is written by itself."""
    kind = node[0]
    if kind == "object":
        return (kind, node[1], *node[2]) if node[2] else None
    if kind in ("tuple", "named"):
        return (*node[:-1], len(node[-1])) if 0 < len(node[-1]) < LEAST else None
    if kind == "array" and type(node[1]) is np.ndarray and 0 < node[1].size < LEAST:
        return kind, node[1].dtype.str, node[1].ndim
    return None


def _alike(arrays: Sequence[Array], numbers: list[int]) -> tuple[Any, ...]:
    """Return small arrays of one type and number of dimensions: their nodes, shapes, and all values in a row."""
    shapes = np.array([each.shape for each in arrays], dtype=np.int64).reshape(len(arrays), arrays[0].ndim)
    return _whole(numbers), shapes, _short(np.concatenate([each.ravel() for each in arrays]))


def _whole(values: Sequence[int]) -> Any:
    """Return whole numbers of 64 bits as an array, or by the runs of their steps."""
    array = np.array(values, dtype=np.int64)
    if not len(array) or int(array.min()) not in INT32 or int(array.max()) not in INT32:
        return _short(array)
    runs = _runs(array)  # within 32 bits no difference overflows
    if runs is not None:
        return ("runs", (len(array),), *runs)
    runs = _runs(np.diff(array))
    return array.astype(np.int32) if runs is None else ("steps", int(array[0]), *runs)


def _short(array: Array) -> Any:
    """Return an array, or its shape and its runs of equal values if they are few."""
    runs = _runs(array.ravel())
    if runs is not None:
        return ("runs", array.shape, *runs)
    small = array.dtype == np.int64 and array.size >= LEAST
    if small and int(array.min()) in INT32 and int(array.max()) in INT32:
        return ("int32", array.astype(np.int32))
    return array


def _runs(array: Array) -> tuple[Array, Array] | None:
    """Return values and lengths of the runs of equal values; None if they are many."""
    if len(array) < LEAST:
        return None
    bits = array.view(np.int64) if array.dtype == np.float64 else array  # a NaN is as itself, and -0 not as 0
    begins = np.flatnonzero(bits[1:] != bits[:-1]) + 1
    if FEW_RUNS * (len(begins) + 1) > len(array):
        return None
    begins = np.append(0, begins)
    return array[begins], np.diff(np.append(begins, len(array)))


class _Writer:
    """Writes lists of values by column.

    Attributes
    ----------
    texts : list of str
        Each text of a column once.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._text_at: dict[str, int] = {}

    def node(self, node: Node) -> Node:
        """Return a node with its items by column, or its array by runs, if that is shorter."""
        kind = node[0]
        if kind in LEAVES and type(node[1]) is np.ndarray:
            return (kind, _short(node[1]), *node[2:])
        if kind not in PAIRED and kind not in LISTED:
            return node
        *head, items = node
        if len(items) < LEAST:
            return node
        step = 2 if kind in PAIRED else 1
        return (*head, tuple([self.column(items[at::step]) for at in range(step)]))

    def column(self, values: Sequence[Any]) -> tuple[str, Any]:
        """Return values, atoms or references, with the name of their form."""
        kinds = set(map(type, values))
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is tuple:
            return "references", _whole([number for (number,) in values])
        if kind is str:
            return "texts", _whole([self._text(each) for each in values])
        if kind is float:
            return "numbers", _short(np.array(values, dtype=np.float64))
        if kind is bool:
            return "truths", _short(np.array(values, dtype=np.bool_))
        if kind is int and min(values) in INT64 and max(values) in INT64:
            return "integers", _whole(values)
        return ("none", len(values)) if kind is type(None) else ("values", list(values))

    def _text(self, text: str) -> int:
        at = self._text_at.setdefault(text, len(self.texts))
        if at == len(self.texts):
            self.texts.append(text)
        return at


class _Reader:
    """Reads what :class:`_Writer` wrote.

    Parameters
    ----------
    text : str
        All texts in a row.
    lengths : array or its short form
        Length of each.
    size : int
        Bytes of the file.
    """

    def __init__(self, text: str, lengths: Any, size: int) -> None:
        self._left = max(MOST_VALUES, VALUES_A_BYTE * size)
        ends = np.cumsum(self.array(lengths)).tolist()
        self._texts = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
        self._forms: dict[str, Callable[[Any], list[Any]]] = {
            "references": lambda value: [(number,) for number in self.array(value).tolist()],
            "texts": lambda value: [self._texts[at] for at in self.array(value).tolist()],
            "numbers": lambda value: self.array(value).tolist(),
            "truths": lambda value: self.array(value).tolist(),
            "integers": lambda value: self.array(value).tolist(),
            "none": lambda value: [None] * self._allowed(value),
            "values": lambda value: list(value),
        }

    def array(self, value: Any) -> Array:
        """Return an array from its short form."""
        if isinstance(value, np.ndarray):
            return value
        if value[0] == "int32":
            return np.asarray(value[1].astype(np.int64))
        form, first, values, lengths = value
        if (lengths < 0).any():
            raise SimulationError("it has a run of a negative length")
        self._allowed(float(lengths.sum(dtype=np.float64)))
        array = np.repeat(values, lengths)
        if form == "runs":
            return array.reshape(first)
        return np.cumsum(np.append(first, array), dtype=np.int64)

    def column(self, value: tuple[str, Any]) -> list[Any]:
        """Return the values of a column."""
        form, content = value
        return self._forms[form](content)

    def node(self, node: Node) -> Node:
        """Return a node with its items as one list, and its array as it was."""
        if not node:
            return node
        kind = node[0]
        if kind in LEAVES and type(node[1]) is tuple:
            return (kind, self.array(node[1]), *node[2:])
        if (kind not in PAIRED and kind not in LISTED) or type(node[-1]) is not tuple:
            return node
        columns = [self.column(each) for each in node[-1]]
        return (*node[:-1], [each for row in zip(*columns, strict=True) for each in row])

    def _allowed(self, count: float) -> int:
        """Count values that runs give; raises SimulationError if they are more than the file's size allows."""
        self._left -= int(count)
        if self._left < 0:
            raise SimulationError("its runs give more values than the file's size allows")
        return int(count)
