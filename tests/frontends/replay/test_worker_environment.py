"""What the process of a replayed solver finds in its environment."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from copter_frontends.replay import runs


class Started(Exception):
    """Raised in place of starting a process."""


@pytest.mark.parametrize("processor", [False, True])
@pytest.mark.parametrize("said", [None, "2"])
def test_blas_has_one_thread_unless_the_caller_says_otherwise(
    processor: bool, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}

    def start(*_: object, env: dict[str, str], **__: Any) -> subprocess.Popen[str]:
        seen.update(env)
        raise Started

    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", said)
    monkeypatch.setattr(runs.subprocess, "Popen", start)
    for run in (lambda asked: runs.run_peer("highs_columns_warm", asked), runs.run_copter):
        seen.clear()
        with pytest.raises(Started):
            run(runs.Asked("rounds.tape", threads=1, processor=processor))
        assert seen["OPENBLAS_NUM_THREADS"] == (said or "1")
        assert (seen.get(runs.CLOCK) == "processor") is processor
