"""Reads Kubernetes documents from files, lists or an API server, and values from their fields."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from copter_serve.queues.quantities import quantity
from copter_serve.views.view import ViewError

Document: TypeAlias = dict[str, Any]
PATIENCE_S = 10.0  # time limit of a request, in seconds
MOST_BYTES = 1 << 28  # most bytes of a file or an answer
PAGE = 500  # documents requested at a time


class BlindError(ViewError):
    """The API server or the file cannot be read at the moment."""


def is_address(source: str) -> bool:
    """Return whether a source is an address rather than a file."""
    return source.startswith(("http://", "https://"))


def read_text(path: str) -> str:
    """Return the text of a file; BlindError if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise BlindError(f"{path}: more than {MOST_BYTES >> 20} MiB; give a smaller file")
        return data.decode("utf-8")
    except OSError as error:
        raise BlindError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BlindError(f"{path}: is no text: {error.reason}") from error


def parse_json(where: str, text: str | bytes) -> Any:
    """Parse JSON; BlindError, with the place, if it is invalid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BlindError(f"{where}: is no JSON: {str(error) or 'nested too deep'}") from error


def file_documents(path: str) -> list[Document]:
    """Return all documents of a JSON or YAML file: single documents and the members of lists."""
    text = read_text(path)
    if text.lstrip()[:1] in ("{", "["):
        return flat(path, [parse_json(path, text)])
    import yaml  # type: ignore[import-untyped, unused-ignore]  # of the extra `frontends`; JSON does without

    try:
        return flat(path, list(yaml.safe_load_all(text)))
    except (yaml.YAMLError, RecursionError) as error:
        raise BlindError(f"{path}: is neither JSON nor YAML: {' '.join(str(error).split())[:200]}") from error


def flat(where: str, found: Sequence[Any]) -> list[Document]:
    """Return the documents contained in lists of documents."""
    documents: list[Document] = []
    for each in found:
        if isinstance(each, list):
            documents += flat(where, each)
        elif isinstance(each, dict) and isinstance(each.get("items"), list):
            kind, version = str(each.get("kind", "")), each.get("apiVersion")
            for item in flat(where, each["items"]):
                # an API server omits kind and apiVersion from the items of its lists
                if kind.endswith("List") and kind != "List":
                    item.setdefault("kind", kind[:-4])
                    item.setdefault("apiVersion", version)
                documents.append(item)
        elif isinstance(each, dict):
            documents.append(each)
        elif each is not None:
            raise BlindError(f"{where}: holds {type(each).__name__}, no Kubernetes document")
    return documents


class Api:
    """Reads documents from an API server.

    Parameters
    ----------
    address : str
        Address as `kubectl proxy` serves it, or the server's own together with a token.
    token : str
    """

    def __init__(self, address: str, token: str = "") -> None:
        self.address, self.token = address.rstrip("/"), token

    def get(self, path: str) -> Any:
        """Return one response; BlindError if there is none, LookupError if it is "not found"."""
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        try:
            with urllib.request.urlopen(
                urllib.request.Request(self.address + path, headers=headers), timeout=PATIENCE_S
            ) as answer:
                return parse_json(self.address + path, answer.read(MOST_BYTES))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise LookupError(path) from error
            raise BlindError(f"{self.address}{path}: the API server answers {error.code} {error.reason}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise BlindError(f"{self.address}: the API server is out of reach: {reason}") from error

    def version(self, group: str, known: Sequence[str]) -> str:
        """Return the version of a group to read: the server's preferred one if it is known, else the newest known."""
        try:
            found = self.get(f"/apis/{group}")
            versions = [found["preferredVersion"]["version"], *(each["version"] for each in found["versions"])]
        except LookupError as error:
            raise BlindError(f"{self.address}: the API server knows no {group}") from error
        except (KeyError, TypeError) as error:
            raise BlindError(f"{self.address}: what the API server says of {group} cannot be read") from error
        for version in versions:
            if version in known:
                return str(version)
        raise BlindError(f"{self.address}: {group} is served as {', '.join(versions)}; {', '.join(known)} are read")

    def listed(self, path: str, optional: bool = False) -> list[Document]:
        """Return all documents of a list, fetched page by page."""
        documents: list[Document] = []
        after = ""
        while True:
            try:
                page = self.get(f"{path}?limit={PAGE}" + (f"&continue={after}" if after else ""))
            except LookupError as error:
                if optional:
                    return documents
                raise BlindError(f"{self.address}{path}: the API server does not have it") from error
            documents += flat(path, [page])
            after = str((page.get("metadata") or {}).get("continue") or "")
            if not after:
                return documents


# Fields ---------------------------------------------------------------------------------------------------------------


def named(document: Mapping[str, Any]) -> str:
    """Return NAMESPACE/NAME of a document, or its name if it has no namespace."""
    meta = document.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise ViewError(f"{document.get('kind', 'a document')} without metadata.name: left out")
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]


def part(document: Mapping[str, Any], *path: str) -> Any:
    """Return the value at a path of fields, or None."""
    at: Any = document
    for name in path:
        at = at.get(name) if isinstance(at, dict) else None
    return at


def entries(where: str, value: Any) -> list[Any]:
    """Return a list field; an empty list for None."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise ViewError(f"{where} must be a list")
    return value


def amounts(where: str, value: Any) -> dict[str, float]:
    """Return resources and their quantities as numbers."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ViewError(f"{where} must map resources to quantities")
    return {str(name): quantity(f"{where}.{name}", each) for name, each in value.items()}


def whole(where: str, value: Any, otherwise: int) -> int:
    """Return a whole number; `otherwise` for None."""
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int):
        raise ViewError(f"{where}: {value!r} must be a whole number")
    return value


def unix_time(where: str, value: Any) -> float:
    """Return Kubernetes's time as seconds since 1970."""
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ViewError(f"{where}: {value!r} is no time") from None


def pod_requests(where: str, spec: Any) -> dict[str, float]:
    """Return a pod's requested amounts, as Kubernetes counts them.

    Containers and the init containers that run on beside them (`restartPolicy: Always`) count in sum; each other init
    container counts alone, beside those that were started before it; the largest of both counts. Requests of the pod
    itself replace those of its containers. Its overhead is added.
    """
    at = {"spec": spec}
    total: dict[str, float] = {}
    for number, container in enumerate(entries(f"{where}.containers", part(at, "spec", "containers"))):
        _add(total, _wanted(f"{where}.containers[{number}]", container))
    beside: dict[str, float] = {}
    first: dict[str, float] = {}
    for number, container in enumerate(entries(f"{where}.initContainers", part(at, "spec", "initContainers"))):
        wanted = _wanted(f"{where}.initContainers[{number}]", container)
        if part({"at": container}, "at", "restartPolicy") == "Always":
            _add(total, wanted)
            _add(beside, wanted)
            wanted = {}
        for name in {*wanted, *beside}:
            first[name] = max(first.get(name, 0.0), wanted.get(name, 0.0) + beside.get(name, 0.0))
    total = {name: max(total.get(name, 0.0), first.get(name, 0.0)) for name in (*total, *first)}
    if part(at, "spec", "resources") is not None:
        total |= _wanted(where, spec)
    _add(total, amounts(f"{where}.overhead", part(at, "spec", "overhead")))
    return total


def _wanted(where: str, container: Any) -> dict[str, float]:
    """Return a container's requests; its limits stand for requests that are missing."""
    resources = {"at": part({"at": container}, "at", "resources") or {}}
    return amounts(f"{where}.limits", part(resources, "at", "limits")) | amounts(
        f"{where}.requests", part(resources, "at", "requests")
    )


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0.0) + amount
