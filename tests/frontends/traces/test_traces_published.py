"""Traces as they are published: archives, marks in place of missing times, and headers that are nearly right."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from copter_frontends.simulator.traces import TraceFormat, read_trace
from copter_frontends.vocabulary import TraceError

LOG = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
RAN = "a,u,v,2,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:10:00,2020-04-01 01:10:00,3600,600"
TASKS = "j,worker,2,Terminated,100.0,5000.0,600,29,50,T4\nk,worker,1,Terminated,100.0,9000.0,600,29,100,MISC\n"


def kept(folder: Path, content: str | bytes, name: str = "trace") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def tar_of(files: dict[str, str]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return whole.getvalue()


def zip_of(files: dict[str, str]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return whole.getvalue()


@pytest.mark.parametrize("packed", [tar_of, zip_of])
def test_an_archive_of_one_file_is_read_and_one_of_more_is_refused(tmp_path: Path, packed: object) -> None:
    assert callable(packed)
    trace = read_trace(kept(tmp_path, packed({"pai_task_table.csv": TASKS})))
    assert trace.format is TraceFormat.PAI
    assert [(job.name, job.gpus) for job in trace.jobs] == [("j/worker", 1), ("k/worker", 1)]
    assert trace.skipped == []
    with pytest.raises(TraceError, match=r"archive of 2 files \(one.csv, two.csv\); unpack it"):
        read_trace(kept(tmp_path, packed({"one.csv": TASKS, "two.csv": TASKS})))


def test_an_archive_that_is_cut_is_refused(tmp_path: Path) -> None:
    whole = zip_of({"log.csv": f"{LOG}\n{RAN}\n"})
    with pytest.raises(TraceError, match="damaged archive"):
        read_trace(kept(tmp_path, whole[:-30]))
    cut = gzip.decompress(tar_of({"log.csv": f"{LOG}\n{RAN}\n" * 40}))[:1200]
    with pytest.raises(TraceError, match="damaged archive"):
        read_trace(kept(tmp_path, cut))


@pytest.mark.parametrize("mark", ["", "None", "Unknown", "nan", "NULL"])
def test_a_job_that_never_started_is_left_out_and_is_no_broken_line(tmp_path: Path, mark: str) -> None:
    trace = read_trace(kept(tmp_path, f"{LOG}\n{RAN}\nb,u,v,1,4,1,CANCELLED,2020-04-01 00:00:00,{mark},{mark},0,0\n"))
    assert [job.name for job in trace.jobs] == ["a"]
    assert (trace.skipped, trace.filtered) == ([], 1)
    attempt = {"start_time": "2017-10-09 07:00:00", "end_time": "2017-10-09 08:00:00", "detail": [{"gpus": ["0"]}]}
    job = {"vc": "v", "jobid": "a", "attempts": [attempt], "submitted_time": "2017-10-09 06:00:00"}
    open_one = {**job, "jobid": "b", "attempts": [{**attempt, "end_time": mark}]}
    trace = read_trace(kept(tmp_path, json.dumps([job, open_one])))
    assert [job.name for job in trace.jobs] == ["a"]
    assert (trace.skipped, trace.filtered) == ([], 1)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (LOG.replace("gpu_num,", ""), "nearest to a cluster log of Helios or Acme, and lacks the columns gpu_num;"),
        (LOG.upper(), "lacks the columns job_id,gpu_num,state,submit_time,start_time,end_time, in these letters"),
        (LOG.replace(",", ";"), "separated by ';' here and must be by commas"),
        (LOG.replace(",", "\t"), "separated by tabs here"),
        ('{"jobid": "a"}\n{"jobid": "b"}', "must be one list of jobs"),
        ("", "the file is empty"),
        ("a,b,c", "found a,b,c; expected"),
    ],
)
def test_a_header_that_is_nearly_right_says_what_is_wrong(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(TraceError) as refused:
        read_trace(kept(tmp_path, content))
    assert told in str(refused.value)


def test_what_a_mac_adds_to_an_archive_is_passed_over(tmp_path: Path) -> None:
    packed = zip_of({"log.csv": f"{LOG}\n{RAN}\n", "__MACOSX/._log.csv": "x", "logs/.DS_Store": "x"})
    assert [job.name for job in read_trace(kept(tmp_path, packed)).jobs] == ["a"]


@pytest.mark.parametrize(("local", "central", "value"), [(6, 8, 1), (8, 10, 99)])
def test_an_archive_with_a_password_or_an_unknown_compression_is_told(
    tmp_path: Path, local: int, central: int, value: int
) -> None:
    packed = bytearray(zip_of({"log.csv": f"{LOG}\n{RAN}\n"}))
    packed[packed.find(b"PK\x03\x04") + local] = value
    packed[packed.find(b"PK\x01\x02") + central] = value
    with pytest.raises(TraceError, match="cannot be unpacked here"):
        read_trace(kept(tmp_path, bytes(packed)))


def test_odd_jobs_of_phillys_log_are_broken_lines(tmp_path: Path) -> None:
    attempt = {"start_time": "2017-10-09 07:00:00", "end_time": "2017-10-09 08:00:00", "detail": [{"gpus": ["0"]}]}
    job = {"vc": "v", "jobid": "a", "attempts": [attempt], "submitted_time": "2017-10-09 06:00:00"}
    zones = {**job, "jobid": "b", "attempts": [{**attempt, "start_time": "2017-10-09 07:00:00+00:00"}]}
    back = {**job, "jobid": "c", "attempts": [{**attempt, "end_time": "2017-10-09 06:00:00"}]}
    trace = read_trace(kept(tmp_path, json.dumps([job, zones, back, job, {**job, "jobid": "\ud800"}])))
    assert [each.name for each in trace.jobs] == ["a", "?"]
    assert [each.line_number for each in trace.skipped] == [2, 3, 4]
    assert "ends before it starts" in trace.skipped[1].reason
    assert "was there before, as number 1" in trace.skipped[2].reason


def test_a_part_of_a_longer_trace_begins_at_zero(tmp_path: Path) -> None:
    trace = read_trace(kept(tmp_path, "j,worker,2,Terminated,4550879.0,4552879.0,600,29,50,T4\n"))
    assert [job.submit_s for job in trace.jobs] == [0.0]
