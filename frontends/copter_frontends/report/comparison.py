"""A page that compares several policies on the same jobs: figures, and differences job by job with confidence
intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from copter.problem.figures import seconds
from copter_frontends.report.charts import Chart
from copter_frontends.report.page import page_of
from copter_frontends.report.table import number
from copter_frontends.report.theme import Theme
from copter_frontends.simulator.paired import Paired, bootstrap

TEMPLATE = "comparison.html"
FIGURES = (
    ("jobs completed", "jobs_completed", "{:,.0f}"),
    ("average JCT", "avg_jct_h", "{:.3f} h"),
    ("p99 JCT", "p99_jct_h", "{:.2f} h"),
    ("makespan", "makespan_h", "{:.2f} h"),
    ("utilisation", "utilisation", "{:.1%}"),
    ("hours in the queue per completed job", "queue_h_per_job", "{:.3f}"),
    ("restarts per completed job", "restarts_per_job", "{:.2f}"),
    ("never run, of all jobs", "waiting never_run", "{:,.0f}"),
    ("jobs still waiting", "waiting still_waiting", "{:,.0f}"),
    ("longest wait of a job still waiting", "waiting longest_wait_h", "{:.2f} h"),
    ("largest latency ratio of all jobs", "waiting latency_ratio max", "{:.2f}"),
    ("mean latency ratio of all jobs", "waiting latency_ratio mean", "{:.2f}"),
)
MOST_NAMED = 5  # number of jobs listed that gain most, and that lose most


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One policy's run with one seed: the object of ``--json``, and the hours of every completed job."""

    summary: Mapping[str, Any]
    completed_h: Mapping[str, float]

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return str(self.summary["policy"])

    @property
    def seed(self) -> int:
        """Seed of the jobs."""
        return int(self.summary["seed"])


def comparison_page(runs: Sequence[ComparedRun], command: str) -> str:
    """Return the page of several policies' runs with the same seeds; the others are compared with the first policy.

    Parameters
    ----------
    runs : sequence of ComparedRun
        At least one run. A policy that lacks some of the first policy's seeds is compared over the common ones.
    command : str
        The command that was run.
    """
    names = list(dict.fromkeys(run.policy for run in runs))
    seeds = list(dict.fromkeys(run.seed for run in runs))
    of = {(run.policy, run.seed): run for run in runs}
    pairs = {
        name: {
            seed: Paired.of(of[names[0], seed].completed_h, of[name, seed].completed_h)
            for seed in seeds
            if (name, seed) in of
        }
        for name in names[1:]
    }
    means = [_spread([of[name, seed].summary["avg_jct_h"] for seed in seeds if (name, seed) in of]) for name in names]
    how = (
        "Means over the seeds; in brackets the interval of the mean, 95% of the resampled seeds."
        if len(seeds) > 1
        else "One seed: how much the figures move with the jobs, --seeds says."
    )
    return page_of(
        TEMPLATE,
        [_chart(pairs, names[0])] if any(len(p.names) for each in pairs.values() for p in each.values()) else [],
        names=names,
        seeds=seeds,
        gpus=runs[0].summary["gpus"],
        command=command,
        cards=[
            (name, number(mean, "{:.3f} h"), f"average JCT{_bracketed(interval, '{:.3f}')}")
            for name, (mean, interval) in zip(names, means, strict=True)
        ],
        how=how,
        figures=[_row(label, key, form, names, seeds, of) for label, key, form in FIGURES]
        + [
            ["bound on waiting", *(str(_value(_first(of, name).summary, "waiting bound") or "–") for name in names)],
            ["round, p50", *(seconds(_median(of, name, seeds)) for name in names)],
        ],
        pairs=[_told(name, names[0], each) for name, each in pairs.items()],
    )


def difference(pairs: Mapping[int, Paired]) -> tuple[float | None, tuple[float, float] | None, str]:
    """Return (mean difference in hours, its confidence interval, what was resampled) over the pairs of each seed.

    With several seeds the means of the seeds are resampled, with one seed its jobs.
    """
    with_jobs = [pair.difference for pair in pairs.values() if pair.names]
    if not with_jobs:
        return None, None, "jobs"
    if len(with_jobs) == 1:
        return float(with_jobs[0].mean()), bootstrap(with_jobs[0]), "jobs"
    means = [float(each.mean()) for each in with_jobs]
    return float(np.mean(means)), bootstrap(means), "seeds"


