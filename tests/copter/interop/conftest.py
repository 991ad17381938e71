"""Fixtures of the doors' tests."""

from __future__ import annotations

import pytest

from copter.interop import live_program


@pytest.fixture
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Live programs see a clock that stands still: no way is slower than another, so that none is left alone."""
    monkeypatch.setattr(live_program, "LEAST_S", 60.0)
    monkeypatch.setattr(live_program.LiveProgram.__init__, "__defaults__", (lambda: 0.0,))
