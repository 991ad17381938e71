"""Settings of the service."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from copter.runtime.errors import SettingsError
from copter_serve.service.tenants import MIB, TOKEN_LENGTH, Tenant


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Settings of ``copter serve``.

    Parameters
    ----------
    data : Path
        Folder of the clusters.
    host, port
        Address and port to listen on.
    token : str, optional
        Token that every request must have. Without one the service listens to this machine only, unless `insecure`.
    read_token : str, optional
        Second token, with which a request may read everything, also /metrics, and change nothing.
    access_log : bool
        Whether every request gets a line on stderr.
    log_level : {"debug", "info", "warning", "error"}
        Least level of the service's own messages.
    certificate, key : Path, optional
        Files for TLS.
    sync : {"always", "never"}
        Whether an acknowledgement waits until the disk has the delta.
    threads : int
        Threads of each cluster's solver.
    max_body : int
        Most bytes of a delta.
    max_session : int
        Most bytes of a Volcano request.
    body_s, head_s : float
        Seconds within which the body, and the head, of a request must arrive.
    connections : int
        Most connections at a time.
    max_clusters : int
    tenants : tuple of Tenant
        Tenants with their own tokens, instead of one token for all.
    audit : Path, optional
        File of the audit log.
    insecure : bool
        Whether to listen to other machines without a token.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = 8470
    token: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    sync: str = "always"
    threads: int = 1
    max_body: int = 4 * MIB
    max_session: int = 32 * MIB
    body_s: float = 20.0
    head_s: float = 20.0
    connections: int = 12_000
    max_clusters: int = 16
    tenants: tuple[Tenant, ...] = ()
    audit: Path | None = None
    insecure: bool = False
    read_token: str | None = None
    access_log: bool = False
    log_level: str = "warning"

    def __post_init__(self) -> None:
        for token in (self.token, self.read_token):
            if token is not None and (len(token) < TOKEN_LENGTH or not token.isascii()):
                raise SettingsError(f"the token must have {TOKEN_LENGTH} ASCII characters or more")
        if self.read_token is not None and self.token is None:
            raise SettingsError("a token that may only read needs the other token, too: give --token-file")
        if self.read_token is not None and self.read_token == self.token:
            raise SettingsError("the token that may only read is the same as the other: take two")
        if (self.certificate is None) != (self.key is None):
            raise SettingsError("TLS needs both a certificate and a key")
        if self.sync not in ("always", "never"):
            raise SettingsError(f"sync is {self.sync!r}, must be 'always' or 'never'")
        if self.token is not None and self.tenants:
            raise SettingsError("there are a token for all and tenants with tokens of their own: take one of the two")
        if not self.needs_token and not self.insecure and not self.loopback:
            raise SettingsError(
                f"{self.host} can be reached from other machines, and there is no token: give --token-file, or say "
                "--insecure if something in front of the service checks who asks"
            )

    @property
    def needs_token(self) -> bool:
        """Whether every request must have a token."""
        return self.token is not None or bool(self.tenants)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"
