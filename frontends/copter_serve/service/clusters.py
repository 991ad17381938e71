"""All clusters of a service by id, each in its own folder."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from pathlib import Path

from copter.runtime.clock import CLOCK
from copter.runtime.errors import SnapshotError
from copter.storage.disk import DISK
from copter.storage.files import make_folders, sync_folder
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_service import ClusterService
from copter_serve.service.metrics import Metrics
from copter_serve.service.ownership import claim, is_owned, sweep, take_away
from copter_serve.service.problems import Problem
from copter_serve.service.settings import ServeSettings
from copter_serve.service.store import Stored, create, recover
from copter_serve.service.tenants import EVERYBODY, Tenant

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LOCK = "lock"
"""Lock file in the data folder, held by one service at a time; no cluster may have this id."""

NOT_A_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Flag that refuses to follow a link with the lock's name, because its target may belong to somebody else."""

LOG = logging.getLogger("copter.serve")


class Clusters:
    """The clusters of one data folder.

    Parameters
    ----------
    settings : ServeSettings
    metrics : Metrics

    Raises
    ------
    SnapshotError
        If the folder cannot be used, is in use by another service, or holds a damaged cluster.
    """

    def __init__(self, settings: ServeSettings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        self.served: dict[str, ClusterService] = {}
        self.opened = False
        self._making: set[str] = set()
        self._disk, self._lock = DISK.get(), -1
        folder = settings.data
        try:
            make_folders(folder)
            self._lock = self._disk.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | NOT_A_LINK, 0o600)
            self._disk.lock(self._lock)
        except BlockingIOError:
            raise SnapshotError(f"{folder} is in use by another service") from None
        except OSError as error:
            raise SnapshotError(f"{folder} cannot be used: {error.strerror}") from error
        self._stored: dict[str, Stored] = {}
        try:
            self._recover(folder)
        except OSError as error:
            self._release()
            raise SnapshotError(f"{folder} cannot be read: {error.strerror}") from error
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        """Close everything that was opened."""
        for stored in self._stored.values():
            stored.journal.close()
        self._disk.close(self._lock)

    def _recover(self, folder: Path) -> None:
        """Read the clusters of the data folder."""
        for path in sweep(folder):
            LOG.warning("%s holds files that are not this service's: they are left there", path)
        if self.settings.sync == "always":
            sync_folder(folder)  # a killed service may have made or deleted a cluster without waiting for the disk
        for name in self._disk.names(folder):
            path = folder / name
            if not NAME.fullmatch(name) or self._disk.kind(self._disk.target(path)) != "folder":
                continue
            if is_owned(path):
                claim(path)
                self._stored[path.name] = recover(path, self.settings.sync)
            else:
                LOG.warning("%s is no cluster of this service: it is left as it is", path)

    async def open(self) -> None:
        """Start serving the clusters that were read."""
        for name, stored in self._stored.items():
            self.served[name] = self._serve(name, stored)
        self._stored.clear()
        self.opened = True

    def of(self, tenant: Tenant) -> list[ClusterService]:
        """Return the clusters that a tenant may see."""
        return [service for name, service in self.served.items() if tenant.owns(name)]

    def get(self, name: str, tenant: Tenant = EVERYBODY) -> ClusterService:
        """Return a cluster; raises Problem 404, which mentions only the tenant's own clusters."""
        found = self.served.get(name) if tenant.owns(name) else None
        if found is None:
            there = ", ".join(sorted(each for each in self.served if tenant.owns(each))[:10]) or "none"
            raise Problem(
                404, f"there is no cluster {name!r}; there are: {there}", fix=f"make it: PUT /v1/clusters/{name}"
            )
        return found

    async def make(self, name: str, record: ClusterRecord, tenant: Tenant = EVERYBODY) -> tuple[ClusterService, bool]:
        """Create a cluster; returns it and whether it is new. An existing one must have equal settings."""
        if not NAME.fullmatch(name) or name == LOCK:
            raise Problem(
                422,
                f"{name!r} is no id of a cluster",
                "path",
                f"take letters, digits, '.', '_' and '-', 64 at most, and not {LOCK!r}",
            )
        if name in self._making:
            raise Problem(409, f"cluster {name!r} is being made", fix="ask for it in a moment")
        there = self.served.get(name)
        if there is not None:
            if there.record != record:
                raise Problem(
                    409, f"cluster {name!r} is there, and was made otherwise", fix="delete it first, or take another id"
                )
            return there, False
        if len(self.served) + len(self._making) >= self.settings.max_clusters:
            raise Problem(
                429,
                f"there are {self.settings.max_clusters} clusters already",
                fix="delete one, or raise --max-clusters",
            )
        own = sum(map(tenant.owns, [*self.served, *self._making]))
        if own >= tenant.max_clusters:
            raise Problem(
                429, f"tenant {tenant.name} has {own} clusters, as many as it may have", fix="delete one of them"
            )
        self._making.add(name)
        try:
            folder = self.settings.data / name
            stored = await asyncio.to_thread(create, folder, record, CLOCK.get().now(), self.settings.sync)
            self.served[name] = self._serve(name, stored)
        except SnapshotError as error:
            raise Problem(503, f"the cluster cannot be made: {error}", fix="see to the data folder") from None
        finally:
            self._making.discard(name)
        return self.served[name], True

    async def delete(self, name: str) -> None:
        """Delete a cluster and its files."""
        service = self.get(name)
        del self.served[name]
        self._making.add(name)  # reserve the id until the folder is deleted
        try:
            await service.close(keep=False)
            if not await asyncio.to_thread(take_away, self.settings.data / name):
                LOG.warning("cluster %s is deleted; files in its folder that are not the service's are kept", name)
        except OSError as error:
            raise Problem(503, f"the cluster's folder cannot be removed: {error.strerror}") from None
        finally:
            self._making.discard(name)
            self.metrics.forget(name)

    async def close(self) -> None:
        """Stop all clusters, each with a snapshot."""
        self.opened = False
        await asyncio.gather(*(service.close() for service in self.served.values()))
        self._disk.close(self._lock)

    def _serve(self, name: str, stored: Stored) -> ClusterService:
        folder: Path = self.settings.data / name
        return ClusterService(name, folder, stored, self.settings.sync, self.settings.threads, self.metrics)
