"""Conversion of a run's objects to plain values: a numbered list of nodes that refer to each other.

A node is a tuple: its kind, data specific to the kind, and a list of values. In this list, a tuple of one number
refers to the node of that number. Shared objects stay shared: two references to one object refer to one object again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from itertools import chain
from operator import attrgetter
from types import FunctionType, MappingProxyType, MethodType
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from copter import Model, Session, Settings, Template
from copter.session.state import model_state
from copter.storage.encoder import CODES
from copter_frontends.simulator.errors import SimulationError
from copter_frontends.simulator.saved_classes import SavedClasses, function_of, method_of, name_of
from copter_frontends.simulator.saved_tables import Node, packed

Parts = tuple[Node, Iterator[Any] | None]  # the beginning of a node, and the values that follow, if any

ATOMS = (type(None), bool, int, float, str, bytes)
MAPPINGS: dict[str, type[dict[Any, Any]]] = {"dict": dict, "ordered": OrderedDict, "counter": Counter}
FACTORIES: dict[str, Callable[[], Any]] = {kind.__name__: kind for kind in (list, dict, set, int, float)}
BITS: dict[str, Callable[[], np.random.BitGenerator]] = {
    kind.__name__: kind
    for kind in (np.random.PCG64, np.random.PCG64DXSM)  # their states hold no index into a buffer
}
SPARSE = {kind.__name__: kind for kind in (sp.csc_array, sp.csr_array, sp.csc_matrix, sp.csr_matrix)}
PLAIN_KINDS = "biufcSUmM"  # dtype kinds of arrays without objects
OF_THE_ENGINE = (Session, Model, Template, Settings)  # they are written as the engine writes them
LONG = 16  # a list of at least this many numbers is an array in the file
INT64 = range(-(2**63), 2**63)

_KIND_OF_MAPPING = {kind: name for name, kind in MAPPINGS.items()}


class Flattener:
    """Converts an object, and everything it refers to, to nodes.

    Parameters
    ----------
    classes : SavedClasses
        Classes whose objects may occur.
    """

    def __init__(self, classes: SavedClasses) -> None:
        self.classes = classes
        self.nodes: list[Node] = []
        self.order: list[int] = []  # order of completion: except in cycles, a node comes after those that it refers to
        self._number: dict[int, int] = {}
        self._kept: list[object] = []  # keeps objects alive, so that no id() is reused
        self._class_names: dict[type, str] = {}
        self._plain: dict[type, tuple[Node, Callable[[object], tuple[Any, ...]]] | None] = {}
        self._templates: list[tuple[int, Template]] = []
        self._models: dict[int, tuple[int, Model]] = {}
        self._sessions: dict[int, int] = {}  # number of a session, by the id of its model

    def flatten(self, root: object) -> dict[str, Any]:
        """Return plain values for :func:`copter.storage.encoding.encode`.

        Raises
        ------
        SimulationError
            If an object is neither data nor of a listed class; the message names it.
        """
        stack = [self._open(root)]
        while stack:
            number, head, items, left = stack[-1]
            for value in left:
                if type(value) in ATOMS:
                    items.append(value)
                    continue
                known = self._number.get(id(value))
                if known is None:
                    stack.append(self._open(value))
                    items.append((stack[-1][0],))
                    break
                items.append((known,))
            else:
                stack.pop()
                self.nodes[number] = (*head, items)
                self.order.append(number)
        self._find_models()
        return packed(self.nodes, self.order)

    def _open(self, value: object) -> tuple[int, Node, list[Any], Iterator[Any]]:
        """Number an object and begin its node."""
        number = len(self.nodes)
        self._number[id(value)] = number
        self._kept.append(value)
        self.nodes.append(())
        head, items = self._parts(value, number)
        return number, head, [], iter(()) if items is None else items

    def _parts(self, value: Any, number: int) -> Parts:
        """Return how an object is written; its items are numbered later."""
        kind = type(value)
        if kind in (list, tuple):
            return _list_parts(value)
        if kind in _KIND_OF_MAPPING:
            return (_KIND_OF_MAPPING[kind],), _flat(value)
        if kind is np.ndarray:
            return _array_parts(value)
        if kind in (set, frozenset):
            return (kind.__name__,), iter(value)
        if kind is defaultdict:
            factory = "" if value.default_factory is None else getattr(value.default_factory, "__name__", "?")
            if factory and FACTORIES.get(factory) is not value.default_factory:
                raise SimulationError(f"a defaultdict of {value.default_factory!r} cannot be saved")
            return ("default", factory), _flat(value)
        if kind is deque:
            return ("deque", value.maxlen), iter(value)
        if kind is MappingProxyType:
            return ("proxy",), _flat(value)
        if isinstance(value, np.generic):
            return ("scalar", _plain_array(np.array(value))), None
        if kind is np.random.Generator:
            if type(value.bit_generator).__name__ not in BITS:
                raise SimulationError(f"a generator {type(value.bit_generator).__name__} cannot be saved: use PCG64")
            return ("generator", value.bit_generator.state), None
        if kind in SPARSE.values():
            return ("sparse", kind.__name__, list(value.shape)), iter((value.data, value.indices, value.indptr))
        if kind in (bytearray, complex, slice, range):
            return _small_parts(value)
        if kind in (FunctionType, MethodType):
            return _callable_parts(value)
        return self._object_parts(value, kind, number)

    def _object_parts(self, value: Any, kind: type, number: int) -> Parts:
        """Return how an instance is written: models and sessions as in snapshots, others by attributes."""
        plain = self._plain[kind] if kind in self._plain else self._plain.setdefault(kind, self._plain_parts(kind))
        if plain is not None:
            with suppress(AttributeError):  # a slot that was never set
                return plain[0], iter(plain[1](value))
        if kind is Session:
            self._sessions[id(value.model)] = number
            _, (_, values, _, model) = value.__reduce__()
            return ("session", {**values, "model": model_state(model)}), None
        if kind is Settings:
            return ("settings", value.plain()), None
        if kind is Model:
            self._models[id(value)] = (number, value)
            return ("model",), None
        if kind is Template:
            self._templates.append((number, value))
            return ("template",), None
        name = self._class_names.get(kind)
        if name is None:
            name = self._class_names[kind] = self.classes.require(kind)
        if isinstance(value, Enum):
            return ("enum", name, value.name), None
        if isinstance(value, tuple):
            return ("named", name), iter(value)
        state = _state_of(value)
        if isinstance(value, dict):
            return ("dict object", name, list(state)), chain(state.values(), _flat(value))
        if isinstance(value, list | set | frozenset | str | bytes | int | float | np.ndarray):
            raise SimulationError(f"a {name_of(kind)} cannot be saved: it is a kind of {kind.__mro__[-2].__name__}")
        return ("object", name, list(state)), iter(state.values())

    def _plain_parts(self, kind: type) -> tuple[Node, Callable[[object], tuple[Any, ...]]] | None:
        """Return, for a class whose objects have slots alone, how a node begins, and what reads the slots at once."""
        names = slots_of(kind)
        if len(names) < 2 or kind.__dictoffset__ or kind in OF_THE_ENGINE or _own_state(kind) is not None:
            return None
        if issubclass(kind, Enum | tuple | list | dict | set | frozenset | str | bytes | int | float | np.ndarray):
            return None
        return ("object", self.classes.require(kind), names), attrgetter(*names)

    def _find_models(self) -> None:
        """Record the session of every model and the model of every template."""
        for number, model in self._models.values():
            owner = self._sessions.get(id(model))
            self.nodes[number] = ("model", owner if owner is not None else model_state(model))
        places = {
            id(template): (number, at)
            for number, model in self._models.values()
            for at, template in enumerate(model.ledger.matrix.templates)
        }
        for number, template in self._templates:
            if id(template) not in places:
                raise SimulationError("a template of a model that is no part of the run cannot be saved")
            self.nodes[number] = ("template", *places[id(template)])


def _list_parts(value: Any) -> Parts:
    """Return how a list or tuple is written; long lists of numbers become arrays."""
    kind = "list" if type(value) is list else "tuple"
    if len(value) >= LONG:
        types = set(map(type, value))
        if types == {float}:
            return (kind + " of numbers", np.array(value, dtype=np.float64)), None
        if types == {int} and min(value) in INT64 and max(value) in INT64:
            return (kind + " of numbers", np.array(value, dtype=np.int64)), None
    return (kind,), iter(value)


def _flat(mapping: Any) -> Iterator[Any]:
    """Return an iterator over keys and values in turn."""
    for pair in mapping.items():
        yield from pair


def _array_parts(array: np.ndarray[Any, Any]) -> Parts:
    """Return how an array of numbers, text or objects is written."""
    if array.dtype == object:
        return ("objects", list(array.shape)), iter(array.ravel().tolist())
    return ("array", _plain_array(array)), None


def _plain_array(array: np.ndarray[Any, Any]) -> Any:
    """Return an array in the encoding's form; record arrays by field; other types as type, shape, order and bytes."""
    if array.dtype.names is not None:
        return {name: _plain_array(np.ascontiguousarray(array[name])) for name in array.dtype.names}
    fortran = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
    if array.dtype in CODES and not fortran:
        return array
    if array.dtype.kind not in PLAIN_KINDS:
        raise SimulationError(f"an array of type {array.dtype} cannot be saved")
    order: Literal["C", "F"] = "F" if fortran else "C"
    return [array.dtype.str, list(array.shape), order, array.tobytes(order)]


