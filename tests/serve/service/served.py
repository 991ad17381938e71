"""A real ``copter serve`` in a process of its own, and a small client, for tests."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
START_S = 120.0  # the machine may be busy
JSON = {"Content-Type": "application/json"}
TYPES = {"a100": {"nodes": 2, "gpus_per_node": 8}, "t4": {"nodes": 4, "gpus_per_node": 4}}


def certified(folder: Path) -> tuple[Path, Path]:
    """(certificate, key) for localhost, made in a folder; the test is skipped where openssl makes none."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        capture_output=True,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl makes no certificate here")
    return certificate, key


class Served:
    """The service, running.

    Parameters
    ----------
    data : Path
        Its folder.
    options : str
        Of the command.
    """

    def __init__(self, data: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.data, self.options = data, options
        self.log = data.parent / f"{data.name}.log"
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "frontends")]),
            "OMP_NUM_THREADS": "1",
            **(environment or {}),
        }
        self.token: str | None = None
        self.made: list[str] = []
        self.start()

    def start(self) -> None:
        """Start it, and wait until it says where it listens."""
        command = [sys.executable, "-m", "copter_frontends.cli", "serve", "--data", str(self.data), "--port", "0"]
        self.begin([*command, *self.options], self.log, self.environment)

    def begin(self, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
        """Start a command that serves, and wait until it says where it listens."""
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stderr=file, env={**os.environ, **environment})
        found = self.until(lambda: re.search(r"serving (https?)://(.*?):(\d+)/", self.log.read_text()), self.alive)
        self.scheme, host, port = found.groups()
        self.host, self.port = host.strip("[]"), int(port)

    def alive(self) -> None:
        """AssertionError if the process has ended."""
        assert self.process.poll() is None, self.log.read_text()

    @staticmethod
    def until(ready: Callable[[], Any], alive: Callable[[], None] = lambda: None, seconds: float = START_S) -> Any:
        """What `ready` gives once it gives something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = ready()
            if found:
                return found
            alive()
            time.sleep(0.02)
        raise AssertionError("it took too long")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(START_S)

    # The client ---------------------------------------------------------------------------------------------------

    def headers(self) -> dict[str, str]:
        """What every request has."""
        return {**JSON, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, raw: bool = False
    ) -> tuple[int, Any, http.client.HTTPMessage]:
        """(status, JSON or bytes, headers) of one request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, sent, dict(self.headers() if headers is None else headers))
            answer = connection.getresponse()
            content = answer.read()
            is_json = "json" in answer.headers.get("Content-Type", "") and not raw
            return answer.status, json.loads(content) if is_json and content else content, answer.headers
        finally:
            connection.close()

    def make(self, name: str = "c", **fields: Any) -> None:
        """Make a cluster that plans as soon as something changes."""
        status, told, _ = self.ask("PUT", f"/v1/clusters/{name}", {"types": TYPES, "react_s": 0.0, **fields})
        assert status == 201, told
        self.made.append(name)

    def clear(self) -> None:
        """Take away the clusters that :meth:`make` has made: each has a process."""
        while self.made:
            self.ask("DELETE", f"/v1/clusters/{self.made.pop()}")

    def delta(self, document: Any, name: str = "c", expect: int = 200) -> Any:
        """Send a delta."""
        status, told, _ = self.ask("POST", f"/v1/clusters/{name}/deltas", document)
        assert status == expect, (status, told)
        return told

    def plan(self, name: str = "c", sequence: int = 0, version: int = 1) -> Any:
        """The first plan that has a delta in it."""

        def ready() -> Any:
            status, plan, _ = self.ask("GET", f"/v1/clusters/{name}/plan")
            assert status == 200, plan
            return plan if plan["sequence"] >= sequence and plan["version"] >= version else None

        return self.until(ready, self.alive)

    def wait_ready(self) -> None:
        """Until all schedulers run."""
        self.until(lambda: self.ask("GET", "/readyz")[0] == 200, self.alive)

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection((self.host, self.port), timeout=60)

    def no_traceback(self) -> None:
        """AssertionError if the log has one."""
        text = self.log.read_text()
        assert "Traceback" not in text, text


def read_events(stream: Any, count: int) -> list[tuple[str, str, Any]]:
    """(event, id, data) of the next server-sent events of a response."""
    found: list[tuple[str, str, Any]] = []
    fields: dict[str, str] = {}
    while len(found) < count:
        line = stream.readline().decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            if "data" in fields:
                found.append((fields["event"], fields["id"], json.loads(fields["data"])))
            fields = {}
    return found
