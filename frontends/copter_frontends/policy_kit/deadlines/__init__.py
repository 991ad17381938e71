"""Deadlines: the reward of meeting them, how they are drawn, how often they are missed (papers/chronus.md)."""

from copter_frontends.policy_kit.deadlines.drawn_rewards import MIXES, DrawnRewards, draw_reward
from copter_frontends.policy_kit.deadlines.rewards import (
    NO_REWARDS,
    Rewards,
    StepReward,
    reward_for,
    rewards_for,
    weighted_miss_rate,
)
from copter_frontends.policy_kit.deadlines.scorecard import DeadlineOptions, Promising, deadline_summary

__all__ = [
    "MIXES",
    "NO_REWARDS",
    "DeadlineOptions",
    "DrawnRewards",
    "Promising",
    "Rewards",
    "StepReward",
    "deadline_summary",
    "draw_reward",
    "reward_for",
    "rewards_for",
    "weighted_miss_rate",
]
