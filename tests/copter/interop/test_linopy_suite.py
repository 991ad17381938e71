"""linopy's own tests, from its source package, with copter by its name and in the place of HiGHS.

The wheel has no tests: `make linopy-suite` fetches the source package of the installed version and sets LINOPY_TESTS.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("linopy", reason="linopy is not installed: pip install 'copter-lp[linopy]'")

ROOT = Path(__file__).parents[3]
TESTS = os.environ.get("LINOPY_TESTS", "")


@pytest.mark.skipif(not TESTS, reason="LINOPY_TESTS does not name linopy's folder of tests: make linopy-suite")
def test_linopys_own_tests() -> None:
    paths = os.pathsep.join([str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "-p", "linopy_in_place", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, TESTS],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert passed is not None
    assert int(passed[1]) >= 200
