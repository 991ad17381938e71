"""HiGHS's banner, which C code prints at its first object, is on no example's output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "frontends" / "examples"
SMALL = {
    "cells_beside_pop.py": ["--only", "shards", "--shards", "48", "--servers", "8", "--most-trips", "3"],
    "hadar_at_scale.py": ["--gpus", "105", "--rounds", "2", "--threads", "1", "--highs"],
    "shards_day.py": ["--shards", "48", "--servers", "8", "--rounds", "3"],
    "traffic_failures.py": ["--network", "random-15", "--scale", "250", "--failures", "1"],
}


LONG = ("hadar_at_scale.py", "traffic_failures.py")
NAMES = [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in SMALL]


@pytest.mark.parametrize("name", NAMES)
def test_examples_print_their_own_lines_only(name: str, tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    paths = [str(ROOT), str(ROOT / "frontends"), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, str(EXAMPLES / name), *SMALL[name]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not re.search(r"Running HiGHS|Copyright .* HiGHS|MIT licen[cs]e terms", done.stdout + done.stderr)


def test_all_objects_of_highs_are_made_where_its_banner_is_held_back() -> None:
    files = [path for folder in ("copter", "frontends") for path in sorted((ROOT / folder).rglob("*.py"))]
    making = [path for path in files if re.search(r"\bHighs\(\)", path.read_text(encoding="utf-8"))]
    made = [path.relative_to(ROOT).as_posix() for path in making]
    assert made == ["copter/highs/lp.py"]
