"""HTTP connections with limits on the time and size of request heads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from copter_serve.service.problems import MEDIA_TYPE

MOST_HEAD = 64 << 10  # most bytes of a request's line and headers
LINGER_S = 2.0  # seconds for which a refused client's data are read and dropped, so that the client can read the answer
LINGER_BYTES = 64 << 20  # most bytes dropped in that time


class Joining:
    """A transport that joins the first piece of a response, its head, with the second.

    Parameters
    ----------
    transport : asyncio.Transport
    loop : asyncio.AbstractEventLoop
    unread : callable
        Returns whether the client may still be sending. Closing a socket with unread bytes resets the connection and
        loses the answer.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, unread: Callable[[], bool]
    ) -> None:
        self._transport, self._loop, self._unread = transport, loop, unread
        self._held: bytes | None = None
        self._ending = False
        self._dropped = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send the data, together with held data; the first piece is held until the loop's next turn at the latest."""
        if self._held is None:
            self._held = data
            self._loop.call_soon(self.flush)
        else:
            held, self._held = self._held, None
            self._transport.writelines((held, data))

    def flush(self) -> None:
        """Send the held data."""
        if self._held is not None:
            held, self._held = self._held, None
            self._transport.write(held)

    def is_closing(self) -> bool:
        """Return whether the connection is about to end."""
        return self._ending or self._transport.is_closing()

    def close(self) -> None:
        """End the connection when everything is sent and the client has stopped sending or its time is up."""
        self.flush()
        if self.is_closing() or not self._unread():
            self._transport.close()
            return
        self._ending = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(LINGER_S, self._transport.close)

    def drop(self, data: bytes) -> None:
        """Discard input that arrives after the response; close the connection if it is more than LINGER_BYTES."""
        self._dropped += len(data)
        if self._dropped > LINGER_BYTES:
            self._transport.close()


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits: a request's head must arrive in time and be short."""

    head_s = 10.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._head = 0
        self._flooded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a new client's first request."""
        super().connection_made(transport)
        self.transport = Joining(transport, self.loop, self._unread)  # type: ignore[assignment]
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the client has gone."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data; a head that is too long ends the connection."""
        if self.transport.is_closing():
            self.transport.drop(data)  # type: ignore[attr-defined]
            return
        waited = self._timer is not None
        super().data_received(data)
        idle = self.cycle is None or (self.cycle.response_complete and self.timeout_keep_alive_task is None)
        if idle and self._timer is None and not self.transport.is_closing():
            self._arm()  # data came that do not begin a request
        if self._timer is None:
            self._head = 0
        elif waited:
            self._head += len(data)
            if self._head > MOST_HEAD:
                self._flooded = True
                self._refuse(431, "the head of the request is too long")

    def on_message_begin(self) -> None:
        """Start the timer of a request's head."""
        super().on_message_begin()
        if self._timer is None:
            self._arm()

    def on_headers_complete(self) -> None:
        """Stop the timer: the head is complete."""
        self._disarm()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not HTTP."""
        self._refuse(400, "this is not HTTP/1.1")

    def _unread(self) -> bool:
        """Whether the client may still be sending a body, or an endless head."""
        return self._flooded or (self.cycle is not None and self.cycle.more_body)

    def _arm(self) -> None:
        self._disarm()
        self._timer = self.loop.call_later(self.head_s, self._too_slow)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(408, f"no request arrived within {self.head_s:g} s")

    def _refuse(self, status: int, detail: str) -> None:
        self._disarm()
        if self.transport.is_closing():
            return
        words = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}[status]
        body = json.dumps({"type": "about:blank", "title": words, "status": status, "detail": detail}).encode()
        head = (
            f"HTTP/1.1 {status} {words}\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
