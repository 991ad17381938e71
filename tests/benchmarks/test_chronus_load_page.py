"""The page of Chronus under load: a row is what the command ran, at the load that it names."""

from __future__ import annotations

import sys
from pathlib import Path

import chronus_load
import pytest

COLUMNS = next(line for line in chronus_load.HEAD.splitlines() if line.startswith("| GPUs"))


def named(row: str) -> dict[str, str]:
    """Return the cells of a row by the names of the columns."""
    names, cells = ([each.strip() for each in line.strip("|").split("|")] for line in (COLUMNS, row))
    return dict(zip(names, cells, strict=True))


@pytest.mark.parametrize("selective", [True, False])
def test_a_row_is_a_run_at_the_load_that_it_names(selective: bool) -> None:
    case = chronus_load.Case(16, (1.0, 2.0), 1.2, selective=selective)
    row = f"| {' | '.join(chronus_load.cells(case))} |"
    assert chronus_load.key_of(row) == case.key
    cells = named(row)
    assert abs(float(cells["as drawn"]) / 1.2 - 1.0) <= 0.15
    assert cells["hours"] == "1-2"
    assert 1 <= int(cells["plans"]) <= 3  # a lease has 20 minutes
    assert float(cells["jobs"]) > 0.0


def test_rows_without_a_case_are_dropped_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "chronus_load.md"
    kept = "| 112 | 24 | 1.6 | 1.60 | as it was | 3 | yes | 70 |"
    old = "| 112 | 24 | 160% | 3.45 | yes | 71 | 0 | 0.00 |"
    page.write_text("\n".join((chronus_load.HEAD, old, kept, "\n## Whole", "too", "")))
    monkeypatch.setattr(
        chronus_load, "CASES", [chronus_load.Case(112, (0, 24), 0.8), chronus_load.Case(112, (0, 24), 1.6)]
    )
    measured = iter(("112", "24", "0.8", "0.80", "new", "3", "yes"))
    monkeypatch.setattr(
        chronus_load, "cells", lambda case: measured if case.load == 0.8 else iter(kept[2:-2].split(" | "))
    )
    monkeypatch.setattr(sys, "argv", ["chronus_load.py", "--only", "112", "--page", str(page)])
    chronus_load.main()
    monkeypatch.setattr(sys, "argv", ["chronus_load.py", "--load", "1.2", "--page", str(page)])
    chronus_load.main()  # there is no such case
    text = page.read_text()
    assert text.startswith(f"{chronus_load.HEAD}\n| 112 | 24 | 0.8 | 0.80 | new | 3 | yes |\n{kept}\n\n## Whole\ntoo")
    assert old not in text


def test_the_page_s_rows_have_the_load_that_they_name() -> None:
    rows = [
        line
        for line in chronus_load.PAGE.read_text().split("\n## ")[0].splitlines()
        if line[:2] == "| " and line[2].isdigit()
    ]
    assert rows
    for cells in map(named, rows):
        assert abs(float(cells["as drawn"]) / float(cells["load"]) - 1.0) <= 0.15, cells
