"""Reconstruction of a saved run's objects from their nodes; see :mod:`copter_frontends.simulator.saved_objects`."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from copter import Session, Settings, Template
from copter.session.session import restored
from copter.session.state import model_from
from copter_frontends.simulator.errors import SimulationError
from copter_frontends.simulator.saved_classes import SETTINGS, SavedClasses, function_of, method_of
from copter_frontends.simulator.saved_objects import BITS, FACTORIES, MAPPINGS, PLAIN_KINDS, SPARSE, slots_of
from copter_frontends.simulator.saved_tables import Node, unpacked

MISSING = object()  # stands for an object that is not made yet


class Rebuilder:
    """Rebuilds the objects of a run without calling any code of the frontends' classes.

    Parameters
    ----------
    payload : dict
        What :meth:`.saved_objects.Flattener.flatten` returned.
    classes : SavedClasses
    size : int
        Bytes of the file that the payload was read from.
    """

    def __init__(self, payload: dict[str, Any], classes: SavedClasses, size: int) -> None:
        self.nodes, self.order = unpacked(payload, size)
        self.classes = classes
        self.made: list[Any] = []
        self._known: dict[str, tuple[type, frozenset[str], frozenset[str]]] = {}

    def rebuild(self) -> Any:
        """Return the object that was flattened.

        Raises
        ------
        SimulationError
            If the nodes name something that a run cannot contain. Other invalid nodes raise errors of many kinds.
        """
        if sorted(self.order) != list(range(len(self.nodes))):
            raise SimulationError("its objects are not all in order")
        self.made = [self._begin(node) for node in self.nodes]
        for number, node in enumerate(self.nodes):
            if node[0] == "model":
                owner = node[1]
                self.made[number] = self._session(owner).model if type(owner) is int else model_from(owner)
        self._find_templates()
        for number in self.order:
            self._finish(number, self.nodes[number])
        return self.made[0]

    def _find_templates(self) -> None:
        """Find the templates in the models to which they belong."""
        of_model: dict[int, list[Template]] = {}
        for number, node in enumerate(self.nodes):
            if node[0] == "template":
                owner = node[1]
                if owner not in of_model:
                    of_model[owner] = list(self.made[owner].ledger.matrix.templates)
                self.made[number] = of_model[owner][node[2]]

    def _session(self, number: int) -> Session:
        """Return the session with this number."""
        session = self.made[number]
        if not isinstance(session, Session):
            raise SimulationError("a model does not belong to a session")
        return session

    def _begin(self, node: Node) -> Any:
        """Create an empty object, so that others can refer to it; sessions are created complete."""
        kind = node[0]
        if kind == "object" and node[1] not in SETTINGS:
            return object.__new__(self._class(node[1])[0])
        if kind == "dict object":
            return dict.__new__(self._class(node[1])[0])
        if kind in EMPTY:
            return EMPTY[kind](node)
        if kind == "session":
            model = model_from(node[1]["model"])
            return restored(Session, node[1], model.version, model)
        return MISSING

    def _finish(self, number: int, node: Node) -> None:
        """Fill an object, or create it."""
        kind, items, made = node[0], node[-1], self.made[number]
        if kind in LEAVES:
            self.made[number] = LEAVES[kind](node)
        elif kind in EMPTY:
            FILL[kind](made, self._values(items))
        elif kind == "object" and node[1] in SETTINGS:
            self.made[number] = Settings.saved(dict(zip(node[2], self._values(items), strict=True)))
        elif kind == "object":
            self._fill_object(made, node[1], node[2], self._values(items))
        elif kind == "dict object":
            values, count = self._values(items), len(node[2])
            self._fill_object(made, node[1], node[2], values[:count])
            dict.update(made, _pairs(values[count:]))
        elif kind in WHOLE:
            self.made[number] = WHOLE[kind](node, self._values(items))
        elif kind == "enum":
            found = self._class(node[1])[0]
            if not issubclass(found, Enum):
                raise SimulationError(f"{node[1]} is no enumeration")
            self.made[number] = found.__members__[node[2]]
        elif kind == "named":
            found = self._class(node[1])[0]
            if not issubclass(found, tuple):
                raise SimulationError(f"{node[1]} is no kind of tuple")
            self.made[number] = tuple.__new__(found, self._values(items))
        elif kind not in ("session", "model", "template"):
            raise SimulationError(f"it has an object of kind {kind!r}")

    def _values(self, items: Sequence[Any]) -> list[Any]:
        """Return the remaining values of a node."""
        made = self.made
        values = [made[item[0]] if type(item) is tuple else item for item in items]
        if any(value is MISSING for value in values):
            raise SimulationError("an object that cannot change refers to itself")
        return values

    def _class(self, name: str) -> tuple[type, frozenset[str], frozenset[str]]:
        """Return a class, its slots, and its required attributes."""
        if name not in self._known:
            kind = self.classes.of(name)
            needed = frozenset(field.name for field in fields(kind)) if is_dataclass(kind) else frozenset()
            self._known[name] = kind, frozenset(slots_of(kind)), needed
        return self._known[name]

    def _fill_object(self, made: Any, name: str, names: list[str], values: list[Any]) -> None:
        """Set an object's attributes, bypassing its class's own setters."""
        _, slots, needed = self._class(name)
        if missing := needed.difference(names):
            raise SimulationError(f"a {name} has no {min(missing)}")
        for attribute, value in zip(names, values, strict=True):
            if attribute in slots:
                object.__setattr__(made, attribute, value)
            else:
                made.__dict__[str(attribute)] = value


def _pairs(values: list[Any]) -> Any:
    return zip(values[::2], values[1::2], strict=True)


def _fill_mapping(made: dict[Any, Any], values: list[Any]) -> None:
    """Fill a dictionary, bypassing an overridden ``update``."""
    (OrderedDict.update if isinstance(made, OrderedDict) else dict.update)(made, _pairs(values))


def array_from(value: Any) -> np.ndarray[Any, Any]:
    """Return an array of numbers, text, or records of these."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, dict):
        fields = {str(name): array_from(column) for name, column in value.items()}
        if not fields or len({column.shape for column in fields.values()}) != 1:
            raise SimulationError("it has an array of records whose fields do not have one shape")
        (shape,) = {column.shape for column in fields.values()}
        found = np.empty(shape, dtype=[(name, column.dtype) for name, column in fields.items()])
        for name, column in fields.items():
            found[name] = column
        return found
    name, shape, order, content = value
    dtype = np.dtype(str(name))
    if dtype.kind not in PLAIN_KINDS or order not in ("C", "F"):
        raise SimulationError(f"it has an array of type {name}")
    return np.frombuffer(content, dtype=dtype).reshape(shape, order=order).copy(order=order)


