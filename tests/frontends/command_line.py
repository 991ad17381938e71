"""The command in this process, for tests."""

from __future__ import annotations

import json

import pytest

from copter_frontends import cli


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object], str]:
    """Exit code, the JSON object (empty where the run failed) and stderr of ``copter ARGUMENTS --json``."""
    with pytest.raises(SystemExit) as stop:
        cli.main([*arguments, "--json"])
    captured = capsys.readouterr()
    code = int(stop.value.code or 0)
    return code, json.loads(captured.out.splitlines()[-1]) if code == 0 else {}, captured.err
