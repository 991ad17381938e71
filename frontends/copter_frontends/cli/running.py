"""Execution of ``copter simulate``, ``compare`` or ``resume``: its rounds, then its summary and its files."""

from __future__ import annotations

import gc
import os
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from copter.storage.tape import recorded
from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.interruption import Interruption, exit_code_of
from copter_frontends.cli.output import InputError, complain
from copter_frontends.cli.run import Run
from copter_frontends.cli.saving import RunNote
from copter_frontends.cli.summary import facts_of, summary_of
from copter_frontends.report.progress import LiveProgress
from copter_frontends.report.writer import write_report
from copter_frontends.simulator import RoundRecord, Simulation, SimulationError, SimulationResult, save_run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    Attributes
    ----------
    result : SimulationResult
    summary : dict
        The object that ``--json`` prints.
    """

    result: SimulationResult
    summary: dict[str, Any]

    @property
    def exit_code(self) -> int:
        """The command's exit code."""
        return exit_code_of(self.summary)


class Saver:
    """Saves a run to the file of ``--save`` every few rounds and at the end; without a file it does nothing."""

    def __init__(self, simulation: Simulation, note: RunNote) -> None:
        self._simulation, self._path, self._every = simulation, note.asked.save, note.asked.save_every
        self._since = 0
        if self._path is not None:
            simulation.note = note

    def after_round(self) -> None:
        """Save the run if it is due."""
        self._since += 1
        if self._every is not None and self._since >= self._every:
            self.at_end()

    def at_end(self) -> None:
        """Save the run to the file now, if there is one; raises InputError if it cannot be saved."""
        if self._path is None:
            return
        try:
            save_run(self._simulation, self._path)
        except SimulationError as error:
            raise InputError(str(error)) from error
        self._since = 0


def carry_on(run: Run, tape: str | None = None) -> Outcome:
    """Run a new or resumed simulation to its end, then save and write the requested files.

    The rounds after the warm-up are recorded on `tape`, if given.
    """
    asked, simulation, comparison = run.asked, run.simulation, run.comparison
    done, warmup, total = len(simulation.records), run.warmup, run.rounds
    left = None if total is None else max(total - done, 0)
    warmup_left = min(max(warmup - done, 0), left if left is not None else warmup)
    if tape is not None and os.path.lexists(tape):
        raise InputError(f"--tape: {tape} is there already: a tape begins a new file")
    live = LiveProgress(total, simulation.jobs_left, Console(stderr=True, quiet=is_quiet()), done)
    saver = Saver(simulation, run.note)
    with ExitStack() as recording, Interruption() as interruption, live as progress:
        # others solve so few programs that each is compared
        if comparison is not None and comparison.policy.lp_each_round:
            comparison.is_on = warmup_left == 0
        if tape is not None and warmup_left == 0:
            recording.enter_context(recorded(tape))

        def on_round(record: RoundRecord) -> None:
            progress(record)
            saver.after_round()
            if len(simulation.records) - done == warmup_left:
                collected_now()
                if comparison is not None:
                    comparison.is_on = True
                if tape is not None:
                    recording.enter_context(recorded(tape))

        rounds = None if left is None else left - warmup_left
        collected_now()
        result = simulation.run(rounds, None, on_round, warmup_left, interruption)
        try:
            saver.at_end()
        finally:  # if one file cannot be written, the other one may
            ended = simulation.finished if total is None else len(result.rounds) >= total
            if result.skipped:
                first = result.skipped[0]
                complain(f"{asked.policy}: skipped {len(result.skipped)} jobs; the first: {first.id}: {first.reason}")
            facts = facts_of(run, result, None if ended else interruption.name)
            summary = summary_of(run, result, None if ended else interruption.name)
            if comparison is not None and not comparison.rounds:
                complain(f"--compare highs: no round was compared: {comparison.why_none()}")
            if asked.out is not None:
                compared = comparison.table() if comparison is not None else []
                page = write_report(result, asked.out, summary, facts, compared)
                print(f"report: {page}", file=sys.stderr)
    if summary["interrupted"] is not None:
        whole = f" of {total}" if total is not None else ""
        on = f"; go on with: copter resume {shlex.quote(asked.save)}" if asked.save is not None else ""
        complain(f"interrupted after {len(result.rounds)}{whole} rounds: the results are of these{on}")
    return Outcome(result, summary)


def collected_now() -> None:
    """Collect garbage now, between rounds, and exclude the survivors from later collections.

    A simulation's objects live to its end. To collect among them takes longer than a round, and Python would start a
    collection in the middle of a round.
    """
    gc.collect()
    gc.freeze()
