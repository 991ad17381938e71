"""A factorisation that is given up ends at once: the exit code is 0, no core goes on working, no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from copter.methods.interior import sparse_lu
from copter.methods.interior.sparse_lu import IDLE, SparseLU
from copter.runtime.watch import Stopped

LARGE = """
import time
import numpy as np, scipy.sparse as sp
from copter.methods.interior.sparse_lu import ALIVE, SparseLU
from copter.runtime.watch import Stopped
n, rng = 20_000, np.random.default_rng(0)
entries = (rng.normal(size=80_000), (rng.integers(n, size=80_000), rng.integers(n, size=80_000)))
matrix = sp.csc_matrix(sp.coo_array(entries, shape=(n, n)) + 3.0 * sp.eye_array(n))  # its factor is nearly full
"""
GIVEN_UP = """
began = time.perf_counter()
try:
    SparseLU(matrix, lambda: time.perf_counter() - began > 3.0)
except Stopped:
    print("given up", len([each for each in ALIVE if each.alive]))
"""
FOREVER = """
print("begun", flush=True)
SparseLU(matrix, lambda: [print(each._process.pid, flush=True) for each in ALIVE] == 0)
"""


def test_a_factorisation_given_up_leaves_nothing_behind() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE + GIVEN_UP], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "given up 0\n", "")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")
def test_it_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", LARGE + FOREVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        child = int(process.stdout.readline())
        time.sleep(3.0)  # it is in the factorisation by now
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 30
    while is_working(child) and time.monotonic() < until:
        time.sleep(0.1)
    assert not is_working(child)


def is_working(pid: int) -> bool:
    """Whether a process is there, and not only its entry, which nobody may have collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_factors_of_the_process_are_those_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_lu, "SMALL", 0)
    rng = np.random.default_rng(1)
    first, second = (sp.csc_matrix(np.eye(30) * 4 + rng.normal(size=(30, 30))) for _ in range(2))
    one, two = SparseLU(first, lambda: False), SparseLU(second, lambda: False)
    right = rng.normal(size=30)
    assert np.array_equal(one.solve(right), SparseLU(first).solve(right))
    assert np.array_equal(two.solve(right), SparseLU(second).solve(right))
    with pytest.raises(RuntimeError, match="singular"):
        SparseLU(sp.csc_matrix((3, 3)), lambda: False)
    del one, two
    assert len(IDLE) == 1
    kept = IDLE[0]
    third = SparseLU(second, lambda: False)
    assert third._process is kept
    third._must_stop = lambda: True
    os.kill(kept._process.pid, signal.SIGSTOP)  # it does not answer
    with pytest.raises(Stopped):
        third.solve(right)
    with pytest.raises(RuntimeError, match="ended"):
        third.solve(right)
    assert not kept.alive
