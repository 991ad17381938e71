"""Readers of public trace formats as CSV, plain or compressed; the header determines the format."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import datetime, time
from itertools import chain

from copter.storage.inputs import MOST_BYTES, contents
from copter_frontends.goodput import ALL_APPLICATIONS
from copter_frontends.simulator.traces.fields import BadFieldError, Columns
from copter_frontends.simulator.traces.formats import LINE_FORMATS, PAI_COLUMNS, LineFormat, line_format_of, philly_job
from copter_frontends.simulator.traces.trace import SkippedLine, Trace, TraceFormat, TraceJob
from copter_frontends.vocabulary import TraceError

PHILLY_COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
WORKLOAD_COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
SHORTEST_S = 60.0  # a log's jobs shorter than this many seconds are left out, as in Sia
MOST_GPU_HOURS = 1000.0  # a log's jobs of more GPU-hours are left out, as in Sia

_Opens = Callable[[io.BytesIO], io.BufferedIOBase]
_COMPRESSED: tuple[tuple[bytes, str, _Opens], ...] = (
    (b"\x1f\x8b", "gzip", gzip.open),
    (b"BZh", "bzip2", bz2.open),
    (b"\xfd7zXZ\x00", "xz", lzma.open),
)
_ZIP_MAGIC = b"PK\x03\x04"
_FOREIGN = ((b"\x28\xb5\x2f\xfd", "packed by zstd: unpack it"), (b"PAR1", "a Parquet file: write it as CSV"))
_TAR_MAGIC_AT = 257  # bytes before "ustar" in a tar archive
_FORMATS = [
    (PHILLY_COLUMNS, "a Philly log"),
    (WORKLOAD_COLUMNS, "a Sia workload"),
    *((each.columns, each.title) for each in LINE_FORMATS),
]
FROM_ANY_TIME = (
    TraceFormat.CLUSTER_LOG,
    TraceFormat.PAI,
    TraceFormat.SPOT,
)  # clock times, or seconds of a longer trace
_EXPECTED = (
    "expected a CSV file, plain or packed by gzip, bzip2 or xz, or Philly's JSON log; copter reads "
    + ", ".join(title for _, title in _FORMATS)
    + f"; write yours as a Sia workload with the columns {','.join(WORKLOAD_COLUMNS)}"
)

_Rows = Iterator[tuple[int, list[str]]]


def read_trace(path: str | os.PathLike[str], applications: Collection[str] = ALL_APPLICATIONS) -> Trace:
    """Read a trace in the format that its header determines.

    Broken lines are skipped and recorded in the trace's `skipped`, each with its line number and reason.

    Parameters
    ----------
    path : path
        A CSV file with the columns ``timestamp,duration,num_gpus,gpu_time,cluster`` (a Philly log),
        ``name,time,application,num_replicas,batch_size`` (a Sia workload; ``weight``, ``priority``, ``tenant``,
        ``preemptible`` (yes or no), ``reservation`` (TYPE:GPUS), ``min_gpus`` and ``max_gpus`` are optional), or those
        of one of :data:`~copter_frontends.simulator.traces.formats.LINE_FORMATS`, in any order, others ignored.
        Gzip is told from the file's first bytes.
    applications : collection of str
        Names that a workload may use.

    Returns
    -------
    Trace

    Raises
    ------
    TraceError
        If the file is missing, damaged, of another format, or without a usable line.
    """
    name = os.fspath(path)
    text = _text_of(name)
    if text.lstrip()[:1] == "[":
        return _philly_log(name, text)
    rows = numbered_rows(name, text)
    first, header = next(rows, (0, []))
    if (
        len(header) == len(PAI_COLUMNS)
        and header[2].replace(".", "").isdecimal()
        and header[4].replace(".", "").isdecimal()
    ):
        rows, header = chain([(first, header)], rows), list(PAI_COLUMNS)
    columns, present = Columns(header), {column.strip() for column in header}
    if present.issuperset(PHILLY_COLUMNS):
        trace = _philly(name, columns, rows)
    elif present.issuperset(WORKLOAD_COLUMNS):
        trace = _workload(name, columns, rows, applications)
    elif (line_format := line_format_of(present)) is not None:
        trace = _lines(name, line_format, columns, rows)
    else:
        raise TraceError(f"{name}: unknown header; {_found(header)}; {_EXPECTED}")
    if not trace.jobs:
        told = f"; the first: line {trace.skipped[0].line_number}: {trace.skipped[0].reason}" if trace.skipped else ""
        counts = f"{len(trace.skipped)} broken, {trace.filtered} left out"
        raise TraceError(f"{name}: no usable line ({counts}{told})")
    return trace


def _text_of(name: str) -> str:
    """Return the whole file, decompressed and decoded."""
    try:
        content = contents(name)
    except OSError as error:
        raise TraceError(f"{name}: cannot be read: {error.strerror or error}") from None
    packed = next((each for each in _COMPRESSED if content.startswith(each[0])), None)
    foreign = next((why for magic, why in _FOREIGN if content.startswith(magic)), None)
    if foreign is not None:
        raise TraceError(f"{name}: {foreign} first")
    try:
        if packed is not None:
            with packed[2](io.BytesIO(content)) as stream:
                content = stream.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise TraceError(f"{name}: has more than {MOST_BYTES:,} bytes once unpacked: this is no trace")
        content = _out_of_archive(name, content)
        return content.decode("utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig")
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        kind = "file" if packed is None else f"{packed[1]} file"
        raise TraceError(f"{name}: damaged {kind} ({error}); fetch it again") from None
    except (tarfile.TarError, zipfile.BadZipFile) as error:
        raise TraceError(f"{name}: damaged archive ({error}); fetch it again") from None
    except (RuntimeError, NotImplementedError) as error:  # a password, or a compression that Python does not know
        raise TraceError(f"{name}: an archive that cannot be unpacked here ({error}); unpack it first") from None
    except UnicodeDecodeError as error:
        raise TraceError(f"{name}: not UTF-8 text ({error.reason} at byte {error.start}); {_EXPECTED}") from None


def _out_of_archive(name: str, content: bytes) -> bytes:
    """Return the one file of a tar or zip archive, as traces are published; anything else as it is."""
    if content[_TAR_MAGIC_AT:].startswith(b"ustar"):
        with tarfile.open(fileobj=io.BytesIO(content)) as packed:
            files = [each for each in packed.getmembers() if each.isfile() and not _is_hidden(each.name)]
            _check_alone(name, [(each.name, each.size) for each in files])
            stream = packed.extractfile(files[0])
            return b"" if stream is None else stream.read()
    if content.startswith(_ZIP_MAGIC):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            inside = [each for each in archive.infolist() if not each.is_dir() and not _is_hidden(each.filename)]
            _check_alone(name, [(each.filename, each.file_size) for each in inside])
            with archive.open(inside[0]) as unpacked:
                return unpacked.read(MOST_BYTES)
    return content


def _is_hidden(name: str) -> bool:
    """Whether a file of an archive is one that a Mac adds by itself, or hidden."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")


