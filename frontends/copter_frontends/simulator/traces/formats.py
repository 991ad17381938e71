"""The formats of other schedulers' traces, one function per format (docs/papers/baselines.md, table of traces)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from math import ceil
from typing import Any

from copter_frontends.simulator.traces.fields import NOTHING, BadFieldError, Columns
from copter_frontends.simulator.traces.trace import TraceFormat, TraceJob

MINUTE_S = 60.0  # seconds in Chronus's unit of time, inferred from the trace's length
MILLI = 1000.0  # thousandths of a GPU
PERCENT = 100.0  # of a GPU

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class LineFormat:
    """A format with one job per line.

    Attributes
    ----------
    format : TraceFormat
    columns : tuple of str
        Required columns, in any order.
    title : str
        Name of the format in messages.
    parse : callable (columns, row) -> TraceJob or None
        Returns None for a valid line without a GPU job; raises BadFieldError for a broken line.
    lacks : str
        What the format does not tell, and what is taken in its place.
    """

    format: TraceFormat
    columns: tuple[str, ...]
    title: str
    parse: Callable[[Columns, Row], TraceJob | None]
    lacks: str = ""


def _gavel(columns: Columns, row: Row) -> TraceJob:
    return TraceJob(
        submit_s=columns.number(row, "arrival_time_s"),
        gpus=columns.count(row, "scale_factor"),
        model=columns.text(row, "job_type"),
        steps=columns.positive(row, "total_steps"),
        weight=columns.positive(row, "priority_weight") if columns.has("priority_weight") else 1.0,
        deadlines=_slo(columns, row),
    )


def _slo(columns: Columns, row: Row) -> tuple[tuple[float, float], ...]:
    """Return Gavel's SLO as a deadline in seconds with full value; -1 means none."""
    if not columns.has("SLO") or columns.text(row, "SLO") in ("-1", "-1.0", "-1.000000"):
        return ()
    return ((columns.positive(row, "SLO"), 1.0),)


def _shockwave(columns: Columns, row: Row) -> TraceJob:
    schedule = columns.text(row, "mode")
    if schedule not in ("static", "gns", "accordion"):
        raise BadFieldError(f"mode is {schedule!r}, must be static, gns or accordion")
    return TraceJob(
        submit_s=columns.number(row, "arrival_time_s"),
        gpus=columns.count(row, "scale_factor"),
        duration_s=columns.positive(row, "duration_s"),
        model=columns.text(row, "job_type"),
        steps=columns.positive(row, "total_steps"),
        weight=columns.positive(row, "priority_weight"),
        deadlines=_slo(columns, row),
        batch_schedule=schedule,
    )


def _chronus(columns: Columns, row: Row) -> TraceJob | None:
    if columns.whole(row, "num_gpu") == 0:
        return None
    kind, best = columns.text(row, "job_type"), columns.whole(row, "best_effort")
    if kind not in ("strict", "soft", "best"):
        raise BadFieldError(f"job_type is {kind!r}, must be strict, soft or best")
    if best not in (0, 1) or (best == 1) != (kind == "best"):
        raise BadFieldError(f"best_effort is {best}, which does not go with job_type {kind!r}")
    return TraceJob(
        submit_s=MINUTE_S * columns.number(row, "submit_time"),
        gpus=columns.count(row, "num_gpu"),
        duration_s=MINUTE_S * columns.positive(row, "duration"),
        name=columns.text(row, "job_id"),
        model=columns.text(row, "model_name"),
        steps=columns.positive(row, "iterations"),
        deadlines=() if best else _deadlines(columns, row),
    )


def _deadlines(columns: Columns, row: Row) -> tuple[tuple[float, float], ...]:
    """Return (seconds after submission, value) of each deadline, in ascending order of time."""
    times, values = columns.numbers(row, "expect_time_list"), columns.numbers(row, "expect_value_list")
    if len(times) != len(values):
        raise BadFieldError(f"expect_time_list has {len(times)} entries, expect_value_list {len(values)}")
    if any(after <= before for before, after in pairwise(times)):
        raise BadFieldError("expect_time_list does not increase")
    return tuple((MINUTE_S * time, value) for time, value in zip(times, values, strict=True))


