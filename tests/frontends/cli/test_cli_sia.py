"""What the command line says to Sia: objective, limits, quotas, reservations; profiles that were found or not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import run_json as run

from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.simulator.workload import make_workload

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))

HEADER = (
    "name,time,application,num_replicas,batch_size,tenant,preemptible,reservation,min_gpus,max_gpus,weight,priority\n"
)
JOBS = (
    "a,0,cifar10,4,1024,x,no,,,,2.5,1\n"
    "g,0,gpt,1,48,,,,,,,\n"
    "b,0,bert,4,96,y,yes,a100:8,3,16,,\n"
    "c,60,bert,4,96,y,maybe,,,,,\n"
    "d,60,bert,4,96,y,,a100,,,,\n"
    "e,60,bert,4,96,y,,,8,4,,\n"
)


@pytest.fixture
def workload(tmp_path: Path) -> str:
    path = tmp_path / "workload.csv"
    path.write_text(HEADER + JOBS)
    return str(path)


def test_a_workload_says_more_of_its_jobs(workload: str) -> None:
    made = make_workload(workload, None, 24.0, 64, 0)
    a, g, b = made.jobs
    assert (a.tenant, a.preemptible, a.weight, a.priority, a.requested_gpus) == ("x", False, 2.5, 1, 4)
    assert (g.application, g.tenant, g.preemptible, g.weight, g.priority) == ("gpt", None, True, 1.0, 0)
    assert (b.reservation, b.min_gpus, b.max_gpus) == (("a100", 8), 3, 16)
    reasons = [each.reason for each in made.skipped_lines]
    assert [each.line_number for each in made.skipped_lines] == [5, 6, 7]
    assert "must be yes or no" in reasons[0]
    assert "must be TYPE:GPUS" in reasons[1]
    assert "below min_gpus" in reasons[2]


def test_all_of_sias_options_together(capsys: pytest.CaptureFixture[str], workload: str) -> None:
    given = ["--power", "0.5", "--incentive", "2", "--time-sharing", "180", "--growth", "2", "--quota", "x=4"]
    given += ["--non-preemptible", "g", "--reserve", "a=rtx:4"]
    code, found, err = run(
        capsys, "simulate", "sia", "--cluster", "sia-het", "--trace", workload, "--rounds", "5", *given
    )
    assert code == 0, err
    assert found["jobs_skipped"] == 0
    assert found["profiles"] is None


def test_plans_that_are_charged_cost_the_jobs_time(capsys: pytest.CaptureFixture[str], workload: str) -> None:
    """Ten thousand times the fraction of a millisecond that a plan takes is some seconds."""
    given = ["simulate", "fifo", "--cluster", "sia-het", "--trace", workload, "--plan-latency"]
    found = [run(capsys, *given, times)[1]["avg_jct_h"] for times in ("0", "10000")]
    assert found[0] < found[1]  # type: ignore[operator]


def test_the_options_reach_the_policy(workload: str) -> None:
    given = ["sia", "--cluster", "sia-het", "--trace", workload, "--power", "-1", "--incentive", "2"]
    given += [
        "--time-sharing",
        "180",
        "--penalty",
        "published",
        "--growth",
        "3",
        "--quota",
        "x=4",
        "--quota",
        "y=9",
        "--non-preemptible",
        "g",
    ]
    with simulate.make_context("simulate", given) as context:
        run = Run.read(SimulateOptions(**context.params))
    made, policy = run.workload, run.simulation.policy
    objective = policy.formulation.objective  # type: ignore[attr-defined]
    assert (objective.power, objective.incentive) == (-1.0, 2.0)
    assert policy.semantics.growth == 3  # type: ignore[attr-defined]
    assert policy.turns.sharing.window_s == 180.0  # type: ignore[attr-defined]
    assert policy.turns.sharing.published  # type: ignore[attr-defined]
    assert policy.turns.incentive == 2.0  # type: ignore[attr-defined]
    assert policy.builder.quotas == {"x": 4, "y": 9}  # type: ignore[attr-defined]
    assert [job.preemptible for job in made.jobs] == [False, False, True]


@pytest.mark.parametrize(
    ("policy", "given", "complaint"),
    [
        ("gavel", ["--power", "0"], "the policy 'gavel' has none"),
        ("hops", ["--quota", "x=3"], "the policy 'hops' has none"),
        ("sia", ["--quota", "x"], "is not TENANT=GPUS"),
        ("sia", ["--quota", "x=1", "--quota", "x=2"], "named twice"),
        ("sia", ["--reserve", "a=rtx"], "is not JOB=TYPE:GPUS"),
        ("sia", ["--reserve", "nobody=rtx:4"], "no job is called 'nobody'; the first jobs are a, g, b"),
        ("sia", ["--time-sharing", "0"], "--time-sharing"),
        ("sia", ["--growth", "0"], "--growth"),
        ("sia", ["--plan-latency", "-1"], "--plan-latency"),
        ("sia", ["--penalty", "published"], "give that too"),
        ("sia", ["--time-sharing", "180", "--penalty", "none"], "'none' is not one of"),
        ("sia", ["--applications", "none.yaml"], "none.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], workload: str, policy: str, given: list[str], complaint: str
) -> None:
    code, _, err = run(capsys, "simulate", policy, "--cluster", "sia-het", "--trace", workload, *given)
    assert code == 2
    assert complaint in err


def test_options_of_sia_hold_for_sia_where_policies_are_compared(
    capsys: pytest.CaptureFixture[str], workload: str
) -> None:
    given = ["--cluster", "sia-het", "--trace", workload, "--rounds", "3", "--power", "0"]
    code, found, err = run(capsys, "compare", "--policies", "sia,fifo", *given)
    assert code == 0, err
    assert len(found["policies"]) == 2  # type: ignore[arg-type]


def test_profiles_that_are_not_there_are_missed_aloud(
    capsys: pytest.CaptureFixture[str], workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COPTER_DATA", str(tmp_path))
    given = ["--cluster", "sia-het", "--trace", workload, "--rounds", "2", "--semantics", "sia-artifact"]
    code, found, err = run(capsys, "simulate", "sia", *given)
    assert code == 0, err
    assert "no measured profiles found" in err
    assert found["profiles"] == "fitted constants"


@pytest.mark.skipif(not (DATA / "profiles" / "sia").is_dir(), reason=f"no profiles in {DATA}: set COPTER_DATA")
def test_profiles_that_are_there_are_named(capsys: pytest.CaptureFixture[str], workload: str) -> None:
    given = ["--cluster", "sia-het", "--trace", workload, "--rounds", "2", "--semantics", "sia-artifact"]
    code, found, err = run(capsys, "simulate", "sia", *given)
    assert code == 0, err
    folder = str(DATA / "profiles" / "sia")
    assert f"measured profiles: {folder}" in err
    assert found["profiles"] == folder


def test_the_thesis_is_one_word_on_the_command_line(capsys: pytest.CaptureFixture[str], workload: str) -> None:
    given = ["--cluster", "sia-het", "--trace", workload, "--rounds", "4", "--semantics", "thesis"]
    code, found, err = run(capsys, "simulate", "sia", *given)
    assert code == 0, err
    assert found["rounds"] == 4
