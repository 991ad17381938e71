"""The live line of a running simulation, on stderr."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from copter.problem.figures import percent, seconds
from copter_frontends.simulator import RoundRecord

PLAIN_LINES = 10
"""Number of lines printed during a run if stderr is not a terminal."""


class LiveProgress:
    """Shows jobs, utilisation, round time and gap: one live line on a terminal, otherwise a plain line at intervals.

    Parameters
    ----------
    rounds : int, optional
        Number of rounds of the run; None if unknown.
    jobs : int
        Number of jobs that have not ended; if the number of rounds is unknown, completed jobs show the progress.
    console : Console, optional
        By default stderr; a quiet console shows nothing.
    before : int
        Number of rounds that are simulated already, of a run that is resumed: counting goes on from there.
    """

    def __init__(self, rounds: int | None, jobs: int, console: Console | None = None, before: int = 0) -> None:
        self._console = console or Console(stderr=True)
        self._rounds, self._jobs = rounds, jobs
        self._seen, self._ended, self._lines = before, 0, 0
        self._before = before
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> LiveProgress:
        if self._console.is_terminal:
            done: list[str | ProgressColumn] = [
                SpinnerColumn(),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[line]}"),
                TimeElapsedColumn(),
            ]
            self._bar = Progress(*done, console=self._console, transient=True)
            self._bar.start()
            total, before = (self._rounds, self._before) if self._rounds else (self._jobs or 1, 0)
            self._task = self._bar.add_task("simulate", total=float(total), completed=before, line="starting")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, record: RoundRecord) -> None:
        """Show a round."""
        self._seen += 1
        self._ended += len(record.completed)
        done = self._seen if self._rounds else self._ended
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, line=self._line(record))
            return
        own, of = (done - self._before, self._rounds - self._before) if self._rounds else (done, self._jobs)
        tenths = PLAIN_LINES * own // max(1, of)
        if tenths > self._lines and not self._console.quiet:
            self._lines = tenths
            print(self._line(record), file=self._console.file, flush=True)

    def _line(self, record: RoundRecord) -> str:
        total = f"/{self._rounds}" if self._rounds else ""
        warmup = " (warm-up)" if record.warmup else ""
        return (
            f"round {self._seen}{total}{warmup}: {record.running_jobs:,} running, {record.queued_jobs:,} queued, "
            f"{record.utilisation:.0%} of GPUs, {seconds(record.round_s)}, gap {percent(record.gap)}"
        )
