"""Traces of other schedulers: sound lines, every kind of broken one by its number, and which format a header is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from copter_frontends.simulator.traces import TraceFormat, listed_jobs, read_trace
from copter_frontends.simulator.traces.formats import LINE_FORMATS, line_format_of
from copter_frontends.simulator.workload import make_workload
from copter_frontends.vocabulary import TraceError

DATA = Path(os.environ.get("COPTER_DATA", "../shared/data"))

HEADERS = {
    "gavel": "job_type,total_steps,arrival_time_s,scale_factor,priority_weight,SLO",
    "shockwave": "job_type,total_steps,arrival_time_s,scale_factor,mode,priority_weight,SLO,duration_s",
    "chronus": "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,"
    "expect_time_list,expect_value_list,best_effort,job_type",
    "tiresias": "job_id,num_gpu,submit_time,iterations,model_name,duration,interval",
    "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time",
    "cluster-log": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
    "pai": "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
    "spot": "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type",
}
SOUND = {
    "gavel": "ResNet-18 (batch size 16),300,5.0,2,1.0,-1.0",
    "shockwave": "LM (batch size 80),4000,24.0,4,gns,1.0,-1.0,700.0",
    "chronus": "7,vc,2,10,100,vgg16,30,5,50-80,10-5,0,soft",
    "tiresias": "3,8,30,133,vgg11,147,23",
    "openb": "pod-1,6000,100,1,460,T4|P100,LS,Running,100,700,200",
    "cluster-log": "9,u,vc1,8,64,1,COMPLETED,2020-04-01 00:05:00,2020-04-01 00:06:00,2020-04-01 01:06:00,3600,60",
    "pai": "job-a,worker,3,Terminated,1000.0,1600.0,600.0,29.3,50.0,V100",
    "spot": "17,3,A10,8.0,1.0,4,120,600.0,Spot",
}
BROKEN = [
    ("gavel", "ResNet-18,300,5.0,0,1.0,-1.0", "scale_factor"),
    ("gavel", ",300,5.0,1,1.0,-1.0", "job_type is empty"),
    ("gavel", "ResNet-18,0,5.0,1,1.0,-1.0", "total_steps"),
    ("gavel", "ResNet-18,300,5.0,1,1.0", "5 fields"),
    ("shockwave", "LM,4000,24.0,4,sometimes,1.0,-1.0,700.0", "mode"),
    ("shockwave", "LM,4000,nan,4,gns,1.0,-1.0,700.0", "arrival_time_s"),
    ("chronus", "8,vc,2,10,100,vgg16,30,5,50-80,10,0,soft", "2 entries"),
    ("chronus", "8,vc,2,10,100,vgg16,30,5,80-50,10-5,0,soft", "increase"),
    ("chronus", "8,vc,2,10,100,vgg16,30,5,x,10,0,strict", "expect_time_list"),
    ("chronus", "8,vc,2,10,100,vgg16,30,5,50,10,1,soft", "best_effort"),
    ("chronus", "8,vc,2,10,100,vgg16,30,5,50,10,0,hard", "job_type"),
    ("tiresias", "3,1,40,133,vgg11,147,23", "line 2"),
    ("tiresias", "4,1.5,40,133,vgg11,147,23", "num_gpu"),
    ("tiresias", "4,1,40,133,vgg11,0,23", "duration"),
    ("openb", "pod-2,6000,100,2,460,,LS,Running,100,700,200", "gpu_milli"),
    ("openb", "pod-2,6000,100,1,460,,LS,Running,300,700,200", "order"),
    ("cluster-log", "10,u,v,1,4,1,FAILED,2020-04-01 00:05:00,2020-04-01 00:04:00,2020-04-01 01:00:00,1,1", "order"),
    ("cluster-log", "10,u,v,1,4,1,FAILED,yesterday,2020-04-01 00:04:00,2020-04-01 01:00:00,1,1", "submit_time"),
    ("pai", "job-b,worker,0.5,Terminated,1000,1600,600,29,50,V100", "inst_num"),
    ("spot", "18,3,A10,8,1,4,120,600,Cold", "job_type"),
]


def write(folder: Path, name: str, *lines: str) -> Path:
    path = folder / "trace.csv"
    path.write_text("\n".join([HEADERS[name], SOUND[name], *lines]) + "\n")
    return path


@pytest.mark.parametrize("name", HEADERS)
def test_the_header_tells_the_format_in_any_order_of_columns(tmp_path: Path, name: str) -> None:
    assert read_trace(write(tmp_path, name)).format.value == name
    header, row = HEADERS[name].split(",")[::-1], SOUND[name].split(",")[::-1]
    (tmp_path / "turned.csv").write_text(",".join([*header, "extra"]) + "\n" + ",".join([*row, "1"]) + "\n")
    turned = read_trace(tmp_path / "turned.csv")
    assert turned.format.value == name
    assert turned.jobs == read_trace(write(tmp_path, name)).jobs


def test_formats_that_contain_others_are_tried_first() -> None:
    for at, each in enumerate(LINE_FORMATS):
        assert line_format_of(set(each.columns)) is each, at


def test_what_the_formats_say_of_a_job(tmp_path: Path) -> None:
    jobs = {name: read_trace(write(tmp_path, name)).jobs[0] for name in HEADERS}
    gavel, shockwave, chronus = jobs["gavel"], jobs["shockwave"], jobs["chronus"]
    assert (gavel.model, gavel.steps, gavel.submit_s, gavel.gpus) == ("ResNet-18 (batch size 16)", 300, 5.0, 2)
    assert (gavel.duration_s, gavel.deadlines) == (None, ())
    assert (shockwave.duration_s, shockwave.batch_schedule, shockwave.steps) == (700.0, "gns", 4000)
    assert (chronus.submit_s, chronus.duration_s) == (600.0, 1800.0)  # minutes
    assert chronus.deadlines == ((3000.0, 10.0), (4800.0, 5.0))
    assert (jobs["tiresias"].submit_s, jobs["tiresias"].duration_s, jobs["tiresias"].gpus) == (30.0, 147.0, 8)
    openb = jobs["openb"]
    assert (openb.submit_s, openb.duration_s, openb.gpu_share, openb.gpu_types) == (100.0, 500.0, 0.46, ("T4", "P100"))


@pytest.mark.parametrize(("name", "line", "why"), BROKEN)
def test_a_broken_line_is_skipped_with_its_number_and_reason(tmp_path: Path, name: str, line: str, why: str) -> None:
    trace = read_trace(write(tmp_path, name, line))
    assert len(trace.jobs) == 1
    (skipped,) = trace.skipped
    assert skipped.line_number == 3
    assert why in skipped.reason


def test_an_slo_is_a_deadline(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, "gavel", "LM,300,6.0,1,1.0,900.0"))
    assert trace.jobs[1].deadlines == ((900.0, 1.0),)


def test_jobs_without_gpus_and_jobs_that_never_ran_are_left_out_but_counted(tmp_path: Path) -> None:
    assert read_trace(write(tmp_path, "chronus", "8,vc,0,10,100,vgg16,30,5,50,10,0,strict")).filtered == 1
    idle = ("pod-2,1,1,0,0,,LS,Running,1,9,2", "pod-3,1,1,1,1000,,LS,Pending,1,9,", "pod-4,1,1,1,500,,LS,Failed,1,2,2")
    assert read_trace(write(tmp_path, "openb", *idle)).filtered == 3


def test_an_unknown_header_is_one_error_that_names_every_format(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nnode-0,1,1,2,P100\n")
    with pytest.raises(TraceError, match="unknown header") as raised:
        read_trace(path)
    for title in ("Philly", "Sia", "Gavel", "Shockwave", "Chronus", "Tiresias", "openb"):
        assert title in str(raised.value)


def test_public_logs_as_they_are_published(tmp_path: Path) -> None:
    acme = tmp_path / "trace_seren.csv"
    acme.write_text(
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
        "1,u,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,1,1,1\n"
        "2,u,1,8,128,Other,FAILED,2023-02-28 16:28:22+00:00,2023-02-28 16:28:22+00:00,2023-02-28 16:29:22+00:00,1,1,1\n"
        "3,u,1,0,128,Other,COMPLETED,2023-03-01 00:18:22+08:00,,,1,1,1\n"
    )
    read = read_trace(acme)
    assert [(job.submit_s, job.duration_s, job.gpus) for job in read.jobs] == [(0.0, 117.0, 8), (600.0, 60.0, 8)]
    assert (read.filtered, "no model" in read.lacks) == (1, True)

    pai = tmp_path / "pai_task_table.csv"
    pai.write_text(
        "a,w,2,Terminated,100.0,700.0,600.0,29.3,50.0,MISC\nb,w,1,Failed,50.0,60.0,600.0,29.3,25.0,T4\n"
        "c,w,1,Waiting,,,600.0,29.3,25.0,T4\nd,ps,1,Terminated,1.0,2.0,600.0,29.3,,\n"
    )
    jobs = read_trace(pai).jobs
    assert [(job.name, job.gpus, job.gpu_share, job.gpu_types) for job in jobs] == [
        ("b/w", 1, 0.25, ("T4",)),
        ("a/w", 1, 1.0, ()),
    ]

    jobs = read_trace(write(tmp_path, "spot", "18,3,H800,8,0.5,1,60,30,HP")).jobs
    assert [(job.gpus, job.gpu_share, job.preemptible, job.priority, job.tenant) for job in jobs] == [
        (1, 0.5, False, 1, "3"),
        (4, 1.0, True, 0, "3"),
    ]


def test_phillys_own_log(tmp_path: Path) -> None:
    node = {"ip": "m1", "gpus": ["gpu0", "gpu1"]}
    first = {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:20:00", "detail": [node]}
    again = {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:30:00", "detail": [node, node]}
    never = {"start_time": None, "end_time": None, "detail": []}
    log = [
        {
            "status": "Pass",
            "vc": "6c71",
            "jobid": "application_2",
            "attempts": [again],
            "submitted_time": "2017-10-07 01:30:00",
        },
        {
            "status": "Failed",
            "vc": "6c71",
            "jobid": "application_1",
            "attempts": [first, again],
            "submitted_time": "2017-10-07 01:00:00",
        },
        {
            "status": "Killed",
            "vc": "6c71",
            "jobid": "application_3",
            "attempts": [never],
            "submitted_time": "2017-10-07 01:00:00",
        },
        {"status": "Killed", "vc": "6c71", "jobid": "application_4", "attempts": []},
    ]
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps(log))
    read = read_trace(path)
    assert [(job.name, job.submit_s, job.gpus, job.duration_s) for job in read.jobs] == [
        ("application_1", 0.0, 4, 2400.0),
        ("application_2", 1800.0, 4, 1800.0),
    ]
    assert (read.filtered, [each.line_number for each in read.skipped]) == (1, [4])
    assert len(listed_jobs(read)) == 2
    path.write_text("[1")
    with pytest.raises(TraceError, match="is not JSON"):
        read_trace(path)


def test_jobs_keep_their_times_and_requests(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, "tiresias", "4,2,60,100,vgg16,36000,10"))
    short, long = listed_jobs(trace)
    assert [(job.submit_s, job.requested_gpus, job.application) for job in (short, long)] == [
        (30.0, 8, "cifar10"),
        (60.0, 2, "yolov3"),
    ]
    made = make_workload(trace.path, 1, 24.0, 64, 0)
    assert ([job.id for job in made.jobs], made.sampled) == ([short.id], False)


def test_a_trace_without_durations_makes_no_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COPTER_DATA", str(tmp_path / "none"))
    with pytest.raises(TraceError, match="--throughputs"):
        make_workload(str(write(tmp_path, "gavel")), None, 24.0, 64, 0)


PUBLIC = {
    "traces/gavel_philly/seed0.csv.gz": TraceFormat.GAVEL,
    "traces/gavel_physical/max_min_fairness.csv": TraceFormat.GAVEL,
    "traces/shockwave/120_0.2_5_100_40_25_0-0.5-0.5_0.6-0.3-0.09-0.01_multigpu_dynamic.csv": TraceFormat.SHOCKWAVE,
    "traces/chronus_philly/trace_job_Philly_MIX2.csv.gz": TraceFormat.CHRONUS,
    "traces/tiresias/60_job.csv": TraceFormat.TIRESIAS,
    "alibaba/openb_v2023/openb_pod_list_default.csv": TraceFormat.OPENB,
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_traces_are_read_whole(name: str) -> None:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"no trace at {path}: set COPTER_DATA to the data folder")
    trace = read_trace(path)
    assert trace.format is PUBLIC[name]
    assert trace.jobs
    assert not trace.skipped
