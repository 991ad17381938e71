"""``copter compare --ray``: the figures of a run here, from tasks of a Ray head of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from copter_frontends import cli
from copter_frontends.cli.over_ray import over_ray

SMALL = ("--cluster", "sia-het", "--hours", "1", "--jobs", "10", "--seed", "3")
RAY = find_spec("ray") is not None


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two processors of a head that ends with the tests."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: make test-ray")
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
    yield
    ray.shutdown()


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, float]]:
    with pytest.raises(SystemExit) as stop:
        cli.main(["compare", "--policies", "srtf,fifo", *SMALL, "--json", *arguments])
    captured = capsys.readouterr()
    assert not stop.value.code, captured.err
    found: list[dict[str, float]] = json.loads(captured.out.splitlines()[-1])["policies"]
    return found


@pytest.mark.usefixtures("cluster")
def test_tasks_give_what_runs_here_give(capsys: pytest.CaptureFixture[str]) -> None:
    here, there = printed(capsys), printed(capsys, "--ray", "local")
    for one, other in zip(here, there, strict=True):
        for key in ("policy", "avg_jct_h", "jobs_completed", "utilisation", "rounds"):
            assert one[key] == other[key]


@pytest.mark.usefixtures("cluster")
def test_errors_of_tasks_are_those_of_runs_here() -> None:
    assert list(over_ray("local", json.loads, ["3"])) == [(0, 3)]
    with pytest.raises(json.JSONDecodeError):
        list(over_ray("local", json.loads, ["{"]))


@pytest.mark.skipif(RAY, reason="Ray is installed")
def test_without_ray_it_is_said_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["compare", "--policies", "srtf,fifo", *SMALL, "--ray", "local"])
    assert stop.value.code
    assert "pip install ray" in capsys.readouterr().err
