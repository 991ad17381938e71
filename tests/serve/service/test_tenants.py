"""Tenants over TLS: tokens, clusters of their own, limits, and the audit log of what they change."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import ssl
import stat
from collections.abc import Iterator
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

import pytest
from served import JSON, TYPES, Served, certified

from copter.runtime.errors import SettingsError

TOKENS = {name: f"token-of-{name}-{'x' * 12}" for name in ("alpha", "beta", "old", "small", "often", "root")}
TENANTS = [
    {"name": "alpha", "token": TOKENS["alpha"], "max_clusters": 2},
    {"name": "beta", "token": TOKENS["beta"], "expires": "2999-01-01T00:00:00Z"},
    {"name": "old", "token": TOKENS["old"], "expires": "2020-01-01T00:00:00+00:00"},
    {"name": "small", "token": TOKENS["small"], "max_body_mib": 4096 / 2**20},
    {"name": "often", "token": TOKENS["often"], "requests_per_s": 0.001},
    {"name": "root", "token": TOKENS["root"], "operator": True},
]
MAX_BODY = 16_384


class Shared:
    """A service of several tenants, over TLS."""

    def __init__(self, folder: Path) -> None:
        (certificate, key), self.audit = certified(folder), folder / "audit.jsonl"
        (folder / "tenants.json").write_text(json.dumps(TENANTS))
        self.served = Served(
            folder / "data", "--tls-cert", str(certificate), "--tls-key", str(key), "--sync", "never", "--tenants",
            str(folder / "tenants.json"), "--audit", str(self.audit), "--max-body", str(MAX_BODY / 2**20),
        )  # fmt: skip
        self.context = ssl.create_default_context(cafile=str(certificate))

    def ask(self, who: str | None, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """(status, document) of one request, with a tenant's token or none."""
        connection = http.client.HTTPSConnection("localhost", self.served.port, timeout=60, context=self.context)
        token = {} if who is None else {"Authorization": f"Bearer {TOKENS.get(who, who)}"}
        try:
            sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, sent, {**JSON, **token})
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if "json" in answer.headers.get("Content-Type", "") else content
        finally:
            connection.close()

    def lines(self) -> list[Any]:
        """The audit log."""
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="the extra 'serve' is not installed")
    made = Shared(tmp_path_factory.mktemp("tenants"))
    for who in ("alpha", "beta"):
        assert made.ask(who, "PUT", f"/v1/clusters/{who}.main", {"types": TYPES})[0] == 201
    yield made
    assert made.served.stop() == 0
    made.served.no_traceback()


def test_a_tenant_sees_its_own_clusters_alone(shared: Shared) -> None:
    for who, other in (("alpha", "beta"), ("beta", "alpha")):
        status, found = shared.ask(who, "GET", "/v1/clusters")
        assert status == 200
        assert [cluster["id"] for cluster in found["clusters"]] == [f"{who}.main"]
        for method, path in (
            ("GET", ""), ("GET", "/plan"), ("GET", "/jobs"), ("GET", "/jobs/j"), ("GET", "/explain/j"),
            ("GET", "/plan/stream"), ("GET", "/plan/jobs/j"), ("POST", "/deltas"), ("POST", "/volcano/onSessionOpen"),
            ("DELETE", ""),
        ):  # fmt: skip
            status, told = shared.ask(who, method, f"/v1/clusters/{other}.main{path}", b"{}")
            assert status == 404, (method, path)
            # As of a cluster that is not there: nothing tells which of the two it is.
            nowhere = shared.ask(who, method, f"/v1/clusters/{other}.none{path}", b"{}")
            assert json.dumps(told).replace("main", "none") == json.dumps(nowhere[1])
        assert shared.ask(who, "PUT", f"/v1/clusters/{other}.new", {"types": TYPES})[0] == 403
        assert shared.ask(who, "PUT", f"/v1/clusters/{who}", {"types": TYPES})[0] == 403
        assert f"{other}.main" not in json.dumps(shared.ask(who, "GET", f"/v1/clusters/{who}.none")[1])
    assert {each["id"] for each in shared.ask("root", "GET", "/v1/clusters")[1]["clusters"]} >= {
        "alpha.main",
        "beta.main",
    }


