"""A scheduler's process: ``python -m copter_serve.service.worker`` exchanges frames on stdin and stdout."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from contextlib import suppress
from typing import BinaryIO

from copter.runtime.clock import CLOCK
from copter.runtime.errors import CopterError
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
    read_frame,
)
from copter_serve.service.plan_book import plan_document
from copter_serve.service.problems import Problem
from copter_serve.service.scheduler import Scheduler
from copter_serve.service.store import read_snapshot
from copter_serve.service.turns import behind_others

Inbox = queue.SimpleQueue[tuple[bytes, bytes] | None]


class OutOfStepError(Exception):
    """A delta is missing; the process ends and the service starts another with the complete state."""


class Worker:
    """Takes in a cluster's deltas as they arrive, plans when a plan is due, and sends plans and answers.

    Parameters
    ----------
    start : bytes
        Snapshot of the cluster.
    inbox : queue of (kind, content)
    out : binary stream
    """

    def __init__(self, start: bytes, inbox: Inbox, out: BinaryIO) -> None:
        state, book, self.created_s, _ = read_snapshot(start, "the start message")
        now_s = max(CLOCK.get().now() - self.created_s, 0.0)
        self.scheduler = Scheduler(state, book.allocations, book.version, book.attained, now_s)
        self.inbox, self.out = inbox, out
        self.record = state.record
        self._changed_at: float | None = CLOCK.get().monotonic()  # the first plan is due at once
        self._planned_at = -float("inf")

    def run(self) -> None:
        """Process messages and plan until the service has gone."""
        self.send(READY)
        while self.listen():
            if CLOCK.get().monotonic() >= self._due():
                self.plan()

    def listen(self) -> bool:
        """Process messages until a plan is due, then those already received; returns False to end."""
        while (left := self._due() - CLOCK.get().monotonic()) > 0:
            try:
                message = self.inbox.get(timeout=min(left, threading.TIMEOUT_MAX))
            except queue.Empty:
                break
            if message is None:
                return False
            self.take(*message)
        for _ in range(self.inbox.qsize()):
            message = self.inbox.get()
            if message is None:
                return False
            self.take(*message)
        return True

    def take(self, kind: bytes, content: bytes) -> None:
        """Apply a delta or answer a question; other kinds of messages are ignored.

        Raises
        ------
        OutOfStepError
            If a delta before this one is missing.
        """
        if kind == DELTA:
            change = json.loads(content)
            if change["sequence"] <= self.scheduler.state.sequence:
                return  # the start message contained it
            if change["sequence"] != self.scheduler.state.sequence + 1:
                raise OutOfStepError(f"delta {change['sequence']} after {self.scheduler.state.sequence}")
            self.scheduler.take(change)
            if self._changed_at is None:
                self._changed_at = CLOCK.get().monotonic()
        elif kind == QUESTION:
            self.answer(json.loads(content))

    def answer(self, question: dict[str, str | int]) -> None:
        """Send the answer to a question (a job's explanation or the effect of a change), or the reason why there is
        none.
        """
        self.send(BUSY)
        reply: dict[str, object] = {"number": question["number"]}
        try:
            now_s = max(CLOCK.get().now() - self.created_s, 0.0)
            if "quote" in question:
                reply["answer"] = self.scheduler.quote(json.loads(str(question["quote"])), now_s)
            elif "what_if" in question:
                reply["answer"] = self.scheduler.what_if(str(question["what_if"]), now_s)
            else:
                reply["answer"] = self.scheduler.explain(str(question["job"]))
        except LookupError as error:
            reply["problem"] = [404, str(error.args[0])]
        except Problem as error:
            reply["problem"] = [error.status, error.detail, error.where, error.fix]
        except CopterError as error:
            reply["problem"] = [422, str(error)]
        self.send(ANSWER, json.dumps(_finite(reply)).encode())

    def plan(self) -> None:
        """Compute the next plan and send it to the service."""
        self._changed_at, self._planned_at = None, CLOCK.get().monotonic()
        self.send(BUSY)  # the watchdog then waits for as long as a plan may take
        plan = self.scheduler.plan(max(CLOCK.get().now() - self.created_s, 0.0))
        self.send(PLAN, plan_document({**plan, "header": _finite(plan["header"])}))

    def _due(self) -> float:
        """Return when the next plan is due: shortly after a change, or a round after the last plan."""
        due = self._planned_at + self.record.round_s
        if self._changed_at is not None:
            due = min(due, max(self._changed_at, self._planned_at + self.record.react_s))
        return due

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """Write one message to the service."""
        self.out.write(frame(kind, content))
        self.out.flush()


def _finite(value: object) -> object:
    """Return the value with null in place of NaN and infinities."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def main() -> int:
    """Run; exit code 0 when the service is gone, 1 after an error, which is printed on stderr."""
    behind_others()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that prints of libraries do not mix with the messages
    inbox: Inbox = queue.SimpleQueue()
    source = sys.stdin.buffer

    def receive() -> None:
        while (message := read_frame(source)) is not None:
            inbox.put(message)
        inbox.put(None)

    first = read_frame(source)
    if first is None or first[0] != START:
        return 0
    threading.Thread(target=receive, name="messages", daemon=True).start()
    try:
        Worker(first[1], inbox, out).run()
    except BrokenPipeError:
        return 0
    except Exception as error:
        traceback.print_exc()
        with suppress(OSError):
            out.write(frame(FAILED, f"{type(error).__name__}: {error}".encode()))
            out.flush()
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # the thread that reads stdin would block an ordinary exit
