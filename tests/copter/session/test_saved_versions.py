"""Files that earlier versions wrote are still read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import copter

SAVED = Path(__file__).parent / "saved"  # files that copter 0.1.0 wrote


def test_files_of_version_0_1_0_are_read(tmp_path: Path) -> None:
    session = copter.Session.load(SAVED / "session-0.1.0.copter")
    assert session.settings.tolerance == 1e-7
    assert session.model.resources == ("a100", ("t4", "rack 1"))
    assert session.model.requests == tuple(f"job-{j}" for j in range(9) if j != 4)
    assert session.model.fixed("job-3") == 1
    solution = session.solve()
    assert solution.pricing_passes == 1
    assert solution.objective == pytest.approx(36.58366092161337, abs=1e-9)
    assert session.solve_integer().objective == pytest.approx(36.46901348814516, abs=1e-9)
    journal = tmp_path / "journal"
    shutil.copy(SAVED / "journal-0.1.0", journal)
    session = copter.Session.load(journal)
    assert session.model.count("r") == 6.0
    assert session.solve().objective == pytest.approx(-5.0, abs=1e-6)
