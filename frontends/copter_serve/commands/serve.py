"""``copter serve``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from copter.runtime.errors import CopterError, SettingsError
from copter_frontends.cli.habits import config_option
from copter_frontends.cli.output import FiniteRange, InputError

MIB = 1 << 20  # bytes of a mebibyte
TOKEN_VARIABLE = "COPTER_SERVE_TOKEN"
_POSITIVE = FiniteRange(min=0, min_open=True)
_COUNT = click.IntRange(min=1)


@click.command(short_help="Schedule clusters over HTTP.")
@click.option("--data", type=click.Path(file_okay=False), required=True, help="Folder of journals and snapshots.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8470,
    show_default=True,
    help="Port to listen on; 0 for any free one.",
)
@click.option("--token-file", type=click.Path(dir_okay=False), help=f"File with the token  [or: {TOKEN_VARIABLE}]")
@click.option("--read-token-file", type=click.Path(dir_okay=False), help="File with a token that may only read.")
@click.option("--tenants", type=click.Path(dir_okay=False), help="File of tenants: tokens, clusters, limits.")
@click.option("--audit", type=click.Path(dir_okay=False), help="File to which every requested change is appended.")
@click.option("--insecure", is_flag=True, help="Serve other machines without a token.")
@click.option("--tls-cert", type=click.Path(dir_okay=False), help="File of the certificate, for HTTPS.")
@click.option("--tls-key", type=click.Path(dir_okay=False), help="File of the certificate's key.")
@click.option(
    "--sync",
    type=click.Choice(["always", "never"]),
    default="always",
    show_default=True,
    help="Whether an acknowledgement waits for the disk; a killed process loses nothing either way.",
)
@click.option("--threads", type=_COUNT, default=1, show_default=True, help="Threads of each cluster's solver.")
@click.option(
    "--max-body",
    type=_POSITIVE,
    default=4.0,
    show_default=True,
    metavar="MIB",
    help="Largest body of a request, in MiB.",
)
@click.option(
    "--patience",
    type=_POSITIVE,
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds in which a request must arrive.",
)
@click.option("--max-clusters", type=_COUNT, default=16, show_default=True, help="Most clusters; each has a process.")
@click.option("--connections", type=_COUNT, default=12_000, show_default=True, help="Most connections at a time.")
@click.option("--access-log", is_flag=True, help="Print a line on stderr for every request: time, client, answer.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="Least level of the service's own messages on stderr.",
)
def serve(**options: Any) -> int:
    """Schedule clusters over HTTP: deltas in, plans out.

    SIGHUP reads tokens, tenants and certificate again, and opens the audit log anew. SIGTERM or Ctrl-C stops it with a
    snapshot. Even after `kill -9`, a restart restores everything it acknowledged.
    """
    # Optional: Starlette, uvicorn and prometheus-client come with the extra "serve".
    try:
        from copter_serve.service.running import run
    except ImportError as error:
        raise InputError(f"copter serve needs {error.name or error}: pip install 'copter-lp[serve]'") from error
    from copter_serve.service.settings import ServeSettings
    from copter_serve.service.tenants import read_tenants

    def settings() -> ServeSettings:
        return ServeSettings(
            data=Path(options["data"]),
            host=options["host"],
            port=options["port"],
            token=_token(options["token_file"]),
            certificate=None if options["tls_cert"] is None else Path(options["tls_cert"]),
            key=None if options["tls_key"] is None else Path(options["tls_key"]),
            sync=options["sync"],
            threads=options["threads"],
            max_body=int(options["max_body"] * MIB),
            max_clusters=options["max_clusters"],
            body_s=options["patience"],
            head_s=options["patience"],
            connections=options["connections"],
            tenants=() if options["tenants"] is None else read_tenants(Path(options["tenants"])),
            audit=None if options["audit"] is None else Path(options["audit"]),
            insecure=options["insecure"],
            access_log=options["access_log"],
            log_level=options["log_level"],
            read_token=None
            if options["read_token_file"] is None
            else _in_file("--read-token-file", options["read_token_file"]),
        )

    try:
        return run(settings)
    except SettingsError as error:
        raise InputError(str(error)) from error
    except CopterError as error:
        raise click.ClickException(str(error)) from error


serve.params.append(config_option())


def _token(path: str | None) -> str | None:
    """Return the token from the file or the environment."""
    if path is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    return _in_file("--token-file", path)


def _in_file(option: str, path: str) -> str:
    try:
        found = Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{option} {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not found:
        raise SettingsError(f"{option} {path}: is empty; put the token in its first line")
    return found
