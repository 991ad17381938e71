"""Tables and sweeps as tasks of a Ray head: the same as here, told of as they end, lost tasks run again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "tables"))
import make_tables
import probe
import sweeps
import table_list
from make_tables import header_of
from runs import RunStore
from table_list import PROBES, Table

from copter_frontends.cli.output import InputError
from copter_frontends.cli.over_ray import gathered, over_ray

TABLES = str(Path(__file__).parents[2] / "benchmarks" / "tables")
DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two processors of a head that ends with the tests."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: make test-ray")
    environment = {"PYTHONPATH": TABLES, "COPTER_DATA": str(DATA.resolve())}
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000,
        runtime_env={"env_vars": environment},
    )  # fmt: skip
    yield
    ray.shutdown()


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables, of which one fails; the directory of the results."""
    (tmp_path / "hadar").mkdir()
    (tmp_path / "good.py").write_text("print('a table of 42')\n")
    (tmp_path / "bad.py").write_text("raise SystemExit('no such cluster')\n")
    for module in (table_list, probe):
        monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(make_tables, "RESULTS", tmp_path / "results")
    listed = [Table("bad", "bad.py"), Table("good", "good.py", "7")]
    for table in listed:
        monkeypatch.setitem(PROBES, table.script, "")
    monkeypatch.setattr(make_tables, "TABLES", listed)
    return tmp_path / "results"


@pytest.mark.usefixtures("cluster")
def test_tables_are_written_as_their_tasks_end(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_tables.main(["--ray", "local"]) == 1
    said = capsys.readouterr().out
    assert "bad: failed: no such cluster" in said
    assert "good: made in" in said
    assert (tables / "good.txt").read_text().endswith("a table of 42\n")
    assert header_of(tables / "good.txt")["seed"] == "7"
    assert not (tables / "bad.txt").exists()
    assert make_tables.main(["--ray", "local", "--only", "good"]) == 0
    assert "0 of 1 tables to be made" in capsys.readouterr().out


@pytest.mark.usefixtures("cluster")
def test_a_task_whose_process_dies_is_run_again(tmp_path: Path) -> None:

    def dies_once(given: tuple[str, int]) -> int:
        directory, number = given
        mark = Path(directory) / "died"
        if not mark.exists():
            mark.touch()
            os._exit(1)
        return number * number

    told: list[int] = []
    names = [f"number {at}" for at in range(4)]
    given = [(str(tmp_path), number) for number in range(4)]
    found = gathered("local", dies_once, given, "squares", names, lambda place, _: told.append(place))
    assert found == [0, 1, 4, 9]
    assert (tmp_path / "died").exists()
    assert sorted(told) == [0, 1, 2, 3]
    assert list(over_ray("local", dies_once, [])) == []


@pytest.mark.usefixtures("cluster")
def test_a_task_that_always_dies_is_given_up() -> None:
    with pytest.raises(InputError, match="task 0 was lost 4 times"):
        list(over_ray("local", lambda _: os._exit(1), [0]))


@pytest.mark.skipif(not (DATA / "traces").is_dir(), reason="no data: set COPTER_DATA")
@pytest.mark.usefixtures("cluster")
def test_runs_of_a_sweep_are_kept_as_they_end(tmp_path: Path) -> None:
    path = sorted((DATA.resolve() / "traces" / "sia" / "saturn").glob("workload-*.csv"))[0]
    runs = [sweeps.run_of("p", row, path, 4) for row in ("-0.5", "1.0")]
    store = RunStore(tmp_path / "runs.jsonl")
    sweeps.made_over_ray("local", [*runs, runs[0]], store)
    again = RunStore(tmp_path / "runs.jsonl")
    for run in runs:
        assert run.name in again
        assert again.figures(run.name, dict)["avg_jct_h"] == pytest.approx(sweeps.made(run)["avg_jct_h"])
    sweeps.made_over_ray("local", runs, again)
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 2


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_it_is_said_what_to_install(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        make_tables.main(["--ray", "local"])
    assert stop.value.code == 2
    assert "pip install ray" in capsys.readouterr().err
    assert not tables.exists()


def test_wrong_sizes_of_a_sweep_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["p", "--workloads", "0"], ["p", "--jobs", "-3"], ["q"]):
        with pytest.raises(SystemExit) as stop:
            sweeps.main(wrong)
        assert stop.value.code == 2
    assert "must be 1 or more" in capsys.readouterr().err