def _objects_from(shape: list[int], values: list[Any]) -> np.ndarray[Any, Any]:
    found = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        found[at] = value
    return found.reshape(shape)


def _generator_from(state: Any) -> np.random.Generator:
    bits = BITS[str(state["bit_generator"])]()
    bits.state = state
    return np.random.Generator(bits)


EMPTY: dict[str, Callable[[Node], Any]] = {
    "list": lambda node: [],
    "set": lambda node: set(),
    "default": lambda node: defaultdict(FACTORIES[node[1]] if node[1] else None),
    "deque": lambda node: deque(maxlen=node[1]),
    **{name: lambda node, kind=kind: kind() for name, kind in MAPPINGS.items()},  # type: ignore[misc]
}
FILL: dict[str, Callable[[Any, list[Any]], None]] = {
    "list": lambda made, values: made.extend(values),
    "set": lambda made, values: made.update(values),
    "default": _fill_mapping,
    "deque": lambda made, values: made.extend(values),
    **dict.fromkeys(MAPPINGS, _fill_mapping),
}
WHOLE: dict[str, Callable[[Node, list[Any]], Any]] = {
    "tuple": lambda node, values: tuple(values),
    "frozenset": lambda node, values: frozenset(values),
    "proxy": lambda node, values: MappingProxyType(dict(_pairs(values))),
    "objects": lambda node, values: _objects_from(node[1], values),
    "sparse": lambda node, values: SPARSE[node[1]](tuple(values), shape=tuple(node[2])),
    "slice": lambda node, values: slice(*values),
    "range": lambda node, values: range(*values),
    "method": lambda node, values: method_of(values[0], node[1]),
}
LEAVES: dict[str, Callable[[Node], Any]] = {
    "list of numbers": lambda node: node[1].tolist(),
    "tuple of numbers": lambda node: tuple(node[1].tolist()),
    "array": lambda node: array_from(node[1]),
    "scalar": lambda node: array_from(node[1])[()],
    "generator": lambda node: _generator_from(node[1]),
    "function": lambda node: function_of(node[1]),
    "complex": lambda node: complex(node[1], node[2]),
    "bytearray": lambda node: bytearray(node[1]),
    "settings": lambda node: Settings.saved(node[1]),
}
