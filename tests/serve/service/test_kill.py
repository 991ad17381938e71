"""The service killed in the midst of work: nothing that it acknowledged is lost, nothing half done is there."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from served import Served

CLIENTS = 8


@pytest.mark.slow
@pytest.mark.parametrize("sync", ["always", "never"])
def test_kill_9_loses_nothing_acknowledged(tmp_path: Path, sync: str) -> None:
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="the extra 'serve' is not installed")
    served = Served(tmp_path / "data", "--sync", sync)
    served.make("c")
    acknowledged: dict[str, int] = {}
    sent: set[str] = set()
    for round_number in range(2):
        _load_and_kill(served, round_number, acknowledged, sent)
        served.start()
        told = served.ask("GET", "/v1/clusters/c")[1]
        jobs: list[str] = []
        while True:
            _, page, _ = served.ask("GET", f"/v1/clusters/c/jobs?after={jobs[-1] if jobs else ''}")
            jobs += page["jobs"]
            if not page["more"]:
                break
        pairs = {name[:-1] for name in jobs}
        assert acknowledged.keys() <= pairs <= sent
        assert len(jobs) == 2 * len(pairs)  # deltas of two jobs each are there whole
        assert told["sequence"] == len(pairs) >= max(acknowledged.values())
        assert len(acknowledged) > 20 * (round_number + 1)
    plan = served.plan(sequence=told["sequence"])
    held = plan["allocations"]
    assert served.stop() == 0
    served.start()  # from the snapshot of a graceful end
    _, after, _ = served.ask("GET", "/v1/clusters/c/plan")
    assert (after["allocations"], after["version"]) == (held, plan["version"])
    assert [path.name for path in sorted((tmp_path / "data" / "c").iterdir())][-1] == "snapshot"
    later = served.plan(version=plan["version"] + 1)
    assert later["allocations"] == held  # and the new scheduler goes on from it
    assert served.stop() == 0
    served.no_traceback()


def _load_and_kill(served: Served, round_number: int, acknowledged: dict[str, int], sent: set[str]) -> None:
    """Clients send deltas until the service is killed."""

    def client(k: int) -> None:
        for n in range(100_000):
            name = f"r{round_number}-k{k}-n{n}-"
            sent.add(name)
            jobs: list[Any] = [{"id": name + end, "throughputs": {"t4": {"1": 1.0, "2": 1.5}}} for end in "ab"]
            try:
                status, told, _ = served.ask("POST", "/v1/clusters/c/deltas", {"add_jobs": jobs})
            except OSError:
                return
            except Exception:  # an answer that broke off
                return
            assert status == 200
            acknowledged[name] = told["sequence"]

    before = len(acknowledged)
    clients = [threading.Thread(target=client, args=(k,)) for k in range(CLIENTS)]
    for each in clients:
        each.start()
    Served.until(lambda: len(acknowledged) > before + 40, served.alive)
    time.sleep(0.3)
    served.stop(signal.SIGKILL)
    for each in clients:
        each.join()
