"""Operation: a hung scheduler is noticed and replaced, tokens are read again, a token may only read, health by TLS."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from served import Served, certified

pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

from copter_serve.service import health, worker_link
from copter_serve.service.frames import BUSY, PLAN, READY, frame
from copter_serve.service.worker_link import Patience, WorkerLink

READ, WRITE, OTHER = "reads-only-0123456789", "writes-0123456789abcd", "another-0123456789abcd"


class Process:
    """A scheduler's process that says some messages and then nothing."""

    def __init__(self, *messages: bytes) -> None:
        self.stdout, self.stdin, self.returncode = asyncio.StreamReader(), None, None
        self.stdout.feed_data(b"".join(messages))
        self.killed = asyncio.Event()

    def kill(self) -> None:
        self.returncode = -9
        self.killed.set()
        self.stdout.feed_eof()

    async def wait(self) -> int:
        await self.killed.wait()
        return -9


@pytest.mark.parametrize(
    ("messages", "hangs"),
    [((), True), ((READY,), True), ((READY, BUSY), True), ((READY, BUSY, PLAN), True), ((READY, BUSY), False)],
)
def test_a_silent_process_is_ended_and_another_started(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, messages: tuple[bytes, ...], hangs: bool
) -> None:
    monkeypatch.setattr(worker_link, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(worker_link, "SECOND_LOOK_S", 0.01)
    begun: list[Process] = []

    async def run() -> WorkerLink:
        async def launch(threads: int) -> Any:
            begun.append(Process(*map(frame, messages)))
            return begun[-1]

        worker_link.LAUNCH.set(launch)
        patience = Patience(0.05, 0.05 if hangs else 60.0, 0.05)  # a plan may take a minute
        link = WorkerLink("c", lambda: lambda: b"", lambda content: None, 1, patience)
        for _ in range(100):
            await asyncio.sleep(0.01)
            if len(begun) > 1:
                break
        await link.close()
        return link

    link = asyncio.run(run())
    if not hangs:
        assert (len(begun), link.silences) == (1, 0)
        return
    assert len(begun) > 1
    assert link.silences >= 1
    assert "it was silent for 0.05 s, and was ended" in caplog.text


def test_patience_grows_with_rounds_and_deadlines() -> None:
    assert Patience.of(60.0, 30.0) == (120.0, 210.0, worker_link.START_S)
    assert Patience.of(0.1, 1.0).idle == worker_link.LEAST_SILENT_S


def test_a_stopped_scheduler_is_told_and_replaced(tmp_path: Path) -> None:
    served = Served(tmp_path / "data")
    try:
        served.make(round_s=1.0, deadline_s=1.0)
        served.until(lambda: served.ask("GET", "/readyz")[1]["status"] == "ready", served.alive)
        served.until(lambda: served.ask("GET", "/v1/clusters/c")[1]["plan_version"] > 0, served.alive)
        (worker,) = children(served.process.pid)
        os.kill(worker, signal.SIGSTOP)
        served.until(lambda: served.ask("GET", "/v1/clusters/c")[1]["scheduler"]["silences"] == 1, served.alive)
        status, told, _ = served.ask("GET", "/readyz")
        if told["status"] != "ready":  # the next process may be there already
            assert (status, told["status"]) == (503, "degraded")
        served.until(lambda: served.ask("GET", "/readyz")[1]["status"] == "ready", served.alive)
        (after,) = children(served.process.pid)
        assert after != worker
        text = served.ask("GET", "/metrics", raw=True)[1].decode()
        assert 'copter_scheduler_silences{cluster="c"} 1.0' in text
        assert 'copter_plan_age_seconds{cluster="c"}' in text
        assert 'copter_plans_total{cluster="c",status="' in text
    finally:
        served.stop(signal.SIGKILL)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    path = Path(f"/proc/{pid}/task")
    if not path.exists():
        pytest.skip("this system has no /proc")
    found = [each.joinpath("children").read_text().split() for each in path.iterdir()]
    return [int(each) for some in found for each in some]


def test_a_token_may_only_read_and_a_hangup_reads_tokens_again(tmp_path: Path) -> None:
    write, read, audit = tmp_path / "write", tmp_path / "read", tmp_path / "audit"
    write.write_text(WRITE)
    read.write_text(READ)
    options = ("--token-file", str(write), "--read-token-file", str(read), "--audit", str(audit))
    served = Served(tmp_path / "data", *options)
    try:
        served.token = WRITE
        served.make()
        served.token = READ
        assert served.ask("GET", "/metrics")[0] == 200
        assert served.ask("GET", "/v1/clusters/c/plan")[0] == 200
        for method, path in (
            ("POST", "/v1/clusters/c/deltas"),
            ("DELETE", "/v1/clusters/c"),
            ("PUT", "/v1/clusters/d"),
        ):
            status, told, _ = served.ask(method, path, {})
            assert (status, told["detail"]) == (403, "the token of reader may only read")
        write.write_text(OTHER)
        audit.rename(tmp_path / "audit.1")
        served.process.send_signal(signal.SIGHUP)
        served.token = OTHER
        served.until(lambda: served.ask("POST", "/v1/clusters/c/deltas", {"set_capacity": {}})[0] == 200, served.alive)
        assert json.loads(audit.read_text().splitlines()[-1])["result"] == 200
        served.token = WRITE
        assert served.ask("GET", "/v1/clusters/c")[0] == 401
        write.write_text("")
        served.process.send_signal(signal.SIGHUP)
        served.until(lambda: "stay as they were" in served.log.read_text(), served.alive)
        served.token = OTHER
        assert served.ask("GET", "/v1/clusters/c")[0] == 200
        assert served.stop() == 0
    finally:
        served.process.kill()


def test_the_health_check_needs_no_word_about_tls(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    for name, options in (("plain", ()), ("tls", ("--tls-cert", str(certificate), "--tls-key", str(key)))):
        served = Served(tmp_path / name, *options)
        try:
            assert health.main([f"127.0.0.1:{served.port}"]) == 0
        finally:
            served.stop(signal.SIGKILL)
    assert health.main([f"127.0.0.1:{served.port}"]) == 1


def test_the_container_asks_by_that_check() -> None:
    text = Path(health.__file__).parents[2].joinpath("deploy", "Containerfile").read_text()
    assert "copter_serve.service.health" in text
    assert "http://" not in text


def test_a_hangup_before_it_listens_does_not_end_it(tmp_path: Path) -> None:
    """The token is written after the settings were read, the hangup is sent before the handler of the loop is there."""
    code = """
import os, signal, sys
from pathlib import Path
from copter_serve.service import running
token = Path(sys.argv[1])
made = running.make_app
def late(*given):
    token.write_text(sys.argv[2])
    os.kill(os.getpid(), signal.SIGHUP)
    return made(*given)
running.make_app = late
from copter_serve.commands.serve import serve
serve(["--data", sys.argv[3], "--port", "0", "--token-file", str(token)])
"""
    token = tmp_path / "token"
    token.write_text(OTHER)
    served = Served.__new__(Served)
    command = [sys.executable, "-c", code, str(token), WRITE, str(tmp_path / "data")]
    served.begin(command, tmp_path / "log", {"PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        served.token = WRITE
        served.until(lambda: served.ask("GET", "/v1/clusters")[0] == 200, served.alive)
        served.token = OTHER
        assert served.ask("GET", "/v1/clusters")[0] == 401
    finally:
        served.process.kill()


def test_a_hangup_while_the_command_is_loaded_does_not_end_it() -> None:
    code = """
import os, signal, sys, types
import copter_frontends
from copter_frontends import command
fake = types.ModuleType("copter_frontends.cli")
fake.main = lambda: (os.kill(os.getpid(), signal.SIGHUP), print("goes on"))
sys.modules["copter_frontends.cli"] = copter_frontends.cli = fake
sys.argv = ["copter", sys.argv[1]]
command.main()
"""
    told = {}
    for word in ("serve", "simulate"):
        done = subprocess.run([sys.executable, "-c", code, word], capture_output=True, text=True)
        told[word] = done.returncode, done.stdout.strip()
    assert told == {"serve": (0, "goes on"), "simulate": (-signal.SIGHUP, "")}