def test_tokens_that_are_wrong_absent_or_expired(shared: Shared) -> None:
    for who in (None, "old", TOKENS["alpha"] + "x", TOKENS["alpha"][:-1], "", "x" * 10_000):
        for path in ("/v1/clusters", "/v1/clusters/alpha.main/plan", "/metrics", "/v1/clusters/old.main"):
            assert shared.ask(who, "GET", path)[0] == 401, who
    assert shared.ask("beta", "GET", "/v1/clusters")[0] == 200  # its token expires later
    for path in ("/healthz", "/readyz", "/", "/openapi.json"):
        assert shared.ask(None, "GET", path)[0] in (200, 503)


def test_metrics_are_for_operators(shared: Shared) -> None:
    assert shared.ask("alpha", "GET", "/metrics")[0] == 403
    assert shared.ask(None, "GET", "/metrics")[0] == 401
    status, text = shared.ask("root", "GET", "/metrics")
    assert status == 200
    assert b"copter_" in text


def test_a_tenant_has_no_more_clusters_than_it_may(shared: Shared) -> None:
    assert shared.ask("alpha", "PUT", "/v1/clusters/alpha.second", {"types": TYPES})[0] == 201
    status, told = shared.ask("alpha", "PUT", "/v1/clusters/alpha.third", {"types": TYPES})
    assert status == 429
    assert "as many as it may have" in told["detail"]
    assert shared.ask("alpha", "PUT", "/v1/clusters/alpha.second", {"types": TYPES})[0] == 200  # it is there
    assert shared.ask("alpha", "DELETE", "/v1/clusters/alpha.second")[0] == 204
    assert shared.ask("alpha", "PUT", "/v1/clusters/alpha.third", {"types": TYPES})[0] == 201


def test_a_tenant_that_asks_too_often_waits_and_others_do_not(shared: Shared) -> None:
    found = [shared.ask("often", "GET", "/v1/clusters")[0] for _ in range(14)]
    assert found == [200] * 10 + [429] * 4
    assert shared.ask("alpha", "GET", "/v1/clusters")[0] == 200


@pytest.mark.parametrize(("who", "cluster", "limit"), [("beta", "beta.main", MAX_BODY), ("small", "small.main", 4096)])
def test_bodies_at_the_limit_and_one_byte_over(shared: Shared, who: str, cluster: str, limit: int) -> None:
    assert shared.ask(who, "PUT", f"/v1/clusters/{cluster}", {"types": TYPES})[0] in (200, 201)
    for path in (f"/v1/clusters/{cluster}/deltas", f"/v1/clusters/{cluster}"):
        method = "POST" if path.endswith("deltas") else "PUT"
        body = json.dumps({} if method == "POST" else {"types": TYPES}).encode()
        at_limit = body[:-1] + b" " * (limit - len(body)) + b"}"
        assert len(at_limit) == limit
        assert shared.ask(who, method, path, at_limit)[0] == 200
        status, told = shared.ask(who, method, path, at_limit[:-1] + b" }")
        assert status == 413
        assert str(limit) in told["detail"]


def test_every_change_is_in_the_audit_log(shared: Shared) -> None:
    before = len(shared.lines())
    delta = {"id": "d-1", "add_jobs": [{"id": "j", "gpus": 1}]}
    sequence = shared.ask("beta", "POST", "/v1/clusters/beta.main/deltas", delta)[1]["sequence"]
    shared.ask("beta", "POST", "/v1/clusters/beta.main/deltas", {"remove_jobs": ["none"]})
    shared.ask("alpha", "DELETE", "/v1/clusters/beta.main")
    shared.ask(None, "DELETE", "/v1/clusters/beta.main")
    shared.ask("beta", "GET", "/v1/clusters/beta.main")  # changes nothing
    shared.ask("beta", "POST", "/v1/clusters/beta.main/volcano/predicate", {})  # nor does this
    found = shared.lines()[before:]
    assert [(line["who"], line["what"], line["result"]) for line in found] == [
        ("beta", "POST /v1/clusters/beta.main/deltas", 200),
        ("beta", "POST /v1/clusters/beta.main/deltas", 409),
        ("alpha", "DELETE /v1/clusters/beta.main", 404),
        ("nobody", "DELETE /v1/clusters/beta.main", 401),
    ]
    assert (found[0]["delta"], found[0]["sequence"]) == ("d-1", sequence)
    assert all(line["from"] == "127.0.0.1" and datetime.fromisoformat(line["when"]).tzinfo for line in found)
    assert stat.S_IMODE(shared.audit.stat().st_mode) == 0o600
    assert not any(token in shared.audit.read_text() for token in TOKENS.values())


