"""Programs on which others failed: those that are written down are answered truly; the page is in step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary import corpora
from tests.adversary.exact_judge import FALSE, OPEN, TRUE

CASES = {case.name: case for case in corpora.written_down()}


@pytest.mark.parametrize("name", CASES)
def test_no_answer_is_false(name: str) -> None:
    row = corpora.decided(CASES[name])
    assert row.judgement.verdict == TRUE, row


def test_a_file_that_is_no_program_is_refused_and_counted_as_open(tmp_path: Path) -> None:
    (tmp_path / "issue-1234.mps").write_text("nothing\n")
    (tmp_path / "other.mps").write_text("nothing\n")
    rows = [corpora.decided(case) for case in corpora.from_files(tmp_path)]
    assert [(row.case.name, row.judgement.verdict) for row in rows] == [("issue-1234.mps", OPEN)]
    assert "refused" in rows[0].says


def test_the_page_has_a_row_for_each_case_and_none_false() -> None:
    text = corpora.PAGE.read_text()
    for name in CASES:
        assert f"| {name} |" in text
    assert f"0 {FALSE}" in text
