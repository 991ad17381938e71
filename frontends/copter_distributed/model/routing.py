"""Methods of a Model made into methods that ask or edit the shards, with the same arguments, types and description."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from copter.model.checks import listed
from copter.model.matrix import Template
from copter.model.model import Model
from copter.runtime.errors import EditNotAllowedError, InvalidDataError
from copter_distributed.messages.messages import Call, TemplateAt
from copter_distributed.messages.portions import taken, taken_rows
from copter_distributed.model.deal import Deal

P = ParamSpec("P")
T = TypeVar("T")
Batch = dict[int, list[Call]]
BOUNDS = ("row_lower", "row_upper")


class Routing:
    """A model whose requests are on shards: batches of edits, and whom they go to.

    The edits of a ``with model.batch():`` are sent together when the block ends, so an error in one of them is raised
    at the end of the block, and then no shard has applied any of them.

    Parameters
    ----------
    model : Model
        The restricted master's model, which has the resources and templates.
    deal : Deal
    apply : callable
        Function that applies a batch on all shards or on none.
    read : callable (shard, method, argument)
        Function that reads from a shard's model.
    """

    def __init__(
        self, model: Model, deal: Deal, apply: Callable[[Batch], None], read: Callable[[int, str, Any], Any]
    ) -> None:
        self._model, self._deal, self._apply, self._read = model, deal, apply, read
        self._templates: list[Template] = list(model.templates)
        self._calls: Batch = {}
        self._depth = 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Apply all edits of a ``with`` block on all shards, or none if the block raises an exception."""
        deal, mark, version = self._deal, self._deal.mark(), self._deal.version
        templates, sizes = list(self._templates), {shard: len(calls) for shard, calls in self._calls.items()}
        self._depth += 1
        try:
            with self._model.batch():
                yield
                if self._depth == 1 and self._calls:
                    self._apply(self._calls)
        except BaseException:
            deal.back_to(mark)
            deal.version, self._templates = version, templates
            for shard, calls in list(self._calls.items()):
                del calls[sizes.get(shard, 0) :]
                if not calls:
                    del self._calls[shard]
            raise
        finally:
            self._depth -= 1
        if self._depth == 0:
            deal.settle()
            self._calls = {}

    def send(self, shard: int, call: Call) -> None:
        """Queue an edit for one shard, inside a batch; templates are named by their places."""
        arguments = tuple(self._placed(each) for each in call.arguments)
        named = {name: self._placed(value) for name, value in call.named.items()}
        self._deal.version += 1
        self._calls.setdefault(shard, []).append(Call(call.method, arguments, named))

    def _placed(self, value: Any) -> Any:
        """Return a template's place among the templates, and any other value unchanged."""
        if not isinstance(value, Template):
            return value
        for place, each in enumerate(self._templates):
            if each is value:
                return TemplateAt(place)
        raise InvalidDataError("the template is not one of this model's, or has been dropped")

    def _send(self, shard: int, method: str, *arguments: Any, **named: Any) -> None:
        """Queue one edit for one shard, inside a batch."""
        self.send(shard, Call(method, arguments, named))

    def _look_up(self, method: str, request: Hashable) -> Any:
        """Ask a request's shard."""
        if self._calls:
            raise EditNotAllowedError(
                f"request {request!r} is asked about inside a batch, whose edits are not made yet: ask before it, "
                "or after"
            )
        return self._read(self._deal.shard_of(request), method, request)

    def _many(self, method: str, ids: list[Hashable], given: dict[str, Any], each: tuple[str, ...] = ()) -> None:
        """Send an edit of many requests; each shard gets its part of the arguments of `each` and of bounds."""
        with self.batch():
            for shard, at in self._deal.split(ids).items():
                part = {
                    name: taken(value, at, len(ids), name)
                    if name in each
                    else taken_rows(value, at, len(ids), False)
                    if name in BOUNDS
                    else value
                    for name, value in given.items()
                }
                self._send(shard, method, [ids[i] for i in at], **part)


def at_the_coordinator(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Decorate a look-up: the restricted master's model answers it."""

    @wraps(method)
    def asked(self: Routing, /, *arguments: P.args, **named: P.kwargs) -> T:
        return method(self._model, *arguments, **named)

    return asked


def asked_of_its_shard(method: Callable[[Any, Hashable], T]) -> Callable[[Any, Hashable], T]:
    """Decorate a look-up of one request: the request's shard answers it."""

    @wraps(method)
    def asked(self: Routing, request: Hashable) -> T:
        found: T = self._look_up(method.__name__, request)
        return found

    return asked


def on_its_shard(method: Callable[Concatenate[Any, P], None]) -> Callable[Concatenate[Any, P], None]:
    """Decorate an edit of one request: its shard does it."""
    signature = inspect.signature(method)

    @wraps(method)
    def edited(self: Routing, /, *arguments: P.args, **named: P.kwargs) -> None:
        given = signature.bind(self, *arguments, **named)  # a missing argument is an error here, not on the shard
        with self.batch():
            self._send(self._deal.shard_of(given.args[1]), method.__name__, *given.args[1:], **given.kwargs)

    return edited


def everywhere(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Decorate an edit of resources or templates: the coordinator and every shard do it."""
    signature = inspect.signature(method)

    @wraps(method)
    def edited(self: Routing, /, *arguments: P.args, **named: P.kwargs) -> T:
        given = signature.bind(self, *arguments, **named)
        with self.batch():
            for shard in self._deal.load:
                self._send(shard, method.__name__, *given.args[1:], **given.kwargs)
            return method(self._model, *arguments, **named)

    return edited


def on_their_shards(*each: str) -> Callable[[Callable[Concatenate[Any, P], None]], Callable[Concatenate[Any, P], None]]:
    """Decorate an edit of many requests: their shards do it; arguments in `each` have one entry per request."""

    def made(method: Callable[Concatenate[Any, P], None]) -> Callable[Concatenate[Any, P], None]:
        signature = inspect.signature(method)

        @wraps(method)
        def edited(self: Routing, /, *arguments: P.args, **named: P.kwargs) -> None:
            given = dict(signature.bind(self, *arguments, **named).arguments)
            del given["self"]
            self._many(method.__name__, listed("requests", given.pop("requests")), given, each)

        return edited

    return made
