"""README: its example prints what it says, its commands exist, its table is the generated page's, and it is short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from copter_frontends.policies.registry.names import POLICY_NAMES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_example_prints_what_stands_below_it() -> None:
    code, printed = re.findall(r"^```(?:python|text)\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (printed, "")
    assert len(code.splitlines()) <= 15


def test_it_is_read_in_three_minutes() -> None:
    assert len(README.split()) < 560  # the example and the marks of tables counted


def test_every_scheduler_named_is_one_that_runs() -> None:
    named = re.findall(r"copter simulate (\w+) ", README)
    assert named == ["sia", "hadar", "hops", "chronus", "hare"]
    assert set(named) <= set(POLICY_NAMES)


def test_the_make_targets_exist() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert set(re.findall(r"^    make (\w+)", README, flags=re.MULTILINE)) <= set(targets)


@pytest.mark.skipif(not (ROOT / "docs" / "measured.md").exists(), reason="docs/measured.md: `make suite` writes it")
def test_the_table_is_that_of_the_generated_page() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from readme_table import inserted  # a script of the benchmarks

    assert inserted(README, (ROOT / "docs" / "measured.md").read_text()) == README
