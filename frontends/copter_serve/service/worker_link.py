"""The service's connection to a scheduler's process: starts it, sends messages, restarts it after a crash."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from copter.runtime.clock import CLOCK
from copter_serve.service.frames import (
    ANSWER,
    BUSY,
    DELTA,
    FAILED,
    PLAN,
    QUESTION,
    READY,
    START,
    frame,
    receive_frame,
)
from copter_serve.service.problems import Problem

LOG = logging.getLogger("copter.serve")
COMMAND = (sys.executable, "-m", "copter_serve.service.worker")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
HEALTHY_S = 60.0  # a process that dies after this many seconds is restarted without a longer pause
MOST_QUESTIONS = 1000  # most questions that wait for an answer
START_POLL_S = 0.05  # seconds between two checks whether the process has started
SILENT_ROUNDS = 2.0  # rounds without a message after which a process is ended
LEAST_SILENT_S = 5.0  # least seconds of such a silence, because the machine may be busy
START_S = 300.0  # seconds that a process may take from its start to its first message
SECOND_LOOK_S = 0.5  # seconds of a second look, because the service itself may have been stopped meanwhile
HOLD_S = 0.005  # seconds for which deltas are collected, because each message interrupts the process's solver


class Patience(NamedTuple):
    """Seconds without a message after which a process counts as hung.

    Attributes
    ----------
    idle : float
        Between two plans.
    busy : float
        While it makes a plan or an answer.
    start : float
        From its start to its first message.
    """

    idle: float
    busy: float
    start: float

    @classmethod
    def of(cls, round_s: float, deadline_s: float) -> Patience:
        """Return the patience with a cluster; an answer takes two plans, and a plan may take its deadline."""
        idle = max(SILENT_ROUNDS * round_s, LEAST_SILENT_S)
        return cls(idle, idle + 3.0 * deadline_s, START_S)


PATIENT = Patience(float("inf"), float("inf"), float("inf"))
"""Waits for ever."""


class Input(Protocol):
    """Interface of a process's input."""

    def write(self, data: bytes) -> None:
        """Send data without waiting."""


class Process(Protocol):
    """Interface of a scheduler's process."""

    @property
    def stdin(self) -> Input | None:
        """Input of the process."""

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        """Output of the process."""

    @property
    def returncode(self) -> int | None:
        """Exit code; None while it runs."""

    def kill(self) -> None:
        """End the process at once."""

    async def wait(self) -> int:
        """Wait for the exit code."""


