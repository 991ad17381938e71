"""One served cluster: its state, its journal, its scheduler's process, its plan."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from copter.runtime.clock import CLOCK
from copter.runtime.errors import CopterError
from copter.storage.journal import History
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import Change, encoded
from copter_serve.service.delta import Delta, require_few
from copter_serve.service.delta_log import ROTATE_BYTES, DeltaLog, UncertainWriteError
from copter_serve.service.fields import compact
from copter_serve.service.metrics import Metrics
from copter_serve.service.plan_book import read_plan
from copter_serve.service.problems import Problem, conflict
from copter_serve.service.round_history import RoundHistory
from copter_serve.service.store import Frozen, Stored, drop_segments, write_snapshot
from copter_serve.service.worker_link import Patience, WorkerLink

LOG = logging.getLogger("copter.serve")
HEARTBEAT_S = 15.0  # a silent stream sends a comment after this many seconds, so that proxies do not close it
MOST_WAITING = 20_000  # most accepted deltas that wait for the disk


class ClusterService:
    """A cluster that accepts deltas and publishes plans.

    Parameters
    ----------
    name : str
    folder : Path
    stored : Stored
        The cluster as created or recovered.
    sync : {"always", "never"}
        Whether an acknowledgement waits for the disk.
    threads : int
        Threads of the solver.
    metrics : Metrics
    """

    def __init__(self, name: str, folder: Path, stored: Stored, sync: str, threads: int, metrics: Metrics) -> None:
        self.name, self.folder, self.created_s, self.metrics = name, folder, stored.created_s, metrics
        self.state, self.book = stored.state, stored.book
        self.log = DeltaLog(folder, stored.journal, stored.number, sync, metrics.journal_written)
        patience = Patience.of(stored.state.record.round_s, stored.state.record.deadline_s)
        self.link = WorkerLink(name, self._start, self._on_plan, threads, patience)
        self.history = RoundHistory()
        self._watchers: set[asyncio.Event] = set()
        self._pending: deque[Change] = deque()  # deltas in the state that are not on the disk yet
        self._saving: asyncio.Task[None] | None = None
        self._closed = False
        self._promised = 0  # number of the last plan given to the journal
        self._gap = False  # whether a published plan is missing in the journal
        self._streaming = True
        self._last_plan: asyncio.Future[None] | None = None

    @property
    def record(self) -> ClusterRecord:
        """Settings with which the cluster was created."""
        return self.state.record

    @property
    def now_s(self) -> float:
        """Seconds since the cluster was created."""
        return max(CLOCK.get().now() - self.created_s, 0.0)

    @property
    def plan_age_s(self) -> float:
        """Seconds since the last plan was made, or since the cluster was created if there is none."""
        return max(self.now_s - float(self.book.header.get("computed_s") or 0.0), 0.0)

    @property
    def is_planning(self) -> bool:
        """Whether a scheduler runs and its last plan is not older than it may be."""
        return self.link.ready and self.plan_age_s <= self.link.patience.busy + self.record.round_s

    def document(self) -> dict[str, Any]:
        """Return a short document about the cluster's current state."""
        return {
            "id": self.name,
            **self.record.document(),
            "created_s": self.created_s,
            "sequence": self.state.sequence,
            "jobs": len(self.state.jobs),
            "capacity": self.state.capacity(),
            "plan_version": self.book.version,
            "plan_age_s": self.plan_age_s,
            "scheduler": {
                "ready": self.link.ready,
                "restarts": self.link.restarts,
                "silences": self.link.silences,
                "error": self.link.error,
            },
        }

    # Deltas -------------------------------------------------------------------------------------------------------

    async def submit(self, document: Any) -> dict[str, Any]:
        """Check, apply and journal a delta; returns the response once the delta is durable.

        Raises
        ------
        Problem
            4xx for a bad delta, 503 if it cannot be journaled; the state is then unchanged.
        """
        delta = await self._read(document)
        # Checked even while the service stops, so that a repeated delta of before a crash is not refused. Checked again
        # after each wait, because another sender of the same delta may have come first.
        while delta.id is not None and (accepted := self.state.accepted.get(delta.id)) is not None:
            if accepted.content not in (None, delta.content):
                raise conflict(
                    "/id",
                    f"delta {delta.id!r} was accepted with another content, as number {accepted.sequence}",
                    "take a new id for a new delta",
                )
            await self.log.settled()
            # Compared by identity: after the first one was undone, an equal delta may have come that is not on the disk
            # yet.
            if self.state.accepted.get(delta.id) is accepted:
                return self._acknowledgement(accepted.sequence, repeated=True)
        if self._closed:
            raise Problem(503, "the service is stopping", fix="send it again after the restart")
        if len(self._pending) >= MOST_WAITING:
            raise Problem(
                503, "too many deltas wait for the disk", fix="send fewer at a time, or several changes in one delta"
            )
        change = self.state.resolve(delta, self.now_s)
        payload = encoded(change, delta.texts)
        undo = self.state.apply(change, delta)
        self._pending.append(change)
        try:
            await self.log.append("delta", payload, undo, lambda error: self._on_delta(error, change, payload))
        except UncertainWriteError as error:
            raise Problem(
                503,
                f"the delta could not be journaled: {error}; the disk fails, and a restart may find the delta done",
                fix="send it again, with the same id",
            ) from None
        except (OSError, CopterError) as error:
            raise Problem(503, f"the delta could not be journaled, and nothing has changed: {error}") from None
        return self._acknowledgement(change["sequence"], repeated=False)

    def _on_delta(self, error: Exception | None, change: Change, payload: bytes) -> None:
        """Finish a delta that is durable, or that had to be undone; its sender may be gone."""
        self._pending.remove(change)
        if error is not None:
            self.link.restart()  # the scheduler may have started or planned with the undone delta
            self._gap = True  # plans published meanwhile lack what the delta removed, but the journal has it
            edition = self.book.edition
            self.book.look_again(self.state, self.now_s)
            if self.book.edition != edition:
                self._notify()
            return
        self.metrics.deltas.labels(self.name).inc()
        self.link.send(payload)
        edition = self.book.edition
        self.book.follow(change)
        if self.book.edition != edition:
            self._notify()
        self._rotate_if_long()

    def _acknowledgement(self, sequence: int, repeated: bool) -> dict[str, Any]:
        """Return the answer to a delta's sender."""
        found: dict[str, Any] = {
            "sequence": sequence,
            "plan": {"version": self.book.version, "sequence": self.book.header["sequence"]},
        }
        if repeated:
            found["repeated"] = True
        return found

    async def _read(self, document: Any) -> Delta:
        if isinstance(document, dict):
            for _ in require_few(document):
                await asyncio.sleep(0)
        steps = Delta.reading(document)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                found: Delta = done.value
                break
            await asyncio.sleep(0)
        for _ in self.state.checking(found, self.now_s):
            await asyncio.sleep(0)
        return found

    # Plans --------------------------------------------------------------------------------------------------------

    async def watch(self, edition: int | None) -> AsyncIterator[tuple[int, str, bytes] | None]:
        """Yield (edition, "plan" or "changes", JSON) from now on; None if nothing is new for a while.

        Parameters
        ----------
        edition : int or None
            Edition that the watcher has. It gets the later changes if all of them are kept. None: complete plans only.
        """
        event, seen, whole = asyncio.Event(), -1 if edition is None else edition, edition is None
        self._watchers.add(event)
        try:
            while self._streaming:
                event.clear()
                changes = None if whole else self.book.changes_since(seen)
                if changes is None and self.book.edition != seen:
                    seen = self.book.edition
                    yield seen, "plan", self.book.body()
                for seen, body in changes or ():
                    yield seen, "changes", body
                if self.book.edition == seen and not event.is_set():
                    try:
                        await asyncio.wait_for(event.wait(), HEARTBEAT_S)
                    except asyncio.TimeoutError:
                        yield None
        finally:
            self._watchers.discard(event)

    async def planned(self, within_s: float) -> None:
        """Wait until the plan in force includes every delta acknowledged before this call, or the time is up."""
        asked, end = self.state.sequence, time.monotonic() + within_s
        event = asyncio.Event()
        self._watchers.add(event)
        try:
            while self._streaming and (not self.book.version or self.book.header["sequence"] < asked):
                event.clear()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(event.wait(), max(end - time.monotonic(), 0.0))
                if time.monotonic() >= end:
                    return
        finally:
            self._watchers.discard(event)

    def end_streams(self) -> None:
        """End all streams, because the service is about to stop."""
        self._streaming = False
        self._notify()

    @property
    def watchers(self) -> int:
        """Number of watching clients."""
        return len(self._watchers)

    def _start(self) -> Callable[[], bytes]:
        """Return the start message of a new scheduler: the state is copied now and encoded on call."""
        frozen = Frozen.of(self.state, self.book, self.created_s, self._pending)
        return lambda: frozen.sealed(History())

    def _on_plan(self, content: bytes) -> None:
        """Journal a new plan, then publish it."""
        if self._closed:
            return
        plan, pieces = read_plan(content)
        waiting = self._last_plan is not None and not self._last_plan.done()
        if plan["header"]["version"] != (self._promised if waiting else self.book.version) + 1:
            LOG.warning("cluster %s: the scheduler did not know of the last plan, and begins again", self.name)
            self.link.restart()  # it started before that plan was on disk, so its changes refer to an earlier plan
            return
        self._promised = plan["header"]["version"]
        # recovery cannot apply changes to a plan that the journal lacks, so this plan is written completely
        if self._gap:
            self._gap = False
            there = {name: each for name, each in self.book.allocations.items() if name not in set(plan["stop"])}
            whole = {"header": plan["header"], "whole": True, "stop": [], "set": {**there, **plan["set"]}}
            content = compact(whole).encode()
        self._last_plan = self.log.append("plan", content, then=lambda error: self._publish(error, plan, pieces))

    def _publish(self, error: Exception | None, plan: dict[str, Any], pieces: list[bytes]) -> None:
        """Publish a plan, even if it could not be journaled, because GPUs should not wait for the disk."""
        if error is not None:
            self._gap = True  # this plan is missing, or the earlier one that it should have replaced
            if self.log.undone:
                return  # the plan may rely on undone deltas; the scheduler restarts and plans at once
            LOG.error("cluster %s: plan %s is not in the journal: %s", self.name, plan["header"]["version"], error)
        self.book.take(plan, self.state, pieces)
        self.metrics.planned(self.name, self.book.header)
        self.history.take(self.book.header)
        self._notify()
        self._rotate_if_long()

    def _notify(self) -> None:
        for event in self._watchers:
            event.set()

    # Durability ---------------------------------------------------------------------------------------------------

    def _rotate_if_long(self) -> None:
        if self.log.written > ROTATE_BYTES and (self._saving is None or self._saving.done()) and not self._closed:
            self._saving = asyncio.create_task(self.save(), name=f"snapshot of {self.name}")

    async def save(self) -> None:
        """Write a snapshot and start a new journal segment; an error is logged and loses nothing."""
        while self._last_plan is not None and not self._last_plan.done():
            await asyncio.wait([self._last_plan])
        epoch, frozen = self.log.epoch, Frozen.of(self.state, self.book, self.created_s, self._pending)
        try:
            history = await self.log.rotate()
            if self.log.epoch != epoch:
                return  # the copy contains an undone delta, so it is not written; the journal has everything
            number = self.log.number
            await asyncio.to_thread(write_snapshot, self.folder, frozen, history)
            await asyncio.to_thread(drop_segments, self.folder, number)
        except (OSError, CopterError) as error:
            LOG.error("cluster %s: no snapshot: %s; the journal goes on", self.name, error)

    async def close(self, keep: bool = True) -> None:
        """Stop the scheduler, write a snapshot if the cluster is kept, and close the journal."""
        self._closed = True
        self.end_streams()
        await self.link.close()
        await self.log.settled()
        if self._saving is not None:
            await asyncio.wait([self._saving])
        if keep:
            await self.save()
        await self.log.close()
