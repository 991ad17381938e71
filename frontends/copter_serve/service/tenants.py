"""Tenants: each with a token, its own clusters, and limits."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from math import inf
from pathlib import Path
from typing import Any

from copter.runtime.errors import SettingsError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
TOKEN_LENGTH = 16  # least characters of a token
MIB = 1 << 20  # bytes of a mebibyte
FIELDS = {"name", "token", "operator", "read_only", "expires", "max_clusters", "requests_per_s", "max_body_mib"}


@dataclass(frozen=True, slots=True)
class Tenant:
    """A user of the service.

    Attributes
    ----------
    name : str
        Name; the ids of the tenant's clusters begin with it and a full stop.
    digest : bytes
        SHA-256 of the token.
    operator : bool
        Whether the tenant may do everything with every cluster, and read /metrics.
    read_only : bool
        Whether the tenant may change nothing.
    expires : float
        Time, in seconds since 1970, at which the token expires.
    max_clusters : float
    requests_per_s : float
        Average rate of requests; a burst may have the requests of one second, at least ten.
    max_body : float
        Most bytes of a request.
    """

    name: str
    digest: bytes
    operator: bool = False
    expires: float = inf
    max_clusters: float = inf
    requests_per_s: float = inf
    max_body: float = inf
    read_only: bool = False

    def owns(self, cluster: str) -> bool:
        """Whether a cluster belongs to the tenant."""
        return self.operator or cluster.startswith(f"{self.name}.")

    def body_limit(self, limit: int) -> int:
        """Return the largest request size in bytes, given the service's limit."""
        return int(min(limit, self.max_body))


EVERYBODY = Tenant("service", b"", operator=True)
"""The tenant of all requests if none are configured: one token for all, or this machine only."""


READER = Tenant("reader", b"", operator=True, read_only=True)
"""The tenant of requests with the token that may only read."""


def tenant_of(scope: Mapping[str, Any]) -> Tenant:
    """Return the tenant whose request the guard has accepted."""
    found: Tenant = scope.get("tenant", EVERYBODY)
    return found


@dataclass(slots=True)
class Allowance:
    """A token bucket that refills at the tenant's rate."""

    tenant: Tenant
    left: float = field(init=False)
    at: float | None = None

    def __post_init__(self) -> None:
        self.left = self.most

    @property
    def most(self) -> float:
        """Most requests in a burst."""
        return max(10.0, self.tenant.requests_per_s)

    def take(self, now: float) -> bool:
        """Take a token at a time of a monotonic clock; returns whether there was one."""
        if self.tenant.requests_per_s == inf:
            return True
        since = 0.0 if self.at is None else max(now - self.at, 0.0)
        self.left = min(self.most, self.left + since * self.tenant.requests_per_s)
        self.at = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


def find_tenant(tenants: tuple[Tenant, ...], authorization: bytes, now: float) -> Tenant | None:
    """Return the tenant of a header's token, unless expired; all tokens are compared in constant time."""
    kind, _, token = authorization.partition(b" ")
    digest = hashlib.sha256(token).digest()
    found = None
    for tenant in tenants:
        if hmac.compare_digest(tenant.digest, digest) and kind == b"Bearer":
            found = tenant
    return found if found is not None and now < found.expires else None


def read_tenants(path: Path) -> tuple[Tenant, ...]:
    """Read tenants from a file: a JSON list of objects with `name`, `token`, and limits.

    Raises
    ------
    SettingsError
        If the file is invalid; the message names the tenant and the field.
    """
    try:
        documents = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(documents, list) or not documents:
        raise SettingsError(f"{path} holds no list of tenants: write [{{'name': ..., 'token': ...}}]")
    found = [_read(f"{path}, tenant {at}", document) for at, document in enumerate(documents)]
    for what, values in (("name", [each.name for each in found]), ("token", [each.digest for each in found])):
        if len(set(values)) < len(values):
            raise SettingsError(f"{path}: two tenants have the same {what}")
    return tuple(found)


def _read(where: str, document: Any) -> Tenant:
    if not isinstance(document, dict):
        raise SettingsError(f"{where}: must be an object")
    unknown = set(document) - FIELDS
    if unknown:
        raise SettingsError(f"{where}: unknown field {sorted(unknown)[0]!r}; there are: {', '.join(sorted(FIELDS))}")
    name, token, operator = document.get("name"), document.get("token"), document.get("operator", False)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise SettingsError(f"{where}: the name must be 1 to 32 letters, digits, '_' and '-'")
    if not isinstance(token, str) or len(token) < TOKEN_LENGTH or not token.isascii() or " " in token:
        raise SettingsError(f"{where}: the token must have {TOKEN_LENGTH} ASCII characters or more, and no space")
    if not isinstance(operator, bool):
        raise SettingsError(f"{where}: operator must be true or false")
    read_only = document.get("read_only", False)
    if not isinstance(read_only, bool):
        raise SettingsError(f"{where}: read_only must be true or false")
    limits = {}
    for key in ("max_clusters", "requests_per_s", "max_body_mib"):
        value = document.get(key, inf)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise SettingsError(f"{where}: {key} must be a number above 0")
        limits[key] = float(value)
    return Tenant(
        name,
        hashlib.sha256(token.encode()).digest(),
        operator,
        _time(where, document.get("expires")),
        limits["max_clusters"],
        limits["requests_per_s"],
        limits["max_body_mib"] * MIB,
        read_only,
    )


def _time(where: str, value: Any) -> float:
    """Return seconds since 1970 of an ISO 8601 time, UTC by default."""
    if value is None:
        return inf
    try:
        told = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        raise SettingsError(f"{where}: expires must be a time like 2027-01-31T12:00:00+00:00") from None
    return (told if told.tzinfo else told.replace(tzinfo=timezone.utc)).timestamp()
