"""The peers' own code with copter in their policy's place, from checkouts in the folder COPTER_PEERS.

``git clone`` of petuum/adaptdl, siasosp23/artifacts, stanford-futuredata/gavel and msr-fiddle/blox there, as adaptdl,
sia, gavel and blox. Nothing of them is copied here; without the folder these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
LIMIT_S = 1500

pytestmark = pytest.mark.long


def run(peer: str) -> dict[str, Any]:
    """What a run of the peer's code told; skips where the code, or what it needs, is not there."""
    folder = Path(os.environ.get("COPTER_PEERS", "")) / peer
    if not os.environ.get("COPTER_PEERS") or not folder.is_dir():
        pytest.skip(f"set COPTER_PEERS to a folder with a checkout of the peer as {peer!r} in it")
    path = os.pathsep.join(
        [str(ROOT), str(ROOT / "frontends"), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    done = subprocess.run(
        [sys.executable, str(HERE / "peer_runs.py"), peer, str(folder)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    if "missing" in told:
        pytest.skip(f"{peer}'s code needs the module {told['missing']}")
    print(peer, json.dumps(told))
    return told


def test_adaptdls_tests_pass_with_copter() -> None:
    assert run("adaptdl") == {"passed": 12}


def test_gavels_policies_and_copters_have_the_same_optimum() -> None:
    told = run("gavel")
    assert told.pop("passed") == 2
    assert len(told) == 4
    for objective, rows in told.items():
        for row in rows:  # Gavel finds the makespan by bisection to 5%
            assert row["ours"] >= row["theirs"] - 2e-4 * abs(row["theirs"]), (objective, row)
            assert row["ours"] <= row["theirs"] + (0.06 if objective == "makespan" else 2e-4) * abs(row["theirs"])


def test_sias_simulator_ends_its_jobs_with_copter() -> None:
    told = run("sia")
    assert told["ours"]["mean_jct_s"] <= 1.5 * told["theirs"]["mean_jct_s"]


def test_blox_own_placement_runs_copters_order() -> None:
    told = run("blox")
    assert told["copter"]["gpu_rounds"] == told["Fifo"]["gpu_rounds"]  # the same work
    assert told["copter"]["mean_jct_s"] <= told["Fifo"]["mean_jct_s"]