def test_many_connections_at_once(shared: Shared) -> None:
    """Sixty at a time over TLS, of four kinds."""
    kinds = [("alpha", 200), ("beta", 404), (None, 401), ("root", 200)]

    def one(k: int) -> bool:
        who, status = kinds[k % 4]
        return shared.ask(who, "GET", "/v1/clusters/alpha.main/plan")[0] == status

    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        assert all(pool.map(one, range(240)))


@pytest.mark.long
def test_five_hundred_connections_held_open_at_once(shared: Shared) -> None:
    held = []
    for k in range(500):
        connection = http.client.HTTPSConnection("localhost", shared.served.port, timeout=120, context=shared.context)
        connection.request(
            "GET", "/v1/clusters/alpha.main/plan", headers={"Authorization": f"Bearer {TOKENS['alpha']}"}
        )
        held.append((k, connection))
    for _, connection in held:
        answer = connection.getresponse()
        assert answer.status == 200
        answer.read()
    for _, connection in held:  # the same connections again
        connection.request("GET", "/v1/clusters", headers={"Authorization": f"Bearer {TOKENS['beta']}"})
    for _, connection in held:
        assert connection.getresponse().status == 200
        connection.close()


# The file of tenants ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "cannot be read as JSON"), ("{}", "no list of tenants"), ("[]", "no list of tenants"), ("[1]", "object"),
        ('[{"name": "a"}]', "16 ASCII"), ('[{"name": "a.b", "token": "0123456789abcdef"}]', "letters"),
        ('[{"name": "a", "token": "0123456789abcdef", "admin": true}]', "'admin'"),
        ('[{"name": "a", "token": "0123456789abcdef", "max_clusters": 0}]', "max_clusters"),
        ('[{"name": "a", "token": "0123456789abcdef", "requests_per_s": NaN}]', "requests_per_s"),
        ('[{"name": "a", "token": "0123456789abcdef", "operator": 1}]', "operator"),
        ('[{"name": "a", "token": "0123456789abcdef", "expires": "soon"}]', "expires"),
        ('[{"name": "a", "token": "0123456789abcdef"}, {"name": "b", "token": "0123456789abcdef"}]', "same token"),
        ('[{"name": "a", "token": "0123456789abcdef"}, {"name": "a", "token": "0123456789abcdeg"}]', "same name"),
    ],
)  # fmt: skip
def test_a_wrong_file_of_tenants_is_refused(tmp_path: Path, document: str, words: str) -> None:
    tenants = pytest.importorskip("copter_serve.service.tenants")
    (tmp_path / "tenants").write_text(document)
    with pytest.raises(SettingsError, match=words):
        tenants.read_tenants(tmp_path / "tenants")


def test_a_token_ends_at_its_time_and_an_allowance_fills_again(tmp_path: Path) -> None:
    tenants = pytest.importorskip("copter_serve.service.tenants")
    (tmp_path / "tenants").write_text(
        '[{"name": "a", "token": "0123456789abcdef", "expires": "2027-01-31T12:00:00", "requests_per_s": 2}]'
    )
    found = tenants.read_tenants(tmp_path / "tenants")
    (tenant,), end = found, datetime.fromisoformat("2027-01-31T12:00:00+00:00").timestamp()
    assert tenants.find_tenant(found, b"Bearer 0123456789abcdef", end - 1.0) is tenant
    assert tenants.find_tenant(found, b"Bearer 0123456789abcdef", end) is None
    assert tenants.find_tenant(found, b"bearer 0123456789abcdef", end - 1.0) is None
    allowance = tenants.Allowance(tenant)
    assert [allowance.take(5.0) for _ in range(11)] == [True] * 10 + [False]
    assert [allowance.take(6.0) for _ in range(3)] == [True, True, False]
    assert not allowance.take(4.0)  # a clock that went back gives nothing
    assert tenants.Allowance(tenants.EVERYBODY).left == inf
