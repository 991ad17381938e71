"""Deadlines: what ending by a time is worth, how deadlines are drawn, how often they are missed (papers/chronus.md)."""

from copter_frontends.deadlines.drawn_rewards import MIXES, DrawnRewards, deadline_summary, draw_reward
from copter_frontends.deadlines.rewards import NO_REWARDS, Rewards, StepReward, reward_for, weighted_miss_rate

__all__ = [
    "MIXES",
    "NO_REWARDS",
    "DrawnRewards",
    "Rewards",
    "StepReward",
    "deadline_summary",
    "draw_reward",
    "reward_for",
    "weighted_miss_rate",
]
