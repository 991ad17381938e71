"""Every policy of the command line on the smallest workloads, and on files that are no workloads."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run_json as run

from copter_frontends.policies.registry.names import POLICY_NAMES

HEADER = "name,time,application,num_replicas,batch_size\n"
ONE = HEADER + "a,0,cifar10,1,256\n"
TWO = ONE + "b,130,bert,4,24\n"
BROKEN = TWO + "c,soon,cifar10,1,256\n"


@pytest.mark.parametrize("policy", POLICY_NAMES)
@pytest.mark.parametrize(
    ("text", "jobs", "broken"), [(ONE, 1, 0), (TWO, 2, 0), (BROKEN, 2, 1)], ids=["one", "two", "broken"]
)
def test_a_few_jobs_run_to_their_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, policy: str, text: str, jobs: int, broken: int
) -> None:
    path = tmp_path / "workload.csv"
    path.write_text(text)
    code, found, err = run(capsys, "simulate", policy, "--cluster", "sia-het", "--trace", str(path))
    assert code == 0, err
    assert (found["jobs_completed"], found["jobs_skipped"], found["trace_lines_skipped"]) == (jobs, 0, broken)
    assert ("line 4: time is 'soon', not a number" in err) == bool(broken)


def test_rigid_policies_jobs_are_tuned_where_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "workload.csv"
    path.write_text(TWO)
    asked = ("--cluster", "sia-hom", "--trace", str(path))
    code, found, err = run(capsys, "compare", "--policies", "fifo,sia", *asked, "--tuned", "t4")
    assert code == 0, err
    _, plain, _ = run(capsys, "compare", "--policies", "fifo,sia", *asked)
    fifo, sia = zip(found["policies"], plain["policies"], strict=True)
    assert fifo[0]["avg_jct_h"] < fifo[1]["avg_jct_h"]  # one GPU and small batches before
    assert sia[0]["avg_jct_h"] == sia[1]["avg_jct_h"]
    code, _, err = run(capsys, "simulate", "fifo", *asked, "--tuned", "rtx")
    assert code == 2
    assert "unknown GPU type 'rtx'; the cluster has: t4" in err


WRONG = {
    "no usable line": ["--cluster", "sia-het", "--trace", "empty.csv"],
    "the file is empty": ["--cluster", "sia-het", "--trace", "nothing.csv"],
    "no cluster is named 'sia-hat'": ["--cluster", "sia-hat"],
    "none.yaml: cannot be read": ["--cluster", "none.yaml"],
    "'types'": ["--cluster", "wrong.yaml"],
}


@pytest.mark.parametrize("policy", POLICY_NAMES)
@pytest.mark.parametrize("complaint", WRONG)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.csv").write_text(HEADER)
    Path("nothing.csv").write_text("")
    Path("wrong.yaml").write_text("gpus: 8\n")
    code, _, err = run(capsys, "simulate", policy, *WRONG[complaint])
    assert code == 2
    assert complaint in err
    assert err.count("\n") == 1
