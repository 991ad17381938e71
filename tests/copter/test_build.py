"""Building from source: what is too old is named in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "setup.py"


def test_an_old_setuptools_is_named() -> None:
    """One from before 77 knows no licence expressions, and would answer with a page about its schema."""
    if not SETUP.exists():
        pytest.skip("this is not a checkout")
    for module in ("Cython", "setuptools"):
        pytest.importorskip(module)
    code = f"import runpy, setuptools; setuptools.__version__ = '65.5.0'; runpy.run_path({str(SETUP)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=SETUP.parent)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "setuptools 77 or newer" in done.stderr
    assert "pip install --upgrade" in done.stderr


def test_what_is_built_already_is_not_built_again_by_the_install() -> None:
    """`make` builds the modules with a line for each, and then installs with COPTER_BUILT=1, which compiles nothing."""
    if not SETUP.exists():
        pytest.skip("this is not a checkout")
    for module in ("Cython", "setuptools"):
        pytest.importorskip(module)
    command = [sys.executable, str(SETUP), "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=SETUP.parent, env={**os.environ, "COPTER_BUILT": "1"}, check=True
    )
    assert done.stdout == ""
