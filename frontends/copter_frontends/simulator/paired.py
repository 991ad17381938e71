"""Two runs of the same jobs, compared job by job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 2000  # resamples of a bootstrap interval
LEVEL = 95.0  # confidence level of the interval, per cent


def bootstrap(values: Sequence[float] | Floats, seed: int = 0) -> tuple[float, float] | None:
    """Return the 95% confidence interval of the mean, by resampling; None for fewer than two values."""
    found = np.asarray(values, dtype=np.float64)
    if len(found) < 2:
        return None
    rng, means = np.random.default_rng(seed), np.empty(RESAMPLES)
    for k in range(RESAMPLES):  # one resample at a time, to limit the memory
        means[k] = found[rng.integers(0, len(found), len(found))].mean()
    low, high = np.percentile(means, [(100.0 - LEVEL) / 2.0, (100.0 + LEVEL) / 2.0])
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Paired:
    """Completion times, in hours, of the jobs that completed in both of two runs.

    Attributes
    ----------
    names : list of str
    before, after : ndarray (n,)
    only_before, only_after : int
        Number of jobs that completed only in the first, and only in the second run.
    """

    names: list[str]
    before: Floats
    after: Floats
    only_before: int
    only_after: int

    @classmethod
    def of(cls, before: Mapping[str, float], after: Mapping[str, float]) -> Paired:
        """Pair two tables of job to hours, which contain the completed jobs only."""
        names = [name for name in before if name in after]
        return cls(
            names,
            np.array([before[name] for name in names], dtype=np.float64),
            np.array([after[name] for name in names], dtype=np.float64),
            len(before) - len(names),
            len(after) - len(names),
        )

    @property
    def difference(self) -> Floats:
        """Hours after less hours before, of each job."""
        return self.after - self.before

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON; None if no job completed in both runs."""
        some, difference = bool(self.names), self.difference
        interval = bootstrap(difference)
        return {
            "jobs": len(self.names),
            "only_before": self.only_before,
            "only_after": self.only_after,
            "avg_jct_h": [float(self.before.mean()), float(self.after.mean())] if some else None,
            "p99_jct_h": [float(np.percentile(each, 99)) for each in (self.before, self.after)] if some else None,
            "mean_difference_h": float(difference.mean()) if some else None,
            "interval_h": None if interval is None else list(interval),
            "faster": int((difference < 0).sum()),
            "slower": int((difference > 0).sum()),
        }

    def extremes(self, most: int) -> list[tuple[str, float, float]]:
        """Return (job, hours before, hours after) of the jobs that gain most, then of those that lose most."""
        order = np.argsort(self.difference, kind="stable")
        at = [k for k in order[:most].tolist() if self.difference[k] < 0]
        at += [k for k in order[::-1][:most].tolist() if self.difference[k] > 0]
        return [(self.names[k], float(self.before[k]), float(self.after[k])) for k in at]

    def as_text(self, most: int = 4) -> str:
        """Return the figures as lines of text."""
        told = self.as_dict()
        ends = f"{told['only_before']:,} completed only before, {told['only_after']:,} only after"
        if not self.names:
            return f"  no job completed in both runs; {ends}"
        old, new = told["avg_jct_h"]
        inside = told["interval_h"]
        sure = f" (95% of resampled jobs: {inside[0]:+.3f} to {inside[1]:+.3f} h)" if inside else ""
        lines = [
            f"  jobs that completed in both: {told['jobs']:,}; {ends}",
            f"  their average JCT: {old:.3f} h before, {new:.3f} h after, {new - old:+.3f} h{sure}",
            f"  their p99 JCT: {told['p99_jct_h'][0]:.2f} h before, {told['p99_jct_h'][1]:.2f} h after",
            f"  faster: {told['faster']:,}, slower: {told['slower']:,}",
            *(f"    {name}: {a:.3f} h -> {b:.3f} h" for name, a, b in self.extremes(most)),
        ]
        return "\n".join(lines)


def completed_h(jobs: Mapping[str, NDArray[np.generic]]) -> dict[str, float]:
    """Return the hours from submission to completion of every completed job, from a result's columns."""
    hours = jobs["jct_s"].astype(np.float64) / 3600.0
    return {str(name): float(h) for name, h in zip(jobs["id"], hours, strict=True) if np.isfinite(h)}
