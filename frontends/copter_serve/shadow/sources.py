"""Sources from which a shadow reads a cluster."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from copter_serve.shadow.watch import Read
from copter_serve.views import ClusterView
from copter_serve.views.documents import MOST_BYTES, PATIENCE_S, Api, BlindError, file_documents, is_address
from copter_serve.views.kueue import kueue_view, read_api
from copter_serve.views.pod_groups import kai_kinds, pod_group_view, volcano_file, volcano_kinds
from copter_serve.views.slurm import slurm_view


def reader(kind: str, source: Any, token: str = "") -> tuple[Read, bool]:
    """Return a function that reads a source, and whether the source is live: an address rather than files.

    Parameters
    ----------
    kind : {"kueue", "volcano", "kai", "slurm"}
    source : str or pair of str
    token : str
        Token for an API server.
    """
    if kind == "slurm":
        queue, info = source
        return (lambda: slurm_view(queue, info)), False
    live = is_address(source)
    api = Api(source, token)

    def kueue() -> ClusterView:
        if live:
            return kueue_view(read_api(api))
        return kueue_view(file_documents(source), written(source))

    ways: dict[str, Callable[[], ClusterView]] = {
        "kueue": kueue,
        "volcano": lambda: pod_group_view("volcano", volcano_kinds(api) if live else volcano_file(source)),
        "kai": lambda: pod_group_view("kai", kai_kinds(source, _bytes(source, live))),
    }
    if live:
        return ways[kind], live
    return (lambda: replace(ways[kind](), read_s=written(source))), live


def written(path: str) -> float:
    """Return the Unix time at which a file was written; BlindError if there is no file."""
    try:
        return Path(path).stat().st_mtime
    except OSError as error:
        raise BlindError(f"{path}: cannot be read: {error.strerror or error}") from error


def _bytes(source: str, live: bool) -> bytes:
    try:
        if not live:
            with Path(source).open("rb") as file:
                return file.read(MOST_BYTES)
        address = source if source.rstrip("/").endswith("/get-snapshot") else f"{source.rstrip('/')}/get-snapshot"
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
            return bytes(answer.read(MOST_BYTES))
    except (OSError, ValueError) as error:
        raise BlindError(f"{source}: cannot be read: {getattr(error, 'reason', None) or error}") from error
