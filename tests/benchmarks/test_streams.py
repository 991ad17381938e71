"""Streams from outside scheduling: the same tape from the same seed, of programs that differ as they say."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import streams

from benchmarks import tapes as suite
from copter import Settings, verify
from copter.interop.live_program import difference, same_structure
from copter.session.tape_tools import described


@pytest.mark.parametrize("name", ["reopt", "bounds"])
def test_a_seed_makes_one_tape_whose_answers_are_right(tmp_path: Path, name: str) -> None:
    found = []
    for path, seed in ((tmp_path / "a", 3), (tmp_path / "b", 3), (tmp_path / "c", 4)):
        streams.recorded(streams.STREAMS[name], 3, seed, str(path), Settings(threads=1))
        found.append(described(path)["sha256"])
    assert found[0] == found[1] != found[2]
    assert [faults for _, _, faults in verify.verify(tmp_path / "a")] == [[], [], []]


def test_bounds_change_nothing_but_bounds() -> None:
    programs = list(streams.bounds(6, 1))
    for before, now in pairwise(programs):
        edits = difference(before, now)
        assert (edits.costs, edits.coefficients, edits.bounds, edits.rows) == (False, False, True, False)
    assert (programs[4].col_lower < programs[3].col_lower).any(), "the dive takes nothing back"


def test_reopt_changes_one_kind_of_number_at_a_time() -> None:
    programs = list(streams.reopt(5, 1))
    kinds = [difference(before, now) for before, now in pairwise(programs)]
    changed = [(each.costs, each.rows, each.bounds, each.coefficients) for each in kinds]
    assert changed == [tuple(np.arange(4) == at) for at in range(4)]


@pytest.mark.long
def test_energy_keeps_its_structure_from_hour_to_hour() -> None:
    pytest.importorskip("pypsa")
    first, second = streams.energy(2, 1)
    assert same_structure(first, second)
    edits = difference(first, second)
    assert edits.rows
    assert not edits.costs


def test_every_tape_of_the_list_has_a_command_and_a_sum_that_is_not_of_nothing() -> None:
    names = [tape.name for tape in suite.TAPES]
    assert len(set(names)) == len(names)
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert empty not in suite.HASHES.read_text()
    assert all(tape.shown.startswith(("copter simulate ", "python benchmarks/")) for tape in suite.TAPES)


def test_the_page_keeps_what_was_measured_of_other_tapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "measured.md"
    monkeypatch.setattr(suite, "PAGE", page)
    for name, stream in (("bounds", streams.bounds), ("reopt", streams.reopt)):
        streams.recorded(stream, 2, 1, str(tmp_path / f"{name}.tape"), Settings(threads=1))
        (tape,) = [each for each in suite.TAPES if each.name == name]
        assert suite.suite([tape], tmp_path, 2, 5.0, 5.0, f"the command of {name}", peers=()) == 0
    text = page.read_text()
    assert "## bounds" in text
    assert "## reopt" in text
    assert "the command of bounds" in text
    assert len(re.findall(r"^\| copter \| [\d.e+]+ \| 1 \|", text, flags=re.MULTILINE)) == 2  # the first is cold
