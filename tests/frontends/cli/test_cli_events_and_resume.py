"""The command line's cluster events, and runs that it saves and resumes."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run_json as run

from copter_frontends.simulator import Simulation, read_events, save_run
from copter_frontends.vocabulary import FrontendError
from copter_frontends.vocabulary.named_clusters import named_cluster

EVENTS = """
events:
  - {time_s: 3600, what: fail, gpu_type: t4, nodes: [t4-0, t4-1]}
  - {time_s: 7200, what: repair, gpu_type: t4, nodes: [t4-0]}
  - {time_s: 1800, what: add, gpu_type: a100, count: 1}
  - {time_s: 9000, what: remove, gpu_type: a100, nodes: [a100-2]}
"""
FIGURES = ("rounds", "jobs_completed", "avg_jct_h", "p99_jct_h", "utilisation", "restarts_per_job", "gpu_hours_per_job")


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.yaml"
    path.write_text(EVENTS)
    return str(path)


def test_events_of_a_file_come_in_order_of_time(events: str) -> None:
    found = read_events(events, named_cluster("sia-het"))
    assert [(e.time_s, e.what, e.nodes, e.count) for e in found] == [
        (1800.0, "add", (), 1),
        (3600.0, "fail", ("t4-0", "t4-1"), 0),
        (7200.0, "repair", ("t4-0",), 0),
        (9000.0, "remove", ("a100-2",), 0),
    ]


def test_random_failures_are_drawn_and_repeat(tmp_path: Path) -> None:
    path = tmp_path / "events.yaml"
    path.write_text("random_failures: {hours: 24, mean_hours_between: 20, mean_repair_hours: 1, seed: 3}\n")
    one, two = (read_events(path, named_cluster("sia-het")) for _ in range(2))
    assert one == two
    assert {event.what for event in one} == {"fail", "repair"}


@pytest.mark.parametrize("policy", ["sia", "fifo"])
def test_the_command_line_carries_events_out(capsys, events: str, policy: str) -> None:
    code, found, err = run(capsys, "simulate", policy, "--cluster", "sia-het", "--hours", "4", "--events", events)
    assert code == 0, err
    assert found["gpus"] == 64 - 4  # one of the two nodes that failed has not come back


WRONG = {
    "must hold 'events'": "nodes: 3\n",
    "'events' must be a list": "events: 3\n",
    "events[0]: lacks what": "events: [{time_s: 1, gpu_type: t4}]\n",
    "events[0]: has the unknown field when": "events: [{time_s: 1, what: fail, gpu_type: t4, when: now}]\n",
    "events[0].time_s: must be a number": "events: [{time_s: soon, what: fail, gpu_type: t4, nodes: [t4-0]}]\n",
    "time_s is -1.0": "events: [{time_s: -1, what: fail, gpu_type: t4, nodes: [t4-0]}]\n",
    "what is 'burn'": "events: [{time_s: 1, what: burn, gpu_type: t4, nodes: [t4-0]}]\n",
    "names no nodes": "events: [{time_s: 1, what: fail, gpu_type: t4}]\n",
    "events[0].gpu_type: unknown GPU type 'h100'": "events: [{time_s: 1, what: add, gpu_type: h100, count: 1}]\n",
    "has no node 't4-9'": "events: [{time_s: 1, what: fail, gpu_type: t4, nodes: [t4-9]}]\n",
    "has no node 'a100-0'": "events: [{time_s: 1, what: fail, gpu_type: t4, nodes: [a100-0]}]\n",
    "events[0].count: must be a whole number": "events: [{time_s: 1, what: add, gpu_type: t4, count: 1.5}]\n",
    "random_failures: lacks mean_repair_hours": "random_failures: {hours: 2, mean_hours_between: 3}\n",
    "random_failures.hours: must be a number above 0": (
        "random_failures: {hours: 0, mean_hours_between: 3, mean_repair_hours: 1}\n"
    ),
    "not valid YAML": "events: [\n",
}


@pytest.mark.parametrize("complaint", WRONG)
def test_a_wrong_event_file_is_named_with_its_entry(capsys, tmp_path: Path, complaint: str) -> None:
    path = tmp_path / "events.yaml"
    path.write_text(WRONG[complaint])
    with pytest.raises(FrontendError) as error:
        read_events(path, named_cluster("sia-het"))
    assert complaint in str(error.value)
    assert "events.yaml: " in str(error.value)
    code, _, err = run(capsys, "simulate", "fifo", "--cluster", "sia-het", "--rounds", "1", "--events", str(path))
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith("copter: ")


@pytest.mark.parametrize("policy", ["sia", "fifo", "gavel"])
def test_a_resumed_run_ends_as_one_that_never_stopped(capsys, tmp_path: Path, policy: str) -> None:
    saved = str(tmp_path / "run")
    common = ("simulate", policy, "--cluster", "sia-het", "--jobs", "60", "--seed", "2")
    _, whole, _ = run(capsys, *common, "--hours", "12")
    code, half, err = run(capsys, *common, "--hours", "7", "--save", saved, "--save-every", "50")
    assert code == 0, err
    assert half["rounds"] < whole["rounds"]  # type: ignore[operator]
    code, found, err = run(capsys, "resume", saved, "--hours", "12")
    assert code == 0, err
    assert [found[name] for name in FIGURES] == [whole[name] for name in FIGURES]
    assert found["finish_time_fairness"] == whole["finish_time_fairness"]


def test_a_run_resumed_as_it_was_asked_for_has_nothing_left_to_do(capsys, tmp_path: Path) -> None:
    saved = str(tmp_path / "run")
    _, one, _ = run(
        capsys, "simulate", "fifo", "--gpus", "64", "--rounds", "8", "--warmup-rounds", "3", "--save", saved
    )
    _, two, told = run(capsys, "resume", saved)
    assert "the run is at its end; --rounds, --hours or --to-end goes on" in told
    assert [one[name] for name in (*FIGURES, "warmup_rounds")] == [two[name] for name in (*FIGURES, "warmup_rounds")]
    _, to_end, _ = run(capsys, "resume", saved, "--to-end")
    assert to_end["jobs_completed"] == to_end["jobs_submitted"]
    assert to_end["warmup_rounds"] == 3


def test_a_run_saved_in_python_is_refused_with_the_way_to_go_on(capsys, tmp_path: Path, simulation: Simulation) -> None:
    save_run(simulation, tmp_path / "run")
    code, _, err = run(capsys, "resume", str(tmp_path / "run"))
    assert code == 2
    assert "load_run" in err


def test_the_progress_of_a_resumed_run_goes_on_counting(capsys, tmp_path: Path) -> None:
    saved, few = str(tmp_path / "run"), ("--rounds", "4", "--warmup-rounds", "0")
    run(capsys, "simulate", "fifo", "--gpus", "64", *few, "--save", saved)
    _, _, told = run(capsys, "resume", saved, "--rounds", "6")
    lines = [line.partition(":")[0] for line in told.splitlines() if line.startswith("round ")]
    assert lines == ["round 5/6", "round 6/6"]
    _, _, told = run(capsys, "resume", saved, "--to-end")
    numbers = [int(line.split()[1].rstrip(":")) for line in told.splitlines() if line.startswith("round ")]
    assert numbers
    assert min(numbers) > 4


@pytest.fixture
def simulation() -> Simulation:
    from copter_frontends.goodput import GoodputModel
    from copter_frontends.policies.baselines import FifoPolicy
    from copter_frontends.vocabulary import configurations_of

    cluster = named_cluster("sia-hom")
    return Simulation(cluster, [], FifoPolicy(cluster), GoodputModel(configurations_of(cluster)))
