"""Shockwave (Zheng et al., NSDI '23): a window of future rounds planned as one mixed-integer program."""

from copter_frontends.baselines.shockwave.policy import ShockwavePolicy
from copter_frontends.baselines.shockwave.window import Window, WindowJob, plan_window

__all__ = ["ShockwavePolicy", "Window", "WindowJob", "plan_window"]
