"""Names of the policies, in a separate file so that ``--help`` imports nothing else."""

from __future__ import annotations

RIGID_NAMES = (
    "fifo",
    "gavel",
    "gavel-max-min-fairness",
    "gavel-makespan",
    "gavel-finish-time-fairness",
    "gavel-proportional-fairness",
    "tiresias",
    "srtf",
    "yarn-cs",
    "themis",
    "shockwave",
    "shockwave-log",
    "edf",
    "3sigma",
    "genie",
)
"""Baselines for jobs of fixed batch size and GPUs."""

HARE_SCHEMES = {
    "hare-gavel-fifo": "gavel_fifo",
    "hare-srtf": "srtf",
    "hare-homo": "sched_homo",
    "hare-allox": "sched_allox",
}
"""Hare's opponents: the keys of :data:`copter_papers.hare.opponents.RULES` by the policy's name."""

HADAR_MODES = {
    "hadar-online": {"mode": "online"},
    "hadar-printed": {"mode": "online", "prices": "printed"},
    "hadar-posted": {"mode": "lp_posted"},
    "hadar-horizon": {"mode": "horizon"},
    "hadar-makespan": {"utility": "makespan"},
    "hadar-finish-time-fairness": {"utility": "ftf"},
    "hadar-throughput": {"utility": "throughput"},
}
"""Arguments of Hadar's other variants in its paper, by the policy's name.

``mode`` and ``utility`` as :class:`copter_frontends.policies.hadar.HadarPolicy` takes them; ``prices`` of its online
rule.
"""

OPPONENT_ENTRIES = "copter_papers.opponents.entries:ENTRIES"
"""Where the entries are of policies that only the papers' experiments need."""

BASELINE_NAMES = (*RIGID_NAMES, "pollux", "lp-star", "milp", "pop-16", "pop-16-copter")
"""The schedulers that the papers compare with: the keys of ``BASELINES`` in ``baselines.py`` and the opponents'."""

DEADLINE_NAMES = ("chronus", "edf", "3sigma", "genie")
"""Policies for jobs with deadlines; for these the command line draws deadlines."""

POLICY_NAMES = (
    *("sia", "hadar", *HADAR_MODES, "hops", "hare", "hare-relaxed", "hare-gang"),
    *(*HARE_SCHEMES, "chronus", *BASELINE_NAMES),
)
"""The keys of :data:`copter_frontends.policies.registry.policies.POLICIES`."""

PROFILING_NAMES = ("chronus", "hare", "hare-relaxed", "hops")
"""Policies that can first run jobs for some minutes to measure their speed, and keep what they measured."""

LP_NAMES = (
    "sia",
    "hadar",
    *(name for name in HADAR_MODES if "online" not in HADAR_MODES[name].values()),
    "hops",
    "hare",
    "hare-relaxed",
    "chronus",
)
"""Policies that solve linear programs with the engine, so that another solver can solve them too."""

METHOD_NAMES = (
    "sia",
    *(name for name in LP_NAMES if name.startswith("hadar")),
    "hops",
    *(name for name in RIGID_NAMES if name.startswith("gavel")),
    "pop-16-copter",
)
"""Policies whose sessions use the method named by ``--method``."""

METHOD_CHOICES = ("auto", "basis", "blocks", "proximal", "price_descent", "coordinate_descent", "simplex", "interior")
"""The values of :attr:`copter.Settings.method`."""
