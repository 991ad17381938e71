"""The load that a table prints of its workloads: the simulator's definition, a line a kind of workload."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "tables"))

import chronus_load
import hadar_runs
import loads
import make_tables
import tapes
from hare_runs import completions
from make_tables import RESULTS, Outcome, again_with_loads, header_of
from probe import environment, printed
from table_list import TABLES, Table

from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.policy_kit.offered_load import offered_load
from copter_frontends.policy_kit.training_throughputs import TrainingThroughputs
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import hadar_jobs, table_source
from copter_papers.hare.workload import PaperWorkload

HOUR = 3600.0


@pytest.fixture(autouse=True)
def none_noted(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Begin with no workload noted before."""
    loads.say()
    capsys.readouterr()
    yield
    loads.say()


def test_it_is_the_simulators_load_of_the_window_in_which_jobs_arrive(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = named_cluster("hadar-60")
    source = table_source(cluster)
    jobs = hadar_jobs(60, "continuous", 20.0, seed=3)
    window = min(job.submit_s for job in jobs), max(job.submit_s for job in jobs)
    capacity = {kind: cluster.capacity(kind) for kind in cluster.types}
    expected = offered_load(jobs, TrainingThroughputs(cluster, source), capacity, *window)
    loads.note(cluster, jobs, source)
    loads.note(cluster, jobs, source)  # another policy's run
    loads.say()
    hours = f"{(window[1] - window[0]) / HOUR:.4g}"
    types = ", ".join(f"{kind} {share:.3g}" for kind, share in expected.by_type.items())
    line = f"load: 60 jobs on 60 GPUs, while jobs arrive ({hours} h): {expected.all:.4g} ({types})\n"
    assert capsys.readouterr().out == line
    loads.say()
    assert capsys.readouterr().out == ""


def test_jobs_that_come_at_once_have_hours_of_the_whole_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    """Twice as long jobs keep the cluster busy for twice the hours; a label takes the place of their number."""
    cluster = named_cluster("hadar-60")
    source = table_source(cluster)
    jobs = hadar_jobs(20, "static", seed=1)
    for label, times in (("as drawn", 1.0), ("longer", 2.0)):
        with loads.labelled(label):
            loads.note(cluster, [replace(job, work_samples=times * (job.work_samples or 0.0)) for job in jobs], source)
    loads.say()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("load: as drawn on 60 GPUs, all at once: work of ")
    hours = [float(line.split("work of ")[1].split(" h ")[0]) for line in (first, second)]
    assert hours[0] > 0
    assert hours[1] == pytest.approx(2.0 * hours[0], rel=1e-3)


def test_seeds_of_a_workload_share_a_line_and_clusters_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(2):
        completions(PaperWorkload(6), {"v100": 4}, seed)
    completions(PaperWorkload(6), {"v100": 2, "k80": 2}, 0)
    loads.say()
    one, other = capsys.readouterr().out.splitlines()
    assert " to " in one
    assert "(v100 " not in one
    assert "(v100 " in other
    assert ", k80 " in other


def test_a_hadar_table_ends_with_it_and_its_probe_has_no_such_line(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = named_cluster("hadar-60")
    hadar_runs.run("hadar", "jct", cluster, table_source(cluster), hadar_jobs(4, "static", seed=0, scale=0.05))
    hadar_runs.finish(hadar_runs.options(None, "hadar").parse_args([]), {})
    assert capsys.readouterr().out.startswith("load: 4 jobs on 60 GPUs, all at once")
    words = ["hadar_jct.py", *["--jobs", "4", "--seeds", "1", "--scale", "0.05", "--schedulers", "hadar"]]
    told = printed(words)
    assert "hadar" in told
    assert "load:" not in told


QUICK = ("hadar_figure_8", "table_4_1_latency_0")
TOLD = [
    table.name
    for table in TABLES
    if (path := RESULTS / f"{table.name}.txt").is_file() and f"\n{loads.BEGINS}" in path.read_text()
]


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(loads.BEGINS)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in TOLD]
)
def test_a_page_has_the_loads_that_its_jobs_now_have(name: str) -> None:
    path = RESULTS / f"{name}.txt"
    words = header_of(path)["command"].removeprefix("python benchmarks/tables/").split()
    for script in ([str(make_tables.ONLY_LOADS), words[0]], [str(make_tables.ONLY_LOADS.with_name(words[0]))]):
        done = subprocess.run(
            [sys.executable, *script, *words[1:]],
            cwd=make_tables.ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if found := lines_of(done.stdout):
            break
    assert found == lines_of(path.read_text())


@pytest.mark.parametrize("case", [case for case in chronus_load.CASES if case.gpus == 112 and case.selective])
def test_chronus_s_page_has_the_loads_that_its_jobs_now_have(case: chronus_load.Case) -> None:
    rows = [line for line in chronus_load.PAGE.read_text().splitlines() if line.startswith("| 112 | 0-24 | ")]
    (row,) = (line for line in rows if line.count("|") > 10 and chronus_load.key_of(line) == case.key)
    run = chronus_load.prepared(case)
    inputs = run.inputs
    capacity = {kind: inputs.cluster.capacity(kind) for kind in inputs.cluster.types}
    rates = TrainingThroughputs(inputs.cluster, inputs.model)
    found = offered_load(run.workload.jobs, rates, capacity, *(HOUR * hour for hour in case.hours))
    assert f"{found.all:.2f}" == row.split(" | ")[3]


@pytest.mark.parametrize("name", ["sia-1000-1.6", "chronus-1000-1.6"])
def test_the_page_of_tapes_has_the_loads_that_their_jobs_now_have(name: str) -> None:
    (tape,) = (tape for tape in tapes.TAPES if tape.name == name)
    section = tapes.PAGE.read_text().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    said = re.search(r"^Load (\S+) from hour (\S+) to (\S+);", section, flags=re.MULTILINE)
    assert said
    asked = SimulateOptions.of(**simulate.make_context("simulate", list(tape.command[1:])).params)
    run = Run.read(asked)
    inputs, round_s = run.inputs, run.simulation.round_s
    begin_s = run.warmup * round_s
    end_s = begin_s + int(tape.command[tape.command.index("--rounds") + 1]) * round_s
    capacity = {kind: inputs.cluster.capacity(kind) for kind in inputs.cluster.types}
    found = offered_load(run.workload.jobs, TrainingThroughputs(inputs.cluster, inputs.model), capacity, begin_s, end_s)
    assert (f"{begin_s / HOUR:.3g}", f"{end_s / HOUR:.3g}", f"{found.all:.2f}") == (said[2], said[3], said[1])


def test_lines_on_load_are_written_anew_and_figures_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = "# command: python benchmarks/tables/x.py 3\na figure of 42\nload: 3 jobs on 8 GPUs, at once: 2\nthe end\n"
    path = tmp_path / "x.txt"
    path.write_text(old)
    commands: list[list[str]] = []

    def answers(*out: str) -> None:
        said = iter(out)

        def outcome(command: list[str]) -> Outcome:
            commands.append([Path(word).name for word in command])
            return Outcome(0, next(said), "no message", "", 0.0)

        monkeypatch.setattr(make_tables, "outcome_of", outcome)

    table = Table("x", "x.py 3 --more")
    answers("load: 3 jobs on 16 GPUs, at once: 1\n")
    assert not again_with_loads(table, tmp_path), "other GPUs"
    answers("", "")
    assert not again_with_loads(table, tmp_path), "no line"
    answers("load: 3 jobs on 8 GPUs, at once: 2\n")
    assert again_with_loads(table, tmp_path)
    assert path.read_text() == old
    commands.clear()
    answers("", "another figure\nload: 3 jobs on 8 GPUs, at once: 1.5\n")  # it cannot do without the jobs' work
    assert again_with_loads(table, tmp_path)
    assert commands == [["only_loads.py", "x.py", "3"], ["x.py", "3"]]
    head, told, *rest = path.read_text().splitlines()
    assert head == old.splitlines()[0]
    assert told.startswith("# loads: written again, its figures not, by commit ")
    assert rest == ["a figure of 42", "load: 3 jobs on 8 GPUs, at once: 1.5", "the end"]
