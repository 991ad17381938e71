"""An event loop whose time is simulated: it goes on to the next event at once. Processes that are dead run no more."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any


class Killed(BaseException):
    """The process has been killed: nothing that it does has an effect any more."""


class SimProcess:
    """A simulated process: what runs in its context goes with it."""

    def __init__(self, name: str) -> None:
        self.name, self.dead = name, False
        self.context: Context = copy_context()
        self.context.run(PROCESS.set, self)


PROCESS: ContextVar[SimProcess | None] = ContextVar("process", default=None)


class SimLoop(asyncio.AbstractEventLoop):
    """The loop of all simulated processes.

    Parameters
    ----------
    random : Random
        Decides how long threads take.

    Attributes
    ----------
    lost : list
        What callbacks raised and nobody caught.
    """

    def __init__(self, random: Random) -> None:
        self.random, self.at, self.lost = random, 0.0, []  # type: ignore[var-annotated]
        self.events = 0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._ties = 0
        self._readers: dict[int, asyncio.Handle] = {}
        self.tasks: list[asyncio.Task[Any]] = []

    def time(self) -> float:
        return self.at

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._ties += 1
        heapq.heappush(self._timers, (when, self._ties, handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.at + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:  # type: ignore[override]
        run = context.run if context is not None else lambda call: call()
        task: asyncio.Task[Any] = run(lambda: asyncio.Task(coro, loop=self, name=name))
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.tasks.append(task)
        if len(self.tasks) > 500:
            self.tasks = [each for each in self.tasks if not each.done()]
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """A thread: it does its work in an instant, some time later."""
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except BaseException as error:
                if not future.done() and not isinstance(error, Killed):
                    future.set_exception(error)
                elif isinstance(error, Killed):
                    raise
            else:
                if not future.done():
                    future.set_result(result)

        self.call_later(self.random.expovariate(200.0), work)
        return future

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        self._readers[fd] = asyncio.Handle(callback, args, self, copy_context())

    def remove_reader(self, fd: Any) -> bool:
        return self._readers.pop(fd, None) is not None

    def readable(self, fd: int) -> None:
        """A descriptor can be read: what waits for it is called."""
        handle = self._readers.get(fd)
        if handle is not None:
            self._ready.append(handle)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, Killed | type(None)):
            self.lost.append(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def run_until(self, when: float) -> None:
        """Do all that comes before an instant."""
        while True:
            while self._ready:
                self._run(self._ready.popleft())
            if not self._timers or self._timers[0][0] > when:
                break
            at, _, handle = heapq.heappop(self._timers)
            self.at = max(self.at, at)
            self._run(handle)
        self.at = max(self.at, when)

    def _run(self, handle: asyncio.Handle) -> None:
        if handle.cancelled():
            return
        context: Context = handle._context  # type: ignore[attr-defined]
        process = context.get(PROCESS)
        if process is None or not process.dead:
            self.events += 1
            handle._run()

    def bury(self, process: SimProcess) -> None:
        """Let the tasks of a dead process go, without anything that they would still do having an effect."""
        process.dead = True
        left = []
        for task in self.tasks:
            if task.done():
                continue
            context = getattr(task, "get_context", lambda: None)()
            if context is not None and context.get(PROCESS) is process:
                with suppress(BaseException):  # it may wait for something while it ends: nobody waits with it
                    task.get_coro().close()  # type: ignore[union-attr]
            else:
                left.append(task)
        self.tasks = left
