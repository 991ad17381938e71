"""The ablation: changes are in force while they should be and no longer, and the page says what the results say."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path
from typing import Any

import ablation
import ablation_switches as switches
import ablation_worker
import numpy as np
import pytest

import copter
from copter.methods import path_following
from copter.methods.blocks import screen, start
from copter.methods.blocks import solve as block_solve

VARIANTS = switches.variants()


def test_a_name_is_another_wherever_it_was_imported_and_then_as_before() -> None:
    before = block_solve.is_worth_it
    with switches.put("copter.methods.blocks.screen", "is_worth_it", switches.never):
        assert screen.is_worth_it is block_solve.is_worth_it is switches.never
    assert screen.is_worth_it is block_solve.is_worth_it is before


def test_a_constant_is_changed_in_the_modules_that_import_it() -> None:
    with switches.put("copter.methods.path_following", "SMALL", 0.5):
        assert path_following.SMALL == start.SMALL == 0.5
    assert path_following.SMALL == start.SMALL == 1e-30


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm reads the symbols of a compiled module")
def test_a_compiled_constant_is_changed_in_place() -> None:
    """No pivot is large enough for the simplex method: it gives up, and afterwards it does not."""
    lp = copter.LinearProgram([1.0, 2.0], [[1.0, 1.0]], row_lower=1.0)
    usual = copter.solve(lp)
    with switches.poked("copter.methods.simplex.tableau", "LEAST_ENTRY", "double", 1e9):
        without = copter.solve(lp)
    assert (usual.method, without.method) == ("simplex", "presolve")
    assert copter.solve(lp).method == "simplex"


def test_every_constant_has_both_changes_and_every_key_is_one_things() -> None:
    keys = [each.key for each in VARIANTS]
    assert len(set(keys)) == len(keys)
    names = {each.name for each in VARIANTS if each.kind == "constant"}
    assert {
        "methods/choose.py COLD_COLUMNS",
        "methods/blocks/block_basis.pyx RATE",
        "methods/path_following.py GAIN",
    } <= names
    assert not any(each.name.endswith((" SEED", " HALF_ULP")) for each in VARIANTS)


def test_half_of_a_whole_number_is_whole() -> None:
    assert switches.scaled(5, 0.5) == 2
    assert switches.scaled((4, 0.01), 2.0) == (8, 0.02)


@pytest.mark.parametrize("variant", [each for each in VARIANTS if each.change == "off"], ids=lambda each: each.name)
def test_what_is_switched_off_is_switched_on_again(variant: switches.Variant) -> None:
    lp = copter.LinearProgram(-np.arange(1.0, 9.0), np.ones((1, 8)), row_upper=3.0, col_lower=0.0, col_upper=1.0)
    before = copter.solve(lp)
    with variant.on():
        copter.solve(lp, copter.Settings.saved(variant.settings))
    after = copter.solve(lp)
    assert (after.method, after.objective, after.iterations) == (before.method, before.objective, before.iterations)


def result(key: str, workload: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "workload": workload, "wrong": 0, "why": "", "time": 1.0, "work": 1.0, "same": True} | more


def test_the_page_names_the_worst_workload_and_what_fails() -> None:
    key, other = "accelerator: trust radius: off", "accelerator: steps in one call, over open groups: off"
    text = ablation.page(
        [
            {"key": "", "workload": "one", "seconds": [1.0], "work": 5, "answers": 7},
            result(key, "one", time=1.1, same=False),
            result(key, "two", time=1.4, work=1.3, same=False),
            result(other, "one", wrong=2),
        ],
        "today",
    )
    lines = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| `")}
    assert lines["`trust radius`"] == "| `trust radius` | off | 1.40 | 1.30 | two |  | stays: slower |"
    assert lines["`steps in one call, over open groups`"].endswith("| one: 2 | stays: answers fail |")
    assert "never reached" in lines["`walk to a vertex`"]
    assert "one (7 solves)" in text


def test_what_was_not_measured_again_keeps_its_row_and_what_is_gone_loses_it() -> None:
    old = "| `trust radius` | off | 1.40 | 1.30 | two |  | stays: slower |"
    other = "| `steps in one call, over open groups` | off | 1.10 | 1.00 | two |  |  |"
    before = f"Workloads: two (3 solves).\n{old}\n{other}\n| `a thing of old` | off | 1 | 1 | two |  |  |\n"
    text = ablation.page(
        [result("accelerator: steps in one call, over open groups: off", "one", wrong=2)], "today", before
    )
    assert old in text
    assert (
        "| `steps in one call, over open groups` | off | 1 | 1 | the same everywhere | one: 2 | stays: answers fail |"
        in text
    )
    assert "a thing of old" not in text
    assert "two (3 solves)" in text


def test_every_thing_that_is_switched_has_its_row_on_the_page_and_no_other() -> None:
    rows = ablation.rows_of((Path(__file__).parents[2] / "docs" / "results" / "ablation.md").read_text())
    assert set(rows) == {(each.name, each.change) for each in VARIANTS}


def test_a_variant_is_ended_by_the_time_of_the_processor_alone() -> None:
    """A busy machine gave the verdict of endless solves to what changes nothing."""

    def work_for_ever() -> None:
        while True:
            pass

    ablation_worker.limited(0.05)
    try:
        time.sleep(1.5)
        with pytest.raises(ablation_worker.TooLong):
            work_for_ever()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
