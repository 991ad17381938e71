"""Reading a request's body: of a limited size, within a limited time."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope

from copter_serve.service.problems import Problem


def header(scope: Scope, name: bytes) -> bytes:
    """Return the first header of a name; empty if there is none."""
    for given, value in scope["headers"]:
        if given == name:
            found: bytes = value
            return found
    return b""


async def read_body(scope: Scope, receive: Receive, limit: int, wait_s: float) -> bytes:
    """Read a request's body.

    Raises
    ------
    Problem
        415 if its type is not JSON, 413 if it is too large, 408 if it does not arrive in time, 400 if it ends early.
    """
    kind = header(scope, b"content-type").partition(b";")[0].decode("latin-1").strip().lower()
    if kind != "application/json":
        raise Problem(415, f"the content type is {kind or 'not given'}", "Content-Type", "send application/json")
    declared = header(scope, b"content-length")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(limit)
    late, task = False, asyncio.current_task()

    def end() -> None:
        nonlocal late
        late = True
        if task is not None:
            task.cancel()

    timer = asyncio.get_running_loop().call_later(wait_s, end)
    try:
        return await _collect(receive, limit)
    except asyncio.CancelledError:
        if not late:
            raise
        uncancel = getattr(task, "uncancel", None)  # since Python 3.11
        if uncancel is not None:
            uncancel()
        raise Problem(408, f"the body did not arrive within {wait_s:g} s", fix="send it faster") from None
    finally:
        timer.cancel()


async def _collect(receive: Receive, limit: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Problem(400, "the body breaks off", fix="send all that Content-Length says")
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(limit: int) -> Problem:
    return Problem(413, f"the body has more than {limit} bytes", fix="send several smaller deltas, or raise --max-body")
