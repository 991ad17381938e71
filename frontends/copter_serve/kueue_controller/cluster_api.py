"""Access to a Kubernetes API server through the official client."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from copter_serve.kueue_controller.refused import RefusedError
from copter_serve.views.documents import PAGE, BlindError, Document, flat, parse_json, part

try:
    import kubernetes.client as kube
    import kubernetes.config as kube_config
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError
except ImportError as missing:  # in the optional extra `kubernetes`
    raise ImportError(
        "the Kueue controller needs the Kubernetes client: pip install 'copter-lp[kubernetes]'",
        name="kubernetes",
    ) from missing

MOST_TOLD = 300  # most characters of a server's message that are repeated
PATIENCE_S = 10.0  # time limit of a request to the cluster, in seconds
# HTTP statuses of an object that was deleted or changed since it was read; the next step reads it again
GONE = (404, 409)
REFUSED = range(400, 500)  # statuses of one write that the server does not accept, whatever becomes of the others


class ClusterApi:
    """Reads and patches objects; reading is as in :class:`~copter_serve.views.documents.Api`.

    Parameters
    ----------
    address : str, optional
        Address of an API server that needs no credentials, as `kubectl proxy` serves it.
    context : str, optional
        Without an address: context of the kubeconfig; in a pod without kubeconfig, the pod's service account is used.

    Raises
    ------
    BlindError
        If there is no configuration.
    """

    def __init__(self, address: str | None = None, context: str | None = None) -> None:
        if address is not None:
            configuration = kube.Configuration()
            configuration.host = address.rstrip("/")
            configuration.retries = False
            client = kube.ApiClient(configuration)
        else:
            try:
                client = kube_config.new_client_from_config(context=context)
            except kube_config.ConfigException as error:
                try:
                    kube_config.load_incluster_config()
                    client = kube.ApiClient()
                except kube_config.ConfigException:
                    raise BlindError(f"there is no configuration of a cluster: {error}") from error
        self.address = str(client.configuration.host)
        self._client, self._objects, self._apis = client, kube.CustomObjectsApi(client), kube.ApisApi(client)

    def _asked(self, call: Any, *arguments: Any, write: bool = False, **options: Any) -> Any:
        try:
            return call(*arguments, _request_timeout=PATIENCE_S, **options)
        except ApiException as error:
            if error.status in GONE:
                raise LookupError(str(error.reason)) from error
            if write and error.status in REFUSED:
                raise RefusedError(f"the API server answers {error.status} {error.reason}{_told(error)}") from error
            raise BlindError(f"{self.address}: the API server answers {error.status} {error.reason}") from error
        except (HTTPError, OSError) as error:
            raise BlindError(f"{self.address}: the API server is out of reach: {error}") from error

    def version(self, group: str, known: Sequence[str]) -> str:
        """Return the version of a group to read: the server's preferred one if it is known, else another known one."""
        groups = {each.name: each for each in self._asked(self._apis.get_api_versions).groups}
        if group not in groups:
            raise BlindError(f"{self.address}: the API server knows no {group}")
        found = groups[group]
        versions = [found.preferred_version.version, *(each.version for each in found.versions)]
        for version in versions:
            if version in known:
                return str(version)
        raise BlindError(f"{self.address}: {group} is served as {', '.join(versions)}; {', '.join(known)} are read")

    def listed(self, path: str, optional: bool = False) -> list[Document]:
        """Return all documents of ``/apis/GROUP/VERSION/PLURAL``, fetched page by page."""
        group, version, plural = path.removeprefix("/apis/").split("/")
        documents: list[Document] = []
        after = ""
        while True:
            more: dict[str, Any] = {"_continue": after} if after else {}
            try:
                page = self._asked(
                    self._objects.list_cluster_custom_object, group, version, plural, limit=PAGE, **more
                )  # fmt: skip
            except LookupError as error:
                if optional:
                    return documents
                raise BlindError(f"{self.address}{path}: the API server does not have it") from error
            documents += flat(path, [page])
            after = str(part(page, "metadata", "continue") or "")
            if not after:
                return documents

    def one(self, version: str, plural: str, name: str, namespace: str) -> Document:
        """Return one document; LookupError if it is gone."""
        group, _, number = version.rpartition("/")
        if not group:
            return dict(self._asked(self._core, "GET", _core_path(version, plural, name, namespace)))
        found = self._asked(self._objects.get_namespaced_custom_object, group, number, namespace, plural, name)
        return dict(found)

    def _core(self, method: str, path: str, body: Document | None = None, _request_timeout: float = PATIENCE_S) -> Any:
        """Call the core API, which is not below ``/apis``, so that the client's calls by group do not reach it."""
        headers = {**self._client.default_headers, "Accept": "application/json"}
        for each in self._client.configuration.auth_settings().values():
            if each["in"] == "header" and each["value"]:
                headers[each["key"]] = each["value"]
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        answer = self._client.rest_client.request(
            method, self.address + path, headers=headers, body=body, _request_timeout=_request_timeout
        )
        data = answer.data if answer.data is not None else answer.read()
        if not 200 <= answer.status < 300:
            error = ApiException(status=answer.status, reason=answer.reason)
            error.body = data
            raise error
        return parse_json(self.address + path, data)

    def patch(self, document: Document, plural: str, change: Document, status: bool = False) -> bool:
        """Merge a change into a document; return False, without a change, if the document was deleted or changed
        since it was read.

        Raises
        ------
        RefusedError
            If the server does not accept this change.
        """
        meta = document["metadata"]
        group, _, version = str(document["apiVersion"]).rpartition("/")
        inner = {"resourceVersion": meta["resourceVersion"]} | change.get("metadata", {})
        body = change | {"metadata": inner}
        namespace, name = meta.get("namespace"), meta["name"]
        try:
            if not group:
                self._asked(self._core, "PATCH", _core_path(version, plural, name, namespace, status), body, write=True)
                return True
            scope = "namespaced" if namespace else "cluster"
            call = getattr(self._objects, f"patch_{scope}_custom_object{'_status' if status else ''}")
            self._asked(call, group, version, *([namespace] if namespace else []), plural, name, body, write=True)
        except LookupError:
            return False
        return True


def _core_path(version: str, plural: str, name: str, namespace: str | None, status: bool = False) -> str:
    """Return the path of an object of the core API."""
    parts = ["api", version, *(["namespaces", namespace] if namespace else []), plural, name]
    return "/" + "/".join(quote(each, safe="") for each in parts) + ("/status" if status else "")


def _told(error: Any) -> str:
    """Return what a server says of a refusal, in one line."""
    try:
        message = str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return ""
    return f": {' '.join(message.split())[:MOST_TOLD]}"
