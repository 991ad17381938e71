"""Every policy of the command line on the smallest workloads, and on files that are no workloads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from copter_frontends import cli
from copter_frontends.cli.simulate import POLICY_NAMES

HEADER = "name,time,application,num_replicas,batch_size\n"
ONE = HEADER + "a,0,cifar10,1,256\n"
TWO = ONE + "b,130,bert,4,24\n"
BROKEN = TWO + "c,soon,cifar10,1,256\n"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object], str]:
    with pytest.raises(SystemExit) as stop:
        cli.main([*arguments, "--json"])
    captured = capsys.readouterr()
    code = int(stop.value.code or 0)
    return code, json.loads(captured.out.splitlines()[-1]) if code == 0 else {}, captured.err


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