def _check_alone(name: str, files: list[tuple[str, int]]) -> None:
    """Raise TraceError unless an archive has one file, of a size that can be read."""
    if len(files) != 1:
        listed = ", ".join(each for each, _ in files[:5]) or "none"
        raise TraceError(
            f"{name}: an archive of {len(files)} files ({listed}); unpack it and give the one with the jobs"
        )
    if files[0][1] > MOST_BYTES:
        raise TraceError(f"{name}: has more than {MOST_BYTES:,} bytes once unpacked: this is no trace")


def _found(header: list[str]) -> str:
    """Return what stands in place of a known header, and what it lacks of the format that it is nearest to."""
    if not header:
        return "found nothing: the file is empty"
    result = "found " + " ".join(",".join(header).split())[:200]
    other = next((each for each in (";", "\t", "|") if header[0].count(each) > 1), None)
    if other is not None:
        sign = {"\t": "tabs"}.get(other, f"'{other}'")
        return f"{result}; fields are separated by {sign} here and must be by commas"
    if header[0].lstrip().startswith("{"):
        return f"{result}; a log in JSON must be one list of jobs, [...]"
    present = {column.strip().lower() for column in header}
    names, title = max(_FORMATS, key=lambda each: len(present.intersection(map(str.lower, each[0]))) / len(each[0]))
    lacking = [each for each in names if each not in {column.strip() for column in header}]
    if 2 * len(present.intersection(map(str.lower, names))) < len(names):
        return result
    letters = ", in these letters" if present.intersection(map(str.lower, lacking)) else ""
    return f"{result}; it is nearest to {title}, and lacks the columns {','.join(lacking)}{letters}"


def numbered_rows(name: str, text: str | None = None) -> _Rows:
    """Return non-empty rows of a CSV file with line numbers, plain or compressed; raises TraceError."""
    reader = csv.reader(io.StringIO(_text_of(name) if text is None else text, newline=""))
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise TraceError(f"{name}: line {reader.line_num}: not CSV ({error}); {_EXPECTED}") from None
        if row:
            yield reader.line_num, row


