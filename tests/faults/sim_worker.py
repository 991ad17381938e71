"""A scheduler's process in the simulation: the product's own worker, fed by a pipe that takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from copter.runtime.clock import CLOCK, Clock
from copter_serve.service.frames import FAILED, HEAD, START, frame
from copter_serve.service.worker import Worker
from tests.faults.sim_loop import SimLoop, SimProcess


class SimPipe:
    """What a worker writes to."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.write = send

    def flush(self) -> None:
        """Nothing waits."""


class SimWorker:
    """In the place of a process of the operating system (:class:`copter_serve.service.worker_link.Process`)."""

    def __init__(self, loop: SimLoop, clock: Clock, parent: SimProcess) -> None:
        self.loop, self.parent = loop, parent
        self.process = SimProcess("worker")
        self.process.context.run(CLOCK.set, clock)
        self.stdin, self.stdout = self, asyncio.StreamReader(limit=1 << 24, loop=loop)
        self.returncode: int | None = None
        self._ended = loop.create_future()
        self._worker: Worker | None = None
        self._buffer = b""
        self._next = self._out = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        """From the service to the worker, in order."""
        if self.returncode is None:
            self._next = max(self._next, self.loop.at) + self.loop.random.expovariate(2000.0)
            self.loop.call_at(self._next, self._receive, data, context=self.process.context)

    def kill(self) -> None:
        """As kill -9 does."""
        self._end(-9)

    async def wait(self) -> int:
        """Its exit code."""
        await asyncio.shield(self._ended)
        return self.returncode or 0

    def _end(self, code: int) -> None:
        if self.returncode is None:
            self.returncode, self.process.dead = code, True
            self.stdout.feed_eof()
            self._ended.set_result(None)

    def _send(self, data: bytes) -> None:
        """From the worker to the service, in one or two pieces; what is under way when it dies is cut off."""
        cut = self.loop.random.randrange(len(data) + 1)
        for piece in (data[:cut], data[cut:]):
            self._out = max(self._out, self.loop.at) + self.loop.random.expovariate(2000.0)
            self.loop.call_at(self._out, self._deliver, piece, context=self.parent.context)

    def _deliver(self, piece: bytes) -> None:
        if self.returncode is None and piece:
            self.stdout.feed_data(piece)

    def _receive(self, data: bytes) -> None:
        self._buffer += data
        try:
            while len(self._buffer) >= HEAD.size:
                kind, length = HEAD.unpack(self._buffer[: HEAD.size])
                if len(self._buffer) < HEAD.size + length:
                    break
                content, self._buffer = self._buffer[HEAD.size : HEAD.size + length], self._buffer[HEAD.size + length :]
                if kind == START:
                    self._worker = Worker(content, cast(Any, None), cast(BinaryIO, SimPipe(self._send)))
                    self._without_times(self._worker)
                    self._worker.send(b"R")
                elif self._worker is not None:
                    self._worker.take(kind, content)
            self._plan()
        except Exception as error:  # as the worker's main does
            self._send(frame(FAILED, f"{type(error).__name__}: {error}".encode()))
            self.loop.call_at(self._out, self._end, 1, context=self.process.context)

    def _plan(self) -> None:
        """Plan if a plan is due, as :meth:`.Worker.run` does; else wait."""
        if self._worker is None:
            return
        if self.loop.at >= self._worker._due():
            self._worker.plan()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(
            max(self._worker._due(), self.loop.at + 1e-3), self._again, context=self.process.context
        )

    def _again(self) -> None:
        self._receive(b"")

    @staticmethod
    def _without_times(worker: Worker) -> None:
        """Policies measure themselves by the real clock: left out, so that a seed always gives the same bytes."""
        plan = worker.scheduler.plan

        def timeless(now_s: float) -> dict[str, Any]:
            found = plan(now_s)
            found["header"]["timings"] = {}
            return found

        worker.scheduler.plan = timeless  # type: ignore[method-assign]
