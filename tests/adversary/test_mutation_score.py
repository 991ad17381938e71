"""The mutants themselves, and that a mutant takes its module's place without a change to the tree."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adversary.equivalent_mutants import EQUIVALENT
from tests.adversary.mutants import mutants
from tests.adversary.mutation_score import ROOMS, ROOT, too_few

SOURCE = '''
"""Docstring with 1 and not."""
LIMIT: int = 3

def larger(a: int, b: int = 2) -> int:
    """Not this."""
    if a < b and not a:
        raise ValueError("at least " + str(b + 1))
    print(a)
    return max(a, b) - 1

@dataclass(frozen=True)
class Pairs:
    """Neither the decorator nor what cannot occur."""
    def of(self, a):
        return zip(a, a, strict=True)
'''


def test_every_kind_of_change_is_made_once_and_messages_are_left_alone() -> None:
    changes = sorted(each.change for each in mutants(SOURCE))
    assert changes == sorted(
        [
            "3 -> 4",
            "2 -> 3",
            "if a < b and (not a): -> if not (a < b and (not a)):",
            "a < b and (not a) -> a < b or not a",
            "a < b -> a <= b",
            "not a -> a",
            "print(a) -> pass",
            "max(a, b) - 1 -> max(a, b) + 1",
            "max -> min",
            "1 -> 2",
        ]
    )
    for each in mutants(SOURCE):
        assert ast.dump(ast.parse(each.source)) != ast.dump(ast.parse(SOURCE))


@pytest.mark.skipif(not (ROOT / "copter").is_dir(), reason="mutates the checkout's own files")
def test_rooms_and_their_tests_are_there() -> None:
    for room in ROOMS:
        assert room.path.is_file(), room.module
        assert all((ROOT / test).exists() for test in room.tests), room.module
    sources = {room.module: room.path.read_text() for room in ROOMS}
    assert [text for module, text, _ in EQUIVALENT if text not in sources[module]] == []


def test_a_mutant_takes_the_place_of_its_module(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "till.py").write_text("def total(a, b):\n    return a + b\n")
    (tmp_path / "test_till.py").write_text(
        "from shop.till import total\n\ndef test_it():\n    assert total(1, 2) == 3\n"
    )
    (other,) = [each for each in mutants((package / "till.py").read_text()) if "-" in each.change.split("->")[1]]
    changed = tmp_path / "mutant.py"
    changed.write_text(other.source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.adversary.mutant_loader", "-p", "no:cacheprovider"]
    path = f"{ROOT}:{tmp_path}"
    for environment, passes in (({}, True), ({"COPTER_MUTANT": f"shop.till:{changed}"}, False)):
        done = subprocess.run(
            [*command, "test_till.py"], cwd=tmp_path, env={"PYTHONPATH": path, "PATH": "", **environment},
            capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode == 0) == passes, done.stdout.decode()


def test_a_module_is_below_the_goal_where_so_few_kills_are_hardly_chance() -> None:
    """At 85%: of four mutants two are killed in 11% of all draws or fewer are, one or none in 1.2%."""
    assert [killed for killed in range(5) if too_few(killed, 4)] == [0, 1]
    assert not too_few(0, 0)
    assert not too_few(17, 20), "the goal itself"
    assert too_few(13, 20)
