"""Tables are made by their commands, and again only when what decides them has changed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "tables"))
import make_tables
from make_tables import FRONTENDS, TABLES, Table, fingerprint, header_of, sources


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    (tmp_path / "hadar").mkdir()
    (tmp_path / "hadar" / "policy.py").write_text("ONE = 1\n")
    (tmp_path / "figure.py").write_text("from helper import SAID\nprint(SAID)\n")
    (tmp_path / "helper.py").write_text("SAID = 'a table of 42'\n")
    monkeypatch.setattr(make_tables, "HERE", tmp_path)
    monkeypatch.setattr(make_tables, "RESULTS", tmp_path / "results")
    table = Table("small", "figure.py", ("hadar",), "7")
    monkeypatch.setattr(make_tables, "TABLES", [table])
    return table


@pytest.mark.skipif(not FRONTENDS.is_dir(), reason="tables are made in a checkout")
def test_every_table_has_its_script_and_frontends() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES)
    for table in TABLES:
        assert table.script.is_file(), table.name
        assert all((FRONTENDS / name).is_dir() for name in table.frontends)
        read = "".join(path.read_text() for path in sources(table) if path.parent == table.script.parent)
        for option in (word for word in table.command.split() if word.startswith("--")):
            assert f'"{option}"' in read, f"{table.name}: {option}"


def test_a_fingerprint_follows_the_script_its_helpers_and_its_frontends(small: Table, tmp_path: Path) -> None:
    assert [path.name for path in sources(small, tmp_path)] == ["figure.py", "helper.py", "policy.py"]
    seen = {fingerprint(small, tmp_path)}
    for name, text in (("hadar/policy.py", "ONE = 2\n"), ("helper.py", "SAID = 'b'\n"), ("figure.py", "print(1)\n")):
        (tmp_path / name).write_text(text)
        seen.add(fingerprint(small, tmp_path))
    seen.add(fingerprint(Table("small", "figure.py --more", ("hadar",)), tmp_path))
    assert len(seen) == 5


def test_a_table_is_made_once_and_again_when_it_changed(
    small: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results" / "small.txt"
    assert make_tables.main([]) == 0
    assert path.read_text().endswith("a table of 42\n")
    header = header_of(path)
    assert header["command"] == "python benchmarks/tables/figure.py"
    assert header["seed"] == "7"
    assert set(header) == {"command", "commit", "seed", "machine", "date", "processor seconds", "fingerprint"}
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
    (tmp_path / "figure.py").write_text("print('HighsMipSolverData::newSolution run();')\nprint('a figure  ')\n")
    assert make_tables.main([]) == 0
    lines = (tmp_path / "results" / "small.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("# ")] == ["a figure"]
