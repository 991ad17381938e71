"""Execution of ``copter simulate``, ``compare`` or ``resume``: rounds, summary and report."""

from __future__ import annotations

import gc
import math
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from rich.console import Console

from copter.tape import recorded
from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.interruption import Interruption, exit_code_of
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.output import InputError, complain, print_json
from copter_frontends.cli.preparing import prepare, read_inputs, rewards_of
from copter_frontends.cli.pulse import told
from copter_frontends.cli.saving import RunInputs, Saver
from copter_frontends.policies.registry.names import DEADLINE_NAMES
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policies.registry.waiting_bounds import waiting_bound
from copter_frontends.policy_kit import TrainingThroughputs
from copter_frontends.policy_kit.deadlines import deadline_summary
from copter_frontends.policy_kit.offered_load import offered_load
from copter_frontends.report.progress import LiveProgress
from copter_frontends.report.table import print_summary
from copter_frontends.report.writer import write_report
from copter_frontends.simulator import RoundRecord, Simulation, SimulationResult
from copter_frontends.simulator.alone import GoodputAloneTimes
from copter_frontends.simulator.fairness import fairness_summary
from copter_frontends.simulator.waiting import waiting_summary
from copter_frontends.simulator.workload import Workload
from copter_frontends.vocabulary import Exposed
from copter_frontends.vocabulary.semantics import PRESETS
from copter_frontends.what_if.change import Change


def run_simulation(
    asked: SimulateOptions,
    change: Change | None = None,
    on_result: Callable[[SimulationResult], object] | None = None,
) -> dict[str, Any]:
    """Simulate, write the requested files, and return the summary.

    A what-if change applies from the start; `on_result` is called with the result.
    """
    inputs = read_inputs(asked)
    simulation, workload = prepare(asked, change, inputs)
    if workload.drawn_from is not None and asked.jobs is None and change is None:
        complain(f"{workload.source} (4 a GPU and day; --jobs N for N)")
    if workload.lacks:
        complain(f"{asked.trace} has {workload.lacks}")
    for skipped in workload.skipped_lines[:1]:
        count = len(workload.skipped_lines)
        complain(f"{asked.trace}: skipped {count} lines; the first: line {skipped.line_number}: {skipped.reason}")
    return carry_on(asked, simulation, workload, inputs, asked.tape, on_result)


def carry_on(
    asked: SimulateOptions,
    simulation: Simulation,
    workload: Workload,
    inputs: RunInputs,
    tape: str | None = None,
    on_result: Callable[[SimulationResult], object] | None = None,
) -> dict[str, Any]:
    """Run a new or resumed simulation to its end, then save and write the requested files.

    The rounds after the warm-up are recorded on `tape`, if given.
    """
    done, warmup = len(simulation.records), asked.warmup(simulation.round_s, workload.sampled)
    comparison = _make_comparison(asked, simulation.policy)
    total = asked.counted_rounds(simulation.round_s, warmup)
    left = None if total is None else max(total - done, 0)
    saver, console = Saver(simulation, asked, workload, inputs), Console(stderr=True, quiet=is_quiet())
    warmup_left = min(max(warmup - done, 0), left if left is not None else warmup)
    if tape is not None and os.path.lexists(tape):
        raise InputError(f"--tape: {tape} is there already: a tape begins a new file")
    with (
        ExitStack() as recording,
        Interruption() as interruption,
        LiveProgress(total, simulation.jobs_left, console, done) as progress,
    ):
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
        if on_result is not None:
            on_result(result)
        try:
            saver.at_end()
        finally:  # if one file cannot be written, the other one may
            ended = simulation.finished if total is None else len(result.rounds) >= total
            exposed = Exposed(simulation.policy)
            edits: dict[str, Any] = {} if exposed.edit_log is None else {"edits_per_solve": exposed.edit_log.summary()}
            edits |= {"figures": exposed.figures} if exposed.figures else {}
            summary = _report(
                asked,
                result,
                workload,
                inputs,
                comparison,
                edits,
                None if ended else interruption.name,
                simulation.policy,
            )
    if summary["interrupted"] is not None:
        whole = f" of {total}" if total is not None else ""
        on = f"; go on with: copter resume {shlex.quote(asked.save)}" if asked.save is not None else ""
        complain(f"interrupted after {len(result.rounds)}{whole} rounds: the results are of these{on}")
    return summary


def collected_now() -> None:
    """Collect garbage now, between rounds, and exclude the survivors from later collections.

    A simulation's objects live to its end. To collect among them takes longer than a round, and Python would start a
    collection in the middle of a round.
    """
    gc.collect()
    gc.freeze()


def _report(
    asked: SimulateOptions,
    result: SimulationResult,
    workload: Workload,
    inputs: RunInputs,
    comparison: Any | None,
    edits: Mapping[str, Any],
    by: str | None,
    policy: object,
) -> dict[str, Any]:
    """Print the skipped jobs, compute the summary and write the report.

    `edits` describes how much of the policy's programs was edited, if the policy counts it; `by` is the signal that
    ended the run.
    """
    if result.skipped:
        first = result.skipped[0]
        complain(f"{asked.policy}: skipped {len(result.skipped)} jobs; the first: {first.id}: {first.reason}")
    summary = {**summary_of(asked, result, workload, inputs, comparison, policy), **edits, "interrupted": by}
    if comparison is not None and not comparison.rounds:
        complain(f"--compare highs: no round was compared: {comparison.why_none()}")
    if asked.out is not None:
        _write(asked, result, summary, workload, comparison)
    return summary


