"""What leaves the event loop: answers in one piece, deltas to the scheduler's process together and in order."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from served import Served

from copter_serve.service import worker_link
from copter_serve.service.frames import DELTA, QUESTION, frame
from copter_serve.service.worker_link import WorkerLink

pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
from copter_serve.service.protocol import Joining


class Wire:
    """A transport, or a process's stdin, that keeps what it is given, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.pieces.append(data)

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def test_a_head_goes_with_its_body_or_at_the_loops_next_turn() -> None:
    async def run() -> list[bytes]:
        wire = Wire()
        joining = Joining(wire, asyncio.get_running_loop(), lambda: False)  # type: ignore[arg-type]
        joining.write(b"head")
        joining.write(b"body")
        joining.write(b"stream's head")
        assert wire.pieces == [b"headbody"]
        await asyncio.sleep(0)
        assert wire.pieces[1:] == [b"stream's head"]
        joining.write(b"last")
        joining.close()
        assert joining.is_closing()
        await asyncio.sleep(0)
        return wire.pieces

    assert asyncio.run(run()) == [b"headbody", b"stream's head", b"last"]


def test_deltas_go_together_and_before_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    class Process:
        stdin = Wire()

        def kill(self) -> None:
            return

    async def never_runs(self: WorkerLink) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(WorkerLink, "_keep_running", never_runs)

    async def run() -> list[bytes]:
        link = WorkerLink("c", lambda: bytes, lambda content: None, 1)
        link._process, link._feeding, link.ready = Process(), True, True  # type: ignore[assignment]
        link.send(b"1")
        link.send(b"2")
        asked = asyncio.create_task(link.ask({"job": "job"}, 0.01))
        await asyncio.sleep(0)
        link.send(b"3")
        with pytest.raises(worker_link.Problem):
            await asked
        await asyncio.sleep(3 * worker_link.HOLD_S)
        link.send(b"4")
        link.restart()  # another process begins with the state, which has delta 4
        await asyncio.sleep(3 * worker_link.HOLD_S)
        await link.close()
        return Process.stdin.pieces

    question = frame(QUESTION, json.dumps({"number": 1, "job": "job"}).encode())
    assert asyncio.run(run()) == [frame(DELTA, b"1") + frame(DELTA, b"2"), question, frame(DELTA, b"3")]


def test_answers_come_in_one_piece(service: Served) -> None:
    """Head and body of a small answer are in one segment, so that a client wakes up once."""
    service.make("pieces")
    with service.connect() as connection:
        for _ in range(5):
            connection.sendall(b"GET /v1/clusters/pieces HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = connection.recv(1 << 16)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert f"content-length: {len(body)}".encode() in head
            assert json.loads(body)["id"] == "pieces"
