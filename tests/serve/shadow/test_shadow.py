"""`copter shadow`: what it finds, that it goes on when it is blind, and that it changes nothing."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from command_line import run_json
from kube_cluster import GPU, FakeApi, cluster_queue, group, node, pod, served, sharing_teams, two_teams, workload

from copter_frontends import cli
from copter_serve.shadow.live import LivePage
from copter_serve.shadow.page import shadow_page
from copter_serve.shadow.sources import reader
from copter_serve.shadow.watch import Shadow
from copter_serve.views.kueue import kueue_view

START_S = 1_795_600_800.0


class Clock:
    def __init__(self) -> None:
        self.now = START_S

    def __call__(self) -> float:
        return self.now


def test_what_the_clusters_own_decisions_leave_unused() -> None:
    shadow = Shadow(lambda: kueue_view(two_teams()))
    with shadow:
        shadow.look()
    now = shadow.findings
    assert now is not None
    assert (now.quota, now.used, now.could) == (16.0, 12.0, 2.0)
    assert now.bound == 2.0  # the job of 8 fits no more, and half of it is no job
    assert [each["job"] for each in now.starts] == ["b/small"]
    assert now.unfair == [{"job": "b/own", "queue": "blue", "units": 8.0, "borrowed_by": ["red"]}]
    assert now.overturned == [{"job": "b/own", "queue": "blue", "priority": 5, "started_instead": ["r/big"]}]
    assert now.scattered == []


def test_hours_are_counted_between_rounds_and_blind_ones_apart() -> None:
    clock = Clock()
    api = FakeApi(two_teams())
    with served(api) as address:
        read, live = reader("kueue", address)
        assert live
        with Shadow(read, grace_s=0.0, clock=clock) as shadow:
            assert shadow.look() is None
            clock.now += 3600.0
            api.broken = True
            line = shadow.look()
            assert line is not None
            assert line.startswith("blind since ")
            assert "answers 503" in line
            clock.now += 600.0
            assert shadow.look() is None
            assert "Blind since" in shadow_page(shadow)
            clock.now += 600.0
            api.broken = False
            assert shadow.look() is not None
            clock.now += 1800.0
            shadow.look()
        summary = shadow.summary()
    assert summary["blind_s"] == 1200.0
    assert summary["blind_since"] is None
    assert summary["watched_hours"] == pytest.approx(1.5)
    assert summary["unused_unit_hours"]["at_least"] == pytest.approx(3.0)
    assert summary["unused_unit_hours"]["at_most"] == pytest.approx(3.0)
    assert summary["jobs"] == [{"job": "b/small", "waited_for_nothing_s": 5400.0}]
    assert api.patches == []


def test_one_session_as_long_as_the_quotas_stay() -> None:
    found = two_teams()
    shadow = Shadow(lambda: kueue_view(found))
    with shadow:
        shadow.look()
        session = shadow._model
        del found[-1]
        shadow.look()
        assert shadow._model is session
        assert shadow.findings is not None
        assert shadow.findings.starts == []
        found[1] = cluster_queue("red", 9, "lab")
        shadow.look()
        assert shadow._model is not session
        assert shadow.findings.quota == 17.0


def test_a_job_that_just_came_is_on_its_way() -> None:
    clock = Clock()
    with Shadow(lambda: kueue_view(two_teams()), grace_s=1e9, clock=clock) as shadow:
        shadow.look()
        clock.now += 3600.0
        shadow.look()
    assert shadow.summary()["unused_unit_hours"] == {"at_least": 0.0, "at_most": 0.0}
    assert shadow.findings is not None
    assert shadow.findings.could == 2.0


def test_free_in_pieces(tmp_path: Path) -> None:
    """A pod of 6 finds no node though two nodes have 4 free each."""
    raw = {
        "queues": [{"metadata": {"name": "red"}, "spec": {}}],
        "nodes": [node("n1", 8), node("n2", 8)],
        "podGroups": [group("a", "red", "x/v1"), group("b", "red", "x/v1")],
        "pods": [pod("a-0", "a", 4, "n1"), pod("a-1", "a", 4, "n2"), pod("b-0", "b", 6)],
    }
    path = tmp_path / "kai.json"
    path.write_text(json.dumps({"rawObjects": raw}))
    with Shadow(reader("kai", str(path))[0]) as shadow:
        shadow.look()
    assert shadow.findings is not None
    assert shadow.findings.scattered == [
        {"job": "ns/b", "queue": "red", "pod_needs": 6.0, "fullest_offer": 4.0, "free": 8.0}
    ]


def test_a_mistyped_file_leaves_no_tape_and_a_tape_is_not_written_over(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tape = tmp_path / "shadow.tape"
    given = ["shadow", "--kueue", str(tmp_path / "nothing.json"), "--tape", str(tape)]
    with pytest.raises(SystemExit) as ended:
        cli.main(given)
    assert (ended.value.code, tape.exists()) == (1, False)
    assert "cannot be read: No such file" in capsys.readouterr().err
    tape.write_bytes(b"mine")
    with pytest.raises(SystemExit) as ended:
        cli.main(given)
    assert (ended.value.code, tape.read_bytes()) == (2, b"mine")
    assert "is there already" in capsys.readouterr().err


def test_the_command_writes_a_report_and_a_tape(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    objects, out, tape = tmp_path / "o.json", tmp_path / "report.html", tmp_path / "shadow.tape"
    odd = workload("b/<odd>", 1) | {"apiVersion": "kueue.x-k8s.io/v0"}
    objects.write_text(json.dumps([*two_teams(), odd]))
    code, found, error = run_json(
        capsys, "shadow", "--kueue", str(objects), "--out", str(out), "--tape", str(tape), "--rounds", "2",
        "--every", "0.01",
    )  # fmt: skip
    assert code == 0
    assert found["rounds"] == 2
    assert found["now"]["could"] == 2.0
    assert error.count("version 'v0'") == 1
    page = out.read_text()
    assert "b/small" in page
    assert "<odd>" not in page
    code, info, _ = run_json(capsys, "tape", "info", str(tape))
    assert code == 0
    assert info["rounds"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "give one of --kueue"),
        (("--kueue", "a", "--kai", "b"), 2, "give one of --kueue"),
        (("--kueue", "nowhere.json"), 1, "blind since"),
        (("--slurm", "nowhere.json", "nowhere.json"), 1, "nowhere.json: cannot be read"),
        (("--kueue", "http://127.0.0.1:9", "--rounds", "1"), 1, "out of reach"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["shadow", *arguments])
    assert ended.value.code == code
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_the_live_page_answers_this_machines_names_only() -> None:
    page = LivePage(0)
    try:
        with Shadow(lambda: kueue_view(two_teams())) as shadow:
            shadow.look()
            page.show(shadow)
        with urllib.request.urlopen(page.address) as answer:
            text = answer.read().decode()
        assert "b/own" in text
        assert 'http-equiv="refresh"' in text
        with urllib.request.urlopen(f"{page.address}shadow.json") as answer:
            assert json.load(answer)["now"]["resource"] == GPU
        for path, host in (("", "evil.example"), ("nowhere", "localhost")):
            asked: Any = urllib.request.Request(page.address + path, headers={"Host": host})
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(asked)
    finally:
        page.close()


def test_fair_sharing_names_who_has_too_much_and_starts_the_lowest_share_first() -> None:
    shadow = Shadow(lambda: kueue_view(sharing_teams()))
    with shadow:
        shadow.look()
    now = shadow.findings
    assert now is not None
    assert [each["job"] for each in now.starts] == ["b/0", "b/1", "b/2"]  # not r/more, whose priority is higher
    assert now.shares == [
        {"queue": "red", "weight": 1.0, "share": pytest.approx(6.0 / 16.0)},
        {"queue": "blue", "weight": 1.0, "share": 0.0},
    ]
    assert now.overturned == []
    assert "Fair sharing: part of what can be lent" in shadow_page(shadow)


def test_fair_sharing_names_who_waits_with_a_smaller_share() -> None:
    documents = sharing_teams()
    held = [workload(f"r/x{at}", 2, admitted="red") for at in range(3)]
    shadow = Shadow(lambda: kueue_view([*documents, *held]))
    with shadow:
        shadow.look()
    assert shadow.findings is not None
    assert shadow.findings.unfair[0] == {"job": "b/0", "queue": "blue", "units": 2.0, "borrowed_by": ["red"]}
    assert "r/more" not in [each["job"] for each in shadow.findings.unfair]


def test_the_page_says_durations_as_people_do_and_fits_a_phone() -> None:
    shadow = Shadow(lambda: kueue_view(two_teams()))
    with shadow:
        shadow.look()
    found = shadow.findings
    assert found is not None
    found.starts[:] = found.starts[:1]
    found.starts[0]["waits_s"] = 18_130.9
    page = shadow_page(shadow)
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert ": 1 job could start now</h2>" in page
    assert ">waits</th>" in page
    assert ">5.0 h</td>" in page
    assert "18130" not in page
    assert "<dt>watched</dt><dd>0 s, blind for 0 s</dd>" in page
