"""Gavel's traces: their steps become durations by a file of measured throughputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from copter_frontends.simulator.traces import find_throughputs, read_throughputs, read_trace, with_durations
from copter_frontends.simulator.workload import make_workload
from copter_frontends.vocabulary import TraceError

RATES = """job_type,scale_factor,gpu_type,steps_per_s
LM,1,v100,10.0
LM,2,v100,8.0
LM,1,k80,2.0
A3C,1,v100,0.0
"""
TRACE = """job_type,total_steps,arrival_time_s,scale_factor
LM,1000,0,1
LM,1000,5,2
LM,1000,6,4
A3C,10,7,1
GAN,10,8,1
"""


@pytest.fixture
def rates(tmp_path: Path) -> str:
    path = tmp_path / "rates.csv"
    path.write_text(RATES)
    return str(path)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return str(path)


def test_steps_become_durations_and_what_was_not_measured_is_skipped(rates: str, trace: str) -> None:
    found = with_durations(read_trace(trace), read_throughputs(rates))
    assert [job.duration_s for job in found.jobs] == [100.0, 125.0, 125.0]  # 4 GPUs count as 2
    assert [(line.line_number, line.reason) for line in found.skipped] == [
        (5, "no throughput of 'A3C' on 1 GPUs or fewer"),
        (6, "no throughput of 'GAN' on 1 GPUs or fewer"),
    ]


def test_the_gpu_type_may_be_chosen(rates: str) -> None:
    assert read_throughputs(rates, "k80") == {"LM": {1: 2.0}}
    with pytest.raises(TraceError, match="says nothing of GPU type 'h100'"):
        read_throughputs(rates, "h100")


def test_a_workload_is_made_of_a_gavel_trace(rates: str, trace: str) -> None:
    made = make_workload(trace, None, 24.0, 64, 0, throughputs=rates)
    assert [job.requested_gpus for job in made.jobs] == [1, 2, 4]
    assert len(made.skipped_lines) == 2
    assert all(job.work_samples for job in made.jobs)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\n1,2\n", "no file of throughputs: its header lacks"),
        ("job_type,scale_factor,gpu_type,steps_per_s\nLM,1,v100,fast\n", "line 2: steps_per_s is 'fast', not a number"),
        ("job_type,scale_factor,gpu_type,steps_per_s\nLM,1,v100\n", "line 2: the line has 3 fields, the header 4"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, trace: str, text: str, complaint: str) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(TraceError) as error:
        make_workload(trace, None, 24.0, 64, 0, throughputs=str(path))
    assert complaint in str(error.value)
    assert "wrong.csv" in str(error.value)


def test_without_a_file_the_error_says_what_to_give(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COPTER_DATA", str(tmp_path / "none"))
    assert find_throughputs(trace) is None
    with pytest.raises(TraceError, match="--throughputs"):
        make_workload(trace, None, 24.0, 64, 0)
