"""Names of the baselines, on their own so that ``--help`` imports nothing else."""

from __future__ import annotations

RIGID_NAMES = (
    "gavel",
    "gavel-max-min-fairness",
    "gavel-makespan",
    "gavel-finish-time-fairness",
    "tiresias",
    "srtf",
    "yarn-cs",
    "themis",
    "shockwave",
    "edf",
    "3sigma",
    "genie",
)
"""Baselines for jobs of fixed batch size and GPUs."""

BASELINE_NAMES = (*RIGID_NAMES, "pollux", "lp-star", "milp", "pop-16", "pop-16-copter")
"""The keys of :data:`copter_frontends.baselines.registry.BASELINES`."""

DEADLINE_NAMES = ("chronus", "edf", "3sigma", "genie")
"""Policies for jobs with deadlines; the command line draws some for them."""
