"""Shared parts of the policies: clocks, pins, plan changes, the gap, nodes, throughputs."""

from copter_frontends.policy_kit.can_run import CanRun, RunsWith, anywhere, checked_rate
from copter_frontends.policy_kit.checks import check_nodes, check_round_s, check_times, require_free, require_gpus
from copter_frontends.policy_kit.choice import Choice, Wanted
from copter_frontends.policy_kit.deadline_guard import by_deadline, kept_between, that_fit
from copter_frontends.policy_kit.edit_clock import EditClock
from copter_frontends.policy_kit.edit_log import EditLog, Edits
from copter_frontends.policy_kit.gap import OPTIMAL_GAP, relative_gap, status_of
from copter_frontends.policy_kit.held_back import HeldBack
from copter_frontends.policy_kit.lp_policy import LpPolicy
from copter_frontends.policy_kit.making_room import jobs_on, jobs_to_stop
from copter_frontends.policy_kit.node_inventory import NodeInventory
from copter_frontends.policy_kit.plan_changes import PlanChanges, plan_between, plan_changes
from copter_frontends.policy_kit.round_policy import RoundPolicy
from copter_frontends.policy_kit.seen_times import SeenTimes, iteration_time
from copter_frontends.policy_kit.service_book import BookedService, ServiceBook
from copter_frontends.policy_kit.throughputs import (
    GIVEN,
    GoodputThroughputs,
    Throughputs,
    ThroughputTable,
    rates_at_start,
    representative_throughputs,
    requested_gpus,
)
from copter_frontends.policy_kit.training_throughputs import (
    Course,
    TimedThroughputs,
    TrainingThroughputs,
    share_of_time,
)
from copter_frontends.vocabulary import Attained
from copter_frontends.vocabulary.stage_clock import StageClock

__all__ = [
    "GIVEN",
    "OPTIMAL_GAP",
    "Attained",
    "BookedService",
    "CanRun",
    "Choice",
    "Course",
    "EditClock",
    "EditLog",
    "Edits",
    "GoodputThroughputs",
    "HeldBack",
    "LpPolicy",
    "NodeInventory",
    "PlanChanges",
    "RoundPolicy",
    "RunsWith",
    "SeenTimes",
    "ServiceBook",
    "StageClock",
    "ThroughputTable",
    "Throughputs",
    "TimedThroughputs",
    "TrainingThroughputs",
    "Wanted",
    "anywhere",
    "by_deadline",
    "check_nodes",
    "check_round_s",
    "check_times",
    "checked_rate",
    "iteration_time",
    "jobs_on",
    "jobs_to_stop",
    "kept_between",
    "plan_between",
    "plan_changes",
    "rates_at_start",
    "relative_gap",
    "representative_throughputs",
    "requested_gpus",
    "require_free",
    "require_gpus",
    "share_of_time",
    "status_of",
    "that_fit",
]
