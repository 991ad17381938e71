"""The layer around all requests: authentication and timing."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from time import monotonic, perf_counter, time

from prometheus_client import Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from copter_serve.service.audit import Audit
from copter_serve.service.metrics import Metrics
from copter_serve.service.problems import MEDIA_TYPE, Problem
from copter_serve.service.settings import ServeSettings
from copter_serve.service.tenants import EVERYBODY, READER, Allowance, Tenant, find_tenant

OPEN = frozenset({"/", "/healthz", "/readyz", "/openapi.json", "/static/page.js", "/static/page.css"})
"""Paths that reveal nothing about clusters, and so need no token."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
LOCAL_HOST = re.compile(rf"(?:{'|'.join(map(re.escape, LOCAL_NAMES))})(?::[0-9]{{1,5}})?", re.IGNORECASE | re.ASCII)
CLUSTERS = "/v1/clusters"
CHANGES = frozenset({"PUT", "POST", "DELETE", "PATCH"})
ASKS = re.compile(r".*/volcano/(?!onSessionOpen$)[^/]*")
"""Volcano's requests that change nothing."""

QUESTIONS = re.compile(rf"{CLUSTERS}/[^/]+/quote")
"""Requests with a body that change nothing."""

SEND_S = 60.0  # a client must accept each piece of an answer within this many seconds

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
    (b"referrer-policy", b"no-referrer"),
]


class Guard:
    """ASGI middleware: tokens and tenants, host names, metrics, the audit log, problems as documents.

    Parameters
    ----------
    app : ASGI application
    settings : ServeSettings
    metrics : Metrics
    audit : Audit, optional
    """

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics, audit: Audit | None = None) -> None:
        self.app, self.metrics, self.audit = app, metrics, audit
        self._counted: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._allowances: dict[str, Allowance] = {}
        self.admit(settings)

    @property
    def needs_token(self) -> bool:
        """Whether requests need a token."""
        return bool(self._tokens or self._tenants)

    def admit(self, settings: ServeSettings) -> None:
        """Take the tokens and tenants of these settings; a tenant that stays as it was keeps what it has used."""
        before = self._allowances
        self._tenants = settings.tenants
        self._allowances = {
            tenant.name: before[tenant.name]
            if tenant.name in before and before[tenant.name].tenant == tenant
            else Allowance(tenant)
            for tenant in settings.tenants
        }
        self._tokens = [
            (f"Bearer {token}".encode(), tenant)
            for token, tenant in ((settings.token, EVERYBODY), (settings.read_token, READER))
            if token is not None
        ]
        self._local_only = not settings.needs_token and not settings.insecure

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
                if self.audit is not None and scope["method"] in CHANGES and not ASKS.fullmatch(scope["path"]):
                    self.audit.write(scope, scope["tenant"].name if "tenant" in scope else "nobody", status)
                await send(message)
                return
            try:
                await asyncio.wait_for(send(message), SEND_S) if message.get("more_body") else await send(message)
            except asyncio.TimeoutError:
                late = True  # the server closes the connection, because the answer is incomplete

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
        """Return the sender's tenant; raises Problem 401, 403, 404, 421 or 429 for a request to be refused."""
        if self._local_only:
            self._check_host(scope)
        if not self.needs_token or scope["path"] in OPEN:
            scope["tenant"] = EVERYBODY
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        tenant = self._tenant(given[0]) if len(given) == 1 else None
        if tenant is None:
            raise Problem(
                401,
                "there is no valid token with the request",
                "Authorization",
                "send the header Authorization: Bearer TOKEN",
            )
        scope["tenant"] = tenant
        if tenant.read_only and scope["method"] in CHANGES and not QUESTIONS.fullmatch(scope["path"]):
            raise Problem(403, f"the token of {tenant.name} may only read", "Authorization", "send another token")
        if not tenant.operator:
            self._check_tenant(tenant, scope["method"], scope["path"])

    def _tenant(self, authorization: bytes) -> Tenant | None:
        """Return the tenant of a token."""
        if self._tokens:
            found = None
            for token, tenant in self._tokens:  # all are compared, in constant time
                found = tenant if hmac.compare_digest(authorization, token) else found
            return found
        return find_tenant(self._tenants, authorization, time())

    def _check_tenant(self, tenant: Tenant, method: str, path: str) -> None:
        """Raise Problem if a tenant asks too often or for what it does not own."""
        if not self._allowances[tenant.name].take(monotonic()):
            raise Problem(
                429, f"tenant {tenant.name} may send {tenant.requests_per_s:g} requests a second", fix="send fewer"
            )
        if path == CLUSTERS:
            return
        if not path.startswith(f"{CLUSTERS}/"):
            raise Problem(403, f"{path} is for operators", fix="ask with an operator's token")
        cluster = path[len(CLUSTERS) + 1 :].partition("/")[0]
        if tenant.owns(cluster):
            return
        if method == "PUT":
            raise Problem(
                403, f"clusters of tenant {tenant.name} have ids like {tenant.name}.main", "path", "take such an id"
            )
        raise Problem(404, f"there is no cluster {cluster!r} of tenant {tenant.name}")

    @staticmethod
    def _check_host(scope: Scope) -> None:
        """Without a token, refuse host names other than this machine's own, so that pages of other sites cannot use
        the service.
        """
        for name, value in scope["headers"]:
            if name == b"host" and not LOCAL_HOST.fullmatch(value.decode("latin-1")):
                raise Problem(421, f"this service is for {', '.join(LOCAL_NAMES)} only", "Host")


def problem_message(problem: Problem) -> tuple[bytes, list[tuple[str, str]]]:
    """Return (body, headers) of a problem; the connection closes if the request may not be fully read."""
    body = json.dumps(problem.document()).encode()
    headers = [("content-type", MEDIA_TYPE), ("content-length", str(len(body)))]
    if problem.status in (400, 401, 408, 413, 415, 421):
        headers.append(("connection", "close"))
    if problem.status == 401:
        headers.append(("www-authenticate", "Bearer"))
    if problem.status in (429, 503):
        headers.append(("retry-after", "2"))
    return body, headers