def _philly(name: str, columns: Columns, rows: _Rows) -> Trace:
    result: list[tuple[datetime, int, float]] = []
    skipped: list[SkippedLine] = []
    filtered = 0
    for line_number, row in rows:
        try:
            columns.check(row)
            when = columns.time(row, "timestamp")
            duration_s = columns.number(row, "duration")
            gpus = columns.count(row, "num_gpus")
            gpu_time_s = columns.number(row, "gpu_time")
        except BadFieldError as error:
            skipped.append(SkippedLine(line_number, str(error)))
            continue
        if duration_s < SHORTEST_S or gpu_time_s >= MOST_GPU_HOURS * 3600.0:
            filtered += 1
        else:
            result.append((when, gpus, duration_s))
    result.sort(key=lambda job: job[0])
    if not result:
        return Trace(name, TraceFormat.PHILLY, (), skipped, filtered)
    start = datetime.combine(result[0][0].date(), time())
    jobs = tuple(TraceJob((when - start).total_seconds(), gpus, duration_s) for when, gpus, duration_s in result)
    return Trace(name, TraceFormat.PHILLY, jobs, skipped, filtered, start)


def _lines(name: str, line_format: LineFormat, columns: Columns, rows: _Rows) -> Trace:
    jobs: list[TraceJob] = []
    skipped: list[SkippedLine] = []
    filtered = 0
    line_of: dict[str, int] = {}
    for line_number, row in rows:
        try:
            columns.check(row)
            job = line_format.parse(columns, row)
            if job is not None and job.name in line_of:
                raise BadFieldError(f"job {job.name!r} was there before, on line {line_of[job.name]}")
        except BadFieldError as error:
            skipped.append(SkippedLine(line_number, str(error)))
            continue
        if job is None:
            filtered += 1
            continue
        if job.name is not None:
            line_of[job.name] = line_number
        jobs.append(replace(job, line_number=line_number))
    ordered = _from_zero(jobs) if line_format.format in FROM_ANY_TIME else jobs
    ordered = sorted(ordered, key=lambda job: job.submit_s)
    return Trace(name, line_format.format, tuple(ordered), skipped, filtered, lacks=line_format.lacks)


def _from_zero(jobs: list[TraceJob]) -> list[TraceJob]:
    """Return the jobs with times from the first submission on."""
    first_s = min((job.submit_s for job in jobs), default=0.0)
    return [replace(job, submit_s=job.submit_s - first_s) for job in jobs]


def _philly_log(name: str, text: str) -> Trace:
    """Read Philly's own log, a JSON list of jobs; a job's number in the list stands for its line."""
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{name}: begins as Philly's JSON log and is not JSON: {error}") from None
    jobs: list[TraceJob] = []
    skipped: list[SkippedLine] = []
    filtered = 0
    number_of: dict[str | None, int] = {}
    for number, each in enumerate(listed, start=1):
        try:
            job = philly_job(each)
            if job is not None and job.name in number_of:
                raise BadFieldError(f"job {job.name!r} was there before, as number {number_of[job.name]}")
        except BadFieldError as error:
            skipped.append(SkippedLine(number, str(error)))
            continue
        if job is None:
            filtered += 1
        else:
            number_of[job.name] = number
            jobs.append(replace(job, line_number=number))
    if not jobs:
        first = f"; the first: job {skipped[0].line_number}: {skipped[0].reason}" if skipped else ""
        raise TraceError(f"{name}: no usable job ({len(skipped)} broken, {filtered} left out{first})")
    lacks = "no model and no GPU type: jobs are given an application by their GPU hours, and run on any type"
    ordered = sorted(_from_zero(jobs), key=lambda job: job.submit_s)
    return Trace(name, TraceFormat.PHILLY_LOG, tuple(ordered), skipped, filtered, lacks=lacks)


def _workload(name: str, columns: Columns, rows: _Rows, applications: Collection[str]) -> Trace:
    jobs: list[TraceJob] = []
    skipped: list[SkippedLine] = []
    line_of: dict[str, int] = {}
    for line_number, row in rows:
        try:
            columns.check(row)
            job = TraceJob(
                submit_s=columns.number(row, "time"),
                gpus=columns.count(row, "num_replicas"),
                name=columns.text(row, "name"),
                application=columns.text(row, "application"),
                batch_size=columns.count(row, "batch_size"),
                **columns.further(row),
            )
            if job.application not in applications:
                known = ", ".join(sorted(applications))
                raise BadFieldError(f"unknown application {job.application!r}; the known ones are: {known}")
            if job.name in line_of:
                raise BadFieldError(f"name {job.name!r} was used before, on line {line_of[job.name]}")
        except BadFieldError as error:
            skipped.append(SkippedLine(line_number, str(error)))
            continue
        line_of[str(job.name)] = line_number
        jobs.append(job)
    return Trace(name, TraceFormat.WORKLOAD, tuple(sorted(jobs, key=lambda job: job.submit_s)), skipped)
