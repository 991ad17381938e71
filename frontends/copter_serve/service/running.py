"""Runs the service: sockets, signals, a graceful end."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn

from copter.runtime.errors import CopterError, SettingsError
from copter_serve.service.app import make_app
from copter_serve.service.clusters import Clusters
from copter_serve.service.guard import Guard
from copter_serve.service.metrics import Metrics
from copter_serve.service.protocol import PatientProtocol
from copter_serve.service.settings import ServeSettings
from copter_serve.service.turns import short_turns

try:
    import resource
except ImportError:  # this system has no resource limits
    resource = None  # type: ignore[assignment]

LOG = logging.getLogger("copter.serve")
SPARE_FILES = 256  # open files beside connections: journals, pipes, logs
# Python's thread switch interval in seconds; the default of 0.005 would delay answers during snapshots
SWITCH_S = 0.0005
GRACE_S = 10  # seconds for running requests to end when the service stops
BACKLOG = 4096  # connections that wait to be accepted
COLLECT = (1_000, 4_000, 50)  # thresholds of the garbage collector's three generations


class Hangup:
    """Notes a SIGHUP that comes before the service listens, instead of being ended by it."""

    def __init__(self) -> None:
        self.came = False
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True


class Server(uvicorn.Server):
    """uvicorn's server, extended to report its address and to end streams when it stops."""

    clusters: Clusters
    on_hangup: Callable[[], None]
    hangup: Hangup

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Start listening and report the address."""
        await super().startup(sockets)  # type: ignore[arg-type]
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.on_hangup)
            if self.hangup.came:
                self.on_hangup()
        for server in getattr(self, "servers", ()):
            for each in server.sockets:
                host, port = each.getsockname()[:2]
                scheme = "https" if self.config.is_ssl else "http"
                shown = f"[{host}]" if ":" in host else host
                print(f"copter: serving {scheme}://{shown}:{port}/", file=sys.stderr, flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop with exit code 0; a second Ctrl-C does not wait."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Stop: streams first, which would otherwise never end."""
        for service in self.clusters.served.values():
            service.end_streams()
        await super().shutdown(sockets)  # type: ignore[arg-type]


def allow_connections(count: int) -> None:
    """Raise this process's limit of open files as needed for connections, as far as the system allows."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = count + SPARE_FILES
        if soft < wanted:
            resource.setrlimit(
                resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
            )


def collect_seldom() -> None:
    """Let the garbage collector run rarely and on few young objects.

    Nothing is answered during a collection. A full one takes 0.1 s for a cluster of 4,000 jobs; one of the 20,000 young
    objects that 600 new jobs leave takes 14 ms. The state consists of records and dictionaries without reference
    cycles, which need no collector; cycles left by requests are collected while young.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)


def require_address(host: str, port: int) -> None:
    """Raise SettingsError unless the service can listen there; uvicorn would only log an error number."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise SettingsError(f"--host {host}: {error.strerror or error}") from error
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                tried.bind(address)
            except OSError as error:
                raise SettingsError(f"--host {host} --port {port}: {error.strerror or error}") from error


def reload(guard: Guard, config: uvicorn.Config, read: Callable[[], ServeSettings]) -> None:
    """Take in tokens, tenants and certificate as their files are now, and open the audit log anew (SIGHUP).

    What cannot be read stays as it was, and the log says so. Other settings need a restart.
    """
    try:
        settings = read()
        if not settings.needs_token and guard.needs_token:
            raise SettingsError("there are no tokens any more; that needs a restart")
        if config.ssl is not None and settings.certificate is not None and settings.key is not None:
            config.ssl.load_cert_chain(settings.certificate, settings.key)
        guard.admit(settings)
    except (CopterError, OSError, ssl.SSLError) as error:
        LOG.error("SIGHUP: tokens and certificate stay as they were: %s", error)
    else:
        LOG.warning("SIGHUP: tokens and certificate are read again")
    try:
        if guard.audit is not None:
            guard.audit.reopen()
    except SettingsError as error:
        LOG.error("SIGHUP: %s; the old file is written on", error)


def run(read: Callable[[], ServeSettings]) -> int:
    """Serve until stopped; exit code 0, or 1 if it cannot listen. `read` gives the settings, on SIGHUP again.

    Raises
    ------
    SnapshotError, SettingsError
        If the data folder or the certificate cannot be used.
    """
    hangup = Hangup()
    settings = read()
    sys.setswitchinterval(SWITCH_S)
    short_turns()
    collect_seldom()
    allow_connections(settings.connections)
    logging.basicConfig(
        level=settings.log_level.upper(), stream=sys.stderr, format="copter: %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    if settings.access_log:
        requests = logging.StreamHandler(sys.stderr)
        requests.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        access = logging.getLogger("uvicorn.access")
        access.handlers, access.propagate = [requests], False
        access.setLevel(logging.INFO)
    metrics = Metrics()
    clusters = Clusters(settings, metrics)
    PatientProtocol.head_s = settings.head_s
    guard = make_app(clusters, settings, metrics)
    config = uvicorn.Config(
        guard,
        host=settings.host,
        port=settings.port,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        access_log=settings.access_log,
        log_config=None,
        backlog=BACKLOG,
        limit_concurrency=settings.connections,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_S,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"the certificate or its key cannot be used: {error}") from error
    require_address(settings.host, settings.port)
    server = Server(config)
    server.clusters = clusters
    server.hangup = hangup
    server.on_hangup = lambda: reload(guard, config, read)
    try:
        server.run()
    except SystemExit as end:  # uvicorn exits if it cannot listen; it has logged the reason
        return 1 if end.code else 0
    return 0
