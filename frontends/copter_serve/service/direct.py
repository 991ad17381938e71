"""The two most frequent requests, deltas and plans, as ASGI applications without routing."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Receive, Scope, Send

from copter_serve.service.audit import LONGEST
from copter_serve.service.bodies import header, read_body
from copter_serve.service.clusters import Clusters
from copter_serve.service.fields import compact, parse_json
from copter_serve.service.guard import problem_message
from copter_serve.service.problems import Problem
from copter_serve.service.settings import ServeSettings
from copter_serve.service.stepwise_json import parse_in_steps
from copter_serve.service.tenants import tenant_of

AT_ONCE = 1 << 16  # most bytes of a body that is parsed without a pause
LONGEST_WAIT_S = 60.0  # most seconds that a request for a plan may wait
PREFIX = "/v1/clusters/"
BOOT = secrets.token_hex(4)
"""Part of every ETag, because editions of plans restart from zero with the service."""

JSON = (b"content-type", b"application/json")


class PostDelta:
    """Accepts a delta and answers when it is journaled, with the current plan if asked."""

    __name__ = "post_delta"

    def __init__(self, clusters: Clusters, settings: ServeSettings) -> None:
        self.clusters, self.settings = clusters, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a delta, submit it, and answer with its sequence number; ``?plan=1`` adds the plan in force."""
        tenant = tenant_of(scope)
        service = self.clusters.get(scope["path_params"]["cluster"], tenant)
        body = await read_body(scope, receive, tenant.body_limit(self.settings.max_body), self.settings.body_s)
        document = await self._parsed(body)
        given = document.get("id") if isinstance(document, dict) else None
        scope["change"] = {"delta": given[:LONGEST] if isinstance(given, str) else None}
        told = await service.submit(document)
        scope["change"]["sequence"] = told["sequence"]
        answer = compact(told).encode()
        if scope["query_string"] and parse_qs(scope["query_string"]).get(b"plan") == [b"1"]:
            answer = answer[:-1] + b',"in_force":' + service.book.body() + b"}"
        await respond(send, 200, answer, [JSON])

    @staticmethod
    async def _parsed(body: bytes) -> Any:
        """Parse a body; a large one with pauses, in which others are answered."""
        if len(body) <= AT_ONCE:
            return parse_json(body)
        steps = parse_in_steps(body)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return done.value
            await asyncio.sleep(0)


class GetPlan:
    """Returns the complete current plan, or 304 if the client has it."""

    __name__ = "get_plan"

    def __init__(self, clusters: Clusters) -> None:
        self.clusters = clusters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the plan's body and ETag, or with 304; ``?wait=SECONDS`` first waits for a plan that includes
        every acknowledged delta.
        """
        service = self.clusters.get(scope["path_params"]["cluster"], tenant_of(scope))
        if scope["query_string"]:
            await service.planned(wait_of(scope["query_string"]))
        book = service.book
        etag = f'{book.etag[:-1]}-{BOOT}"'.encode()
        if header(scope, b"if-none-match") == etag:
            await respond(send, 304, None, [(b"etag", etag)])
        else:
            await respond(send, 200, book.body(), [JSON, (b"etag", etag)])


def wait_of(query: bytes) -> float:
    """Return the seconds that ``wait`` of a query string asks for; 0 without it."""
    (text,) = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("wait", ["0"])[-1:]
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= LONGEST_WAIT_S:
        raise Problem(422, f"wait is {text!r}", "wait", f"give seconds from 0 to {LONGEST_WAIT_S:g}")
    return seconds


class Direct:
    """ASGI middleware that handles some ``/v1/clusters/NAME/...`` requests and passes on the rest.

    Starlette's routes, requests and responses take a third of the time of a small delta.

    Parameters
    ----------
    app : ASGI application
        Application for all other requests, which also answers its own problems.
    called : mapping of (method, last part of the path) to ASGI application
    """

    def __init__(self, app: ASGIApp, called: Mapping[tuple[str, str], Any]) -> None:
        self.app, self._called = app, called

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request if it is one of the known ones; otherwise pass it on."""
        path = scope["path"] if scope["type"] == "http" else ""
        if path.startswith(PREFIX):
            name, _, last = path[len(PREFIX) :].partition("/")
            app = self._called.get((scope["method"], last)) if name else None
            if app is not None:
                scope["path_params"], scope["endpoint"] = {"cluster": name}, app
                try:
                    await app(scope, receive, send)
                except Problem as problem:
                    body, headers = problem_message(problem)
                    raw = [(key.encode(), value.encode()) for key, value in headers if key != "content-length"]
                    await respond(send, problem.status, body, raw)
                return
        await self.app(scope, receive, send)


async def respond(send: Send, status: int, body: bytes | None, headers: list[tuple[bytes, bytes]]) -> None:
    """Send a response; None sends no body."""
    if body is not None:
        headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body or b""})