def conclusion(name: str, first: str, pairs: Mapping[int, Paired]) -> str:
    """Return one sentence about the difference between two policies."""
    mean, interval, over = difference(pairs)
    if mean is None:
        return f"No job completed under both {first} and {name}."
    if interval is None:
        return f"{name}: {mean:+.3f} h a job; too few jobs for an interval."
    low, high = interval
    sure = "the interval leaves the sign open" if low <= 0 <= high else f"{name if high < 0 else first} is faster"
    return f"{name}: {mean:+.3f} h a job, {low:+.3f} to {high:+.3f} h (95% of resampled {over}): {sure}."


def _told(name: str, first: str, pairs: Mapping[int, Paired]) -> dict[str, Any]:
    rows, extremes = [], []
    for seed, pair in pairs.items():
        told = pair.as_dict()
        mean = number(told["mean_difference_h"], "{:+.3f}")
        counts = [f"{told[key]:,}" for key in ("jobs", "only_before", "only_after")]
        rows.append([seed, *counts, mean, f"{told['faster']:,}", f"{told['slower']:,}"])
        extremes += [(after - before, job, seed, before, after) for job, before, after in pair.extremes(MOST_NAMED)]
    extremes.sort()
    chosen = extremes[:MOST_NAMED] + extremes[MOST_NAMED:][-MOST_NAMED:]
    return {
        "name": name,
        "rows": rows,
        "conclusion": conclusion(name, first, pairs),
        "extremes": [(job, seed, f"{before:.3f}", f"{after:.3f}") for _, job, seed, before, after in chosen],
    }


def _spread(values: Sequence[float | None]) -> tuple[float | None, tuple[float, float] | None]:
    """Return the mean and the confidence interval of the values that are not None."""
    known = [value for value in values if value is not None]
    return (float(np.mean(known)), bootstrap(known)) if known else (None, None)


def _bracketed(interval: tuple[float, float] | None, form: str) -> str:
    return "" if interval is None else f" ({form.format(interval[0])} to {form.format(interval[1])})"


def _row(
    label: str,
    key: str,
    form: str,
    names: Sequence[str],
    seeds: Sequence[int],
    of: Mapping[tuple[str, int], ComparedRun],
) -> list[str]:
    cells = []
    for name in names:
        mean, interval = _spread([_value(of[name, seed].summary, key) for seed in seeds if (name, seed) in of])
        cells.append(number(mean, form) + _bracketed(interval, form))
    return [label, *cells]


def _value(summary: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path of names; None where there is none."""
    value: Any = summary
    for name in path.split():
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _first(of: Mapping[tuple[str, int], ComparedRun], name: str) -> ComparedRun:
    return next(run for (policy, _), run in of.items() if policy == name)


def _median(of: Mapping[tuple[str, int], ComparedRun], name: str, seeds: Sequence[int]) -> float | None:
    found = [of[name, seed].summary["round_s"]["p50"] for seed in seeds if (name, seed) in of]
    known = [value for value in found if value is not None]
    return float(np.median(known)) if known else None


def _chart(pairs: Mapping[str, Mapping[int, Paired]], first: str) -> Chart:
    """Return a chart of the jobs' differences from the first policy, as cumulative shares."""

    def draw(axes: Any, theme: Theme) -> None:
        for k, (name, by_seed) in enumerate(pairs.items()):
            values = np.sort(np.concatenate([pair.difference for pair in by_seed.values()]))
            if len(values):
                share = 100.0 * np.arange(1, len(values) + 1) / len(values)
                axes.step(values, share, where="post", label=name, color=theme.series[k % len(theme.series)])
        axes.axvline(0.0, color=theme.muted, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_xlabel(f"completion time less that under {first} (h)")
        axes.set_ylabel("jobs (%)")
        axes.set_ylim(0, 103)
        axes.legend(loc="lower right", frameon=False)

    count = sum(len(pair.names) for each in pairs.values() for pair in each.values())
    caption = f"Share of the jobs, of all seeds, whose difference is at most so large; {count:,} pairs."
    return Chart("differences", f"Differences to {first}, job by job", caption, draw)
