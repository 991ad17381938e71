"""``copter simulate|compare`` with deadlines: one set of jobs for all policies, a trace's own deadlines, leases."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from copter_frontends.cli import cli
from copter_frontends.policy_kit.deadlines import StepReward, deadline_summary
from copter_frontends.simulator.result import SimulationResult
from copter_frontends.vocabulary import Job

SHORT = ["--gpus", "56", "--jobs", "150", "--hours", "14", "--seed", "1"]


def summaries(*arguments: str) -> list[dict[str, object]]:
    found = CliRunner().invoke(cli, [*arguments, "--json", "--threads", "1"])
    assert found.exit_code == 0, found.output
    whole = json.loads(found.stdout.splitlines()[-1])
    return list(whole.get("policies", [whole]))


def test_all_policies_are_judged_over_the_same_jobs_and_promises_are_counted() -> None:
    chronus, edf, srtf = (each["deadlines"] for each in summaries("compare", "--policies", "chronus,edf,srtf", *SHORT))
    for name in ("jobs", "due", "best_effort_jobs"):
        assert chronus[name] == edf[name] == srtf[name] > 10
    for each in (chronus, edf, srtf):
        assert each["met"] + each["missed"] == each["due"] <= each["jobs"]
        assert each["best_effort_jct_h"] > 0
    assert chronus["promised"] > 10
    assert chronus["kept"] <= chronus["promised"]
    assert (chronus["demoted"], chronus["demoted_by_failures"], chronus["late"]) == (0, 0, 0)
    assert srtf["promised"] is None
    assert chronus["weighted_miss_rate"] < 2 * srtf["weighted_miss_rate"] + 0.02


def test_jobs_that_have_not_ended_count() -> None:
    jobs = [Job(name, "any", at, work_samples=1.0) for name, at in (("met", 0.0), ("never", 0.0), ("open", 80.0))]
    jobs += [Job("free", "any", 20.0, work_samples=1.0), Job("later", "any", 200.0, work_samples=1.0)]
    columns = {"id": np.array([job.id for job in jobs[:4]]), "jct_s": np.array([9.0, np.nan, np.nan, np.nan])}
    record = type("Record", (), {"now_s": 90.0, "warmup": False})()
    result = SimulationResult(8, 10.0, 0, (record,), columns, ())
    rewards = {job.id: StepReward.strict(50.0) for job in jobs if job.id != "free"}
    found = deadline_summary(result, jobs, rewards)["deadlines"]
    assert (found["jobs"], found["due"], found["met"], found["missed"]) == (3, 2, 1, 1)
    assert found["weighted_miss_rate"] == pytest.approx(0.5)
    assert (found["best_effort_jobs"], found["best_effort_jct_h"]) == (1, pytest.approx(80.0 / 3600.0))


def test_a_traces_own_deadlines_are_taken(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    head = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval,"
    head += "expect_time_list,expect_value_list,best_effort,job_type"
    rows = [f"{k},1,{k},100,resnet50,50,1,{83 + k}-150,10-5,0,soft" for k in range(6)]  # in minutes
    rows.append("6,1,7,100,resnet50,50,1,80,10,1,best")
    trace.write_text("\n".join([head, *rows]) + "\n")
    (own,) = summaries("simulate", "chronus", "--gpus", "56", "--trace", str(trace), "--hours", "4")
    assert own["deadlines"]["jobs"] == 6
    assert own["deadlines"]["promised"] == 6
    (drawn,) = summaries("simulate", "chronus", "--gpus", "56", "--trace", str(trace), "--hours", "4", "--mix", "slo")
    assert drawn["deadlines"]["jobs"] == 7
    assert StepReward.listed(((5.0, 10.0), (9.0, 5.0))).steps == ((5.0, 100.0), (9.0, 50.0))


def test_shorter_leases_keep_their_promises() -> None:
    (twenty,) = summaries("simulate", "chronus", *SHORT)
    (five,) = summaries("simulate", "chronus", *SHORT, "--lease-s", "300")
    assert five["deadlines"]["jobs"] == twenty["deadlines"]["jobs"]
    for each in (twenty, five):
        assert each["deadlines"]["promised"] > 20
        assert each["deadlines"]["late"] == each["deadlines"]["demoted"] == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["chronus", "--deadlines", "own"], "no job has deadlines of its own"),
        (["chronus", "--deadlines", "own", "--mix", "slo"], "give one of them"),
        (["srtf", "--lease-s", "600"], "the policy 'srtf' has none"),
        (["hadar", "--profiling"], "the policy 'hadar' has none"),
        (["chronus", "--lease-s", "20"], "longer than a restart"),
    ],
)
def test_options_that_do_not_fit_are_told(arguments: list[str], complaint: str) -> None:
    found = CliRunner().invoke(cli, ["simulate", *arguments, "--gpus", "56", "--hours", "1"])
    assert found.exit_code == 2
    assert complaint in found.output


def test_profiling_runs_jobs_first() -> None:
    (found,) = summaries("simulate", "chronus", *SHORT, "--profiling")
    assert found["jobs_completed"] > 50
    figures = found["figures"]
    assert 0 < figures["times_measured"] <= figures["jobs_profiled"] < 0.7 * found["jobs_completed"]
    (plain,) = summaries("simulate", "hare", *SHORT)
    (hare,) = summaries("simulate", "hare", *SHORT, "--profiling")
    assert hare["figures"]["times_measured"] > 0
    assert "times_measured" not in plain["figures"]
