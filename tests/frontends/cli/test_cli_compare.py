"""``copter compare``: what it shares with simulate, its table and its JSON object."""

from __future__ import annotations

import json
import re

import pytest

from copter_frontends import cli
from copter_frontends.cli.compare import OWN_TO_SIMULATE, compare
from copter_frontends.cli.simulate import simulate


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


SMALL = ("--cluster", "sia-het", "--hours", "2", "--jobs", "40", "--seed", "3")


def test_every_option_of_simulate_is_shared_or_its_own():
    names = {parameter.name for parameter in simulate.params}
    assert {parameter.name for parameter in compare.params} == (names - set(OWN_TO_SIMULATE)) | {
        "policies",
        "ray",
        "seeds",
        "report",
    }


def test_each_policy_gives_what_simulate_gives(capsys):
    code, out, err = run(capsys, "compare", "--policies", "fifo,gavel,tiresias", *SMALL, "--json")
    assert code == 0, err
    found = json.loads(out.splitlines()[-1])["policies"]
    assert [each["policy"] for each in found] == ["fifo", "gavel", "tiresias"]
    _, alone, _ = run(capsys, "simulate", "gavel", *SMALL, "--json")
    one = json.loads(alone.splitlines()[-1])
    assert set(found[1]) == set(one)
    for key in ("avg_jct_h", "jobs_completed", "utilisation", "rounds", "jobs_submitted", "highs"):
        assert found[1][key] == one[key]


def test_the_table_has_a_column_for_each_policy(capsys):
    code, out, _ = run(capsys, "compare", "--policies", "fifo, srtf", *SMALL)
    assert code == 0
    _, printed, _ = run(capsys, "compare", "--policies", "fifo,srtf", *SMALL, "--json")
    policies = json.loads(printed.splitlines()[-1])["policies"]
    cells = {label: values.split() for label, values in re.findall(r"^  (\S.*?)  +(\S.*?) *$", out, re.MULTILINE)}
    assert cells["figure"] == ["fifo", "srtf"]
    for label, key in (("average JCT", "avg_jct_h"), ("makespan", "makespan_h")):
        shown = [float(cell) for cell in cells[label] if cell != "h"]
        assert shown == pytest.approx([each[key] for each in policies], rel=0.02), label
    assert [int(cell) for cell in cells["jobs completed"]] == [each["jobs_completed"] for each in policies]


def test_rounds_of_unlike_length_are_pointed_out(capsys):
    few = ("--cluster", "sia-het", "--jobs", "20", "--rounds", "5", "--warmup-rounds", "0")
    code, out, err = run(capsys, "compare", "--policies", "fifo,gavel", *few, "--json")
    assert code == 0
    assert [each["simulated_h"] for each in json.loads(out)["policies"]] == [pytest.approx(5 / 60), pytest.approx(0.5)]
    assert "fifo 0.08333 h, gavel 0.5 h" in err
    assert "--hours" in run(capsys, "compare", "--policies", "fifo,gavel", *few)[2]
    _, _, quiet = run(capsys, "compare", "--policies", "fifo,gavel", *few, "--round-s", "60")
    assert "not as long" not in quiet


@pytest.mark.parametrize(
    ("policies", "complaint"), [("fifo,lunch", "lunch"), ("fifo,fifo", "twice"), (",", "at least one")]
)
def test_bad_lists_of_policies_are_one_line_and_code_2(capsys, policies: str, complaint: str):
    code, out, err = run(capsys, "compare", "--policies", policies, *SMALL)
    assert (code, out) == (2, "")
    assert complaint in err


@pytest.mark.parametrize("given", [(), ("fifo", "gavel")])
def test_policies_that_are_not_named_are_asked_for_with_an_example(capsys, given: tuple[str, ...]):
    code, out, err = run(capsys, "compare", *given)
    assert (code, out) == (2, "")
    assert err == "copter: name the policies to compare: copter compare --policies sia,fifo\n"


def test_each_policy_has_its_own_folder(capsys, tmp_path):
    code, _, err = run(capsys, "compare", "--policies", "fifo,srtf", *SMALL, "--out", str(tmp_path / "out"))
    assert code == 0, err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["fifo", "srtf"]
    assert (tmp_path / "out" / "fifo" / "report.html").exists()


def test_two_clusters_are_a_usage_error(capsys):
    code, _, err = run(capsys, "compare", "--policies", "fifo", "--gpus", "64", "--cluster", "sia-het")
    assert code == 2
    assert "--gpus" in err
