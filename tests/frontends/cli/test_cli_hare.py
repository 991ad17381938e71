"""``copter simulate`` on Hare's testbed: its own jobs, for Hare, its opponents and the baselines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from copter_frontends import cli
from copter_frontends.policies.registry.names import HARE_SCHEMES
from copter_papers.hare.opponents import RULES
from copter_papers.hare.testbed import testbed_workload as make_testbed
from copter_papers.hare.workload import PaperWorkload


def simulate(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as stop:
        cli.main(["simulate", *arguments, "--json"])
    captured = capsys.readouterr()
    assert not stop.value.code, captured.err
    found: dict[str, Any] = json.loads(captured.out.splitlines()[-1])
    return found


@pytest.mark.parametrize("policy", ["hare", *HARE_SCHEMES, "fifo"])
def test_every_job_of_the_testbed_ends(capsys: pytest.CaptureFixture[str], policy: str) -> None:
    found = simulate(capsys, policy, "--cluster", "hare-15", "--jobs", "8", "--seed", "2")
    assert (found["gpus"], found["jobs_submitted"], found["jobs_completed"], found["jobs_skipped"]) == (15, 8, 8, 0)
    assert found["warmup_rounds"] == 0
    weights = [job.weight for job in PaperWorkload(8).make(2)]
    assert min(weights) * 8 * found["avg_jct_h"] <= found["weighted_jct_h"] <= max(weights) * 8 * found["avg_jct_h"]
    assert found["finish_time_fairness"]["thesis"]["worst"] > 0


def test_the_weights_are_told_to_the_policy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("hare", "--cluster", "hare-15", "--jobs", "30")
    weighted = simulate(capsys, *arguments)
    from copter_frontends.policies.hare import task_policy as policy

    whole = policy.HareTaskPolicy.__init__

    def forgetful(self: policy.HareTaskPolicy, *positional: Any, **named: Any) -> None:
        whole(self, *positional, **{**named, "weights": None})

    monkeypatch.setattr(policy.HareTaskPolicy, "__init__", forgetful)
    assert weighted["weighted_jct_h"] < simulate(capsys, *arguments)["weighted_jct_h"]


def test_a_round_length_that_is_given_counts(capsys: pytest.CaptureFixture[str]) -> None:
    short = simulate(capsys, "hare-srtf", "--cluster", "hare-15", "--jobs", "4")
    long = simulate(capsys, "hare-srtf", "--cluster", "hare-15", "--jobs", "4", "--round-s", "600")
    assert long["rounds"] < short["rounds"]


def test_other_clusters_have_the_jobs_they_had(capsys: pytest.CaptureFixture[str]) -> None:
    found = simulate(capsys, "hare", "--cluster", "sia-hom", "--jobs", "6", "--hours", "2")
    assert "weighted_jct_h" not in found
    assert found["jobs_submitted"] == 6


def test_the_workload_is_that_of_the_paper_with_its_weights() -> None:
    work, drawn = make_testbed(None, 5), PaperWorkload(40).make(5)
    assert [(job.id, job.submit_s) for job in work.jobs] == [(job.id, job.arrival_s) for job in drawn]
    assert work.weights == {job.id: job.weight for job in drawn}
    assert not work.sampled


def test_the_names_are_those_of_the_schedulers() -> None:
    assert tuple(HARE_SCHEMES.values()) == tuple(RULES)


def test_the_edits_of_a_solve_are_counted_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("hare", "--cluster", "hare-15", "--jobs", "8", "--rounds", "12")
    edits = simulate(capsys, *arguments)["edits_per_solve"]
    assert edits["solves"] > 1
    assert 0 < edits["added"] <= edits["requests"]
    with pytest.raises(SystemExit):
        cli.main(["simulate", *arguments])
    assert f"{edits['solves']} solves; edits a solve: " in capsys.readouterr().out
