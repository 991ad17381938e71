"""Shockwave (Zheng et al., NSDI '23): a mixed-integer program plans a window of future rounds."""

from copter_papers.opponents.shockwave.policy import ShockwavePolicy
from copter_papers.opponents.shockwave.window import Window, WindowJob, plan_window

__all__ = ["ShockwavePolicy", "Window", "WindowJob", "plan_window"]
