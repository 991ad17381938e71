"""Names of the service's policies; cheap to import."""

from __future__ import annotations

GAVEL_NAMES = ("gavel", "gavel-max-min-fairness", "gavel-makespan", "gavel-finish-time-fairness")

RATED = ("allocation", *GAVEL_NAMES, "fifo", "yarn-cs", "tiresias", "srtf", "themis", "chronus")
"""Policies that use throughputs reported to the service."""

MODELLED = ("sia", "hadar", "hops", "pollux")
"""Policies that use models of the jobs' applications (docs/method/goodput.md)."""

POLICY_NAMES = (*RATED, *MODELLED)

NEEDS_WORK = ("srtf", "themis", "chronus", "gavel-makespan", "gavel-finish-time-fairness")
"""Policies whose jobs must state their amount of work."""

DEADLINES = ("chronus",)
"""Policies that promise deadlines."""
