"""An orderly end in the midst of requests, a disk that is full, and the unit that keeps the service running."""

from __future__ import annotations

import json
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from served import ROOT, Served


def request(body: bytes) -> bytes:
    """A delta's request."""
    head = b"POST /v1/clusters/c/deltas HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_a_request_that_is_under_way_is_answered_before_the_end(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
    served = Served(tmp_path / "data")
    served.make("c")
    sent = request(json.dumps({"id": "last", "add_jobs": [{"id": "late"}]}).encode())
    with served.connect() as half, served.connect() as watcher:
        watcher.sendall(b"GET /v1/clusters/c/plan/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert watcher.recv(1 << 16).startswith(b"HTTP/1.1 200")
        half.sendall(sent[:-10])
        served.until(lambda: served.ask("GET", "/healthz")[0] == 200, served.alive)  # the half is there
        served.process.send_signal(signal.SIGTERM)
        stream = b""
        while part := watcher.recv(1 << 16):  # streams end at once
            stream += part
        assert stream.endswith(b"0\r\n\r\n")
        half.sendall(sent[-10:])
        answer = half.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 200")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["sequence"] == 1
    assert served.process.wait(60) == 0
    served.no_traceback()
    served.start()
    assert served.ask("GET", "/v1/clusters/c/jobs")[1]["jobs"] == ["late"]
    assert served.delta({"id": "last", "add_jobs": [{"id": "late"}]})["repeated"]
    assert served.stop() == 0


@pytest.mark.parametrize("sync", ["always", "never"])
def test_a_full_disk_is_told_and_changes_nothing(tmp_path: Path, sync: str) -> None:
    pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
    served = Served(tmp_path / "data", "--sync", sync)
    served.make("c")
    served.delta({"add_jobs": [{"id": "before"}]})
    served.plan(sequence=1)
    pid, room = served.process.pid, resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (100, room[1]))  # no file of it may be written beyond that
    for k in range(3):
        status, told, headers = served.ask("POST", "/v1/clusters/c/deltas", {"add_jobs": [{"id": f"lost{k}"}]})
        assert status == 503
        assert "File too large" in told["detail"]
        assert "nothing has changed" in told["detail"]
        assert headers["Retry-After"]
    assert served.ask("PUT", "/v1/clusters/other", {"types": {"t4": {"nodes": 1, "gpus_per_node": 1}}})[0] == 503
    resource.prlimit(pid, resource.RLIMIT_FSIZE, room)
    assert served.ask("GET", "/v1/clusters/c/jobs")[1]["jobs"] == ["before"]
    assert served.delta({"add_jobs": [{"id": "after"}]})["sequence"] == 2
    served.stop(signal.SIGKILL)
    served.start()
    assert served.ask("GET", "/v1/clusters/c/jobs")[1]["jobs"] == ["after", "before"]
    assert served.stop() == 0
    served.no_traceback()


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    text = (ROOT / "frontends" / "deploy" / "copter-serve.service").read_text()
    (program,) = re.findall(r"^ExecStart=(\S+) serve", text, re.MULTILINE)
    unit = tmp_path / "copter-serve.service"
    unit.write_text(text.replace(program, sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if "copter-serve" in line]
    assert (done.returncode, told) == (0, []), done.stderr
    unit.write_text(text.replace(program, sys.executable).replace("KillMode=mixed", "KillMode=sometimes"))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert "copter-serve.service:" in done.stderr  # a word that systemd does not know would be seen