def _tiresias(columns: Columns, row: Row) -> TraceJob | None:
    if columns.whole(row, "num_gpu") == 0:
        return None
    return TraceJob(
        submit_s=columns.number(row, "submit_time"),
        gpus=columns.count(row, "num_gpu"),
        duration_s=columns.positive(row, "duration"),
        name=columns.text(row, "job_id"),
        model=columns.text(row, "model_name"),
        steps=columns.positive(row, "iterations") if columns.has("iterations") else None,
    )


def _openb(columns: Columns, row: Row) -> TraceJob | None:
    gpus = columns.whole(row, "num_gpu")
    if gpus == 0 or columns.empty(row, "scheduled_time"):  # a job without GPUs, or one that never ran
        return None
    milli = columns.count(row, "gpu_milli")
    if milli > MILLI or (gpus > 1 and milli != MILLI):
        raise BadFieldError(f"gpu_milli is {milli} of {gpus} GPUs; it must be 1 to 1000, and 1000 of more than one GPU")
    submit_s, scheduled_s = columns.number(row, "creation_time"), columns.number(row, "scheduled_time")
    ended_s = columns.number(row, "deletion_time")
    if scheduled_s < submit_s or ended_s < scheduled_s:
        raise BadFieldError("creation_time, scheduled_time and deletion_time are not in this order")
    if ended_s == scheduled_s:
        return None
    kinds = () if columns.empty(row, "gpu_spec") else tuple(columns.text(row, "gpu_spec").split("|"))
    return TraceJob(
        submit_s=submit_s,
        gpus=gpus,
        duration_s=ended_s - scheduled_s,
        name=columns.text(row, "name"),
        gpu_share=milli / MILLI,
        gpu_types=kinds,
    )


def _cluster_log(columns: Columns, row: Row) -> TraceJob | None:
    gpus = columns.whole(row, "gpu_num")
    if gpus == 0 or columns.empty(row, "start_time") or columns.empty(row, "end_time"):
        return None
    submit_s, start_s = columns.clock(row, "submit_time"), columns.clock(row, "start_time")
    return _ran(submit_s, start_s, columns.clock(row, "end_time"), gpus, columns.text(row, "job_id"))


def _ran(submit_s: float, start_s: float, end_s: float, gpus: int, name: str, **more: Any) -> TraceJob | None:
    """Return a job that ran from a start to an end; None for one that took no time."""
    if not submit_s <= start_s <= end_s:
        raise BadFieldError("submission, start and end are not in this order")
    return None if start_s == end_s else TraceJob(submit_s, gpus, end_s - start_s, name, **more)


def _pai(columns: Columns, row: Row) -> TraceJob | None:
    if columns.empty(row, "plan_gpu") or columns.empty(row, "start_time") or columns.empty(row, "end_time"):
        return None
    asked = columns.count(row, "inst_num") * columns.number(row, "plan_gpu") / PERCENT
    start_s, name = (
        columns.number(row, "start_time"),
        f"{columns.text(row, 'job_name')}/{columns.text(row, 'task_name')}",
    )
    if asked == 0 or start_s == 0:  # without GPUs, or not started when the trace was taken
        return None
    kind = "" if columns.empty(row, "gpu_type") else columns.text(row, "gpu_type")
    more = {"gpu_types": () if kind in ("", "MISC") else (kind,), "gpu_share": min(asked, 1.0)}
    return _ran(start_s, start_s, columns.number(row, "end_time"), ceil(asked), name, **more)


def _spot(columns: Columns, row: Row) -> TraceJob | None:
    each, kind = columns.number(row, "gpu_request"), columns.text(row, "job_type")
    if kind not in ("HP", "Spot"):
        raise BadFieldError(f"job_type is {kind!r}, must be HP or Spot")
    asked, duration_s = each * columns.count(row, "worker_num"), columns.number(row, "duration")
    if asked == 0 or duration_s == 0:
        return None
    return TraceJob(
        submit_s=columns.number(row, "submit_time"),
        gpus=ceil(asked),
        duration_s=duration_s,
        name=columns.text(row, "job_name"),
        gpu_share=min(asked, 1.0),
        gpu_types=(columns.text(row, "gpu_model"),),
        priority=int(kind == "HP"),
        tenant=columns.text(row, "organization"),
        preemptible=kind == "Spot",
    )


