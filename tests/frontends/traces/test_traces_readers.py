"""Readers: sound lines come through, every kind of broken line is skipped with its reason, whole-file faults raise."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from copter_frontends.simulator.traces import SkippedLine, TraceFormat, read_trace
from copter_frontends.vocabulary import TraceError

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))
PHILLY = DATA / "philly" / "philly_sia.csv.gz"
WORKLOADS = DATA / "traces" / "sia"
needs_philly = pytest.mark.skipif(
    not PHILLY.is_file(), reason=f"no trace at {PHILLY}: set COPTER_DATA to the data folder"
)
needs_workloads = pytest.mark.skipif(not WORKLOADS.is_dir(), reason=f"no workloads at {WORKLOADS}: set COPTER_DATA")

LOG = "timestamp,duration,num_gpus,gpu_time,cluster\n"
SOUND_LOG = "2017-10-09 07:01:55,3600.0,2,7200.0,a\n"
WORKLOAD = "name,time,application,num_replicas,batch_size\n"
SOUND_WORKLOAD = "bert-0,107,bert,6,48\n"


def write(folder: Path, text: str | bytes, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_log_is_read_by_time_from_its_first_midnight(tmp_path: Path) -> None:
    later = "2017-10-10 00:00:10,120,1,120,b\n"
    trace = read_trace(write(tmp_path, LOG + later + SOUND_LOG))
    assert trace.format is TraceFormat.PHILLY
    assert trace.start == datetime(2017, 10, 9)
    assert [job.submit_s for job in trace.jobs] == [7 * 3600 + 115, 86410]
    assert (trace.jobs[0].gpus, trace.jobs[0].duration_s, trace.jobs[0].gpu_hours) == (2, 3600.0, 2.0)
    assert trace.skipped == []


def test_a_workload_is_read_with_columns_in_any_order(tmp_path: Path) -> None:
    text = ",Unnamed: 0,application,name,batch_size,num_replicas,time,category\n0,0,ncf,ncf-1,512,3.0,13.5,S\n"
    trace = read_trace(write(tmp_path, text))
    assert trace.format is TraceFormat.WORKLOAD
    (job,) = trace.jobs
    assert (job.name, job.application, job.submit_s, job.gpus, job.batch_size) == ("ncf-1", "ncf", 13.5, 3, 512)
    assert job.gpu_hours == 0


def test_gzip_is_known_by_content_not_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress((LOG + SOUND_LOG).encode()), "no-suffix")
    assert len(read_trace(path).jobs) == 1
    assert len(read_trace(write(tmp_path, "\ufeff" + LOG + SOUND_LOG, "plain.gz")).jobs) == 1


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_bzip2_and_xz_are_read_and_damage_is_told(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    content = pack((LOG + SOUND_LOG).encode())
    assert len(read_trace(write(tmp_path, content)).jobs) == 1
    with pytest.raises(TraceError, match=r"damaged (bzip2|xz) file"):
        read_trace(write(tmp_path, content[:-8]))


def test_utf_16_is_read(tmp_path: Path) -> None:
    assert len(read_trace(write(tmp_path, (LOG + SOUND_LOG).encode("utf-16"))).jobs) == 1


def test_short_and_huge_jobs_are_filtered_not_skipped(tmp_path: Path) -> None:
    short = "2017-10-09 07:01:55,59.9,1,59.9,a\n"
    huge = "2017-10-09 07:01:55,360000,10,3600000,a\n"
    trace = read_trace(write(tmp_path, LOG + short + huge + SOUND_LOG))
    assert (len(trace.jobs), trace.filtered, trace.skipped) == (1, 2, [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2017-10-09 07:01:55,3600,2,7200", "has 4 fields"),
        ("2017-10-09 07:01:55,3600,2,7200,a,b", "has 6 fields"),
        (",3600,2,7200,a", "timestamp is empty"),
        ("yesterday,3600,2,7200,a", "timestamp is 'yesterday'"),
        ("2017-10-09 07:01:55+00:00,3600,2,7200,a", "time zone"),
        ("2017-10-09 07:01:55,,2,7200,a", "duration is empty"),
        ("2017-10-09 07:01:55,nan,2,7200,a", "duration is nan"),
        ("2017-10-09 07:01:55,-5,2,7200,a", "duration is -5"),
        ("2017-10-09 07:01:55,inf,2,7200,a", "duration is inf"),
        ("2017-10-09 07:01:55,long,2,7200,a", "not a number"),
        ("2017-10-09 07:01:55,3600,0,7200,a", "num_gpus is 0"),
        ("2017-10-09 07:01:55,3600,1.5,7200,a", "num_gpus is 1.5"),
        ("2017-10-09 07:01:55,3600,2,NaN,a", "gpu_time is NaN"),
    ],
)
def test_broken_log_lines_are_skipped_with_number_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    trace = read_trace(write(tmp_path, LOG + SOUND_LOG + "\n" + line + "\n" + SOUND_LOG))
    assert len(trace.jobs) == 2
    (skipped,) = trace.skipped
    assert isinstance(skipped, SkippedLine)
    assert skipped.line_number == 4
    assert reason in skipped.reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (",107,bert,6,48", "name is empty"),
        ("bert-1,,bert,6,48", "time is empty"),
        ("bert-1,-1,bert,6,48", "time is -1"),
        ("bert-1,nan,bert,6,48", "time is nan"),
        ("bert-1,107,gpt5,6,48", "unknown application 'gpt5'"),
        ("bert-1,107,bert,0,48", "num_replicas is 0"),
        ("bert-1,107,bert,6,x", "batch_size is 'x'"),
        ("bert-1,107,bert,6", "has 4 fields"),
        ("bert-0,200,bert,6,48", "was used before, on line 2"),
    ],
)
def test_broken_workload_lines_are_skipped_with_number_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    trace = read_trace(write(tmp_path, WORKLOAD + SOUND_WORKLOAD + line + "\nbert-2,300,bert,1,12\n"))
    assert [job.name for job in trace.jobs] == ["bert-0", "bert-2"]
    (skipped,) = trace.skipped
    assert skipped.line_number == 3
    assert reason in skipped.reason


def test_every_application_that_is_known_may_be_told(tmp_path: Path) -> None:
    path = write(tmp_path, WORKLOAD + "x,1,mine,1,1\n")
    assert read_trace(path, {"mine"}).jobs[0].application == "mine"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "the file is empty"),
        ("a,b,c\n1,2,3\n", "unknown header; found a,b,c"),
        (LOG, "no usable line"),
        (LOG + "x,1,1,1,a\n", "no usable line .1 broken.*line 2: timestamp is 'x'"),
        (LOG + "2017-10-09 07:01:55,5,1,5,a\n", "1 left out"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"PAR1....", "a Parquet file: write it as CSV first"),
        (b"\x28\xb5\x2f\xfd....", "packed by zstd: unpack it first"),
        (gzip.compress((LOG + SOUND_LOG * 50).encode(), mtime=0)[:-20], "damaged gzip"),
        (gzip.compress((LOG + SOUND_LOG).encode(), mtime=0)[:12] + b"\x00" * 30, "damaged gzip"),
    ],
)
def test_unusable_files_raise_and_name_the_file(tmp_path: Path, content: str | bytes, complaint: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(TraceError, match=complaint) as caught:
        read_trace(path)
    assert str(path) in str(caught.value)


def test_missing_files_and_folders_raise(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"absent\.csv: cannot be read: No such file or directory$"):
        read_trace(tmp_path / "absent.csv")
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(tmp_path)


@given(st.binary(max_size=200))
def test_any_line_is_read_skipped_or_refused_but_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, tail: bytes
) -> None:
    path = write(tmp_path_factory.getbasetemp(), (LOG + SOUND_LOG).encode() + tail, "fuzz.csv")
    refusal, jobs = "", 0
    try:
        jobs = len(read_trace(path).jobs)
    except TraceError as error:
        refusal = str(error)
    assert jobs >= 1 or "fuzz.csv" in refusal


@needs_philly
def test_the_whole_philly_log_is_read() -> None:
    trace = read_trace(PHILLY)
    assert len(trace.jobs) + trace.filtered + len(trace.skipped) == 82_247
    assert (len(trace.jobs), len(trace.skipped)) == (74_428, 0)


@needs_workloads
def test_every_sia_workload_is_read_whole() -> None:
    for path in sorted(WORKLOADS.rglob("workload-*.csv")):
        trace = read_trace(path)
        assert trace.format is TraceFormat.WORKLOAD
        assert trace.skipped == []
        with open(path) as file:
            assert len(trace.jobs) == sum(1 for _ in file) - 1
