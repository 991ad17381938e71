"""Tables are made by their commands, and again only when what decides them has changed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "tables"))
import make_tables
import table_sources
from make_tables import AS_IT_IS, OTHER_ENGINE, TABLES, TO_MAKE, Table, fingerprint, header_of, sources, state_of
from table_sources import PLACES, ROOT, digest_of


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    (tmp_path / "figure.py").write_text("from helper import SAID\nprint(SAID)\n")
    (tmp_path / "helper.py").write_text("SAID = 'a table of 42'\n")
    monkeypatch.setattr(make_tables, "HERE", tmp_path)
    monkeypatch.setattr(make_tables, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(make_tables.sources, "__defaults__", ((tmp_path,),))
    monkeypatch.setattr(make_tables.fingerprint, "__defaults__", ((tmp_path,),))
    table = Table("small", "figure.py", ("hadar",), "7")
    monkeypatch.setattr(make_tables, "TABLES", [table])
    return table


@pytest.fixture
def tree(tmp_path: Path) -> tuple[Path, ...]:
    """A script, a helper beside it, and frontends: a registry that names two policies, and what one of these needs."""
    files = {
        "tables/figure.py": "from helper import SAID\nimport numpy\nfrom copter import Model\n",
        "tables/helper.py": "def late():\n    from copter_frontends.registry import policies\n",
        "frontends/copter_frontends/__init__.py": "",
        "frontends/copter_frontends/semantics.py": "",
        "frontends/copter_frontends/registry/__init__.py": "",
        "frontends/copter_frontends/registry/policies.py": (
            "from copter_frontends.hadar import A\nfrom copter_frontends.hops import B\n"
        ),
        "frontends/copter_frontends/hadar/__init__.py": "from .policy import A\n",
        "frontends/copter_frontends/hadar/policy.py": "from ..cli.output import say\nfrom .. import semantics\n",
        "frontends/copter_frontends/hops/__init__.py": "B = 1\n",
        "frontends/copter_frontends/cli/__init__.py": "from copter_frontends.hops import B\n",
        "frontends/copter_frontends/cli/output.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tables", tmp_path / "frontends"


@pytest.mark.skipif(not (ROOT / "frontends").is_dir(), reason="tables are made in a checkout")
def test_every_table_has_its_script_and_frontends() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES)
    for table in TABLES:
        assert table.script.is_file(), table.name
        assert all((ROOT / "frontends" / "copter_frontends" / name).is_dir() for name in table.frontends)
        found = sources(table)
        assert any(path.parent.name in table.frontends for path in found), table.name
        read = "".join(path.read_text() for path in found if path.parent == table.script.parent)
        for option in (word for word in table.command.split() if word.startswith("--")):
            assert f'"{option}"' in read, f"{table.name}: {option}"


def test_imports_are_followed_but_for_policies_that_a_table_does_not_run(tree: tuple[Path, ...]) -> None:
    def names(*frontends: str) -> list[str]:
        found = table_sources.sources(tree[0] / "figure.py", frontends, tree)
        return [str(path.relative_to(tree[0].parent)).replace("frontends/copter_frontends/", "") for path in found]

    shared = ["__init__.py", "registry/__init__.py", "registry/policies.py"]
    scripts = ["tables/figure.py", "tables/helper.py"]
    hadar = ["cli/__init__.py", "cli/output.py", "hadar/__init__.py", "hadar/policy.py", "semantics.py"]
    assert sorted(names()) == sorted([*shared, *scripts])
    assert sorted(names("hadar")) == sorted([*shared, *scripts, *hadar]), "not hops, which the command line names too"
    assert sorted(names("hops")) == sorted([*shared, *scripts, "hops/__init__.py"])


@pytest.mark.skipif(not (ROOT / "frontends").is_dir(), reason="tables are made in a checkout")
def test_the_thesis_table_depends_on_what_it_runs(tmp_path: Path) -> None:
    """A copy of the checkout's scripts and frontends, in which one file after the other is changed."""
    for folder in ("benchmarks", "frontends"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "results"))
    places = tuple(tmp_path / place.relative_to(ROOT) for place in PLACES)
    table = next(table for table in TABLES if table.name.startswith("table_3_3"))
    folder = tmp_path / "frontends" / "copter_frontends"

    def changed(name: str) -> str:
        with (folder / name).open("a") as file:
            file.write("CHANGED = True\n")
        found = table_sources.sources(places[0] / table.script.name, table.frontends, places)
        return digest_of(found, table.command)

    before = changed("hops/policy.py")
    assert before == fingerprint(table), "a policy that the table does not run, and where the checkout is"
    for name in ("semantics.py", "clusters.py", "registry/policies.py", "goodput/model.py"):
        digest = changed(name)
        assert digest != before, name
        before = digest


