"""Ten thousand requests at the same time, each on a connection of its own: all are answered, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import resource
from pathlib import Path
from typing import Any

import pytest
from served import Served

CLIENTS = 10_000
SPARE = 1_000


def request(k: int) -> bytes:
    """A tenth are deltas, a tenth are wrong, the others fetch the plan."""
    if k % 10 > 1:
        return b"GET /v1/clusters/c/plan HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    jobs = [{"id": f"j{k}"}] if k % 10 == 0 else [{"id": f"j{k}", "weight": -1}]
    body = json.dumps({"id": f"d{k}", "add_jobs": jobs}).encode()
    head = (
        "POST /v1/clusters/c/deltas HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json"
    )
    return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def all_at_once(port: int, clients: int) -> list[int]:
    """Statuses: first every connection is there, then every request is sent, then every answer is read."""
    streams: list[Any] = []
    for first in range(0, clients, 500):
        group = [asyncio.open_connection("127.0.0.1", port) for _ in range(first, min(first + 500, clients))]
        streams += await asyncio.gather(*group)
    for k, (_, writer) in enumerate(streams):
        writer.write(request(k))
    answers = await asyncio.gather(*(reader.read() for reader, _ in streams))
    for _, writer in streams:
        writer.close()
    return [int(answer[9:12]) if answer else 0 for answer in answers]


@pytest.mark.long
def test_ten_thousand_requests_at_the_same_time(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CLIENTS + SPARE:
        pytest.skip(f"this machine lets a process open {hard} files; {CLIENTS + SPARE} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (CLIENTS + SPARE, hard))
    served = Served(tmp_path / "data", "--sync", "always")
    served.make("c")
    found = asyncio.run(asyncio.wait_for(all_at_once(served.port, CLIENTS), 300.0))
    assert [found.count(status) for status in (200, 422)] == [CLIENTS * 9 // 10, CLIENTS // 10]
    told = served.ask("GET", "/v1/clusters/c")[1]
    assert (told["sequence"], told["jobs"]) == (CLIENTS // 10, CLIENTS // 10)
    served.plan(sequence=CLIENTS // 10)
    assert served.stop() == 0
    served.no_traceback()
