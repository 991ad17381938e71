"""A process that would fill the machine ends with an error of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from copter_frontends.replay import own_memory

FILL = """
import sys
from pathlib import Path
from copter_frontends.replay import own_memory
own_memory.MEMINFO = Path(sys.argv[1])
own_memory.limit_to_available()
try:
    bytearray(900 << 20)
except MemoryError:
    print("no more")
"""


def test_what_is_available_is_the_limit(tmp_path: Path) -> None:
    for available, told in ((400 << 10, "no more"), (1 << 30, "")):
        meminfo = tmp_path / "meminfo"
        meminfo.write_text(f"MemTotal: 1 kB\nMemAvailable: {available} kB\n")
        done = subprocess.run([sys.executable, "-c", FILL, str(meminfo)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == told, done.stderr


def test_where_nothing_is_told_there_is_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_memory, "MEMINFO", tmp_path / "none")
    assert own_memory.available_bytes() is None
    own_memory.limit_to_available()
