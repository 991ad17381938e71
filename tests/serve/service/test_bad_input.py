"""Hostile and broken clients over real HTTP: a clear 4xx, and nothing has changed."""

from __future__ import annotations

import concurrent.futures
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import JSON, TYPES, Served, certified

TOKEN = "a-token-of-enough-length"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that asks for a token, with small limits and little patience."""
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="the extra 'serve' is not installed")
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text(TOKEN + "\n")
    served = Served(folder / "data", "--token-file", str(folder / "token"), "--max-body", "0.1", "--patience", "2")
    served.token = TOKEN
    served.make("c")
    served.delta({"add_jobs": [{"id": "there"}]})
    yield served
    assert served.stop() == 0
    served.no_traceback()


@pytest.fixture(autouse=True)
def nothing_changes(guarded: Served) -> Iterator[None]:
    """Whatever a test sends, the cluster is as before, and the service alive."""
    before = guarded.ask("GET", "/v1/clusters/c")[1]["sequence"]
    yield
    guarded.alive()
    status, now, _ = guarded.ask("GET", "/v1/clusters/c")
    assert (status, now["sequence"], now["jobs"]) == (200, before, 1)
    guarded.no_traceback()


def problem(answer: tuple[int, Any, Any], status: int) -> Any:
    """The problem document of an answer."""
    found, document, headers = answer
    assert found == status, document
    assert headers["Content-Type"] == "application/problem+json"
    assert document["status"] == status
    assert document["detail"]
    return document


def raw(served: Served, sent: bytes, end: bool = False) -> bytes:
    """All that comes back for bytes as they are."""
    with served.connect() as connection:
        connection.sendall(sent)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return everything(connection)


def everything(connection: socket.socket) -> bytes:
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def head(length: int, extra: str = "") -> bytes:
    return (
        f"POST /v1/clusters/c/deltas HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n{extra}\r\n"
    ).encode()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400), (b"{", 400), (b"\xff", 400), (b"[" * 50_000, 400), (b'{"add_jobs": NaN}', 400), (b"9" * 9000, 400),
        (b"[]", 422), (b"null", 422), (b'"text"', 422), (b'{"what": 1}', 422),
        (b'{"add_jobs": [{"id": "there"}]}', 409),
        (b'{"remove_jobs": ["nobody"]}', 409), (b'{"set_capacity": {"h900": 8}}', 422),
        (b'{"add_jobs": [{"id": "n"}, {"id": "m", "weight": -1}]}', 422),
        (b'{"add_jobs": [{"id": "n"}], "remove_jobs": ["nobody"]}', 409),
        (b'{"add_jobs": [{"id": "n", "weight": 1e999}]}', 422), (b'{"add_jobs": [{"id": "\\ud800"}]}', 422),
    ],
)  # fmt: skip
def test_malformed_documents(guarded: Served, body: bytes, status: int) -> None:
    told = problem(guarded.ask("POST", "/v1/clusters/c/deltas", body), status)
    assert len(json.dumps(told)) < 2000


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404), ("GET", "/v1/clusters/none/plan", 404), ("POST", "/v1/clusters/none/deltas", 404),
        ("DELETE", "/v1/clusters/none", 404), ("GET", "/v1/clusters/c/deltas", 405), ("PATCH", "/v1/clusters/c", 405),
        ("POST", "/v1/clusters/c/volcano/unknown", 404), ("GET", "/v1/clusters/c/jobs/%00", 404),
        ("GET", "/v1/clusters/../../etc/passwd", 404), ("GET", "/static/..%2f..%2fapp.py", 404),
        ("GET", "/v1/clusters/c/", 404),
    ],
)  # fmt: skip
def test_wrong_paths(guarded: Served, method: str, path: str, status: int) -> None:
    problem(guarded.ask(method, path, b"{}" if method == "POST" else None), status)


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"bearer {TOKEN}", f"Basic {TOKEN}", "Bearer \xe9"],
)
def test_wrong_tokens(guarded: Served, authorization: str | None) -> None:
    headers = {**JSON, **({} if authorization is None else {"Authorization": authorization})}
    for method, path in (
        ("GET", "/v1/clusters"),
        ("POST", "/v1/clusters/c/deltas"),
        ("GET", "/metrics"),
        ("GET", "/x"),
    ):
        _, _, answer = told = guarded.ask(method, path, b"{}" if method == "POST" else None, headers=headers)
        problem(told, 401)
        assert answer["WWW-Authenticate"] == "Bearer"
    for path in ("/healthz", "/openapi.json", "/"):
        assert guarded.ask("GET", path, headers={})[0] == 200


def test_two_tokens_are_no_token(guarded: Served) -> None:
    answer = raw(guarded, head(2, f"Authorization: Bearer {TOKEN}\r\nConnection: close\r\n") + b"{}")
    assert answer.startswith(b"HTTP/1.1 401")


def test_other_types_of_content(guarded: Served) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
        problem(guarded.ask("POST", "/v1/clusters/c/deltas", b"{}", headers=headers), 415)


def test_a_body_beyond_the_limit(guarded: Served) -> None:
    problem(guarded.ask("POST", "/v1/clusters/c/deltas", b"[" + b" " * 200_000 + b"]"), 413)
    for _ in range(3):  # all of a large body is sent before the answer is read
        problem(guarded.ask("POST", "/v1/clusters/c/deltas", b"[" + b" " * 20_000_000 + b"]"), 413)
    assert raw(guarded, head(2**40) + b"{").startswith(b"HTTP/1.1 413")  # by what it says, before it is sent
    endless = head(0).replace(b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    sent = 0
    with guarded.connect() as connection:
        connection.sendall(endless)
        try:
            for _ in range(16_384):  # a gigabyte, if it let us
                connection.sendall(chunk)
                sent += len(chunk)
        except (ConnectionResetError, BrokenPipeError):
            pass
        assert sent < 128 << 20


def test_half_a_body_and_then_silence(guarded: Served) -> None:
    started = time.monotonic()
    answer = raw(guarded, head(1000) + b'{"add_jobs": [')
    assert answer.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - started < 30


def test_half_a_body_and_then_the_end(guarded: Served) -> None:
    with guarded.connect() as connection:
        connection.sendall(head(1000) + b'{"add_jobs": [')
    raw(guarded, head(1000) + b'{"add_jobs": [{"id": "half"}]}', end=True)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", 408), (b"GET / HT", 408), (b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", 408), (b"\r\n\r\n\r\n", 408),
        (b"nonsense\r\n\r\n", 400), (b"\x16\x03\x01\x02\x00\x01\x00", 400), (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400), (b"GET /\xff HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 300_000, 431),
    ],
)  # fmt: skip
def test_what_is_no_request(guarded: Served, sent: bytes, status: int) -> None:
    try:
        answer = raw(guarded, sent)
    except (ConnectionResetError, BrokenPipeError):
        return  # it would not even listen to the end
    assert answer.startswith(f"HTTP/1.1 {status}".encode()) or not answer


def test_slow_clients_hold_up_nobody(guarded: Served) -> None:
    """Two hundred clients dribble bytes; others are answered."""
    slow = [guarded.connect() for _ in range(200)]
    ending = threading.Event()

    def dribble() -> None:
        while not ending.wait(0.2):
            for each in slow:
                try:
                    each.sendall(b"G" if each.fileno() % 2 else b" ")
                except OSError:
                    continue

    thread = threading.Thread(target=dribble)
    thread.start()
    try:
        for _ in range(20):
            assert guarded.ask("GET", "/v1/clusters/c/plan")[0] == 200
    finally:
        ending.set()
        thread.join()
        for each in slow:
            each.close()


def test_many_at_once(guarded: Served) -> None:
    """Five hundred connections at a time, most of them wrong."""

    def one(k: int) -> int:
        if k % 5 == 0:
            return guarded.ask("GET", "/v1/clusters/c/plan")[0]
        if k % 5 == 1:
            return guarded.ask("POST", "/v1/clusters/c/deltas", {"remove_jobs": [f"none{k}"]})[0]
        if k % 5 == 2:
            return guarded.ask("GET", "/v1/clusters", headers={})[0]
        return guarded.ask("POST", "/v1/clusters/c/deltas", b"{" * k)[0]

    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        found = list(pool.map(one, range(1000)))
    assert [found.count(status) for status in (200, 409, 401, 400)] == [200, 200, 200, 400]


def test_streams_that_nobody_reads(guarded: Served) -> None:
    """Watchers who never read and watchers who go away."""
    request = f"GET /v1/clusters/c/plan/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    watchers = [guarded.connect() for _ in range(50)]
    for each in watchers:
        each.sendall(request)
    guarded.until(lambda: b'copter_watchers{cluster="c"} 50.0' in guarded.ask("GET", "/metrics")[1], guarded.alive)
    for each in watchers:
        each.close()
    guarded.until(lambda: b'copter_watchers{cluster="c"} 0.0' in guarded.ask("GET", "/metrics")[1], guarded.alive)


# Of a service without a token ------------------------------------------------------------------------------------


def test_other_names_for_this_machine_are_refused(service: Served) -> None:
    """A page of another site could have its own name lead here."""
    for host in (
        "evil.example",
        "localhost:evil.com",
        "localhost:80:80",
        "localhost@evil.com",
        "127.0.0.1.evil.com",
        "",
    ):
        problem(service.ask("GET", "/v1/clusters", headers={"Host": host}), 421)
    for host in ("localhost", "localhost:80", "127.0.0.1", "[::1]:8470"):
        assert service.ask("GET", "/v1/clusters", headers={"Host": host})[0] == 200


# The command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--token-file"),
        (["--token-file", "none"], "cannot be read"),
        (["--token-file", "short"], "16 ASCII characters"),
        (["--token-file", "empty"], "is empty"),
        (["--tls-cert", "short"], "both a certificate and a key"),
        (["--tls-cert", "short", "--tls-key", "short"], "cannot be used"),
        (["--data", "short"], "is a file"),
    ],
)
def test_bad_options_are_one_line(
    tmp_path: Path, capsys: Any, monkeypatch: Any, options: list[str], words: str
) -> None:
    from copter_frontends import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COPTER_SERVE_TOKEN", raising=False)
    Path("short").write_text("short")
    Path("empty").write_text("\n")
    with pytest.raises(SystemExit) as stop:
        cli.main(["serve", "--data", "data", *options])
    told = capsys.readouterr().err
    assert stop.value.code in (1, 2)
    assert words in told
    assert told.count("\n") == 1


def test_a_folder_serves_one_service(guarded: Served, capsys: Any) -> None:
    from copter_frontends import cli

    with pytest.raises(SystemExit) as stop:
        cli.main(["serve", "--data", str(guarded.data)])
    assert stop.value.code == 1
    assert "in use by another service" in capsys.readouterr().err


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    import sys

    from copter_frontends import cli

    for name in [name for name in sys.modules if name.startswith("copter_serve.service")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(SystemExit) as stop:
        cli.main(["serve", "--data", str(tmp_path)])
    assert stop.value.code == 2
    assert "pip install 'copter-lp[serve]'" in capsys.readouterr().err


def test_tls(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    served = Served(tmp_path / "data", "--tls-cert", str(certificate), "--tls-key", str(key))
    assert served.scheme == "https"
    context = ssl.create_default_context(cafile=str(certificate))
    body = json.dumps({"types": TYPES}).encode()
    with context.wrap_socket(served.connect(), server_hostname="localhost") as connection:
        connection.sendall(
            b"PUT /v1/clusters/c HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        assert everything(connection).startswith(b"HTTP/1.1 201")
    with served.connect() as plain:  # no TLS
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert not everything(plain).startswith(b"HTTP/1.1 200")
    assert served.stop() == 0
    served.no_traceback()


def test_an_address_that_cannot_be_listened_on_is_said_in_one_line(tmp_path: Path, capsys: Any) -> None:
    from copter_frontends import cli

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SystemExit) as stop:
            cli.main(["serve", "--data", str(tmp_path / "data"), "--port", str(port)])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"copter: --host 127.0.0.1 --port {port}: Address already in use\n"