def test_a_fingerprint_follows_the_command_and_each_file(small: Table, tmp_path: Path) -> None:
    assert [path.name for path in sources(small)] == ["figure.py", "helper.py"]
    seen = {fingerprint(small)}
    for name, text in (("helper.py", "SAID = 'b'\n"), ("figure.py", "print(1)\n")):
        (tmp_path / name).write_text(text)
        seen.add(fingerprint(small))
    seen.add(fingerprint(Table("small", "figure.py --more", ("hadar",))))
    assert len(seen) == 4


def test_what_means_the_same_changes_no_fingerprint(small: Table, tmp_path: Path) -> None:
    before = fingerprint(small)
    helper = tmp_path / "helper.py"
    helper.write_text(f'"""A page of words."""\n\nimport os, sys  # both\n\n__all__ = ["SAID"]\n{helper.read_text()}')
    assert fingerprint(small) == before
    helper.write_text(helper.read_text().replace("'", '"'))
    assert fingerprint(small) == before
    helper.write_text(helper.read_text() + "MORE = 2\n")
    assert fingerprint(small) != before


def test_another_engine_is_told_and_makes_tables_anew_where_it_is_asked_for(
    small: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_tables.main([]) == 0
    header = header_of(tmp_path / "results" / "small.txt")
    assert state_of(small, header, header["engine"]) == AS_IT_IS
    assert state_of(small, header, "another") == OTHER_ENGINE
    assert state_of(small, {}, header["engine"]) == TO_MAKE
    (tmp_path / "copter" / "model").mkdir(parents=True)
    for name in ("model/rows.pyx", "session.py"):
        before = table_sources.engine_digest(tmp_path / "copter")
        (tmp_path / "copter" / name).write_text("ONE = 1\n")
        assert table_sources.engine_digest(tmp_path / "copter") != before, name
    monkeypatch.setattr(make_tables, "engine_digest", lambda: "another")
    capsys.readouterr()
    assert make_tables.main([]) == 0
    assert "small: other engine" in capsys.readouterr().out
    assert make_tables.main(["--engine"]) == 0
    assert header_of(tmp_path / "results" / "small.txt")["engine"] == "another"


def test_a_table_is_made_once_and_again_when_it_changed(
    small: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results" / "small.txt"
    assert make_tables.main([]) == 0
    assert path.read_text().endswith("a table of 42\n")
    header = header_of(path)
    assert header["command"] == "python benchmarks/tables/figure.py"
    assert header["seed"] == "7"
    assert set(header) == {"command", "commit", "seed", "machine", "date", "processor seconds", "fingerprint", "engine"}
    assert make_tables.main([]) == 0
    assert "small: as it is" in capsys.readouterr().out
    (tmp_path / "helper.py").write_text("SAID = 'a table of 43'\n")
    make_tables.main(["--list"])
    assert "to be made" in capsys.readouterr().out
    assert make_tables.main([]) == 0
    assert path.read_text().endswith("a table of 43\n")


def test_a_table_that_fails_stays_as_it_was(small: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_tables.main([]) == 0
    before = (tmp_path / "results" / "small.txt").read_text()
    (tmp_path / "figure.py").write_text("raise SystemExit('no data')\n")
    assert make_tables.main([]) == 1
    assert "small: failed: no data" in capsys.readouterr().out
    assert (tmp_path / "results" / "small.txt").read_text() == before
    with pytest.raises(SystemExit):
        make_tables.main(["--only", "nothing"])


def test_what_a_solver_prints_of_itself_is_no_part_of_a_table(small: Table, tmp_path: Path) -> None:
    said = ["HighsMipSolverData::newSolution run();", "Running HiGHS 1.16.0 (git hash)", "a figure  "]
    (tmp_path / "figure.py").write_text("".join(f"print({line!r})\n" for line in said))
    assert make_tables.main([]) == 0
    lines = (tmp_path / "results" / "small.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("# ")] == ["a figure"]