def _word(attempt: Any, name: str) -> str:
    return str(attempt.get(name)).strip().lower()


def philly_job(job: Any) -> TraceJob | None:
    """Return a job of Philly's own log: its last attempt's GPUs, and the time of all its attempts.

    Raises BadFieldError for a job whose fields are not those of the log.
    """
    try:
        attempts = [
            each for each in job["attempts"] if not {_word(each, "start_time"), _word(each, "end_time")} & NOTHING
        ]
        times = [[datetime.fromisoformat(each[end]) for end in ("start_time", "end_time")] for each in attempts]
        spans = [(end - start).total_seconds() for start, end in times]
        gpus = [sum(len(node["gpus"]) for node in each.get("detail", ())) for each in attempts]
        submit_s = datetime.fromisoformat(job["submitted_time"]).replace(tzinfo=timezone.utc).timestamp()
        name, tenant = (str(job[key]).encode("utf-8", "replace").decode() for key in ("jobid", "vc"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadFieldError(f"not a job of Philly's log ({type(error).__name__}: {error})") from None
    if not attempts or gpus[-1] == 0:
        return None
    duration_s = sum(spans)
    if min(spans) < 0.0:
        raise BadFieldError("an attempt ends before it starts")
    return TraceJob(submit_s, gpus[-1], duration_s, name, tenant=tenant) if duration_s else None


_CLUSTER_LOG = ("job_id", "gpu_num", "state", "submit_time", "start_time", "end_time")
PAI_COLUMNS = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu"),
    "gpu_type",
)
"""Columns of Alibaba's task table of 2020, which is published without a line of names."""
_SPOT = ("job_name", "organization", "gpu_model", "gpu_request", "worker_num", "submit_time", "duration", "job_type")
_GAVEL = ("job_type", "total_steps", "arrival_time_s", "scale_factor")
_SHOCKWAVE = ("mode", "priority_weight", "SLO", "duration_s")
_TIRESIAS = ("job_id", "num_gpu", "submit_time", "duration", "model_name")
_CHRONUS = ("iterations", "expect_time_list", "expect_value_list", "best_effort", "job_type")
_OPENB = ("name", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time", "scheduled_time")

LINE_FORMATS = (
    LineFormat(TraceFormat.SHOCKWAVE, (*_GAVEL, *_SHOCKWAVE), "a Shockwave trace", _shockwave),
    LineFormat(TraceFormat.GAVEL, _GAVEL, "a Gavel trace", _gavel),
    LineFormat(TraceFormat.CHRONUS, (*_TIRESIAS, *_CHRONUS), "a Chronus trace", _chronus),
    LineFormat(TraceFormat.TIRESIAS, _TIRESIAS, "a Tiresias trace", _tiresias),
    LineFormat(TraceFormat.OPENB, _OPENB, "an Alibaba openb pod list", _openb),
    LineFormat(
        *(TraceFormat.CLUSTER_LOG, _CLUSTER_LOG, "a cluster log of Helios or Acme", _cluster_log),
        lacks="no model and no GPU type: jobs are given an application by their GPU hours, and run on any type",
    ),
    LineFormat(
        *(TraceFormat.PAI, PAI_COLUMNS, "Alibaba's task table of 2020", _pai),
        lacks="no time of submission (the start stands for it) and no model: applications are given by GPU hours",
    ),
    LineFormat(
        *(TraceFormat.SPOT, _SPOT, "Alibaba's spot jobs of 2026", _spot),
        lacks="no model: applications are given by GPU hours",
    ),
)
"""Formats in the order in which they are tried; a format whose columns contain another's comes before that one."""


def line_format_of(present: set[str]) -> LineFormat | None:
    """Return the format whose columns this header has; None if there is none."""
    return next((each for each in LINE_FORMATS if present.issuperset(each.columns)), None)
