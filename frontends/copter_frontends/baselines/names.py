"""Names of the baselines, on their own so that ``--help`` imports nothing else."""

from __future__ import annotations

BASELINE_NAMES = (
    "gavel",
    "gavel-max-min-fairness",
    "gavel-makespan",
    "gavel-finish-time-fairness",
)
"""The keys of :data:`copter_frontends.baselines.registry.BASELINES`."""
