"""Tables are made by their commands, and again only when their probes answer differently."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "tables"))
import make_tables
import probe
import table_list
from make_tables import CURRENT, TO_MAKE, header_of, state_of
from table_list import PROBES, TABLES, Table

OTHER_COMMAND = {
    "chronus_density",
    "chronus_figure_9",
    "chronus_profiler_reasons",
    "hadar_fairness_makespan",
    "hadar_horizon",
    "hadar_jct_philly",
    "hadar_reasons",
    "hops_fragments",
    "hops_queues",
    "hops_table4",
    "sia_figure_3_6",
    "sia_figure_3_7",
    "sia_figure_3_7_shockwave",
    "table_3_4",
    "traffic_figure_5_5_kdl",
    "traffic_figure_5_6_kdl",
}
"""Tables that stand by an earlier command, as they say: of fewer seeds, or with another limit of time a round.

`make tables` makes them by the listed one; a name goes from here when it has.
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    (tmp_path / "figure.py").write_text("import sys\nfrom helper import SAID\nprint(SAID, *sys.argv[1:])\n")
    (tmp_path / "helper.py").write_text("SAID = 'a table of 42'\n")
    for module in (table_list, probe):
        monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(make_tables, "RESULTS", tmp_path / "results")
    monkeypatch.setitem(PROBES, "figure.py", "--tiny")
    table = Table("small", "figure.py", "7")
    monkeypatch.setattr(make_tables, "TABLES", [table])
    return table


def test_every_table_has_its_script_its_options_and_a_probe() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES)
    assert {table.script for table in TABLES} == set(PROBES)
    for table in TABLES:
        script = Path(table.words[0])
        assert script.is_file(), table.name
        read = "".join(path.read_text() for path in script.parent.glob("*.py"))
        for option in (word for word in (*table.words, *table.probe) if word.startswith("--")):
            assert f'"{option}"' in read, f"{table.name}: {option}"


def test_a_table_is_made_once_and_again_when_its_probe_answers_differently(
    small: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results" / "small.txt"
    assert make_tables.main([]) == 0
    assert path.read_text().endswith("a table of 42\n")
    header = header_of(path)
    assert header["command"] == "python benchmarks/tables/figure.py"
    assert header["seed"] == "7"
    assert set(header) == {"command", "commit", "seed", "machine", "date", "processor seconds"}
    results, kept = tmp_path / "results", tmp_path / "results" / "probes" / "small.txt"
    assert kept.read_text() == "a table of 42 --tiny\n"
    assert state_of(small, results) == CURRENT
    assert state_of(Table("small", "figure.py --more"), results) == TO_MAKE, "another command"
    assert state_of(Table("other", "figure.py"), results) == TO_MAKE, "no table yet"
    kept.write_text("failed: no data\n")
    assert state_of(small, results) == TO_MAKE, "a probe that failed tells nothing"
    kept.write_text("a table of 42 --tiny\n")
    (tmp_path / "helper.py").write_text('"""Other words, the same answer."""\n\nSAID = "a table of %d" % 42\n')
    assert make_tables.main([]) == 0
    assert "0 of 1 tables to be made" in capsys.readouterr().out.splitlines()[-1]
    (tmp_path / "helper.py").write_text("SAID = 'a table of 43'\n")
    make_tables.main(["--list"])
    assert "1 of 1 tables to be made" in capsys.readouterr().out
    assert path.read_text().endswith("a table of 42\n"), "a list makes none"
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


@pytest.mark.usefixtures("small")
def test_what_a_solver_prints_of_itself_is_no_part_of_a_table(tmp_path: Path) -> None:
    said = ["HighsMipSolverData::newSolution run();", "Running HiGHS 1.16.0 (git hash)", "a figure  "]
    (tmp_path / "figure.py").write_text("".join(f"print({line!r})\n" for line in said))
    assert make_tables.main([]) == 0
    lines = (tmp_path / "results" / "small.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("# ")] == ["a figure"]


def test_clocks_are_counted_in_a_probe_and_times_left_out(small: Table, tmp_path: Path) -> None:
    timed = "import time\na = time.perf_counter()\nfor i in range(100_000): pass\nb = time.perf_counter()\n"
    shown = "print('3 plans,', b - a, 's')\nprint('slow' if b - a > 2e-6 else 'quick')\n"
    (tmp_path / "figure.py").write_text(timed + shown)
    assert len({probe.printed(small.probe) for _ in range(2)}) == 1
    answer = probe.answer_of(small.probe)
    assert answer == f"3 plans, {probe.TIME} s\n{probe.TIME}"
    assert probe.same(answer, "3 plans, 0.75 s\nslow")
    assert not probe.same(answer, "4 plans, 0.75 s\nslow")
    (tmp_path / "figure.py").write_text("raise ValueError('no workload')\n")
    assert probe.answer_of(small.probe) == "failed: ValueError: no workload"


@pytest.mark.parametrize(
    ("known", "now", "is_same"),
    [
        ("JCT 0.0757 h", "JCT 0.0758 h", True),
        ("JCT 0.0757 h", "JCT 0.0767 h", False),
        ("JCT 2.41 h", "JCT 2.43 h", True),  # within a hundredth
        ("off by 0.2%", "off by 0.3%", True),  # within a unit of the last place
        ("off by 0.2%", "off by 0.4%", False),
        ("off by +0.1%", "off by -0.1%", False),
        ("gap 4.7e-14", "gap 0.0e+00", True),  # below any tolerance
        ("gap 4.7e-04", "gap 0.0e+00", False),
        ("1,540 restarts", "1,550 restarts", True),
        ("7 restarts", "8 restarts", False),
        ("sia 7", "gavel 7", False),
        ("sia 7", "sia 7\ngavel 8", False),
    ],
)
def test_an_answer_is_the_same_where_a_reader_would_say_so(known: str, now: str, is_same: bool) -> None:
    assert probe.same(known, now) == is_same


def test_a_table_has_five_seeds_or_says_why_it_has_fewer(small: Table, tmp_path: Path) -> None:
    assert [table.name for table in TABLES if (table.draws < 5) != bool(table.few)] == []
    assert Table("a", "x.py", "0 to 9").draws == 10
    assert Table("a", "x.py --workloads 3", table_list.DRAWS).draws == 3
    few = replace(small, few="a run takes a day")
    assert make_tables.write(few, make_tables.Outcome(0, "42\n", "", "here", 1.0), tmp_path)
    assert header_of(tmp_path / "small.txt")["few because"] == "a run takes a day"


def test_a_kept_table_was_made_by_the_command_that_is_listed() -> None:
    """What a page links was printed by what `make tables` would run, with the seeds that it says."""
    kept = {path.stem for path in make_tables.RESULTS.glob("*.txt")}
    assert kept - {table.name for table in TABLES} == set()
    other = set()
    for table in TABLES:
        header = header_of(make_tables.RESULTS / f"{table.name}.txt")
        if header and header["command"] != f"python benchmarks/tables/{table.command}":
            other.add(table.name)
        elif header:
            assert header["seed"].strip() == table.seed, table.name
    assert other - OTHER_COMMAND == set()
