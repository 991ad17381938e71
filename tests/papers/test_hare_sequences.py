"""Sequences written for an executor, and its report read back."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from copter.runtime.errors import InvalidDataError
from copter_frontends.policies.hare import HareInstance, HareJob, HareSchedule, HareScheduler
from copter_papers.hare.sequences import COLUMNS, read_outcome, write_sequences


@pytest.fixture
def schedule() -> HareSchedule:
    jobs = [
        HareJob("a", rounds=5, tasks=3, train_s={"v100": 1.0, "k80": 4.0}, sync_s={"v100": 0.5, "k80": 0.5}),
        HareJob("b", rounds=3, tasks=2, train_s={"v100": 2.0}, arrival_s=1.0),
    ]
    return HareScheduler().schedule(HareInstance.of(jobs, {"v100": 2, "k80": 1})).schedule


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def test_every_task_is_written_once_and_no_gpu_has_two_at_a_time(schedule: HareSchedule, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    write_sequences(schedule, path)
    rows = rows_of(path)
    tasks = sum(int(row["rounds"]) for row in rows)
    assert tasks == 5 * 3 + 3 * 2
    ends: dict[tuple[str, str], float] = {}
    for row in rows:
        gpu = row["gpu_type"], row["gpu"]
        assert float(row["start_s"]) >= ends.get(gpu, 0.0) - 1e-9
        ends[gpu] = float(row["start_s"]) + float(row["duration_s"])
    again = read_outcome(schedule, path)
    assert [job.train_s["v100"] for job in again] == pytest.approx([1.0, 2.0])


def test_times_that_were_seen_are_taken_over(schedule: HareSchedule, tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    write_sequences(schedule, path)
    rows = [row for row in rows_of(path) if row["job"] == "b"]
    for row in rows:
        row["duration_s"] = str(3.0 * int(row["rounds"]))
    write(path, rows)
    a, b = read_outcome(schedule, path)
    assert b.train_s["v100"] == pytest.approx(3.0)
    assert a.train_s == {"v100": 1.0, "k80": 4.0}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"duration_s": "0"}, "line 2: duration_s is 0.0, must be finite and > 0"),
        ({"duration_s": "soon"}, "line 2: could not convert"),
        ({"job": "c"}, r"no task .* of job 'c'"),
        ({"gpu_type": "tpu"}, "does not run on 'tpu'"),
    ],
)
def test_a_report_that_cannot_be_is_told_by_line(
    schedule: HareSchedule, tmp_path: Path, change: dict[str, str], complaint: str
) -> None:
    path = tmp_path / "report.csv"
    write_sequences(schedule, path)
    rows = rows_of(path)
    write(path, [{**rows[0], **change}])
    with pytest.raises(InvalidDataError, match=complaint):
        read_outcome(schedule, path)


def test_a_task_that_is_reported_twice_is_told(schedule: HareSchedule, tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    write_sequences(schedule, path)
    rows = rows_of(path)
    write(path, [rows[0], rows[1], rows[0]])
    with pytest.raises(InvalidDataError, match=r"line 4: .* is reported twice, first in line 2"):
        read_outcome(schedule, path)
    (tmp_path / "none.csv").write_text("job,task\n")
    with pytest.raises(InvalidDataError, match="no column 'first_round'"):
        read_outcome(schedule, tmp_path / "none.csv")
    with pytest.raises(InvalidDataError, match="cannot be read"):
        read_outcome(schedule, tmp_path / "absent.csv")
