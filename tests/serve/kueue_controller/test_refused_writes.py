"""The Kueue controller's writes, each by itself: one that is refused, one of the core API, and none without leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kube_cluster import FakeApi, cluster_queue, local_queue, served, workload

pytest.importorskip("kubernetes", reason="the extra `kubernetes`")

from copter_frontends import cli
from copter_serve.kueue_controller.cluster_api import ClusterApi
from copter_serve.kueue_controller.controller import Controller
from copter_serve.kueue_controller.decisions import GATE
from copter_serve.views.documents import BlindError
from copter_serve.views.kueue import GATES


@pytest.fixture
def lab() -> Iterator[tuple[FakeApi, str]]:
    """Four gated workloads that all fit, and an API server."""
    gated = [workload(f"r/{name}", 1, annotations={GATES: GATE}) for name in "abcd"]
    api = FakeApi([cluster_queue("red", 8), local_queue("r/main", "red"), *gated])
    with served(api) as address:
        yield api, address


def gates(api: FakeApi) -> dict[str, Any]:
    return {
        name: (api.find("Workload", f"r/{name}")["metadata"].get("annotations") or {}).get(GATES) for name in "abcd"
    }


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_refused_write_ends_no_other(
    lab: tuple[FakeApi, str], capsys: pytest.CaptureFixture[str], status: int
) -> None:
    api, address = lab
    api.refused["b"] = status
    with pytest.raises(SystemExit) as ended:
        cli.main(["kueue-controller", "--address", address, "--steps", "1", "--write", "gates"])
    assert ended.value.code == 1  # not everything went as planned
    out, error = capsys.readouterr()
    assert gates(api) == {"a": None, "b": GATE, "c": None, "d": None}
    assert out.count("wrote: gate of") == 3
    assert f"was refused: gate of r/b: none (the API server answers {status}" in out
    assert "admission webhook denied the request" in out
    assert "wrote nothing" not in error


def test_what_was_written_before_the_server_went_away_is_said(
    lab: tuple[FakeApi, str], capsys: pytest.CaptureFixture[str]
) -> None:
    api, address = lab
    api.refused["c"] = 503
    controller = Controller(ClusterApi(address), ["gates"])
    with pytest.raises(BlindError, match="503"):
        controller.step()
    assert [(each.name, each.done) for each in controller.written] == [("r/a", True), ("r/b", True)]
    for name in "ab":
        api.find("Workload", f"r/{name}")["metadata"]["annotations"] = {GATES: GATE}
    with pytest.raises(SystemExit):
        cli.main(["kueue-controller", "--address", address, "--steps", "1", "--write", "gates"])
    out, error = capsys.readouterr()
    assert out.count("wrote: gate of") == 2
    assert "stopped after 2 writes" in error
    assert "wrote nothing" not in error


def test_the_gate_of_a_pod_is_opened_at_the_core_api() -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Pod", "spec": {},
        "metadata": {"name": "p", "namespace": "r", "resourceVersion": "1", "annotations": {GATES: f"x/y,{GATE}"}},
    }  # fmt: skip
    owned = workload("r/pod-p", 1, annotations={GATES: f"x/y,{GATE}"})
    owned["metadata"]["annotations"] = {GATES: GATE}
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}]
    api = FakeApi([cluster_queue("red", 8), local_queue("r/main", "red"), pod, owned])
    with served(api) as address:
        controller = Controller(ClusterApi(address), ["gates"])
        assert [(each.name, each.value, each.done) for each in controller.step()] == [("r/p", "x/y", True)]
        assert api.find("Pod", "r/p")["metadata"]["annotations"] == {GATES: "x/y"}
        assert controller.step() == []  # Kueue has not copied it yet, and it is not written again


def test_without_write_nothing_is_written(lab: tuple[FakeApi, str], capsys: pytest.CaptureFixture[str]) -> None:
    api, address = lab
    with pytest.raises(SystemExit) as ended:
        cli.main(["kueue-controller", "--address", address, "--steps", "1"])
    assert ended.value.code == 0
    out, error = capsys.readouterr()
    assert api.patches == []
    assert "would write: gate of r/a" in out
    assert "--write all" in error
    with pytest.raises(SystemExit):
        cli.main(["kueue-controller", "--address", address, "--steps", "1", "--write", "all"])
    assert gates(api) == dict.fromkeys("abcd")
