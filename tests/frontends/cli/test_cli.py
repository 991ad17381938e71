"""The ``copter`` command: exit codes, one-line errors, the table and the JSON object."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from copter_frontends import cli
from copter_frontends.cli.output import print_json
from copter_frontends.policies.baselines.fifo import FifoPolicy
from copter_frontends.policies.registry import policies
from copter_frontends.policies.registry.names import LP_NAMES, POLICY_NAMES
from copter_frontends.policies.registry.policy_entry import PolicyEntry
from copter_frontends.simulator import SimulationError
from copter_frontends.vocabulary import Cluster

KEYS = {
    *("policy", "gpus", "rounds", "variables", "jobs_completed", "avg_jct_h", "p99_jct_h", "makespan_h", "utilisation"),
    *("round_s", "edit_s", "solve_s", "shim_s", "place_s", "gap", "fractional_jobs", "restarts_per_job", "peak_rss_mb"),
    *("highs", "warmup_rounds", "seed", "mode", "jobs_submitted", "jobs_arrived", "trace_lines_skipped"),
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def simulate(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    code, out, err = run(capsys, "simulate", "fifo", *arguments, "--json")
    assert code == 0, err
    found = json.loads(out.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_json_is_the_last_line_with_every_key(capsys):
    found = simulate(capsys, "--gpus", "64", "--rounds", "20", "--warmup-rounds", "5", "--seed", "3")
    assert set(found) >= KEYS
    assert (found["policy"], found["gpus"], found["rounds"], found["warmup_rounds"]) == ("fifo", 64, 20, 5)
    assert (found["seed"], found["mode"], found["highs"], found["trace_lines_skipped"]) == (3, "full", None, 0)
    assert found["jobs_submitted"] == 4 * 64  # a whole day is sampled, however much of it is simulated
    assert set(found["round_s"]) == {"p50", "p95", "p99", "max"}
    assert set(found["finish_time_fairness"]) == {"thesis", "artifact", "jobs"}
    assert set(found["latency_ratio"]) == {"max", "mean", "worst_hour"}
    assert 0 <= found["fragmentation_gpus"] < 64
    assert set(found["gap"]) == set(found["variables"]) == set(found["fractional_jobs"]) == {"p50", "max"}


def test_the_same_seed_gives_the_same_figures(capsys):
    keys = ("jobs_completed", "avg_jct_h", "p99_jct_h", "makespan_h", "utilisation", "restarts_per_job")
    arguments = ("--cluster", "sia-het", "--hours", "6", "--seed", "5")
    one, two = simulate(capsys, *arguments), simulate(capsys, *arguments)
    other = simulate(capsys, *arguments[:-1], "6")
    assert [one[key] for key in keys] == [two[key] for key in keys]
    assert [one[key] for key in keys] != [other[key] for key in keys]
    assert one["jobs_completed"] > 0


def test_rounds_alone_warm_up_until_the_busy_hours(capsys):
    found = simulate(capsys, "--gpus", "8", "--rounds", "2")
    assert (found["rounds"], found["warmup_rounds"]) == (2, 9 * 60)
    assert simulate(capsys, "--gpus", "8", "--hours", "0.1")["warmup_rounds"] == 0


def test_without_an_end_every_job_ends(capsys):
    found = simulate(capsys, "--cluster", "sia-hom", "--jobs", "6", "--round-s", "300")
    assert found["jobs_completed"] == found["jobs_submitted"] == 6


def test_the_table_and_the_plain_progress_lines(capsys):
    asked = ("simulate", "fifo", "--gpus", "16", "--rounds", "20", "--warmup-rounds", "0")
    code, out, err = run(capsys, *asked)
    assert code == 0
    found = json.loads(run(capsys, *asked, "--json")[1].splitlines()[-1])
    assert out.splitlines()[0].strip() == "fifo on 16 GPUs"
    cells = dict(re.findall(r"^  (\S.*?)  +(\S.*?) *$", out, re.MULTILINE))
    assert float(cells["average JCT"].split()[0]) == pytest.approx(found["avg_jct_h"], abs=6e-4)
    assert float(cells["utilisation"].rstrip("%")) == pytest.approx(100 * found["utilisation"], abs=0.06)
    assert (int(cells["rounds"]), int(cells["jobs completed"])) == (found["rounds"], found["jobs_completed"])
    assert {"round", "edit", "solve", "shim", "place"} <= set(cells)
    lines = [line for line in err.splitlines() if line.startswith("round ")]
    assert len(lines) == 10
    assert lines[0].startswith("round 2/20: ")
    assert "% of GPUs" in lines[-1]


def test_a_cluster_file(capsys, tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text("types: [{name: v100, gpus_per_node: 4, nodes: 3}]")
    assert simulate(capsys, "--cluster", str(path), "--rounds", "3", "--warmup-rounds", "0")["gpus"] == 12


def test_a_log_is_sampled_and_its_broken_lines_are_counted(capsys, tmp_path):
    path = tmp_path / "log.csv"
    lines = ["timestamp,duration,num_gpus,gpu_time,cluster"]
    lines += [f"2017-10-0{2 + i % 4} {i % 24:02d}:{i % 60:02d}:00,{600 + i},1,{600 + i},a" for i in range(300)]
    path.write_text("\n".join([*lines, "2017-10-02 00:00:00,abc,1,1,a"]) + "\n")
    code, out, err = run(
        capsys,
        *("simulate", "fifo", "--gpus", "16", "--rounds", "3", "--warmup-rounds", "0"),
        *("--trace", str(path), "--jobs", "5", "--json"),
    )
    assert code == 0, err
    found = json.loads(out.splitlines()[-1])
    assert (found["jobs_submitted"], found["trace_lines_skipped"]) == (5, 1)
    assert "skipped 1 lines; the first: line 302: " in err


def test_a_workload_is_taken_as_it_stands(capsys, tmp_path):
    path = tmp_path / "workload.csv"
    path.write_text("name,time,application,num_replicas,batch_size\na,0,cifar10,1,128\nb,10,cifar10,2,128\n")
    found = simulate(capsys, "--cluster", "sia-het", "--trace", str(path))
    assert (found["jobs_submitted"], found["jobs_completed"]) == (2, 2)
    assert simulate(capsys, "--cluster", "sia-het", "--trace", str(path), "--jobs", "1")["jobs_submitted"] == 1


def test_jobs_arrive_in_the_window_that_is_asked_for(capsys):
    arguments = ("--gpus", "64", "--rounds", "7", "--warmup-rounds", "0", "--round-s", "60", "--jobs", "40")
    assert simulate(capsys, *arguments, "--window-hours", "0.1")["jobs_arrived"] == 40
    assert simulate(capsys, *arguments)["jobs_arrived"] < 10


def test_another_size_of_the_cluster_than_asked_for_is_said(capsys):
    arguments = ("simulate", "fifo", "--rounds", "1", "--warmup-rounds", "0", "--jobs", "2", "--json")
    _, out, err = run(capsys, *arguments, "--gpus", "20")
    assert json.loads(out.splitlines()[-1])["gpus"] == 24
    assert "--gpus 20: a cluster of whole nodes, 24 GPUs" in err
    assert "whole nodes" not in run(capsys, *arguments, "--gpus", "24")[2]


BAD = {
    "give either --gpus": ["simulate", "fifo", "--gpus", "8", "--cluster", "sia-het"],
    "0 GPUs is smaller than one node": ["simulate", "fifo", "--gpus", "0"],
    "-3 GPUs is smaller": ["simulate", "fifo", "--gpus", "-3"],
    "'many' is not a valid integer": ["simulate", "fifo", "--gpus", "many"],
    "no cluster is named 'nowhere'": ["simulate", "fifo", "--cluster", "nowhere"],
    "none.yaml: cannot be read": ["simulate", "fifo", "--cluster", "none.yaml"],
    "none.csv: cannot be read": ["simulate", "fifo", "--gpus", "8", "--trace", "none.csv"],
    "there is no policy 'clairvoyant'": ["simulate", "clairvoyant", "--gpus", "8"],
    "0 is not in the range": ["simulate", "fifo", "--gpus", "8", "--rounds", "0"],
    "Invalid value for '--hours'": ["simulate", "fifo", "--gpus", "8", "--hours", "-1"],
    "solves no linear program": ["simulate", "fifo", "--gpus", "8", "--compare", "highs"],
    "No such option '--colour'": ["simulate", "fifo", "--colour", "red"],
    "there is no command 'fly'": ["fly"],
    "Missing": ["simulate"],
    "events.yaml: cannot be read": ["simulate", "fifo", "--gpus", "8", "--events", "events.yaml"],
    "--save-every says how often": ["simulate", "fifo", "--gpus", "8", "--save-every", "5"],
    "do not go together": ["simulate", "sia", "--gpus", "8", "--compare", "highs", "--save", "run"],
    "none.run cannot be read": ["resume", "none.run"],
    "--to-end and --hours": ["resume", "none.run", "--to-end", "--hours", "1"],
}


@pytest.mark.parametrize("complaint", BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, complaint):
    code, out, err = run(capsys, *BAD[complaint])
    assert (code, out) == (2, "")
    assert err.startswith("copter: ")
    assert err.count("\n") == 1
    assert complaint.replace("'", "") in err.replace("'", "").replace('"', "")


def test_an_output_directory_that_is_a_file_is_bad_input(capsys, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    code, _, err = run(capsys, "simulate", "fifo", "--gpus", "8", "--rounds", "1", "--out", str(path / "sub"))
    assert code == 2
    assert "--out" in err
    assert err.count("\n") == 1


class Broken(FifoPolicy):
    """A policy whose first plan fails."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(Cluster.of({"t4": (1, 8)}))
        self.error = error

    def plan(self, now_s: float, deadline_s: float) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (SimulationError("it broke\nbadly"), "copter: it broke badly"),
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
    ],
)
def test_a_failed_run_is_one_line_and_exit_code_1(capsys, monkeypatch, error, line):
    monkeypatch.setitem(policies.POLICIES, "fifo", PolicyEntry(lambda *_: Broken(error), has_lp=False))
    code, out, err = run(capsys, "simulate", "fifo", "--gpus", "8", "--rounds", "1", "--json")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].endswith(line)
    assert "Traceback" not in err
    monkeypatch.setenv("COPTER_DEBUG", "1")
    with pytest.raises(type(error)):
        cli.main(["simulate", "fifo", "--gpus", "8", "--rounds", "1"])


