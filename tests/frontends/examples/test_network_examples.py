"""The examples of traffic engineering and shards run, and say what they should."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "frontends" / "examples"


def run(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def test_failures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run(
        "traffic_failures.py", capsys, monkeypatch, "--network", "random-15", "--scale", "250", "--failures", "2"
    )
    assert len(lines) == 4
    whole = float(lines[1].split(": ")[1].split(" of")[0].replace(",", ""))
    for line in lines[2:]:
        found = re.search(r": ([\d,]+) within \d+ ms \(gap .*\), optimum ([\d,]+), by routers .* ([\d,]+)$", line)
        assert found is not None
        first, best, routers = (float(each.replace(",", "")) for each in found.groups())
        assert max(first, routers) <= best <= whole
        assert min(first, routers) >= 0.8 * best


def test_a_day_of_shards(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run("shards_day.py", capsys, monkeypatch, "--shards", "96", "--servers", "12", "--rounds", "4")
    assert len(lines) == 4
    assert lines[2].endswith("server 0 is lost")
    assert all(re.search(r"\d+ moved \(at least \d+\), imbalance (10|\d)\.\d%", line) for line in lines)


def test_a_day_of_servers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run("servers_day.py", capsys, monkeypatch, "--servers", "20", "--rounds", "6")
    assert len(lines) == 6
    assert lines[3].endswith("6 servers are lost")
    found = [re.search(r"(\d+) run, +(\d+) wait, cores [\d.]+% used, gap ([\d.]+)%, [\d.]+ ms", line) for line in lines]
    assert all(found)
    assert int(found[3][2]) > 0  # type: ignore[index]