def _small_parts(value: Any) -> Parts:
    """Return how a Python value without a code in the encoding is written."""
    if isinstance(value, complex):
        return ("complex", value.real, value.imag), None
    if isinstance(value, bytearray):
        return ("bytearray", bytes(value)), None
    return (type(value).__name__,), iter((value.start, value.stop, value.step))


def _callable_parts(value: Any) -> Parts:
    """Return how a function or method of the closed list is written."""
    if isinstance(value, MethodType):
        method_of(value.__self__, value.__name__)
        return ("method", value.__name__), iter((value.__self__,))
    name = f"{value.__module__}:{value.__qualname__}"
    function_of(name)
    return ("function", name), None


def _state_of(value: Any) -> dict[str, Any]:
    """Return the saved attributes of an object: all, or those of its ``__getstate__``."""
    kind = type(value)
    own = _own_state(kind)
    if own is not None:
        state = own(value)
        if type(state) is dict and not hasattr(kind, "__setstate__"):
            return state
        raise SimulationError(f"a {name_of(kind)} cannot be saved: its state is not a dictionary of attributes")
    state = dict(getattr(value, "__dict__", {}))
    for name in slots_of(kind):
        try:
            state[name] = getattr(value, name)
        except AttributeError:  # a slot that was never set
            continue
    return state


def _own_state(kind: type) -> Callable[[object], Any] | None:
    """Return a class's own ``__getstate__``; None for object's, and for the one that a frozen dataclass gets."""
    own: Any = getattr(kind, "__getstate__", None)
    if own is None or own is getattr(object, "__getstate__", None) or "dataclass" in own.__name__:
        return None
    return own  # type: ignore[no-any-return]


def slots_of(kind: type) -> list[str]:
    """Return the attributes that a class keeps in slots."""
    found: list[str] = []
    for base in kind.__mro__:
        own = base.__dict__.get("__slots__", ())
        found += [own] if isinstance(own, str) else list(own)
    return [name for name in found if name not in ("__dict__", "__weakref__")]