def test_an_interrupt_is_one_line(capsys, monkeypatch):
    broken = PolicyEntry(lambda *_: Broken(KeyboardInterrupt()), has_lp=False)
    monkeypatch.setitem(policies.POLICIES, "fifo", broken)
    code, _, err = run(capsys, "simulate", "fifo", "--gpus", "8", "--rounds", "1")
    assert (code, err.splitlines()[-1]) == (1, "copter: interrupted")


def test_figures_that_are_not_numbers_become_null(capsys):
    print_json({"a": {"b": float("nan")}, "c": 1.5, "d": None})
    assert json.loads(capsys.readouterr().out) == {"a": {"b": None}, "c": 1.5, "d": None}


def test_the_names_on_the_command_line_are_the_registry():
    assert set(POLICY_NAMES) == set(policies.POLICIES)
    assert set(LP_NAMES) == {name for name, entry in policies.POLICIES.items() if entry.has_lp}


def test_help_imports_nothing_heavy():
    program = (
        "import sys\nfrom copter_frontends.cli import main\n"
        "try:\n    main(['simulate', '--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'scipy', 'numba', 'matplotlib', 'rich.table') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--compare-every" in done.stdout


def test_a_comparison_with_highs_is_summed_up_in_the_json(capsys):
    pytest.importorskip("highspy")
    limits = ("--compare", "highs", "--compare-every", "2", "--compare-time-limit", "60", "--json")
    code, out, err = run(capsys, "simulate", "sia", "--gpus", "64", "--rounds", "5", "--warmup-rounds", "600", *limits)
    assert code == 0, err
    found = json.loads(out.splitlines()[-1])["highs"]
    assert found["compared_rounds"] == 3
    assert found["not_optimal"] == 0
    assert found["objective_rel_diff_max"] < 1e-6
    assert found["cold_s"] > 0
    assert found["warm_s"]["p50"] > 0
