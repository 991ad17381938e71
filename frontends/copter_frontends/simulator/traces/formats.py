"""The formats of other schedulers' traces, one function per format (docs/papers/baselines.md, table of traces)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from copter_frontends.simulator.traces.fields import BadFieldError, Columns
from copter_frontends.simulator.traces.trace import TraceFormat, TraceJob

MINUTE_S = 60.0  # seconds in Chronus's unit of time, inferred from the trace's length
MILLI = 1000.0  # thousandths of a GPU

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
    """

    format: TraceFormat
    columns: tuple[str, ...]
    title: str
    parse: Callable[[Columns, Row], TraceJob | None]


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
)
"""Formats in the order in which they are tried; a format whose columns contain another's comes before that one."""


def line_format_of(present: set[str]) -> LineFormat | None:
    """Return the format whose columns this header has; None if there is none."""
    return next((each for each in LINE_FORMATS if present.issuperset(each.columns)), None)
