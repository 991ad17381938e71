"""The layer around all requests: it checks who asks, and times the answer."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from time import perf_counter

from prometheus_client import Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from copter_frontends.serve.metrics import Metrics
from copter_frontends.serve.problems import MEDIA_TYPE, Problem
from copter_frontends.serve.settings import ServeSettings

OPEN = frozenset({"/", "/healthz", "/readyz", "/openapi.json", "/static/page.js", "/static/page.css"})
"""Paths that tell nothing of clusters, and ask for no token."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
LOCAL_HOST = re.compile(rf"(?:{'|'.join(map(re.escape, LOCAL_NAMES))})(?::[0-9]{{1,5}})?", re.IGNORECASE | re.ASCII)
SEND_S = 60.0  # seconds that a client has to take a piece of an answer

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
    (b"referrer-policy", b"no-referrer"),
]


class Guard:
    """ASGI middleware: token, host names, metrics, problems as documents.

    Parameters
    ----------
    app : ASGI application
    settings : ServeSettings
    metrics : Metrics
    """

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics
        self._token = None if settings.token is None else f"Bearer {settings.token}".encode()
        self._counted: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._local_only = settings.token is None and not settings.insecure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, late = perf_counter(), 0, False

        async def sending(message: Message) -> None:
            nonlocal status, late
            if late:
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
                route = getattr(scope.get("endpoint"), "__name__", "none")
                requests, seconds = self._counted.get((route, status)) or self._counters(route, status)
                requests.inc()
                seconds.observe(perf_counter() - started)
                await send(message)
                return
            try:
                await asyncio.wait_for(send(message), SEND_S) if message.get("more_body") else await send(message)
            except asyncio.TimeoutError:
                late = True  # the server closes the connection, as the answer is not whole

        try:
            self._check(scope)
        except Problem as problem:
            body, headers = problem_message(problem)
            raw = [(name.encode(), value.encode()) for name, value in headers]
            await sending({"type": "http.response.start", "status": problem.status, "headers": raw})
            await sending({"type": "http.response.body", "body": body})
            return
        await self.app(scope, receive, sending)

    def _counters(self, route: str, status: int) -> tuple[Counter, Histogram]:
        found = self.metrics.requests.labels(route, str(status)), self.metrics.seconds.labels(route)
        self._counted[route, status] = found
        return found

    def _check(self, scope: Scope) -> None:
        """Problem 401 or 421 for a request that is not to be served."""
        if self._token is None:
            if self._local_only:
                self._check_host(scope)
            return
        if scope["path"] in OPEN:
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1 or not hmac.compare_digest(given[0], self._token):
            raise Problem(
                401,
                "there is no valid token with the request",
                "Authorization",
                "send the header Authorization: Bearer TOKEN",
            )

    @staticmethod
    def _check_host(scope: Scope) -> None:
        """Without a token, a page of another site must not reach the service by a name that leads to this machine."""
        for name, value in scope["headers"]:
            if name == b"host" and not LOCAL_HOST.fullmatch(value.decode("latin-1")):
                raise Problem(421, f"this service is for {', '.join(LOCAL_NAMES)} only", "Host")


def problem_message(problem: Problem) -> tuple[bytes, list[tuple[str, str]]]:
    """(body, headers) of a problem; the connection ends where the request may not have been read whole."""
    body = json.dumps(problem.document()).encode()
    headers = [("content-type", MEDIA_TYPE), ("content-length", str(len(body)))]
    if problem.status in (400, 401, 408, 413, 415, 421):
        headers.append(("connection", "close"))
    if problem.status == 401:
        headers.append(("www-authenticate", "Bearer"))
    if problem.status == 503:
        headers.append(("retry-after", "2"))
    return body, headers