async def start_process(threads: int) -> Process:
    """Start an operating system process with `threads` threads."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment,
        start_new_session=True,  # Ctrl-C is for the service, which then ends the process itself
    )


LAUNCH: ContextVar[Callable[[int], Awaitable[Process]]] = ContextVar("launch", default=start_process)
"""Function that starts processes; a simulation sets its own."""


class WorkerLink:
    """The connection to a scheduler's process.

    Parameters
    ----------
    name : str
        Name of the cluster, for the log.
    start : callable
        Called in the event loop; returns a function that makes the snapshot for a new process and is called in a
        thread.
    on_plan : callable
        Called with the content of every plan.
    threads : int
        Of the solver.
    patience : Patience
        When a silent process is ended, and another started.

    Attributes
    ----------
    restarts : int
    silences : int
        Times that a process was ended because it was silent.
    ready : bool
        Whether a process runs and has read its start message.
    error : str or None
        Why the last process died.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], Callable[[], bytes]],
        on_plan: Callable[[bytes], None],
        threads: int,
        patience: Patience = PATIENT,
    ) -> None:
        self.name, self._start, self._on_plan, self.threads = name, start, on_plan, threads
        self.patience, self.silences = patience, 0
        self.restarts, self.ready = 0, False
        self._busy = False
        self.error: str | None = None
        self._process: Process | None = None
        self._feeding = False
        self._held: list[bytes] | None = None  # messages that wait until the start message is made
        self._batch: list[bytes] = []  # deltas to be sent soon
        self._closing = False
        self._muted = False  # whether the process was told to end, so that its later messages are ignored
        self._questions: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._task = asyncio.create_task(self._keep_running(), name=f"scheduler of {name}")

    def send(self, change: bytes) -> None:
        """Send a delta to the process, if it runs; a new process starts with the complete state."""
        if self._feeding:
            if not self._batch:
                asyncio.get_running_loop().call_later(HOLD_S, self._send_batch)
            self._batch.append(frame(DELTA, change))

    async def ask(self, question: dict[str, str], wait_s: float) -> dict[str, Any]:
        """Return the answer to a question, ``job``, ``what_if`` or ``quote``, after the plan that is being made.

        Raises Problem without an answer.
        """
        begun = asyncio.get_running_loop().time()
        while not self.ready and asyncio.get_running_loop().time() < begun + wait_s:
            await asyncio.sleep(START_POLL_S)  # a cluster's process takes a second or two to start
        if not self.ready:
            raise Problem(503, "the scheduler is starting", fix="ask again in a few seconds")
        if len(self._questions) >= MOST_QUESTIONS:
            raise Problem(503, "too many questions wait", fix="ask again in a few seconds")
        self._number += 1
        number = self._number
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._questions[number] = future
        self._send_batch()  # the question refers to the acknowledged deltas, so these go first
        self._write(frame(QUESTION, json.dumps({"number": number, **question}).encode()))
        try:
            reply = await asyncio.wait_for(future, wait_s)
        except asyncio.TimeoutError:
            raise Problem(503, "a plan is being made and takes long", fix="ask again in a few seconds") from None
        finally:
            self._questions.pop(number, None)
        if "problem" in reply:
            raise Problem(*reply["problem"])
        found: dict[str, Any] = reply["answer"]
        return found

    def restart(self) -> None:
        """End the process; another starts with the current state."""
        self._feeding = self.ready = False
        self._batch, self._muted = [], True
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def close(self) -> None:
        """End the process at once and for good; the journal has everything that it holds."""
        self._closing = True
        self.restart()
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    # Inside -------------------------------------------------------------------------------------------------------

    def _send_batch(self) -> None:
        if self._batch:
            message, self._batch = b"".join(self._batch), []
            self._write(message)

    def _write(self, message: bytes) -> None:
        if self._held is not None:
            self._held.append(message)
        elif self._process is not None and self._process.stdin is not None:
            with suppress(ConnectionError, RuntimeError):
                self._process.stdin.write(message)

    async def _keep_running(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._closing:
            begun = CLOCK.get().monotonic()
            try:
                await self._run_once()
            except OSError as error:
                self.error = f"it could not be started: {error}"
            finally:
                self._feeding = self.ready = False
                for future in self._questions.values():
                    if not future.done():
                        future.set_exception(Problem(503, "the scheduler ended", fix="ask again in a few seconds"))
            if self._closing:
                return
            self.restarts += 1
            pause = FIRST_PAUSE_S if CLOCK.get().monotonic() - begun > HEALTHY_S else min(2.0 * pause, LONGEST_PAUSE_S)
            LOG.error("cluster %s: the scheduler ended (%s); another begins in %.1f s", self.name, self.error, pause)
            await asyncio.sleep(pause)

    async def _run_once(self) -> None:
        self._process = process = await LAUNCH.get()(self.threads)
        try:
            made, self._batch, self._muted = self._start(), [], False
            self._feeding, self._busy = True, False  # later deltas are not in the snapshot and are sent after it
            held: list[bytes] = []
            self._held = held
            try:
                content = await asyncio.to_thread(made)
            finally:
                self._held = None
            for message in (frame(START, content), *held):
                self._write(message)
            if process.stdout is not None:
                while (message_in := await self._heard(process.stdout)) is not None:
                    self._take(*message_in)
            code = await process.wait()
            if self.error is None or (code < 0 and not self.error.startswith("it was silent")):
                self.error = f"exit code {code}"
        finally:
            self._process = None
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    async def _heard(self, stream: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
        """Return the process's next message; None if it has ended, or was ended because it is silent."""
        idle, busy, start = self.patience
        wait_s = start if not self.ready else busy if self._busy or self._questions else idle
        if wait_s == float("inf"):
            return await receive_frame(stream)
        task = asyncio.ensure_future(receive_frame(stream))
        try:
            for seconds in (wait_s, SECOND_LOOK_S):
                await asyncio.wait((task,), timeout=seconds)
                if task.done():
                    return task.result()
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        if not self._muted:
            self.silences += 1
            self.error = f"it was silent for {wait_s:g} s, and was ended"
        self.restart()
        return None

    def _take(self, kind: bytes, content: bytes) -> None:
        if self._muted:
            return
        self._busy = kind == BUSY
        if kind == READY:
            self.ready, self.error = True, None
        elif kind == PLAN:
            self._on_plan(content)
        elif kind == ANSWER:
            reply = json.loads(content)
            future = self._questions.get(reply["number"])
            if future is not None and not future.done():
                future.set_result(reply)
        elif kind == FAILED:
            self.error = content.decode(errors="replace")