def summary_of(
    asked: SimulateOptions,
    result: SimulationResult,
    workload: Workload,
    inputs: RunInputs,
    comparison: Any | None,
    policy: object = None,
) -> dict[str, Any]:
    """Return the object that ``--json`` prints."""
    figures, alone = result.summary(), GoodputAloneTimes(inputs.model)
    return {
        "policy": asked.policy,
        "gpus": result.gpus,
        **figures,
        **fairness_summary(result, workload.jobs, alone),
        "waiting": {
            **waiting_summary(result, workload.jobs, alone),
            "bound": waiting_bound(asked.policy, asked.ageing),
        },
        **_weighted(result, workload),
        **_deadlines(asked, result, workload, inputs, policy),
        "highs": comparison.summary() if comparison is not None else None,
        "seed": asked.seed,
        "mode": asked.mode,
        "profiles": _training(asked, inputs),
        "jobs_submitted": len(workload.jobs),
        "jobs_arrived": _arrived(result, workload),
        "load": load_of(inputs, result, workload),
        "jobs_skipped": len(result.skipped),
        "trace_lines_skipped": len(workload.skipped_lines),
    }


def _arrived(result: SimulationResult, workload: Workload) -> int:
    """Return the number of jobs submitted before the last round began, which could have had GPUs."""
    last_s = result.rounds[-1].now_s if result.rounds else -math.inf
    return sum(job.submit_s <= last_s for job in workload.jobs)


def load_of(inputs: RunInputs, result: SimulationResult, workload: Workload) -> dict[str, Any] | None:
    """Return the load that the jobs offered in the counted rounds; None without such a round."""
    counted = [record for record in result.rounds if not record.warmup]
    if not counted:
        return None
    rates = TrainingThroughputs(inputs.cluster, inputs.model)
    window_s = counted[0].now_s, counted[-1].now_s + result.round_s
    return offered_load(workload.jobs, rates, counted[0].gpus_capacity, *window_s).as_dict()


def _weighted(result: SimulationResult, workload: Workload) -> dict[str, float]:
    """Return Hare's objective, the sum of weight times JCT (hours) over completed jobs, if the workload has weights."""
    if not workload.weights:
        return {}
    pairs = zip(result.jobs["id"], result.jobs["jct_s"], strict=True)
    done = ((str(job_id), float(jct_s)) for job_id, jct_s in pairs)
    total = sum(workload.weights[job_id] * jct_s for job_id, jct_s in done if math.isfinite(jct_s))
    return {"weighted_jct_h": total / 3600.0}


def _deadlines(
    asked: SimulateOptions, result: SimulationResult, workload: Workload, inputs: RunInputs, policy: object
) -> dict[str, Any]:
    """Return deadline figures, if a policy of the comparison handles deadlines."""
    if not asked.deadlines and asked.policy not in DEADLINE_NAMES:
        return {}

    rewards = rewards_of(asked, inputs, workload)
    return deadline_summary(result, POLICIES["chronus"].take(workload.jobs), rewards, policy)


def _training(asked: SimulateOptions, inputs: RunInputs) -> str | None:
    """Return the source of step times for jobs with an agent: profiles or fitted constants; None without agents."""
    if PRESETS[asked.semantics].training == "exact":
        return None
    return inputs.profiles or "fitted constants"


def _make_comparison(asked: SimulateOptions, policy: Any) -> Any | None:
    """Return an observer that also solves every k-th program with HiGHS."""
    if not asked.compare:
        return None
    try:
        from copter_frontends.policy_kit.highs_comparison import HighsComparison  # needs highspy, an optional extra
    except ImportError as error:
        raise InputError(f"--compare highs: {error}; pip install highspy") from error
    comparison = HighsComparison(policy, asked.compare_every, asked.compare_time_limit)
    comparison.around = lambda index: told(lambda: f"HiGHS solves the program of round {index + 1} for comparison")
    return comparison


def _write(
    asked: SimulateOptions, result: SimulationResult, summary: Mapping[str, Any], workload: Workload, comparison: Any
) -> None:
    capacity = result.rounds[-1].gpus_capacity if result.rounds else {}
    facts = {
        "Command": shlex.join(["copter", *sys.argv[1:]]),
        "Cluster": asked.cluster or f"{result.gpus:,} GPUs of the scaled cluster",
        "GPUs by type": ", ".join(f"{count:,} {kind}" for kind, count in capacity.items()),
        "Jobs": workload.source,
        "Seed": str(asked.seed),
        "Configurations": asked.mode,
        "Round": f"{result.round_s:g} s",
    }
    if summary["profiles"] is not None:
        facts["Profiles"] = str(summary["profiles"])
    if summary["interrupted"] is not None:
        facts["Interrupted"] = f"by {summary['interrupted']} after {len(result.rounds):,} rounds, which is all there is"
    rows = comparison.table() if comparison is not None else []
    page = write_report(result, asked.out or ".", summary, facts=facts, comparison=rows)
    print(f"report: {page}", file=sys.stderr)


def show(asked: SimulateOptions, summary: Mapping[str, Any]) -> int:
    """Print the summary as JSON or, unless output is quiet, as a table; returns the exit code.

    The code is 0, or 128 plus the number of the signal that ended the run.
    """
    if asked.as_json:
        print_json(summary)
    elif not is_quiet():
        print_summary(summary, Console())
    return exit_code_of(summary)
